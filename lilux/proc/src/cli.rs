//! The command line and its help.

// These comments are printed as help, where backticks would be noise.
#![allow(clippy::doc_markdown)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::error::Error;
use crate::platform::Choice;
use crate::request::{Background, EnvMap, EnvMode, Program};
use crate::text::OsText;

/// Run processes for Lilux: no orphans, no deadlocks, no lost output.
///
/// Every command prints one JSON object on stdout. The exit code is 0 if "success" (or "alive") is
/// true, 1 if it is false, and 2 if the request is invalid.
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

Other users can see a command line. Programs pass secrets as JSON on stdin instead:
  echo '{\"command\": \"env\", \"env\": {\"TOKEN\": \"…\"}}' | lilux-proc exec --request
or send many requests over one connection: see lilux-proc serve --help."
)]
pub struct Cli {
    /// The mechanisms of the operating system to use.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHICH")]
    pub platform: Choice,
    /// The operation.
    #[command(subcommand)]
    pub command: Command,
}

/// The operations.
#[derive(Subcommand)]
pub enum Command {
    /// Run a command, wait for it, and print its output and exit code.
    ///
    /// When the command ends, processes that it left running are ended too. On timeout, its process
    /// group gets SIGTERM, then the whole process tree gets SIGKILL. Partial output is kept.
    #[command(after_help = "\
Examples:
  lilux-proc exec -- echo hello
  lilux-proc exec --stdin hello -- cat
  lilux-proc exec --env-mode exact --env PATH=/usr/bin -- env
  echo '{\"command\": \"sort\", \"stdin\": \"b\\na\\n\"}' | lilux-proc exec --request

Fields of a request: command, args, cwd, env, env_mode, stdin, timeout, grace, output_limit,
background, stdout_file, stderr_file, autopsy, autopsy_budget, confinement, observe.

A confinement says what the command may touch: read, write, execute, read_only and hidden (lists of
absolute paths), net (\"none\", \"all\" or a list of hosts: \"api.example.org:443\"), unix, tmp (variables that get private folders), limits
(memory, cpu, processes, file_size) and require (parts without which it is not started).")]
    Exec(ExecArgs),
    /// Start a command that outlives its caller, and print its pid.
    #[command(after_help = "\
Examples:
  lilux-proc spawn -- sleep 60
  lilux-proc spawn --log-file server.log -- python3 -m http.server 8000

Fields of a request: command, args, cwd, env, env_mode, log_file.")]
    Spawn(SpawnArgs),
    /// End a process with SIGTERM, and with SIGKILL after a grace period.
    ///
    /// If the process leads a process group, the whole group is ended. The method is
    /// "terminated", "killed" or "already_dead".
    Kill(KillArgs),
    /// Report whether a process is alive. A zombie is not.
    Status(StatusArgs),
    /// Report which parts of a confinement this machine can enforce.
    Probe,
    /// Serve the same operations, many at once, over one connection.
    ///
    /// A frame has four parts: a u32 (little-endian), the number of bytes that follow; a u32, the
    /// number of header bytes; the header, a JSON object; the payload, raw bytes.
    ///
    /// Requests have a header {"id": 1, "op": "exec", …} with the fields that the commands accept
    /// with --request; the payload is the job's stdin. "stream": true sends output while the job
    /// runs, and "capture": false omits it from the result. {"id": 2, "op": "cancel", "target": 1}
    /// ends request 1; "pause" and "resume" control the output of a streaming request; "look" returns
    /// what request 1 has written so far, from byte "stdout_from" and "stderr_from" (negative: from
    /// the end), up to "limit" bytes of each; "probe" reports which parts of a confinement this machine
    /// can enforce.
    ///
    /// Answers have one of these headers: {"id": 1, "kind": "result", …}, with a payload of
    /// stdout_bytes bytes of stdout, then stderr_bytes of stderr; {"id": 1, "kind": "stdout"} or
    /// "stderr", with a chunk of output as payload; {"id": 1, "kind": "error", "error": …,
    /// "message": …}.
    ///
    /// When the connection closes, running jobs are killed. Spawned processes keep running.
    #[command(verbatim_doc_comment)]
    Serve(ServeArgs),
    /// Create namespaces for confined jobs and keep them until stdin is closed. Used by lilux-proc
    /// itself.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    HoldNamespaces(HoldArgs),
}

/// Flags that `exec` and `spawn` share.
#[derive(Args)]
pub struct ProgramArgs {
    /// Read the request as one JSON object from stdin instead of from flags.
    #[arg(long, conflicts_with_all = ["command", "env", "cwd", "env_mode"])]
    pub request: bool,
    /// The working directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// An environment variable; can be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_env)]
    env: Vec<(String, OsString)>,
    /// How to combine the variables with the environment of lilux-proc.
    #[arg(long, value_enum, default_value_t)]
    env_mode: EnvMode,
    /// The command and its arguments, run without a shell.
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "request")]
    command: Vec<OsString>,
}

