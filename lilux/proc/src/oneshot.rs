//! The commands that do one thing and print one JSON object.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use serde::Serialize;
use serde_json::json;

use crate::checks::check_exec;
use crate::cli::{ExecArgs, KillArgs, SpawnArgs, StatusArgs, What};
use crate::detach::spawn_detached;
use crate::job::{self, Control, NoLookout, Surroundings};
use crate::launch::{Launcher, os_message};
use crate::lineage::{self, WorkerParts};
use crate::platform::Platform;
use crate::process;
use crate::report::{ExecReport, Finished};
use crate::request::{self, Background, Exec, Invalid, Operation, Spawn};
use crate::server::Event;
use crate::text::OsText;
use crate::tree::Supervision;
use crate::wake::Waker;

const FAILED: u8 = 1;
const MISUNDERSTOOD: u8 = 2;

/// `lilux-proc exec`. The job runs below a guardian, as one of a connection does, unless its
/// background processes are to be kept.
pub fn exec(args: ExecArgs, platform: Platform) -> io::Result<u8> {
    let (exec, input) = match exec_request(args)? {
        Ok(request) => request,
        Err(invalid) => return misunderstood(&invalid),
    };
    lineage::prepare()?;
    if exec.background == Background::Keep {
        let launcher = Launcher::new(platform);
        let control = Arc::new(Control::new(Waker::new()?));
        let cancel = Arc::clone(&control);
        lineage::on_signal(move || cancel.cancel())?;
        let supervision = Supervision::loose(platform);
        return print_exec(&job::run(
            exec,
            input,
            &Surroundings {
                launcher: &launcher,
                supervision: &supervision,
                control: &control,
                chunks: None,
            },
            &mut NoLookout,
        ));
    }
    let lineage = lineage::start(platform, move |line| run_one(exec, input, line, platform))?;
    lineage.hang_up_on_signal()?;
    lineage.keep()
}

/// The worker of a single job. The main thread sweeps, another runs the job.
fn run_one(exec: Exec, input: Vec<u8>, line: UnixStream, platform: Platform) -> io::Result<u8> {
    let (sender, events) = channel();
    let WorkerParts { launcher, supervision, keeper } =
        lineage::worker_parts(line, platform, &sender)?;
    let control = Arc::new(Control::new(Waker::new()?));
    let hung_up = sender.clone();
    lineage::relay(keeper.reading, None, move || drop(hung_up.send(Event::Closed)))?;
    let on_signal = sender.clone();
    lineage::on_signal(move || drop(on_signal.send(Event::Closed)))?;
    let supervision = Arc::new(supervision);
    let (job_control, job_supervision) = (Arc::clone(&control), Arc::clone(&supervision));
    let job = std::thread::spawn(move || {
        let _idle = SendIdle(sender);
        let around = Surroundings {
            launcher: &launcher,
            supervision: &job_supervision,
            control: &job_control,
            chunks: None,
        };
        job::run(exec, input, &around, &mut NoLookout)
    });
    for event in events {
        match event {
            #[cfg(target_os = "linux")]
            Event::Sweep(request) => supervision.sweep_for(&request),
            Event::Closed => control.cancel(),
            Event::Idle => break,
        }
    }
    match job.join() {
        Ok(finished) => print_exec(&finished),
        Err(_) => Ok(FAILED),
    }
}

/// Tells the main thread that the job's thread is done, also if it panicked.
struct SendIdle(Sender<Event>);

impl Drop for SendIdle {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Idle);
    }
}

