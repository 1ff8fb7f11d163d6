//! The guardian: waits for the worker, then ends everything that it left. Linux only.

use std::io;

use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};

use super::{end_process, fork, wait_for_child};
use crate::cli::Exit;
use crate::error::Error;
use crate::tree::linux::{become_subreaper, sweep};

/// Makes the calling process the guardian, and its child the worker, which calls `work`.
pub fn run(keeper: Pid, work: impl FnOnce() -> Result<Exit, Error>) -> ! {
    let guardian = getpid();
    match become_subreaper().and_then(|()| fork()) {
        Ok(None) => end_process(bind_to(guardian).and_then(|()| work())),
        Ok(Some(worker)) => {
            // This closes our copy of the connection, so that the caller notices the worker's end.
            drop(work);
            if kill_worker_when_keeper_dies(keeper, worker).is_err() {
                let _ = kill_process(worker, Signal::KILL);
            }
            let waited = wait_for_child(worker);
            sweep();
            end_process(waited)
        }
        Err(error) => end_process(Err(error.into())),
    }
}

/// Sends SIGTERM to this process, the worker, when the guardian dies.
fn bind_to(guardian: Pid) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // It may have died before.
    if getppid() == Some(guardian) { Ok(()) } else { Err(Error::GuardianDied) }
}

/// The worker is killed, not terminated, because it may be stopped; the guardian, which waits for
/// it, does the rest. The signal of the keeper's death is SIGCONT, which also wakes a stopped
/// guardian.
fn kill_worker_when_keeper_dies(keeper: Pid, worker: Pid) -> io::Result<()> {
    let act = move || {
        if getppid() != Some(keeper) {
            let _ = kill_process(worker, Signal::KILL);
        }
    };
    // SAFETY: two plain system calls, which a signal handler may make. The worker's pid is not
    // reused before it is reaped, and after that only the sweep is left to do.
    unsafe { signal_hook::low_level::register(libc::SIGCONT, act)? };
    set_parent_process_death_signal(Some(Signal::CONT))?;
    // It may have died before.
    act();
    Ok(())
}
