//! The keeper: starts processes that may outlive the helper.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::WORKER_ENDS_WITHIN_SECONDS;
use super::{on_signal, wait_for_child, wait_for_end};
use crate::cli::Exit;
#[cfg(target_os = "linux")]
use crate::clock::wait_for;
use crate::connection::Connection;
use crate::error::Error;
use crate::launch::Launcher;
use crate::outbox::Outbox;
use crate::platform::Platform;
#[cfg(target_os = "linux")]
use crate::process::linux::kill_session;
use crate::server::{Server, ServerParts};
use crate::sync::start_thread;
use crate::tree::Supervision;
#[cfg(target_os = "linux")]
use crate::tree::linux::{end_below_group, is_adopting, sweep};

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
        let below = self.below;
        let guardian_died = self.watch()?;
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
        // The process below is not reaped before, so nothing else has its pid while it is watched.
        match guardian_died.recv() {
            #[cfg(target_os = "linux")]
            Ok(true) => Ok(clean_up_after(below)),
            _ => wait_for_child(below),
        }
    }

    /// Starts a thread that continues the process below whenever it is stopped. When that process has
    /// ended, the thread sends whether it was a guardian that was killed, and the worker has ended
    /// then too.
    fn watch(&self) -> io::Result<Receiver<bool>> {
        let (sender, guardian_died) = channel();
        let worker = self.worker.try_clone()?;
        let (below, platform) = (self.below, self.platform);
        start_thread("watch", move || {
            let killed = wait_for_end(below).is_ok_and(|end| end.terminating_signal().is_some());
            let guardian_died = killed && platform != Platform::Portable;
            #[cfg(target_os = "linux")]
            if guardian_died && !hangs_up(&worker) {
                end_below_group(below);
            }
            drop(worker);
            let _ = sender.send(guardian_died);
        })?;
        Ok(guardian_died)
    }

    /// Closes the connection to the worker when this process gets a signal, which ends the worker.
    pub fn hang_up_on_signal(&self) -> io::Result<()> {
        let worker = self.worker.try_clone()?;
        on_signal(move || drop(worker.shutdown(Shutdown::Both)))
    }
}

/// Waits until the worker has closed its connection, which it does when it ends. Returns false if it
/// has not in time.
#[cfg(target_os = "linux")]
fn hangs_up(worker: &UnixStream) -> bool {
    let deadline = Instant::now() + Duration::from_secs(WORKER_ENDS_WITHIN_SECONDS.into());
    loop {
        // Without flags, only the end of the connection is reported.
        let mut fds = [PollFd::new(worker, PollFlags::empty())];
        wait_for(&mut fds, Some(deadline));
        if !fds[0].revents().is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
}

/// Ends the jobs that a killed guardian and a killed worker have left: those in their session, and
/// all others that this process adopted. Must be called by the main thread, which adopts. The id of
/// the session is the pid of the guardian, which is not reused before the guardian is reaped.
#[cfg(target_os = "linux")]
fn clean_up_after(guardian: Pid) -> Exit {
    kill_session(guardian);
    if is_adopting() {
        sweep();
    }
    Exit::Failure
}
