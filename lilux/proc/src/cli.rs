//! The commands that a person types, and their help.

// The comments here are shown to people as help, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::platform::Choice;
use crate::request::{Background, EnvMap, EnvMode};
use crate::text::OsText;

/// Runs processes for Lilux: no orphan, no deadlock, no lost output.
///
/// Every command prints one JSON object on stdout. The exit code is 0 if that object says success
/// (or alive), 1 if not, 2 if the request could not be understood.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  lilux-proc exec -- echo hello
  lilux-proc exec --timeout 5 --cwd /tmp -- sh -c 'ls | wc -l'
  lilux-proc spawn --log-file server.log -- python3 -m http.server 8000
  lilux-proc status 12345
  lilux-proc kill 12345 --grace 1

A program should not put secrets on a command line, where others can see them. It sends the same
request as JSON on stdin instead:
  echo '{\"command\": \"env\", \"env\": {\"TOKEN\": \"…\"}}' | lilux-proc exec --request
or keeps one connection open for many requests: see lilux-proc serve --help."
)]
pub struct Cli {
    /// Which mechanisms to use.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHICH")]
    pub platform: Choice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The operations.
#[derive(Subcommand)]
pub enum Command {
    /// Run a command, wait for it, and print its output and exit code.
    ///
    /// When the command ends, processes that it left running are ended too. When the time is up,
    /// its process group gets SIGTERM, then the whole tree SIGKILL; what it printed is kept.
    #[command(after_help = "\
Examples:
  lilux-proc exec -- echo hello
  lilux-proc exec --stdin hello -- cat
  lilux-proc exec --env-mode exact --env PATH=/usr/bin -- env
  echo '{\"command\": \"sort\", \"stdin\": \"b\\na\\n\"}' | lilux-proc exec --request

The keys of a request: command, args, cwd, env, env_mode, stdin, timeout, grace, output_limit,
background, stdout_file, stderr_file.")]
    Exec(ExecArgs),
    /// Start a command that outlives its caller, and print its pid once it runs.
    #[command(after_help = "\
Examples:
  lilux-proc spawn -- sleep 60
  lilux-proc spawn --log-file server.log -- python3 -m http.server 8000

The keys of a request: command, args, cwd, env, env_mode, log_file.")]
    Spawn(SpawnArgs),
    /// End a process: SIGTERM, some seconds of grace, SIGKILL.
    ///
    /// If the process leads a process group, the whole group is ended. The method is
    /// "terminated", "killed" or "already_dead".
    Kill(KillArgs),
    /// Say whether a process is alive. A zombie is not.
    Status(StatusArgs),
    /// Do the same operations over one connection, many at once.
    ///
    /// A frame is: u32 (little-endian) number of bytes that follow; u32 number of header bytes;
    /// header, a JSON object; payload, raw bytes.
    ///
    /// Requests have a header {"id": 1, "op": "exec", …} with the keys that the commands take from
    /// --request; the payload is the job's stdin. "stream": true sends output as it comes, and
    /// "capture": false keeps it out of the result. {"id": 2, "op": "cancel", "target": 1} ends
    /// request 1; "pause" and "resume" hold up the output of a streaming one.
    ///
    /// Answers have a header {"id": 1, "kind": "result", …}, whose payload is stdout_bytes bytes of
    /// stdout, then stderr_bytes of stderr; {"id": 1, "kind": "stdout"} or "stderr" with a chunk as
    /// payload; or {"id": 1, "kind": "error", "error": …, "message": …}.
    ///
    /// When the connection closes, running jobs are killed; what was spawned lives on.
    #[command(verbatim_doc_comment)]
    Serve(ServeArgs),
}

/// Flags that `exec` and `spawn` share.
#[derive(Args)]
pub struct WhatArgs {
    /// Read the request as one JSON object from stdin instead of from flags.
    #[arg(long, conflicts_with_all = ["command", "env", "cwd", "env_mode"])]
    pub request: bool,
    /// Where it starts.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable of its environment; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_env)]
    env: Vec<(String, OsString)>,
    /// Lay the variables over this environment, or use them alone.
    #[arg(long, value_enum, default_value_t)]
    env_mode: EnvMode,
    /// The command and its arguments; no shell is involved.
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "request")]
    command: Vec<OsString>,
}

