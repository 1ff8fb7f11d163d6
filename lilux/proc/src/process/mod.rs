//! Processes that are not jobs: ending one by its pid, and checking whether it is alive.

#[cfg(target_os = "linux")]
pub mod linux;
pub mod portable;

use rustix::process::Pid;

use crate::error::Error;
use crate::platform::Platform;
use crate::report::{KillReport, StatusReport};
use crate::request::{Kill, Status};

/// Sends SIGTERM, waits up to `grace` seconds, then sends SIGKILL. Returns as soon as the process
/// has ended.
pub fn kill(platform: Platform, request: &Kill) -> KillReport {
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::kill(request),
        Platform::Portable => portable::kill(request),
    }
}

/// Reports whether a process is alive; a zombie is not.
pub fn status(platform: Platform, request: &Status) -> Result<StatusReport, Error> {
    let alive = match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::is_alive(request)?,
        Platform::Portable => portable::is_alive(request.pid, request.start_time),
    };
    Ok(StatusReport { pid: request.pid, alive })
}

/// The start time of a process, which distinguishes it from a later one with the same pid.
pub fn start_time(platform: Platform, pid: Pid) -> Option<u64> {
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::proc_stat(pid).map(|stat| stat.start_time),
        Platform::Portable => portable::start_time(pid.as_raw_nonzero().get()),
    }
}
