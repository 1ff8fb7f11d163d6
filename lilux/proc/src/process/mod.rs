//! Processes that are not jobs: ending one by its pid, and asking whether it is alive.

#[cfg(target_os = "linux")]
pub mod linux;
pub mod portable;

use crate::platform::Platform;
use crate::report::{KillReport, StatusReport};
use crate::request::{Kill, Status};

impl KillReport {
    fn gone(pid: i32, method: &'static str) -> Self {
        Self { success: true, pid, method, error: None }
    }

    fn still_there(pid: i32, error: String) -> Self {
        Self { success: false, pid, method: "", error: Some(error) }
    }

    fn refused(pid: i32) -> Self {
        Self::still_there(
            pid,
            format!("not permitted to signal process {pid}; it belongs to another user"),
        )
    }

    fn stuck(pid: i32) -> Self {
        Self::still_there(
            pid,
            format!("process {pid} was sent SIGKILL but has not ended; it is stuck in the kernel"),
        )
    }
}

/// SIGTERM, `grace` seconds, SIGKILL. Returns as soon as the process is gone.
pub fn kill(platform: Platform, request: &Kill) -> KillReport {
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::kill(request),
        Platform::Portable => portable::kill(request),
    }
}

/// Whether a process is alive; a zombie is not. An error says why that cannot be told.
pub fn status(platform: Platform, request: &Status) -> Result<StatusReport, String> {
    let alive = match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::is_alive(request)?,
        Platform::Portable => portable::is_alive(request.pid, request.start_time),
    };
    Ok(StatusReport { pid: request.pid, alive })
}

/// What tells a process from a later one with the same pid.
pub fn start_time(platform: Platform, pid: rustix::process::Pid) -> Option<u64> {
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => linux::proc_stat(pid).map(|stat| stat.start_time),
        Platform::Portable => portable::start_time(pid.as_raw_nonzero().get()),
    }
}
