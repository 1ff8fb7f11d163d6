//! The commands that do one operation and print one JSON object.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use serde::Serialize;
use serde_json::json;

use crate::cli::{ExecArgs, Exit, KillArgs, SpawnArgs, StatusArgs};
use crate::confine::Confiner;
use crate::detach::spawn_detached;
use crate::error::{Error, PreparedError};
use crate::frame::MAX_ANSWER;
use crate::helper::{self, WorkerParts};
use crate::job::{self, Context, Control, EndRequest, NoWatch};
use crate::launch::Launcher;
use crate::platform::Platform;
use crate::process;
use crate::report::{ExecReport, Finished};
use crate::request::{Background, Exec, Kill, Program, Spawn, Start, Status};
use crate::server::Event;
use crate::text::OsText;
use crate::tree::Supervision;
use crate::wake::Waker;

/// `lilux-proc exec`. The job runs below a guardian, as over a connection, unless its background
/// processes are kept.
pub fn exec(args: ExecArgs, platform: Platform) -> Result<Exit, Error> {
    let (exec, input) = match exec_request(args)? {
        Ok(request) => request,
        Err(error) => return print_refusal(&error),
    };
    helper::prepare()?;
    if exec.background == Background::Keep {
        return run_without_guardian(exec, input, platform);
    }
    let keeper = helper::start(platform, move |keeper| run_worker(exec, input, keeper, platform))?;
    keeper.hang_up_on_signal()?;
    keeper.run()
}

fn run_without_guardian(exec: Exec, input: Vec<u8>, platform: Platform) -> Result<Exit, Error> {
    let launcher = Launcher::new(platform);
    let supervision = Supervision::loose(platform);
    let control = Arc::new(Control::new(Waker::new()?));
    let cancel = Arc::clone(&control);
    helper::on_signal(move || cancel.end(EndRequest::Cancel))?;
    let context = Context {
        launcher: &launcher,
        supervision: &supervision,
        control: &control,
        chunks: None,
        prepared: None,
    };
    print_exec(&job::run(exec, input, &context, &mut NoWatch)?)
}

/// The worker of a single job. The main thread ends orphans, another one runs the job.
fn run_worker(
    exec: Exec,
    input: Vec<u8>,
    keeper: UnixStream,
    platform: Platform,
) -> Result<Exit, Error> {
    let (sender, events) = channel();
    let parts = WorkerParts::new(keeper, platform, &sender)?;
    let control = Arc::new(Control::new(Waker::new()?));
    let keeper_died = sender.clone();
    helper::relay(parts.from_keeper, MAX_ANSWER, None, move || {
        drop(keeper_died.send(Event::Closed));
    })?;
    let signalled = sender.clone();
    helper::on_signal(move || drop(signalled.send(Event::Closed)))?;
    let (launcher, supervision) = (parts.launcher, Arc::new(parts.supervision));
    let (job_control, job_supervision) = (Arc::clone(&control), Arc::clone(&supervision));
    let job = std::thread::spawn(move || {
        let _idle = SendIdleOnDrop(sender);
        let context = Context {
            launcher: &launcher,
            supervision: &job_supervision,
            control: &job_control,
            chunks: None,
            prepared: None,
        };
        job::run(exec, input, &context, &mut NoWatch)
    });
    for event in events {
        match event {
            #[cfg(target_os = "linux")]
            Event::Sweep(request) => supervision.sweep_for(&request),
            Event::Closed => control.end(EndRequest::Cancel),
            Event::Idle => break,
        }
    }
    print_exec(&job.join().map_err(|_| Error::Internal)??)
}

/// Notifies the main thread that the job's thread has ended, even by a panic.
struct SendIdleOnDrop(Sender<Event>);

impl Drop for SendIdleOnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Idle);
    }
}

