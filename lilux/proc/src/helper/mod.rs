//! The processes of a helper, and how each reacts when another one dies.
//!
//! ```text
//! caller
//!   keeper      started by the caller; starts processes that may outlive the helper; adopts until then
//!     guardian  adopts; if the worker dies, ends what the worker's jobs left, and exits
//!       worker  adopts; reads the connection, runs the jobs
//!         job   leads its own process group, adopts its own orphans
//! ```
//!
//! As long as one of the three runs, all processes of the jobs end when the caller dies or the others
//! are killed:
//!
//! - If the worker is killed, the guardian ends the jobs.
//! - If the guardian or the keeper is killed, the worker notices and ends its jobs and itself. The
//!   other of the two kills it if it has not ended in time.
//! - If worker and guardian are killed, the keeper has adopted the jobs and ends them. Once it has
//!   started a process that may outlive the helper, it only finds those in the guardian's session.
//!
//! A stopped process cannot react, so it is continued: the worker by the guardian, the guardian by the
//! keeper, each of them by the death of its parent, and the keeper by the caller, which closes the
//! connection. A worker that has ended continues those above it.
//!
//! The portable platform has no subreapers and so no guardian. The worker notices when its
//! connection to the keeper closes. The keeper, which is informed of each job's process group, kills
//! the groups when the worker dies.
//!
//! A detached process must not be a descendant of a subreaper, which would adopt its orphans, so a
//! process above the guardian has to start it.

#[cfg(target_os = "linux")]
mod guardian;
mod keeper;
mod relay;
mod setup;
mod worker;

pub use keeper::Keeper;
pub use relay::relay;
pub use setup::{on_signal, prepare};
pub use worker::{WorkerParts, serve};

use std::io;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process, waitid, waitpid,
};

use crate::cli::Exit;
use crate::error::Error;
use crate::platform::Platform;

/// A worker whose guardian or keeper died ends itself and its jobs within milliseconds, unless it is
/// stopped again and again.
#[cfg(target_os = "linux")]
const WORKER_ENDS_WITHIN_SECONDS: u32 = 1;

/// Starts guardian and worker. The worker calls `work` with its end of the connection to the keeper;
/// the calling process becomes the keeper. Must be called while the process has only one thread.
pub fn start(
    platform: Platform,
    work: impl FnOnce(UnixStream) -> Result<Exit, Error>,
) -> Result<Keeper, Error> {
    let (keeper_end, worker_end) = UnixStream::pair()?;
    #[cfg(target_os = "linux")]
    let keeper = rustix::process::getpid();
    #[cfg(target_os = "linux")]
    if platform == Platform::Linux {
        crate::tree::linux::become_subreaper()?;
    }
    if let Some(below) = fork()? {
        return Ok(Keeper::new(below, keeper_end, platform));
    }
    drop(keeper_end);
    // Detached from the caller's terminal: the caller handles its Ctrl-C.
    let _ = rustix::process::setsid();
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => guardian::run(keeper, || work(worker_end)),
        Platform::Portable => end_process(work(worker_end)),
    }
}

/// Ends a forked process, which must not return into the code of its parent.
fn end_process(result: Result<Exit, Error>) -> ! {
    std::process::exit(Exit::report(result).code().into())
}

/// Forks; returns `None` in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is only one thread, so no lock is held in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Waits until a child has ended, and does not reap it. Continues it whenever it was stopped: a stopped
/// process does not notice that the connection was closed or that another process died.
fn wait_for_end(pid: Pid) -> rustix::io::Result<WaitIdStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) if status.stopped() => kill_process(pid, Signal::CONT)?,
            Ok(Some(status)) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for a child as [`wait_for_end`] does, and reaps it. An end by a signal is a failure.
fn wait_for_child(pid: Pid) -> Result<Exit, Error> {
    wait_for_end(pid)?;
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(ended) => {
                let code = ended.and_then(|(_, status)| status.exit_status());
                return Ok(code.map_or(Exit::Failure, Exit::from_code));
            }
        }
    }
}
