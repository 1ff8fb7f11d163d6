//! Linux: subreapers and the kernel's list of children.
//!
//! This is exact and cheap for three reasons:
//!
//! - A subreaper adopts the orphans among its descendants, including those that called `setsid` or
//!   forked twice. Each job is a subreaper (see `launch::linux`), so while it runs, everything that
//!   it started is among its descendants. This process is one too, so it adopts what a job leaves
//!   behind.
//! - Orphans become children of the *main thread*. Other threads start the jobs, so the main
//!   thread's list of children contains only orphans. If a `pread` finds it empty, nothing is left.
//! - The kernel hands over the orphans of a job before the end of the job becomes visible.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, getpid, kill_process_group, pidfd_send_signal};

use crate::clock::{is_readable, wait_for};
use crate::launch::Child;
use crate::process::linux::{
    ProcStat, State, group_members, inspect, is_descendant, is_our_child, is_shortage,
};
use crate::report::{KnownBy, TreeReport};
use crate::sync::lock;
use crate::tree::Killed;

/// A process that has not ended this long after SIGKILL is stuck in the kernel.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// The outcome of ending orphans once.
#[derive(Debug, Default)]
pub struct Sweep {
    /// The process groups of the processes that were ended.
    ended: Vec<i32>,
    /// The pids of processes that could not be ended.
    survivors: Vec<i32>,
    /// The state of some process could not be read.
    uncertain: bool,
}

/// Asks the main thread to sweep. The answer has the orphans that do not belong to the process group
/// of any running job.
pub type SweepRequest = Sender<Sweep>;

/// Adopts and ends the processes that jobs leave behind.
pub struct Adopter {
    orphans: File,
    ask_main: Mutex<Box<dyn Fn(SweepRequest) + Send>>,
    /// Several jobs may end at once, and one sweep ends the orphans of all of them. These are the
    /// groups of orphans whose job has not asked yet. Locked during a sweep, so that a job whose
    /// orphans have just ended finds them here.
    ended: Mutex<Vec<i32>>,
    /// Survivors that an earlier sweep has reported. They are not tried again.
    reported: Mutex<HashSet<i32>>,
}

impl Adopter {
    /// Makes this process a subreaper. Called by the main thread before it starts other threads;
    /// `ask_main` sends a request to the main thread.
    pub fn new(ask_main: impl Fn(SweepRequest) + Send + 'static) -> io::Result<Self> {
        become_subreaper()?;
        Ok(Self {
            orphans: File::open("/proc/thread-self/children")?,
            ask_main: Mutex::new(Box::new(ask_main)),
            ended: Mutex::default(),
            reported: Mutex::default(),
        })
    }

    fn ended(&self) -> MutexGuard<'_, Vec<i32>> {
        lock(&self.ended)
    }

    /// See [`super::Supervision::settle`].
    pub fn settle(&self, job: Pid) -> TreeReport {
        let mut ended = self.ended();
        let mut strays = Sweep::default();
        if self.orphans_exist() {
            drop(ended);
            let (reply, answer) = channel();
            (lock(&self.ask_main))(reply);
            strays = answer.recv().unwrap_or_default();
            ended = self.ended();
        }
        let before = ended.len();
        ended.retain(|&group| group != job.as_raw_nonzero().get());
        TreeReport {
            known_by: if strays.uncertain { KnownBy::Unknown } else { KnownBy::Subreaper },
            ended: strays.ended.len() + before - ended.len(),
            survivors: strays.survivors,
        }
    }

    /// Ends all orphans, on the main thread. An orphan that left the process group of its job is
    /// attributed to the job that asked.
    pub fn sweep_for(&self, request: &SweepRequest) {
        let mut ended = self.ended();
        let mut reported = lock(&self.reported);
        let mut swept = sweep_except(&mut reported);
        let (of_jobs, strays): (Vec<i32>, Vec<i32>) =
            swept.ended.into_iter().partition(|&group| leads_a_job(group));
        ended.extend(of_jobs);
        swept.ended = strays;
        let _ = request.send(swept);
    }

    fn orphans_exist(&self) -> bool {
        !matches!(self.orphans.read_at(&mut [0; 1], 0), Ok(0))
    }
}

/// A job is our child, at least as a zombie, until it has settled.
fn leads_a_job(group: i32) -> bool {
    Pid::from_raw(group).is_some_and(is_our_child)
}

