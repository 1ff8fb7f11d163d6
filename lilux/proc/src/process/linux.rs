//! Processes by pidfd, and what /proc says of them.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use crate::clock::{is_readable, wait_for};
use crate::report::KillReport;
use crate::request::{self, Kill, Status};

/// How long after SIGKILL a process may take to go.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, Clone, Copy)]
pub struct ProcStat {
    parent: i32,
    /// The process group that it belongs to.
    pub group: i32,
    /// Clock ticks since boot.
    pub start_time: u64,
}

/// None if there is no such process.
pub fn proc_stat(pid: Pid) -> Option<ProcStat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse_stat(&text)
}

fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    // The second field is a name in brackets that may itself contain brackets and blanks.
    let after_name = text.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcStat {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// Whether a process, alive or not, is a child of this one.
pub fn is_our_child(pid: Pid) -> bool {
    proc_stat(pid).and_then(|stat| Pid::from_raw(stat.parent)) == Some(rustix::process::getpid())
}

/// Whether a process stands below this one, by the parents that /proc names.
pub fn descends_from_us(pid: Pid) -> bool {
    let us = rustix::process::getpid();
    let mut current = Some(pid);
    while let Some(stat) = current.and_then(proc_stat) {
        current = Pid::from_raw(stat.parent);
        if current == Some(us) {
            return true;
        }
    }
    false
}

/// A process that has not ended, and what /proc says of it.
///
/// A pidfd is readable once every thread has ended. The state in /proc is of no use for this: it
/// says zombie as soon as the first thread has. The pidfd is opened before /proc is read and asked
/// afterwards, so all three speak of the same process.
pub fn open_running(pid: Pid) -> Option<(OwnedFd, ProcStat)> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let stat = proc_stat(pid)?;
    (!is_readable(&pidfd)).then_some((pidfd, stat))
}

/// The same, if it is the one that started then.
fn open_alive(pid: i32, start_time: Option<u64>) -> Option<(Pid, OwnedFd)> {
    let pid = Pid::from_raw(pid)?;
    let (pidfd, stat) = open_running(pid)?;
    start_time.is_none_or(|expected| stat.start_time == expected).then_some((pid, pidfd))
}

/// See [`super::status`].
pub fn is_alive(request: &Status) -> bool {
    open_alive(request.pid, request.start_time).is_some()
}

/// See [`super::kill`]. Once the leader of a group is gone, its group is not left behind.
pub fn kill(request: &Kill) -> KillReport {
    let raw = request.pid;
    let Some((pid, pidfd)) = open_alive(raw, request.start_time) else {
        return KillReport::gone(raw, "already_dead");
    };
    let members = if getpgid(Some(pid)) == Ok(pid) { group_members(pid) } else { Vec::new() };
    let signal_all = |signal| {
        if members.is_empty() {
            pidfd_send_signal(&pidfd, signal)
        } else {
            kill_process_group(pid, signal)
        }
    };
    match signal_all(Signal::TERM) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return KillReport::gone(raw, "already_dead"),
        Err(_) => return KillReport::refused(raw),
    }
    // A stopped process would not notice.
    let _ = signal_all(Signal::CONT);
    let mut method = "terminated";
    if !wait_until_gone(&pidfd, request::seconds(request.grace)) {
        method = "killed";
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    for member in &members {
        let _ = pidfd_send_signal(member, Signal::KILL);
    }
    let deadline = Instant::now() + STUCK_AFTER;
    for process in members.iter().chain([&pidfd]) {
        if !wait_until_gone(process, deadline.saturating_duration_since(Instant::now())) {
            return KillReport::stuck(raw);
        }
    }
    KillReport::gone(raw, method)
}

fn wait_until_gone(pidfd: &OwnedFd, at_most: Duration) -> bool {
    let deadline = Instant::now() + at_most;
    loop {
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        wait_for(&mut fds, Some(deadline));
        if !fds[0].revents().is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
}

fn group_members(group: Pid) -> Vec<OwnedFd> {
    let group = group.as_raw_nonzero().get();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter_map(|pid| {
            let (pidfd, stat) = open_running(pid)?;
            (stat.group == group).then_some(pidfd)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) Z (b c) S 1 7 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.start_time), (1, 7, 12345));
    }

    #[test]
    fn our_own_process_is_found() {
        let stat = proc_stat(rustix::process::getpid()).unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(stat.group, group);
    }
}
