//! Processes by pidfd and /proc.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpgid, pidfd_open, pidfd_send_signal};

use crate::clock::{is_readable, wait_for};
use crate::error::Error;
use crate::report::{KillMethod, KillReport};
use crate::request::{self, Kill, Status};

/// A process that has not ended this long after SIGKILL is stuck in the kernel.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Some fields of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy)]
pub struct ProcStat {
    parent: i32,
    /// The process group.
    pub group: i32,
    session: i32,
    threads: u64,
    /// In clock ticks since boot.
    pub start_time: u64,
}

/// Reads the state of a process; `None` if it does not exist.
pub fn proc_stat(pid: Pid) -> Option<ProcStat> {
    read_stat(pid).ok()?
}

fn read_stat(pid: Pid) -> io::Result<Option<ProcStat>> {
    Ok(parse_stat(&fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()))?))
}

fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    // The second field is a name in brackets, which may contain brackets and spaces.
    let after_name = text.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcStat {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// The number of threads of a process; `None` if it does not exist.
pub fn threads(pid: Pid) -> Option<u64> {
    proc_stat(pid).map(|stat| stat.threads)
}

/// True if a process, alive or a zombie, is a child of this one.
pub fn is_our_child(pid: Pid) -> bool {
    proc_stat(pid).and_then(|stat| Pid::from_raw(stat.parent)) == Some(rustix::process::getpid())
}

/// True if a process is a descendant of another one, according to the parents in /proc.
pub fn is_descendant(pid: Pid, ancestor: Pid) -> io::Result<bool> {
    let mut current = pid;
    loop {
        let stat = match read_stat(current) {
            Ok(Some(stat)) => stat,
            Err(error) if is_shortage(&error) => return Err(error),
            Ok(None) | Err(_) => return Ok(false),
        };
        match Pid::from_raw(stat.parent) {
            Some(parent) if parent == ancestor => return Ok(true),
            Some(parent) => current = parent,
            None => return Ok(false),
        }
    }
}

/// True if no file descriptor was available. That is temporary.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The state of a process.
pub enum State {
    /// It has not ended. The pidfd and the fields of /proc are of the same process.
    Running(OwnedFd, ProcStat),
    /// It has ended, or never existed.
    Ended,
    /// The state cannot be read, for example because no descriptor is available.
    Unknown(io::Error),
}

/// Returns the state of a process.
///
/// A pidfd is readable once every thread has ended. The state in /proc is not usable for this: it
/// is "zombie" as soon as the first thread has ended. The pidfd is opened before /proc is read and
/// polled afterwards, so both refer to the same process.
pub fn inspect(pid: Pid) -> State {
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // INVAL and NOENT: the number belongs to a thread, not to a process.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return State::Ended,
        Err(error) => return State::Unknown(error.into()),
    };
    match read_stat(pid) {
        _ if is_readable(&pidfd) => State::Ended,
        Ok(Some(stat)) => State::Running(pidfd, stat),
        Ok(None) => State::Unknown(io::ErrorKind::InvalidData.into()),
        Err(error) => State::Unknown(error),
    }
}

/// Returns a process that has not ended and has the given start time, if any is given.
fn find(raw: i32, start_time: Option<u64>) -> Result<Option<(Pid, OwnedFd)>, Error> {
    let Some(pid) = Pid::from_raw(raw) else { return Ok(None) };
    match inspect(pid) {
        State::Running(pidfd, stat) => {
            let same = start_time.is_none_or(|expected| stat.start_time == expected);
            Ok(same.then_some((pid, pidfd)))
        }
        State::Ended => Ok(None),
        State::Unknown(error) => Err(Error::Inspect(raw, error)),
    }
}

/// See [`super::status`].
pub fn is_alive(request: &Status) -> Result<bool, Error> {
    Ok(find(request.pid, request.start_time)?.is_some())
}

/// See [`super::kill`]. Every signal is sent through a pidfd, never to a number. If the process leads
/// a group, the rest of the group is killed too.
pub fn kill(request: &Kill) -> KillReport {
    let raw = request.pid;
    let (pid, pidfd) = match find(raw, request.start_time) {
        Ok(Some(found)) => found,
        Ok(None) => return KillReport::ended(raw, KillMethod::AlreadyDead),
        Err(error) => return KillReport::failed(raw, error),
    };
    let leads_group = getpgid(Some(pid)) == Ok(pid);
    match pidfd_send_signal(&pidfd, Signal::TERM) {
        Ok(()) => {}
        Err(Errno::SRCH) => return KillReport::ended(raw, KillMethod::AlreadyDead),
        Err(_) => return KillReport::failed(raw, Error::NotPermitted(raw)),
    }
    let members = if leads_group { group_members(pid) } else { Vec::new() };
    for (_, member) in &members {
        let _ = pidfd_send_signal(member, Signal::TERM);
    }
    // A stopped process handles SIGTERM only after it is continued.
    for process in members.iter().map(|(_, member)| member).chain([&pidfd]) {
        let _ = pidfd_send_signal(process, Signal::CONT);
    }
    let mut method = KillMethod::Terminated;
    if !wait_until_ended(&pidfd, request::seconds(request.grace)) {
        method = KillMethod::Killed;
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
    let deadline = Instant::now() + STUCK_AFTER;
    let left = || deadline.saturating_duration_since(Instant::now());
    if !wait_until_ended(&pidfd, left()) {
        return KillReport::failed(raw, Error::Stuck(raw));
    }
    // Repeated, because a member may have started another process before it was killed.
    loop {
        let members = if leads_group { group_members(pid) } else { Vec::new() };
        if members.is_empty() {
            return KillReport::ended(raw, method);
        }
        for (_, member) in &members {
            let _ = pidfd_send_signal(member, Signal::KILL);
        }
        if !members.iter().all(|(_, member)| wait_until_ended(member, left())) {
            return KillReport::failed(raw, Error::Stuck(raw));
        }
    }
}

fn wait_until_ended(pidfd: &OwnedFd, at_most: Duration) -> bool {
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

/// The members of a group other than its leader.
pub fn group_members(leader: Pid) -> Vec<(Pid, OwnedFd)> {
    other_processes(|pid, stat| pid != leader && stat.group == leader.as_raw_nonzero().get())
}

/// All processes that match, except this one, which still has to answer.
fn other_processes(wanted: impl Fn(Pid, &ProcStat) -> bool) -> Vec<(Pid, OwnedFd)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|&pid| pid != rustix::process::getpid())
        .filter_map(|pid| match inspect(pid) {
            State::Running(pidfd, stat) if wanted(pid, &stat) => Some((pid, pidfd)),
            _ => None,
        })
        .collect()
}

/// Kills all processes in the session of a leader that has ended but is not reaped yet.
pub fn kill_session(leader: Pid) {
    let deadline = Instant::now() + STUCK_AFTER;
    // Repeated, because one of them may have started another process before it was killed.
    while Instant::now() < deadline {
        let mut members = other_processes(|_, stat| stat.session == leader.as_raw_nonzero().get());
        members.retain(|(_, member)| pidfd_send_signal(member, Signal::KILL).is_ok());
        if members.is_empty() {
            return;
        }
        for (_, member) in &members {
            wait_until_ended(member, deadline.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) Z (b c) S 1 7 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.start_time), (1, 7, 9, 12345));
    }

    #[test]
    fn this_process_is_found() {
        let stat = proc_stat(rustix::process::getpid()).unwrap();
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        assert_eq!(stat.group, group);
    }
}
