//! Observation: what a job tries to open, change, execute and connect to, as a list.
//!
//! The child installs a seccomp `filter` that stops each such call and notifies the helper, which
//! notes it and lets the call go on. The list says what was tried, not whether it succeeded. A
//! job can change the path in its memory after it was read, so the list is a log, and nothing is
//! decided by it; `crate::confine` decides.
//!
//! - `filter`: which calls are stopped
//! - `child`: the steps between `clone` and `execve`
//! - `calls`: what each call accesses
//! - `target`: the memory and folders of the process that makes a call
//! - `listener`: receives the notifications, on a thread of its own
//! - `log`: the accesses, of which a bounded number is kept

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod listener;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is logged"))]
mod log;
#[cfg(target_os = "linux")]
mod target;

#[cfg(target_os = "linux")]
pub use child::ChildStep;
pub use log::Observation;

use crate::error::Error;
use crate::platform::Platform;
use crate::request::Program;

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::sync::mpsc::{Receiver, sync_channel};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use self::log::Log;

/// A thread that looks up a path on a file system that does not answer is not waited for.
#[cfg(target_os = "linux")]
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// The observation of one job.
pub enum Observer {
    /// Each call is noted.
    #[cfg(target_os = "linux")]
    Active(Active),
    /// This machine cannot observe jobs, for this reason.
    Missing(String),
}

/// An observation that a thread carries out.
#[cfg(target_os = "linux")]
pub struct Active {
    /// For the child; `None` once it has been started.
    step: Option<ChildStep>,
    /// Why the child could not be observed.
    failure: Option<std::io::Error>,
    started: Arc<AtomicBool>,
    /// The thread ends when this is closed.
    stop: OwnedFd,
    log: Receiver<Log>,
}

impl Observer {
    /// Prepares the observation of a job that is about to be started.
    pub fn new(platform: Platform, program: &Program) -> Result<Self, Error> {
        match platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => Ok(match filter::missing() {
                Some(reason) => Self::Missing(reason.into()),
                None => Self::Active(Active::new(program)?),
            }),
            Platform::Portable => {
                let _ = program;
                Ok(Self::Missing("lilux-proc does not observe processes on this platform".into()))
            }
        }
    }

    /// What the child does before it executes its program.
    #[cfg(target_os = "linux")]
    pub fn step(&self) -> Option<&ChildStep> {
        match self {
            Self::Active(active) => active.step.as_ref(),
            Self::Missing(_) => None,
        }
    }

    /// The child executes its program now, or could not be started.
    pub fn launched(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Active(active) => {
                active.started.store(true, Ordering::SeqCst);
                // Closes the socket: a thread that still waits for the child stops waiting.
                active.failure = active.step.take().and_then(|step| step.failure());
            }
            Self::Missing(_) => {}
        }
    }

    /// What was tried. To be called when the processes of the job have ended.
    pub fn finish(self) -> Observation {
        match self {
            #[cfg(target_os = "linux")]
            Self::Active(Active { step, failure, stop, log, .. }) => {
                drop((step, stop));
                match log.recv_timeout(STUCK_AFTER) {
                    Ok(log) => log.into_observation(failure.map(|error| filter::refused(&error))),
                    Err(_) => Observation::missing("the observer does not answer".into()),
                }
            }
            Self::Missing(reason) => Observation::missing(reason),
        }
    }
}

#[cfg(target_os = "linux")]
impl Active {
    fn new(program: &Program) -> Result<Self, Error> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        use rustix::pipe::{PipeFlags, pipe_with};

        /// Paths are resolved on the stack.
        const STACK: usize = 256 * 1024;
        let (receiving, sending) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let started = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&started);
        let cwd = program.cwd.as_ref().map(|cwd| PathBuf::from(cwd.as_os_str()));
        let cwd = cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let builder = std::thread::Builder::new().name("observer".into()).stack_size(STACK);
        let (finished, log) = sync_channel(1);
        builder.spawn(move || {
            // The job may have been given up.
            let _ = finished.send(listener::observe(receiving, &stopped, &shared, &cwd));
        })?;
        Ok(Self { step: Some(ChildStep::new(sending)), failure: None, started, stop, log })
    }
}
