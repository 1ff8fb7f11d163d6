//! Processes by pidfd, and what /proc says of them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpgid, pidfd_open, pidfd_send_signal};

use crate::clock::{is_readable, wait_for};
use crate::launch::os_message;
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
    session: i32,
    /// Clock ticks since boot.
    pub start_time: u64,
}

/// None if there is no such process.
pub fn proc_stat(pid: Pid) -> Option<ProcStat> {
    read_stat(pid).ok()?
}

fn read_stat(pid: Pid) -> io::Result<Option<ProcStat>> {
    Ok(parse_stat(&fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()))?))
}

fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    // The second field is a name in brackets that may itself contain brackets and blanks.
    let after_name = text.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcStat {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// Whether a process, alive or not, is a child of this one.
pub fn is_our_child(pid: Pid) -> bool {
    proc_stat(pid).and_then(|stat| Pid::from_raw(stat.parent)) == Some(rustix::process::getpid())
}

/// Whether a process stands below this one, by the parents that /proc names.
pub fn descends_from_us(pid: Pid) -> io::Result<bool> {
    let us = rustix::process::getpid();
    let mut current = pid;
    loop {
        let stat = match read_stat(current) {
            Ok(Some(stat)) => stat,
            Err(error) if is_shortage(&error) => return Err(error),
            Ok(None) | Err(_) => return Ok(false),
        };
        match Pid::from_raw(stat.parent) {
            Some(parent) if parent == us => return Ok(true),
            Some(parent) => current = parent,
            None => return Ok(false),
        }
    }
}

/// Whether there was no descriptor to look with; that passes when others are closed.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// What there is to be seen of a pid.
pub enum Sight {
    /// It has not ended; here is a hold on it, and what /proc says.
    Running(OwnedFd, ProcStat),
    /// It has ended, if it ever was.
    Gone,
    /// There was no way to look, for example for want of descriptors.
    Hidden(io::Error),
}

/// Looks at a process.
///
/// A pidfd is readable once every thread has ended. The state in /proc is of no use for this: it
/// says zombie as soon as the first thread has. The pidfd is opened before /proc is read and asked
/// afterwards, so all three speak of the same process.
pub fn look_at(pid: Pid) -> Sight {
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // The latter two: the number is that of a thread, and of no process.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Sight::Gone,
        Err(error) => return Sight::Hidden(error.into()),
    };
    match read_stat(pid) {
        _ if is_readable(&pidfd) => Sight::Gone,
        Ok(Some(stat)) => Sight::Running(pidfd, stat),
        Ok(None) => Sight::Hidden(io::Error::other("/proc says nothing of it")),
        Err(error) => Sight::Hidden(error),
    }
}

/// The same, if it is the one that started then.
fn look_for(pid: i32, start_time: Option<u64>) -> Result<Option<(Pid, OwnedFd)>, String> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match look_at(pid) {
        Sight::Running(pidfd, stat) => {
            let same = start_time.is_none_or(|expected| stat.start_time == expected);
            Ok(same.then_some((pid, pidfd)))
        }
        Sight::Gone => Ok(None),
        Sight::Hidden(error) => Err(format!(
            "process {} cannot be looked at: {}",
            pid.as_raw_nonzero(),
            os_message(&error)
        )),
    }
}

/// See [`super::status`].
pub fn is_alive(request: &Status) -> Result<bool, String> {
    Ok(look_for(request.pid, request.start_time)?.is_some())
}

/// See [`super::kill`]. Every signal goes through a pidfd, never to a number. Once the leader of a
/// group is gone, its group is not left behind.
pub fn kill(request: &Kill) -> KillReport {
    let raw = request.pid;
    let (pid, pidfd) = match look_for(raw, request.start_time) {
        Ok(Some(found)) => found,
        Ok(None) => return KillReport::gone(raw, "already_dead"),
        Err(error) => return KillReport::still_there(raw, error),
    };
    let leads_group = getpgid(Some(pid)) == Ok(pid);
    match pidfd_send_signal(&pidfd, Signal::TERM) {
        Ok(()) => {}
        Err(Errno::SRCH) => return KillReport::gone(raw, "already_dead"),
        Err(_) => return KillReport::refused(raw),
    }
    let members = if leads_group { group_members(pid) } else { Vec::new() };
    for member in &members {
        let _ = pidfd_send_signal(member, Signal::TERM);
    }
    // A stopped process would not notice.
    for process in members.iter().chain([&pidfd]) {
        let _ = pidfd_send_signal(process, Signal::CONT);
    }
    let mut method = "terminated";
    if !wait_until_gone(&pidfd, request::seconds(request.grace)) {
        method = "killed";
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    let deadline = Instant::now() + STUCK_AFTER;
    let left = || deadline.saturating_duration_since(Instant::now());
    if !wait_until_gone(&pidfd, left()) {
        return KillReport::stuck(raw);
    }
    // Again and again, since a member may have started another before its own end.
    loop {
        let members = if leads_group { group_members(pid) } else { Vec::new() };
        if members.is_empty() {
            return KillReport::gone(raw, method);
        }
        for member in &members {
            let _ = pidfd_send_signal(member, Signal::KILL);
        }
        if !members.iter().all(|member| wait_until_gone(member, left())) {
            return KillReport::stuck(raw);
        }
    }
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

/// The others of a group.
fn group_members(leader: Pid) -> Vec<OwnedFd> {
    others(|pid, stat| pid != leader && stat.group == leader.as_raw_nonzero().get())
}

/// Those that are wanted. This process, should it be one of them, has still an answer to give.
fn others(wanted: impl Fn(Pid, &ProcStat) -> bool) -> Vec<OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|&pid| pid != rustix::process::getpid())
        .filter_map(|pid| match look_at(pid) {
            Sight::Running(pidfd, stat) if wanted(pid, &stat) => Some(pidfd),
            _ => None,
        })
        .collect()
}

/// Kills what is left in the session of a leader that has ended and is not reaped yet.
pub fn end_session(leader: Pid) {
    let deadline = Instant::now() + STUCK_AFTER;
    // Again and again, since one of them may have started another before its own end.
    while Instant::now() < deadline {
        let mut members = others(|_, stat| stat.session == leader.as_raw_nonzero().get());
        members.retain(|member| pidfd_send_signal(member, Signal::KILL).is_ok());
        if members.is_empty() {
            return;
        }
        for member in &members {
            wait_until_gone(member, deadline.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) Z (b c) S 1 7 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.start_time), (1, 7, 9, 12345));
    }

    #[test]
    fn our_own_process_is_found() {
        let stat = proc_stat(rustix::process::getpid()).unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(stat.group, group);
    }
}
