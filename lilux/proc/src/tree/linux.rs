//! Linux: subreapers and the kernel's own list of children.
//!
//! Three facts make this exact and cheap:
//!
//! - A process marked as subreaper inherits the orphans below it, also those that called `setsid`
//!   or forked twice. Each job is one (see `launch::linux`), so while it runs, all that it started
//!   is below it; and so is this process, so when a job ends, what it left behind arrives here.
//! - Orphans arrive as children of the *main thread*. Jobs are started by other threads, so the
//!   main thread's list of children holds orphans and nothing else. An empty list, one `pread`
//!   away, proves that nothing is left.
//! - Orphans have arrived before the end of their job can be seen, since the kernel hands them
//!   over first.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::clock::wait_for;
use crate::launch::Child;
use crate::process::linux::{
    ProcStat, Sight, descends_from_us, is_our_child, is_shortage, look_at,
};
use crate::report::{KnownBy, TreeReport};

/// How long a process that was sent SIGKILL may take; only one stuck in the kernel takes longer.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// What one sweep did: the groups of the processes it ended, and the pids that it could not end.
#[derive(Debug, Default)]
pub struct Sweep {
    ended: Vec<i32>,
    survivors: Vec<i32>,
    /// Something could not be looked at.
    uncertain: bool,
}

/// Asks the main thread to sweep. The answer holds what no running job can be seen to have left.
pub type SweepRequest = Sender<Sweep>;

/// Takes in what jobs leave behind.
pub struct Adopter {
    orphans: File,
    requests: Mutex<Box<dyn Fn(SweepRequest) + Send>>,
    /// Several jobs may end at once, and one sweep ends the orphans of all of them: here stand the
    /// groups of those that belong to a job that has not asked yet. It is locked during a sweep,
    /// so that a job whose orphans have just vanished finds them noted.
    ended: Mutex<Vec<i32>>,
    /// What earlier sweeps could not end, and have told. It is not tried again.
    told: Mutex<HashSet<i32>>,
}

impl Adopter {
    /// Makes this process a subreaper. Called by the main thread, before it starts another;
    /// `ask_main` carries a request to it.
    pub fn new(ask_main: impl Fn(SweepRequest) + Send + 'static) -> io::Result<Self> {
        become_subreaper()?;
        Ok(Self {
            orphans: File::open("/proc/thread-self/children")?,
            requests: Mutex::new(Box::new(ask_main)),
            ended: Mutex::default(),
            told: Mutex::default(),
        })
    }

    fn ended(&self) -> MutexGuard<'_, Vec<i32>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`super::Supervision::settle`].
    pub fn settle(&self, job: Pid) -> TreeReport {
        let mut ended = self.ended();
        let mut strays = Sweep::default();
        if self.orphans_exist() {
            drop(ended);
            let (reply, answer) = channel();
            (self.requests.lock().unwrap_or_else(PoisonError::into_inner))(reply);
            strays = answer.recv().unwrap_or_default();
            ended = self.ended();
        }
        let noted = ended.len();
        ended.retain(|&group| group != job.as_raw_nonzero().get());
        TreeReport {
            known_by: if strays.uncertain { KnownBy::Unknown } else { KnownBy::Subreaper },
            ended: strays.ended.len() + noted - ended.len(),
            survivors: strays.survivors,
        }
    }

    /// The main thread's part. Blocks until every orphan that can be ended has been. A process
    /// that left the group of its job counts for the job that asked.
    pub fn sweep_for(&self, request: &SweepRequest) {
        let mut ended = self.ended();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut swept = sweep_except(&mut told);
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

/// A job stays our child, if only as a zombie, until it has settled.
fn leads_a_job(group: i32) -> bool {
    Pid::from_raw(group).is_some_and(is_our_child)
}

/// Gives the calling thread descriptors of its own, so that it can look at orphans while jobs hold
/// every descriptor that the limit allows. Where the kernel is too old for it, they stay shared.
pub fn keep_own_descriptors() {
    const CLOSE_RANGE_UNSHARE: libc::c_int = 2;
    // SAFETY: copies the table of descriptors; no descriptor has the one number that it closes.
    unsafe { libc::close_range(libc::c_uint::MAX, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) };
}

/// From now on, orphans below this process become its children.
pub fn become_subreaper() -> io::Result<()> {
    // Any pid but None sets the mark; its value has no meaning.
    Ok(rustix::process::set_child_subreaper(Some(Pid::INIT))?)
}

/// Ends every child of the calling thread and all below them, and reaps them.
///
/// On the main thread of a process whose jobs belong to other threads, those are the orphans.
pub fn sweep() -> Sweep {
    sweep_except(&mut HashSet::new())
}

/// The same, but for what is known to be beyond our power; new ones are added.
fn sweep_except(hopeless: &mut HashSet<i32>) -> Sweep {
    let list = || {
        reap_own_children();
        children_in("/proc/thread-self/children")
    };
    if let Ok(children) = list() {
        // A number that is no child any more may be given to another.
        let children: HashSet<i32> =
            children.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        hopeless.retain(|pid| children.contains(pid));
    }
    let sweep = end_until_none(list, hopeless);
    if !sweep.uncertain {
        hopeless.extend(&sweep.survivors);
    }
    sweep
}

/// Ends everything below a job that is its own subreaper, then the job. The job is stopped first,
/// so that it cannot start anew what is being ended. Gives what was ended, and whether that is all.
pub fn kill_rooted(child: &Child) -> (usize, bool) {
    if child.signal(Signal::STOP) {
        child.wait_until_stopped();
    }
    let sweep = end_until_none(|| children_of(child.pid), &HashSet::new());
    child.signal_group(Signal::KILL);
    (sweep.ended.len(), !sweep.uncertain && sweep.survivors.is_empty())
}

/// Reaps what has ended among the calling thread's own children, and nobody else's.
fn reap_own_children() {
    loop {
        // SAFETY: no status is asked for. rustix has no name for __WNOTHREAD, which keeps this
        // call away from the jobs, the children of other threads.
        let pid =
            unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | libc::__WNOTHREAD) };
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if pid == 0 || (pid < 0 && !interrupted()) {
            return;
        }
    }
}