/// Gives the calling thread its own descriptor table, so that it can inspect orphans while jobs use
/// every descriptor that the limit allows. On a kernel that is too old, the table stays shared.
pub fn unshare_descriptors() {
    const CLOSE_RANGE_UNSHARE: libc::c_int = 2;
    // SAFETY: copies the descriptor table; no descriptor has the only number that is closed.
    unsafe { libc::close_range(libc::c_uint::MAX, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) };
}

/// Makes this process adopt the orphans among its descendants.
pub fn become_subreaper() -> io::Result<()> {
    // Any pid sets the attribute; its value is ignored.
    Ok(rustix::process::set_child_subreaper(Some(Pid::INIT))?)
}

/// Undoes [`become_subreaper`].
pub fn stop_adopting() {
    let _ = rustix::process::set_child_subreaper(None);
}

/// True if this process adopts the orphans among its descendants.
pub fn is_adopting() -> bool {
    matches!(rustix::process::child_subreaper(), Ok(Some(_)))
}

/// Ends and reaps every child of the calling thread with all descendants.
///
/// On the main thread of a process whose other threads start the jobs, those are the orphans.
pub fn sweep() -> Sweep {
    sweep_except(&mut HashSet::new())
}

/// Like [`sweep`], but skips known survivors and adds new ones to them.
fn sweep_except(survivors: &mut HashSet<i32>) -> Sweep {
    let list = || {
        reap_own_children();
        children_in("/proc/thread-self/children")
    };
    if let Ok(children) = list() {
        // The pid of a process that is not a child any more may be reused.
        let children: HashSet<i32> =
            children.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        survivors.retain(|pid| children.contains(pid));
    }
    let sweep = end_until_none(list, getpid(), survivors);
    if !sweep.uncertain {
        survivors.extend(&sweep.survivors);
    }
    sweep
}

/// Ends the descendants of a job that is its own subreaper, then the job. The job is stopped first, so
/// that it cannot restart them.
pub fn kill_rooted(child: &Child) -> Killed {
    if child.signal(Signal::STOP) {
        child.wait_until_stopped();
    }
    let sweep = end_until_none(|| children_of(child.pid), getpid(), &HashSet::new());
    child.signal_group(Signal::KILL);
    let complete = !sweep.uncertain && sweep.survivors.is_empty();
    Killed { ended: sweep.ended.len(), complete }
}

/// Ends the descendants of every process in a group, then the group. `leader` has ended but is not
/// reaped yet, so its group cannot be another one.
///
/// The members are subreapers that nothing adopts from, so they must not end before their
/// descendants. They are stopped, so that they start no others; a process that is started just
/// before that has no descendants, and dies with the thread that started it.
pub fn end_below_group(leader: Pid) {
    let _ = kill_process_group(leader, Signal::STOP);
    for (pid, pidfd) in group_members(leader) {
        let children = || {
            let children = children_of(pid)?;
            // The pid of a process that has ended may be reused.
            Ok(if is_readable(&pidfd) { Vec::new() } else { children })
        };
        end_until_none(children, pid, &HashSet::new());
    }
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Reaps the zombies among the calling thread's own children.
pub fn reap_own_children() {
    loop {
        // SAFETY: no status is requested. __WNOTHREAD, which rustix does not have, excludes the
        // jobs, which are children of other threads.
        let pid =
            unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WNOTHREAD) };
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if pid == 0 || (pid < 0 && !interrupted()) {
            return;
        }
    }
}

/// Kills the processes that `list` returns, with all descendants, until none is left that can be
/// killed; `skip` are not tried. All of them are descendants of `ancestor`.
///
/// A process that exits between the list and the kill may have handed over children that were not on
/// the list, so the loop only ends with a list that has nothing new.
fn end_until_none(
    list: impl Fn() -> io::Result<Vec<Pid>>,
    ancestor: Pid,
    skip: &HashSet<i32>,
) -> Sweep {
    let mut sweep = Sweep::default();
    let mut known = HashSet::new();
    loop {
        let mut dying = Vec::new();
        let mut repeat = false;
        let mut family = list().unwrap_or_else(|_| {
            sweep.uncertain = true;
            Vec::new()
        });
        while let Some(pid) = family.pop() {
            let raw = pid.as_raw_nonzero().get();
            if skip.contains(&raw) || sweep.survivors.contains(&raw) {
                continue;
            }
            match children_of(pid) {
                Ok(children) => family.extend(children),
                // When it has been killed, its children will be on the list.
                Err(error) if is_shortage(&error) => repeat = true,
                Err(_) => sweep.uncertain = true,
            }
            match kill_one(pid, ancestor) {
                Kill::Sent(pidfd, stat) => dying.push((raw, pidfd, stat)),
                Kill::Refused => sweep.survivors.push(raw),
                Kill::Ended => repeat |= known.insert(raw),
                Kill::Later if dying.is_empty() => {
                    sweep.uncertain = true;
                    sweep.survivors.push(raw);
                }
                // Each process that ends frees a descriptor.
                Kill::Later => {
                    repeat = true;
                    break;
                }
            }
        }
        if dying.is_empty() && !repeat {
            return sweep;
        }
        let stuck = wait_until_dead(&dying);
        for (raw, _, stat) in &dying {
            if stuck.contains(raw) {
                sweep.survivors.push(*raw);
            } else {
                sweep.ended.push(stat.group);
            }
        }
    }
}

