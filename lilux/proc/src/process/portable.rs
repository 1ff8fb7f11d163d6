//! Processes by pid and start time, with `ps`, which every Unix has.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

use crate::error::Error;
use crate::report::{KillMethod, KillReport};
use crate::request::{self, Kill};
use crate::sync::lock;

/// A process that has not ended this long after SIGKILL is stuck in the kernel.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// Processes that this helper detached and that have not ended. In POSIX only a parent can wait, so
/// only the end of these is noticed at once.
#[derive(Default)]
struct Detached {
    alive: Mutex<Vec<i32>>,
    ended: Condvar,
}

static DETACHED: Detached = Detached { alive: Mutex::new(Vec::new()), ended: Condvar::new() };

/// Records that this helper detached a process and will reap it.
pub fn note_started(pid: i32) {
    lock(&DETACHED.alive).push(pid);
}

/// Records that the process has been reaped.
pub fn note_ended(pid: i32) {
    lock(&DETACHED.alive).retain(|&other| other != pid);
    DETACHED.ended.notify_all();
}

/// See [`super::kill`]. The end of a process that this helper did not start is only noticed after
/// `grace`.
pub fn kill(request: &Kill) -> KillReport {
    let raw = request.pid;
    let Some(pid) = Pid::from_raw(raw).filter(|_| is_alive(raw, request.start_time)) else {
        return KillReport::ended(raw, KillMethod::AlreadyDead);
    };
    let leads_group = getpgid(Some(pid)) == Ok(pid);
    let send = |signal| {
        if leads_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) }
    };
    match send(Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return KillReport::ended(raw, KillMethod::AlreadyDead),
        Err(_) => return KillReport::failed(raw, Error::NotPermitted(raw)),
    }
    let _ = send(Signal::CONT);
    if wait_until_ended(raw, request.start_time, request::seconds(request.grace)) {
        if leads_group {
            let _ = send(Signal::KILL);
        }
        return KillReport::ended(raw, KillMethod::Terminated);
    }
    let _ = send(Signal::KILL);
    if wait_until_ended(raw, request.start_time, STUCK_AFTER) {
        KillReport::ended(raw, KillMethod::Killed)
    } else {
        KillReport::failed(raw, Error::Stuck(raw))
    }
}

fn wait_until_ended(pid: i32, start_time: Option<u64>, at_most: Duration) -> bool {
    let alive = lock(&DETACHED.alive);
    let ours = alive.contains(&pid);
    let waited =
        DETACHED.ended.wait_timeout_while(alive, at_most, |alive| !ours || alive.contains(&pid));
    match waited {
        Ok((_, timeout)) if !timeout.timed_out() => true,
        _ => !is_alive(pid, start_time),
    }
}

/// See [`super::status`]. If `ps` fails, an existing process is assumed to be alive and to have the
/// given start time.
pub fn is_alive(pid: i32, start: Option<u64>) -> bool {
    let Some(process) = Pid::from_raw(pid) else { return false };
    if rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    let same = || match (start, start_time(pid)) {
        (Some(expected), Some(now)) => expected == now,
        _ => true,
    };
    !ps(pid, "stat=").is_some_and(|state| state.starts_with('Z')) && same()
}

/// See [`super::start_time`]: a hash of what `ps` prints, because it is only compared.
pub fn start_time(pid: i32) -> Option<u64> {
    let printed = ps(pid, "lstart=")?;
    let mut hasher = DefaultHasher::new();
    printed.hash(&mut hasher);
    // Small enough for JSON readers that store numbers as doubles.
    Some(hasher.finish() >> 12)
}

fn ps(pid: i32, column: &str) -> Option<String> {
    let output = Command::new("ps")
        .args(["-o", column, "-p", &pid.to_string()])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
