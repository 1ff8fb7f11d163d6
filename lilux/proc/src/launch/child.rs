//! A started process: signals to it, and how it ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use crate::sync::start_thread;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// A descriptor that becomes readable when the process has ended.
pub enum ExitNotice {
    /// A pidfd.
    #[cfg(target_os = "linux")]
    Pidfd(OwnedFd),
    /// A pipe that a waiting thread closes.
    Pipe(OwnedFd),
}

/// A started process. Nothing else reaps it, so its pid is not reused before [`Child::reap`].
pub struct Child {
    /// Its process id, which is also the id of its process group.
    pub pid: Pid,
    exit: ExitNotice,
}

impl Child {
    /// Takes over a child that leads its own process group.
    pub fn new(pid: Pid, exit: ExitNotice) -> Self {
        Self { pid, exit }
    }

    /// Takes over a process that is already running.
    #[cfg(target_os = "linux")]
    pub fn adopted(pid: Pid, pidfd: OwnedFd) -> Self {
        Self::new(pid, ExitNotice::Pidfd(pidfd))
    }

    /// The pid as a number.
    pub fn raw_pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Becomes readable when the process has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        match &self.exit {
            #[cfg(target_os = "linux")]
            ExitNotice::Pidfd(fd) => fd.as_fd(),
            ExitNotice::Pipe(fd) => fd.as_fd(),
        }
    }

    /// Sends a signal to the process group.
    pub fn signal_group(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    /// Sends a signal to the process alone. Returns false if that is not permitted.
    #[cfg(target_os = "linux")]
    pub fn signal(&self, signal: Signal) -> bool {
        rustix::process::kill_process(self.pid, signal).is_ok()
    }

    /// Waits until SIGSTOP has taken effect or the process has ended. Until then it may be in the
    /// middle of a fork.
    #[cfg(target_os = "linux")]
    pub fn wait_until_stopped(&self) {
        let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(Errno::INTR) = waitid(self.wait_id(), either) {}
    }

    /// Waits for the end and frees the pid. `None` if the status cannot be read.
    pub fn reap(self) -> Option<Ended> {
        loop {
            match waitid(self.wait_id(), WaitIdOptions::EXITED) {
                Ok(Some(status)) => {
                    let code = status.exit_status().map(Ended::Code);
                    return code.or_else(|| status.terminating_signal().map(Ended::Signal));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Reaps the process on another thread, then calls `then`.
    pub fn reap_in_background(self, then: impl FnOnce() + Send + 'static) {
        let _ = start_thread("reaper", move || {
            self.reap();
            then();
        });
    }

    fn wait_id(&self) -> WaitId<'_> {
        match &self.exit {
            #[cfg(target_os = "linux")]
            ExitNotice::Pidfd(pidfd) => WaitId::PidFd(pidfd.as_fd()),
            ExitNotice::Pipe(_) => WaitId::Pid(self.pid),
        }
    }
}
