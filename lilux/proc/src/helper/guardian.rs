//! The guardian: waits for the worker, then ends everything that it left. Linux only.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};

use super::{WORKER_ENDS_WITHIN_SECONDS, end_process, fork, wait_for_child};
use crate::cli::Exit;
use crate::error::Error;
use crate::tree::linux::{become_subreaper, sweep};

/// Makes the calling process the guardian, and its child the worker, which calls `work`.
pub fn run(keeper: Pid, work: impl FnOnce() -> Result<Exit, Error>) -> ! {
    let guardian = getpid();
    let above = Above::new(keeper);
    match become_subreaper().and_then(|()| fork()) {
        Ok(None) => {
            let worked = end_with_guardian(guardian).map_err(Error::from).and_then(|()| work());
            if getppid() == Some(guardian) {
                send(guardian, Signal::CONT);
            }
            above.resume();
            end_process(worked)
        }
        Ok(Some(worker)) => {
            // This closes our copy of the connection, so that the caller notices the worker's end.
            drop(work);
            if end_worker_with_keeper(keeper, worker).is_err() {
                send(worker, Signal::KILL);
            }
            let waited = wait_for_child(worker);
            sweep();
            above.resume();
            end_process(waited)
        }
        Err(error) => end_process(Err(error.into())),
    }
}

/// The keeper, which has to notice when the others have ended, even if it is stopped.
struct Above(Option<OwnedFd>);

impl Above {
    fn new(keeper: Pid) -> Self {
        let pidfd = pidfd_open(keeper, PidfdFlags::empty()).ok();
        // It may have died before, and another process may have its pid.
        Self(pidfd.filter(|_| getppid() == Some(keeper)))
    }

    fn resume(&self) {
        if let Some(keeper) = &self.0 {
            let _ = pidfd_send_signal(keeper, Signal::CONT);
        }
    }
}

/// Sends SIGTERM to this process, the worker, when the guardian dies.
fn end_with_guardian(guardian: Pid) -> io::Result<()> {
    // SAFETY: plain system calls.
    unsafe { when_parent_dies(guardian, || send(getpid(), Signal::TERM)) }
}

/// The worker notices the death of the keeper itself, and ends its jobs. It is continued if it is
/// stopped, and killed if it has not ended in time; we wait for it, and do the rest.
fn end_worker_with_keeper(keeper: Pid, worker: Pid) -> io::Result<()> {
    // SAFETY: plain system calls. The worker's pid is not reused before it is reaped, and after that
    // only the sweep is left to do.
    unsafe {
        signal_hook::low_level::register(libc::SIGALRM, move || send(worker, Signal::KILL))?;
        when_parent_dies(keeper, move || {
            send(worker, Signal::CONT);
            libc::alarm(WORKER_ENDS_WITHIN_SECONDS);
        })
    }
}

/// Calls `act` when the parent dies. The kernel reports that by SIGCONT, which also wakes this process
/// if it is stopped.
///
/// # Safety
/// `act` may only do what a signal handler may do.
unsafe fn when_parent_dies(
    parent: Pid,
    act: impl Fn() + Send + Sync + Copy + 'static,
) -> io::Result<()> {
    let check = move || {
        if getppid() != Some(parent) {
            act();
        }
    };
    // SAFETY: a plain system call, and `act`.
    unsafe { signal_hook::low_level::register(libc::SIGCONT, check)? };
    set_parent_process_death_signal(Some(Signal::CONT))?;
    // It may have died before.
    check();
    Ok(())
}

/// Sends a signal. It is not an error if the process has ended.
fn send(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}