/// Kills what `list` shows, with all descendants, until it shows nothing that can be killed.
///
/// A process that ends by itself between the list and the kill may have handed over children that
/// the list did not have yet, so only a list with nothing new in it is the end.
fn end_until_none(list: impl Fn() -> io::Result<Vec<Pid>>, hopeless: &HashSet<i32>) -> Sweep {
    let mut sweep = Sweep::default();
    let mut known = HashSet::new();
    loop {
        let mut dying = Vec::new();
        let mut news = false;
        let mut family = list().unwrap_or_else(|_| {
            sweep.uncertain = true;
            Vec::new()
        });
        while let Some(pid) = family.pop() {
            let raw = pid.as_raw_nonzero().get();
            if hopeless.contains(&raw) || sweep.survivors.contains(&raw) {
                continue;
            }
            match children_of(pid) {
                Ok(children) => family.extend(children),
                // Once it is dead, its children are on the list.
                Err(error) if is_shortage(&error) => news = true,
                Err(_) => sweep.uncertain = true,
            }
            match kill_one(pid) {
                Kill::Sent(pidfd, stat) => dying.push((raw, pidfd, stat)),
                Kill::Refused => sweep.survivors.push(raw),
                Kill::Gone => news |= known.insert(raw),
                Kill::Later if dying.is_empty() => {
                    sweep.uncertain = true;
                    sweep.survivors.push(raw);
                }
                // Those that die give their descriptors back.
                Kill::Later => {
                    news = true;
                    break;
                }
            }
        }
        if dying.is_empty() && !news {
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
    Gone,
    /// There was no descriptor to look at it with.
    Later,
}

/// The pidfd is opened first and its process looked at afterwards, so that the one that is killed
/// is one of ours, and not a stranger that was given the pid since.
fn kill_one(pid: Pid) -> Kill {
    match look_at(pid) {
        Sight::Gone => Kill::Gone,
        Sight::Hidden(error) if is_shortage(&error) => Kill::Later,
        Sight::Hidden(_) => Kill::Refused,
        Sight::Running(pidfd, stat) => match descends_from_us(pid) {
            Err(_) => Kill::Later,
            Ok(false) => Kill::Gone,
            Ok(true) => match pidfd_send_signal(&pidfd, Signal::KILL) {
                Ok(()) => Kill::Sent(pidfd, stat),
                Err(rustix::io::Errno::SRCH) => Kill::Gone,
                Err(_) => Kill::Refused,
            },
        },
    }
}

/// Sleeps until all have ended; gives those that have not by [`STUCK_AFTER`].
fn wait_until_dead(dying: &[(i32, OwnedFd, ProcStat)]) -> Vec<i32> {
    let deadline = Instant::now() + STUCK_AFTER;
    let mut left: Vec<_> = dying.iter().collect();
    while !left.is_empty() && Instant::now() < deadline {
        let mut fds: Vec<_> =
            left.iter().map(|(_, fd, _)| PollFd::new(fd, PollFlags::IN)).collect();
        wait_for(&mut fds, Some(deadline));
        let gone: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut gone = gone.into_iter();
        left.retain(|_| !gone.next().unwrap_or(false));
    }
    left.iter().map(|(raw, _, _)| *raw).collect()
}

/// The children of all threads of a process, dead ones too; none if it is gone.
fn children_of(pid: Pid) -> io::Result<Vec<Pid>> {
    let tasks = match fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        tasks => tasks?,
    };
    let mut children = Vec::new();
    for task in tasks {
        // A thread may end while the list is read.
        let Ok(task) = task else { continue };
        children.extend(children_in(task.path().join("children"))?);
    }
    Ok(children)
}

fn children_in(path: impl AsRef<std::path::Path>) -> io::Result<Vec<Pid>> {
    let list = match fs::read_to_string(path) {
        Err(error) if is_gone(&error) => String::new(),
        list => list?,
    };
    Ok(list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect())
}

/// A thread that ended has no list of children any more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A pid on a list may have been given to another process since the list was made.
    #[test]
    fn a_process_that_does_not_stand_below_us_is_not_killed() {
        // Its parent ends at once, so it is nobody's child that we know.
        let script = "sleep 60 >/dev/null 2>&1 & echo $!";
        let said = Command::new("sh").args(["-c", script]).output().unwrap().stdout;
        let stranger = Pid::from_raw(String::from_utf8_lossy(&said).trim().parse().unwrap());
        let stranger = stranger.unwrap();
        let kill = kill_one(stranger);
        let lives = matches!(look_at(stranger), Sight::Running(..));
        let _ = rustix::process::kill_process(stranger, Signal::KILL);
        assert!(matches!(kill, Kill::Gone));
        assert!(lives);
    }

    #[test]
    fn a_process_below_us_is_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(matches!(kill_one(pid), Kill::Sent(..)));
        assert!(!child.wait().unwrap().success());
    }
}