/// Flags of `exec`.
#[derive(Args)]
pub struct ExecArgs {
    /// Shared flags.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The time limit in seconds; 0 means no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_TIMEOUT,
        allow_negative_numbers = true, conflicts_with = "request")]
    pub timeout: f64,
    /// Seconds between SIGTERM and SIGKILL on timeout.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_JOB_GRACE,
        allow_negative_numbers = true, conflicts_with = "request")]
    pub grace: f64,
    /// Bytes to keep of each stream, half from its start and half from its end.
    #[arg(long, value_name = "BYTES", default_value_t = crate::request::DEFAULT_OUTPUT_LIMIT,
        conflicts_with = "request")]
    pub output_limit: usize,
    /// Text for stdin.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["stdin_file", "request"])]
    pub stdin: Option<OsString>,
    /// A file for stdin; - passes on the stdin of lilux-proc.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stdin_file: Option<PathBuf>,
    /// What to do with processes that are still running when the command ends. With "keep", a
    /// timeout sends SIGKILL at once.
    #[arg(long, value_enum, default_value_t, conflicts_with = "request")]
    pub background: Background,
    /// Also write all of stdout to this file.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stdout_file: Option<PathBuf>,
    /// Also write all of stderr to this file.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub stderr_file: Option<PathBuf>,
    /// When to find out what the processes wait for, before they are ended.
    #[arg(long, value_enum, default_value_t, conflicts_with = "request")]
    pub autopsy: crate::request::AutopsyWhen,
}

/// Flags of `spawn`.
#[derive(Args)]
pub struct SpawnArgs {
    /// Shared flags.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Append stdout and stderr to this file; without it they are discarded.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub log_file: Option<PathBuf>,
}

/// Flags of `kill`.
#[derive(Args)]
pub struct KillArgs {
    /// The pid of the process.
    pub pid: i32,
    /// Seconds between SIGTERM and SIGKILL.
    #[arg(long, value_name = "SECONDS", default_value_t = crate::request::DEFAULT_KILL_GRACE,
        allow_negative_numbers = true)]
    pub grace: f64,
    /// The start time that spawn printed; a process that has reused the pid is left alone.
    #[arg(long, value_name = "TIME")]
    pub start_time: Option<u64>,
}

/// Flags of `status`.
#[derive(Args)]
pub struct StatusArgs {
    /// The pid of the process.
    pub pid: i32,
    /// The start time that spawn printed; a process that has reused the pid is not alive.
    #[arg(long, value_name = "TIME")]
    pub start_time: Option<u64>,
}

/// Flags of `serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// The number of an inherited socket to use instead of stdin and stdout.
    #[arg(long, value_name = "NUMBER")]
    pub fd: Option<i32>,
}

/// Flags of `hold-namespaces`.
#[cfg(target_os = "linux")]
#[derive(Args)]
pub struct HoldArgs {
    /// Create an empty network namespace.
    #[arg(long)]
    pub net: bool,
    /// Listen in it at this port of the loopback interface, and send the listener over stdin.
    #[arg(long, value_name = "PORT", requires = "net")]
    pub listen: Option<u16>,
    /// Stays writable.
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Becomes read-only although it lies in a writable folder.
    #[arg(long, value_name = "PATH")]
    pub read_only: Vec<PathBuf>,
    /// Is replaced by an empty file or folder.
    #[arg(long, value_name = "PATH")]
    pub hidden: Vec<PathBuf>,
}

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The operation succeeded.
    Success,
    /// The operation failed.
    Failure,
    /// The request is invalid.
    Misuse,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Misuse => 2,
        }
    }

    /// The status of a process that ended with this exit code.
    pub fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Success,
            2 => Self::Misuse,
            _ => Self::Failure,
        }
    }

    /// Prints an error to stderr.
    pub fn report(result: Result<Self, Error>) -> Self {
        result.unwrap_or_else(|error| {
            eprintln!("lilux-proc: {error}");
            Self::Failure
        })
    }
}

impl From<ProgramArgs> for Program {
    fn from(args: ProgramArgs) -> Self {
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
