//! Processes by pid and start time, asked of `ps`, which every Unix has.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

use crate::report::KillReport;
use crate::request::{self, Kill};

/// How long after SIGKILL a process may take to go.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// Processes that this helper detached and that have not ended. POSIX lets only a parent wait, so
/// for these, and only these, the end is noticed the moment it comes.
#[derive(Default)]
struct Own {
    alive: Mutex<Vec<i32>>,
    ended: Condvar,
}

static OWN: Own = Own { alive: Mutex::new(Vec::new()), ended: Condvar::new() };

/// A process was detached by this helper, which will reap it.
pub fn note_started(pid: i32) {
    OWN.alive.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
}

/// It has been reaped.
pub fn note_ended(pid: i32) {
    OWN.alive.lock().unwrap_or_else(PoisonError::into_inner).retain(|&other| other != pid);
    OWN.ended.notify_all();
}

/// See [`super::kill`]. The end of a process that is not ours is only seen after `grace`.
pub fn kill(request: &Kill) -> KillReport {
    let raw = request.pid;
    let Some(pid) = Pid::from_raw(raw).filter(|_| is_alive(raw, request.start_time)) else {
        return KillReport::gone(raw, "already_dead");
    };
    let leads_group = getpgid(Some(pid)) == Ok(pid);
    let send = |signal| {
        if leads_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) }
    };
    match send(Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return KillReport::gone(raw, "already_dead"),
        Err(_) => return KillReport::refused(raw),
    }
    let _ = send(Signal::CONT);
    if wait_until_gone(raw, request.start_time, request::seconds(request.grace)) {
        if leads_group {
            let _ = send(Signal::KILL);
        }
        return KillReport::gone(raw, "terminated");
    }
    let _ = send(Signal::KILL);
    if wait_until_gone(raw, request.start_time, STUCK_AFTER) {
        KillReport::gone(raw, "killed")
    } else {
        KillReport::stuck(raw)
    }
}

fn wait_until_gone(pid: i32, start_time: Option<u64>, at_most: Duration) -> bool {
    let alive = OWN.alive.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = alive.contains(&pid);
    let waited =
        OWN.ended.wait_timeout_while(alive, at_most, |alive| !ours || alive.contains(&pid));
    match waited {
        Ok((_, timeout)) if !timeout.timed_out() => true,
        _ => !is_alive(pid, start_time),
    }
}

/// See [`super::status`]. Where `ps` does not answer, a process that exists counts as alive, and as
/// the one that is meant.
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

/// See [`super::start_time`]: the words of `ps`, hashed, since only comparison has a meaning.
pub fn start_time(pid: i32) -> Option<u64> {
    let words = ps(pid, "lstart=")?;
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    // Within what every JSON reader takes for a whole number.
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
