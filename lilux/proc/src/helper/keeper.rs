//! The keeper: starts processes that may outlive the helper.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;

use rustix::process::Pid;
#[cfg(target_os = "linux")]
use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, waitid},
};

use super::{on_signal, wait_for_child};
use crate::cli::Exit;
use crate::connection::Connection;
use crate::error::Error;
use crate::launch::Launcher;
use crate::outbox::Outbox;
use crate::platform::Platform;
#[cfg(target_os = "linux")]
use crate::process::linux::kill_session;
use crate::server::{Server, ServerParts};
use crate::tree::Supervision;

/// The calling process after [`super::start`].
pub struct Keeper {
    /// The guardian, or the worker where there is no guardian.
    below: Pid,
    worker: UnixStream,
    platform: Platform,
}

impl Keeper {
    /// `worker` is the connection to the worker.
    pub(super) fn new(below: Pid, worker: UnixStream, platform: Platform) -> Self {
        Self { below, worker, platform }
    }

    /// Serves the worker until it has ended, and returns its exit status.
    pub fn run(self) -> Result<Exit, Error> {
        let connection = Connection::from_socket(self.worker.into())?;
        let (sender, events) = channel();
        let server = Server::new(ServerParts {
            reading: connection.reading,
            outbox: Outbox::new(connection.writing)?,
            launcher: Launcher::new(self.platform),
            supervision: Supervision::loose(self.platform),
            keeper: None,
            events: sender,
        });
        server.run(&events)?;
        #[cfg(target_os = "linux")]
        if self.platform == Platform::Linux {
            clean_up_after_killed_guardian(self.below);
        }
        wait_for_child(self.below)
    }

    /// Closes the connection to the worker when this process gets a signal, which ends the worker.
    pub fn hang_up_on_signal(&self) -> io::Result<()> {
        let worker = self.worker.try_clone()?;
        on_signal(move || drop(worker.shutdown(Shutdown::Both)))
    }
}

/// Kills the session of a guardian that was killed. If the worker was killed at the same time,
/// nothing else has ended the jobs. The id of the session is the pid of the guardian, which is not
/// reused before the guardian is reaped.
#[cfg(target_os = "linux")]
fn clean_up_after_killed_guardian(guardian: Pid) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(guardian), ended) {
            Err(Errno::INTR) => {}
            Ok(Some(status)) if status.terminating_signal().is_some() => {
                return kill_session(guardian);
            }
            _ => return,
        }
    }
}