enum Kill {
    Sent(OwnedFd, ProcStat),
    Refused,
    Ended,
    /// No descriptor was available to inspect it.
    Later,
}

/// Kills a process if it is a descendant of `ancestor`. That is checked after its pidfd was opened, so a process
/// that has reused the pid is not killed.
fn kill_one(pid: Pid, ancestor: Pid) -> Kill {
    match inspect(pid) {
        State::Ended => Kill::Ended,
        State::Unknown(error) if is_shortage(&error) => Kill::Later,
        State::Unknown(_) => Kill::Refused,
        State::Running(pidfd, stat) => match is_descendant(pid, ancestor) {
            Err(_) => Kill::Later,
            Ok(false) => Kill::Ended,
            Ok(true) => match pidfd_send_signal(&pidfd, Signal::KILL) {
                Ok(()) => Kill::Sent(pidfd, stat),
                Err(rustix::io::Errno::SRCH) => Kill::Ended,
                Err(_) => Kill::Refused,
            },
        },
    }
}

/// Waits until all have ended. Returns the pids of those that have not after [`STUCK_AFTER`].
fn wait_until_dead(dying: &[(i32, OwnedFd, ProcStat)]) -> Vec<i32> {
    let deadline = Instant::now() + STUCK_AFTER;
    let mut left: Vec<_> = dying.iter().collect();
    while !left.is_empty() && Instant::now() < deadline {
        let mut fds: Vec<_> =
            left.iter().map(|(_, fd, _)| PollFd::new(fd, PollFlags::IN)).collect();
        wait_for(&mut fds, Some(deadline));
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        left.retain(|_| !ended.next().unwrap_or(false));
    }
    left.iter().map(|(raw, _, _)| *raw).collect()
}

/// A process with all of its descendants, as far as they can be seen; each parent comes before its
/// children. Ends when it has found more than `most`, because a tree may grow faster than it is read.
pub fn with_descendants(root: Pid, most: usize) -> Vec<Pid> {
    let (mut found, mut seen, mut family) = (Vec::new(), HashSet::new(), vec![root]);
    while found.len() <= most {
        let Some(pid) = family.pop() else { break };
        // A process that is handed over meanwhile could be found twice.
        if seen.insert(pid) {
            found.push(pid);
            family.extend(children_of(pid).unwrap_or_default().into_iter().rev());
        }
    }
    found
}

/// The children of all threads of a process, including zombies; none if it has ended.
fn children_of(pid: Pid) -> io::Result<Vec<Pid>> {
    let tasks = match fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        tasks => tasks?,
    };
    let mut children = Vec::new();
    for task in tasks {
        // A thread may end while the directory is read.
        let Ok(task) = task else { continue };
        children.extend(children_in(task.path().join("children"))?);
    }
    Ok(children)
}

fn children_in(path: impl AsRef<std::path::Path>) -> io::Result<Vec<Pid>> {
    let list = match fs::read_to_string(path) {
        Err(error) if has_ended(&error) => String::new(),
        list => list?,
    };
    Ok(list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect())
}

/// True if the list of children cannot be read because its thread has ended.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_is_not_our_descendant_is_not_killed() {
        // Its parent ends at once, so it becomes the child of some other process.
        let script = "sleep 60 >/dev/null 2>&1 & echo $!";
        let printed = Command::new("sh").args(["-c", script]).output().unwrap().stdout;
        let stranger = Pid::from_raw(String::from_utf8_lossy(&printed).trim().parse().unwrap());
        let stranger = stranger.unwrap();
        let kill = kill_one(stranger, getpid());
        let alive = matches!(inspect(stranger), State::Running(..));
        let _ = rustix::process::kill_process(stranger, Signal::KILL);
        assert!(matches!(kill, Kill::Ended));
        assert!(alive);
    }

    #[test]
    fn a_descendant_is_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(matches!(kill_one(pid, getpid()), Kill::Sent(..)));
        assert!(!child.wait().unwrap().success());
    }
}