/// Flags of `exec`.
#[derive(Args)]
pub struct ExecArgs {
    /// Shared flags.
    #[command(flatten)]
    pub what: WhatArgs,
    /// Seconds that it may run; 0 means no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_TIMEOUT,
        allow_negative_numbers = true, conflicts_with = "request")]
    pub timeout: f64,
    /// Seconds between SIGTERM and SIGKILL when the time is up.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_JOB_GRACE,
        allow_negative_numbers = true, conflicts_with = "request")]
    pub grace: f64,
    /// Bytes kept of each stream: the first half and the last.
    #[arg(long, value_name = "BYTES", default_value_t = crate::request::DEFAULT_OUTPUT_LIMIT,
        conflicts_with = "request")]
    pub output_limit: usize,
    /// Text for its stdin.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["stdin_file", "request"])]
    pub stdin: Option<OsString>,
    /// A file for its stdin; - takes the stdin of lilux-proc.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stdin_file: Option<PathBuf>,
    /// What happens to processes that it leaves running. With "keep", a timeout kills the whole
    /// tree without asking.
    #[arg(long, value_enum, default_value_t, conflicts_with = "request")]
    pub background: Background,
    /// Also write the whole of stdout here.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stdout_file: Option<PathBuf>,
    /// Also write the whole of stderr here.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stderr_file: Option<PathBuf>,
}

/// Flags of `spawn`.
#[derive(Args)]
pub struct SpawnArgs {
    /// Shared flags.
    #[command(flatten)]
    pub what: WhatArgs,
    /// Append stdout and stderr here; without it they go nowhere.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub log_file: Option<PathBuf>,
}

/// Flags of `kill`.
#[derive(Args)]
pub struct KillArgs {
    /// The process.
    pub pid: i32,
    /// Seconds between SIGTERM and SIGKILL.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_KILL_GRACE,
        allow_negative_numbers = true)]
    pub grace: f64,
    /// What spawn printed; a process that was given the pid since is left alone.
    #[arg(long, value_name = "TIME")]
    pub start_time: Option<u64>,
}

/// Flags of `status`.
#[derive(Args)]
pub struct StatusArgs {
    /// The process.
    pub pid: i32,
    /// What spawn printed; a process that was given the pid since is another one.
    #[arg(long, value_name = "TIME")]
    pub start_time: Option<u64>,
}

/// Flags of `serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// An inherited socket to serve, instead of stdin and stdout.
    #[arg(long, value_name = "NUMBER")]
    pub fd: Option<i32>,
}

/// The parts of a request that `exec` and `spawn` share.
pub struct What {
    /// The program.
    pub command: OsText,
    /// Its arguments.
    pub args: Vec<OsText>,
    /// Where it starts.
    pub cwd: Option<OsText>,
    /// Its variables.
    pub env: EnvMap,
    /// How they are used.
    pub env_mode: EnvMode,
}

impl From<WhatArgs> for What {
    fn from(args: WhatArgs) -> Self {
        let mut words = args.command.iter().map(|word| OsText::from(word.as_os_str()));
        let env = args.env.iter();
        Self {
            command: words.next().unwrap_or_default(),
            args: words.collect(),
            cwd: args.cwd.map(|cwd| OsText::from(cwd.as_os_str())),
            env: EnvMap(
                env.map(|(name, value)| (OsText::from(name.as_str()), value.as_os_str().into()))
                    .collect(),
            ),
            env_mode: args.env_mode,
        }
    }
}

fn parse_env(text: &str) -> Result<(String, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((name.to_owned(), std::ffi::OsStr::from_bytes(value.as_bytes()).to_owned()))
        }
        _ => Err("expected NAME=VALUE".into()),
    }
}
