//! How a job starts: its streams, its confinement, and its process.

use std::os::fd::AsFd;
use std::time::Instant;

use super::ends::Ends;
use super::{Confinement, Context, Job, Phase, Watch, milliseconds};
use crate::error::{Error, PreparedError};
use crate::launch::{Child, Stdio};
use crate::observe::Observer;
use crate::platform::Platform;
use crate::prepared::{CONTROL_VARIABLE, PreparedCall, PreparedProcesses, Waiting, control_socket};
use crate::report::{ExecReport, Finished, KnownBy, TreeReport, Truncated};
use crate::request::{Exec, Start, seconds};
use crate::text::OsText;

/// The result of a job whose process could not be started.
pub fn not_started(error: &Error, began: Instant) -> Finished {
    Finished {
        report: ExecReport {
            success: false,
            return_code: -1,
            duration_ms: milliseconds(began.elapsed()),
            pid: None,
            timed_out: false,
            cancelled: false,
            signal: None,
            truncated: Truncated::default(),
            tree: TreeReport::empty(KnownBy::NotStarted),
            file_error: None,
            limit: None,
            confinement: None,
            autopsy: None,
            observation: None,
        },
        stdout: Vec::new(),
        stderr: vec![error.to_string().into_bytes()],
    }
}

impl<'a> Job<'a> {
    pub(super) fn start(
        exec: Exec,
        input: Vec<u8>,
        context: &'a Context<'a>,
        watch: &mut dyn Watch,
    ) -> Result<Self, Error> {
        let (ends, child_ends) = Ends::open(&exec, input)?;
        let descriptors = child_ends.stdio(&exec.dialogue);
        let started = match exec.start {
            Start::Prepared(id) => {
                let waiting = Waiting::new(context.control, watch);
                call_prepared(&exec, id, descriptors, context, waiting)?
            }
            Start::Program | Start::Prepare => launch(&exec, descriptors, context)?,
        };
        context.supervision.started(&started.child);
        let deadline = exec.timeout.map(|timeout| Instant::now() + seconds(timeout));
        Ok(Self {
            context,
            exec,
            child: started.child,
            confinement: started.confinement,
            _call: started.call,
            observer: started.observer,
            ends,
            phase: Phase::Running,
            deadline,
            descendants_ended: 0,
            descendants_complete: true,
            autopsy: None,
        })
    }
}

/// A process that runs, and what belongs to it.
struct Started {
    child: Child,
    confinement: Option<Confinement>,
    observer: Option<Observer>,
    call: Option<PreparedCall>,
}

/// Starts the program of the request.
fn launch(exec: &Exec, stdio: Stdio<'_>, context: &Context<'_>) -> Result<Started, Error> {
    let (launcher, program) = (context.launcher, &exec.program);
    let prepare = exec.start == Start::Prepare;
    let preparing = prepare.then(|| prepared_processes(context)).transpose()?;
    let socket = preparing.map(|_| control_socket()).transpose()?;
    let variable = OsText::from(CONTROL_VARIABLE);
    let control = socket.as_ref().map(|(_, theirs)| (theirs.as_fd(), &variable));
    let confinement = Confinement::prepare(exec, launcher)?;
    let confined = confinement.as_ref().map(Confinement::confined);
    let mut observer =
        exec.observe.then(|| Observer::new(launcher.platform, program)).transpose()?;
    let (stdio, bond) =
        (Stdio { channel: control.or(stdio.channel), ..stdio }, context.supervision.bond());
    let child = launcher.launch(program, stdio, bond, confined, observer.as_ref())?;
    observer.iter_mut().for_each(Observer::launched);
    if let (Some((processes, id)), Some((ours, _))) = (preparing, socket) {
        let own = exec.confinement.as_deref().cloned();
        processes.add(id, &child, ours, own.zip(confinement.as_ref().map(Confinement::shared)));
    }
    Ok(Started { child, confinement, observer, call: None })
}

/// Starts a copy of a prepared process.
fn call_prepared(
    exec: &Exec,
    id: u64,
    stdio: Stdio<'_>,
    context: &Context<'_>,
    waiting: Waiting<'_>,
) -> Result<Started, Error> {
    let call = prepared_processes(context)?.0.call(id)?;
    let confinement = Confinement::of_call(exec, &call)?;
    let confined = confinement.as_ref().map(Confinement::confined);
    let env = context.launcher.complete_environment(&exec.program, stdio, confined);
    let child = call.launch(exec, &env, stdio, confined, waiting)?;
    Ok(Started { child, confinement, observer: None, call: Some(call) })
}

fn prepared_processes<'a>(
    context: &Context<'a>,
) -> Result<(&'a PreparedProcesses, u64), PreparedError> {
    match context.launcher.platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => context.prepared.ok_or(PreparedError::NoConnection),
        Platform::Portable => Err(PreparedError::Unsupported),
    }
}