fn exec_request(args: ExecArgs) -> io::Result<Result<(Exec, Vec<u8>), Invalid>> {
    let mut exec = if args.what.request {
        match request::parse_operation("exec", &read_all(&mut io::stdin())?) {
            Ok(Operation::Exec(exec)) => *exec,
            Ok(_) => unreachable!("exec is parsed as exec"),
            Err(invalid) => return Ok(Err(invalid)),
        }
    } else {
        let what = What::from(args.what);
        Exec {
            command: what.command,
            args: what.args,
            cwd: what.cwd,
            env: what.env,
            env_mode: what.env_mode,
            timeout: (args.timeout != 0.0).then_some(args.timeout),
            grace: args.grace,
            output_limit: args.output_limit,
            stdin: args.stdin.as_deref().map(OsText::from),
            background: args.background,
            stdout_file: args.stdout_file.map(|path| OsText::from(path.as_os_str())),
            stderr_file: args.stderr_file.map(|path| OsText::from(path.as_os_str())),
            ..Exec::default()
        }
    };
    if let Err(invalid) = check_exec(&exec) {
        return Ok(Err(invalid));
    }
    let input = match (exec.stdin.take(), &args.stdin_file) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(path)) if path.as_os_str() == "-" => read_all(&mut io::stdin())?,
        (None, Some(path)) => match File::open(path).and_then(|mut file| read_all(&mut file)) {
            Ok(bytes) => bytes,
            Err(error) => {
                let message = format!("--stdin-file {}: {}", path.display(), os_message(&error));
                return Ok(Err(Invalid { kind: "invalid_request", message }));
            }
        },
        (None, None) => Vec::new(),
    };
    Ok(Ok((exec, input)))
}

/// `lilux-proc spawn`.
pub fn spawn(args: SpawnArgs, platform: Platform) -> io::Result<u8> {
    let spawn = if args.what.request {
        match request::parse_operation("spawn", &read_all(&mut io::stdin())?) {
            Ok(Operation::Spawn(spawn)) => *spawn,
            Ok(_) => unreachable!("spawn is parsed as spawn"),
            Err(invalid) => return misunderstood(&invalid),
        }
    } else {
        let what = What::from(args.what);
        Spawn {
            command: what.command,
            args: what.args,
            cwd: what.cwd,
            env: what.env,
            env_mode: what.env_mode,
            log_file: args.log_file.map(|path| OsText::from(path.as_os_str())),
            ..Spawn::default()
        }
    };
    lineage::prepare()?;
    let report = spawn_detached(&Launcher::new(platform), &spawn);
    print(&report, report.success)
}

/// `lilux-proc kill`.
pub fn kill(args: &KillArgs, platform: Platform) -> io::Result<u8> {
    let header = json!({"pid": args.pid, "grace": args.grace, "start_time": args.start_time});
    match request::parse_operation("kill", header.to_string().as_bytes()) {
        Ok(Operation::Kill(kill)) => {
            let report = process::kill(platform, &kill);
            print(&report, report.success)
        }
        Ok(_) => unreachable!("kill is parsed as kill"),
        Err(invalid) => misunderstood(&invalid),
    }
}

/// `lilux-proc status`.
pub fn status(args: &StatusArgs, platform: Platform) -> io::Result<u8> {
    let header = json!({"pid": args.pid, "start_time": args.start_time});
    match request::parse_operation("status", header.to_string().as_bytes()) {
        Ok(Operation::Status(status)) => match process::status(platform, &status) {
            Ok(report) => print(&report, report.alive),
            Err(error) => print(&json!({"pid": args.pid, "error": error}), false),
        },
        Ok(_) => unreachable!("status is parsed as status"),
        Err(invalid) => misunderstood(&invalid),
    }
}

fn read_all(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A result with its output as text; bytes that are not UTF-8 become U+FFFD.
#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    report: &'a ExecReport,
    stdout: String,
    stderr: String,
}

fn print_exec(finished: &Finished) -> io::Result<u8> {
    let printed = Printed {
        report: &finished.report,
        stdout: lossy(&finished.stdout),
        stderr: lossy(&finished.stderr),
    };
    print(&printed, finished.report.success)
}

fn lossy(parts: &[Vec<u8>]) -> String {
    String::from_utf8_lossy(&parts.concat()).into_owned()
}

fn misunderstood(invalid: &Invalid) -> io::Result<u8> {
    print(&json!({"success": false, "error": invalid.message}), false)?;
    Ok(MISUNDERSTOOD)
}

fn print(value: &impl Serialize, success: bool) -> io::Result<u8> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    Ok(if success { 0 } else { FAILED })
}
