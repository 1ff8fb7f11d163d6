//! The processes of a helper, and how each reacts when another one dies.
//!
//! ```text
//! caller
//!   keeper      started by the caller; starts processes that may outlive the helper, adopts nothing
//!     guardian  adopts; if the worker dies, ends what the worker's jobs left, and exits
//!       worker  adopts; reads the connection, runs the jobs
//!         job   leads its own process group, adopts its own orphans
//! ```
//!
//! If any of the three is killed, another one notices and ends the jobs. The guardian is the
//! worker's parent, and kills it when the keeper dies; the worker gets a signal when the guardian
//! dies. Killing the keeper therefore ends everything, even if another of the three is stopped.
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
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::cli::Exit;
use crate::error::Error;
use crate::platform::Platform;

/// Starts guardian and worker. The worker calls `work` with its end of the connection to the keeper;
/// the calling process becomes the keeper. Must be called while the process has only one thread.
pub fn start(
    platform: Platform,
    work: impl FnOnce(UnixStream) -> Result<Exit, Error>,
) -> Result<Keeper, Error> {
    let (keeper_end, worker_end) = UnixStream::pair()?;
    #[cfg(target_os = "linux")]
    let keeper = rustix::process::getpid();
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

/// Waits for a child. An end by a signal is a failure.
fn wait_for_child(pid: Pid) -> Result<Exit, Error> {
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