/// The request and the job's input. The inner error is the caller's mistake.
fn exec_request(args: ExecArgs) -> io::Result<Result<(Exec, Vec<u8>), Error>> {
    let stdin_file = args.stdin_file.clone();
    let parsed = if args.program.request {
        Exec::parse(&read_all(&mut io::stdin())?)
    } else {
        exec_from_flags(args).checked()
    };
    let mut exec = match parsed {
        Ok(exec) if exec.start != Start::Program => {
            return Ok(Err(PreparedError::NoConnection.into()));
        }
        Ok(exec) => exec,
        Err(error) => return Ok(Err(error)),
    };
    let dialogue = [("input", exec.dialogue.stdin), ("channel", exec.dialogue.channel.is_some())];
    if let Some((field, _)) = dialogue.into_iter().find(|(_, wanted)| *wanted) {
        return Ok(Err(Error::NeedsConnection(field)));
    }
    let input = match (exec.stdin.take(), stdin_file) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(path)) if path.as_os_str() == "-" => read_all(&mut io::stdin())?,
        (None, Some(path)) => match File::open(&path).and_then(|mut file| read_all(&mut file)) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(Error::StdinFile(path, error))),
        },
        (None, None) => Vec::new(),
    };
    Ok(Ok((exec, input)))
}

fn exec_from_flags(args: ExecArgs) -> Exec {
    Exec {
        program: Program::from(args.program),
        timeout: (args.timeout != 0.0).then_some(args.timeout),
        grace: args.grace,
        output_limit: args.output_limit,
        stdin: args.stdin.as_deref().map(OsText::from),
        background: args.background,
        stdout_file: args.stdout_file.map(|path| OsText::from(path.as_os_str())),
        stderr_file: args.stderr_file.map(|path| OsText::from(path.as_os_str())),
        autopsy: args.autopsy,
        ..Exec::default()
    }
}

/// `lilux-proc spawn`.
pub fn spawn(args: SpawnArgs, platform: Platform) -> Result<Exit, Error> {
    let parsed = if args.program.request {
        Spawn::parse(&read_all(&mut io::stdin())?)
    } else {
        let log_file = args.log_file.map(|path| OsText::from(path.as_os_str()));
        Spawn { program: Program::from(args.program), log_file }.checked()
    };
    let spawn = match parsed {
        Ok(spawn) => spawn,
        Err(error) => return print_refusal(&error),
    };
    helper::prepare()?;
    let report = spawn_detached(&Launcher::new(platform), &spawn);
    print(&report, report.success)
}

/// `lilux-proc kill`.
pub fn kill(args: &KillArgs, platform: Platform) -> Result<Exit, Error> {
    let request = Kill { pid: args.pid, grace: args.grace, start_time: args.start_time };
    match request.checked() {
        Ok(kill) => {
            let report = process::kill(platform, &kill);
            print(&report, report.success)
        }
        Err(error) => print_refusal(&error),
    }
}

/// `lilux-proc status`.
pub fn status(args: &StatusArgs, platform: Platform) -> Result<Exit, Error> {
    let request = Status { pid: args.pid, start_time: args.start_time };
    match request.checked() {
        Ok(status) => match process::status(platform, &status) {
            Ok(report) => print(&report, report.alive),
            Err(error) => print(&json!({"pid": args.pid, "error": error}), false),
        },
        Err(error) => print_refusal(&error),
    }
}

/// `lilux-proc probe`.
pub fn probe(platform: Platform) -> Result<Exit, Error> {
    print(&Confiner::new(platform).probe()?, true)
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

fn print_exec(finished: &Finished) -> Result<Exit, Error> {
    let text = |parts: &[Vec<u8>]| String::from_utf8_lossy(&parts.concat()).into_owned();
    let printed = Printed {
        report: &finished.report,
        stdout: text(&finished.stdout),
        stderr: text(&finished.stderr),
    };
    print(&printed, finished.report.success)
}

fn print_refusal(error: &Error) -> Result<Exit, Error> {
    print(&json!({"success": false, "error": error}), false)?;
    Ok(Exit::Misuse)
}

fn print(value: &impl Serialize, success: bool) -> Result<Exit, Error> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    Ok(if success { Exit::Success } else { Exit::Failure })
}
