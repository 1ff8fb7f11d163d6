//! Limits of a process tree.
//!
//! The kernel's own limits count single processes, or all processes of a user, so the tree is
//! measured at intervals. The kernel's limits remain as a brake for what happens in between.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::Part;
use crate::request::Limits;
use crate::tree::linux::with_descendants;

/// How often a tree is measured. A measurement of 50 processes takes less than half a millisecond.
const INTERVAL: Duration = Duration::from_millis(25);
/// How often the tree of a process that waits most of the time is measured.
const LONG_INTERVAL: Duration = Duration::from_secs(1);

/// The most processes that are measured.
const MAX_TREE: u64 = 10_000;

/// A limit of the kernel for each process.
pub type ProcessLimit = (libc::__rlimit_resource_t, libc::rlimit);

/// The kernel's limits for a request. Those that are also measured leave room, so that a job is ended
/// and reported by the measurement.
pub fn process_limits(limits: &Limits) -> Vec<ProcessLimit> {
    let fixed = |limit: u64| libc::rlimit { rlim_cur: limit, rlim_max: limit };
    let mut result = Vec::new();
    if let Some(bytes) = limits.memory {
        // Not the address space: programs reserve far more than they use.
        result.push((libc::RLIMIT_DATA, fixed(bytes.saturating_mul(2))));
    }
    if let Some(seconds) = limits.cpu {
        result.push((libc::RLIMIT_CPU, fixed(seconds.saturating_add(1))));
    }
    if let Some(bytes) = limits.file_size {
        result.push((libc::RLIMIT_FSIZE, fixed(bytes)));
    }
    result
}

/// Measures the tree of a job.
pub struct Watcher {
    limits: Limits,
    interval: Duration,
    longest_interval: Duration,
    next: Instant,
}

/// What a tree uses.
#[derive(Debug, Default, Clone, Copy)]
struct Usage {
    processes: u64,
    /// Pages of memory, where shared ones count for each process.
    pages: u64,
    /// Clock ticks, including those of children that have ended.
    ticks: u64,
}

impl Watcher {
    /// `None` if there is nothing to measure.
    pub fn new(limits: Limits) -> Option<Self> {
        let measured =
            limits.memory.is_some() || limits.cpu.is_some() || limits.processes.is_some();
        measured.then(|| Self {
            limits,
            interval: INTERVAL,
            longest_interval: INTERVAL,
            next: Instant::now() + INTERVAL,
        })
    }

    /// Measures less and less often.
    pub fn relax(&mut self) {
        self.longest_interval = LONG_INTERVAL;
    }

    /// When to measure next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Measures the tree below `root` if it is time to. Returns the limit that it exceeds.
    pub fn check(&mut self, root: Pid) -> Option<Part> {
        if Instant::now() < self.next {
            return None;
        }
        let exceeded = self.exceeded(root);
        self.interval = (self.interval * 2).min(self.longest_interval);
        self.next = Instant::now() + self.interval;
        exceeded
    }

    fn exceeded(&self, root: Pid) -> Option<Part> {
        let most = self.limits.processes.map_or(MAX_TREE, |most| most.min(MAX_TREE));
        let tree = with_descendants(root, usize::try_from(most).unwrap_or(usize::MAX));
        let mut usage = Usage::default();
        for &pid in &tree {
            usage.add(pid);
        }
        let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used > limit);
        if over(self.limits.processes, usage.processes) {
            return Some(Part::Processes);
        }
        // Measuring exactly is slow, so it is done only if the upper bound exceeds the limit.
        let bytes = || tree.iter().map(|&pid| proportional_bytes(pid)).sum();
        if over(self.limits.memory, usage.pages.saturating_mul(system(libc::_SC_PAGESIZE)))
            && over(self.limits.memory, bytes())
        {
            return Some(Part::Memory);
        }
        let seconds = usage.ticks / system(libc::_SC_CLK_TCK);
        over(self.limits.cpu, seconds.saturating_add(1)).then_some(Part::Cpu)
    }
}

impl Usage {
    fn add(&mut self, pid: Pid) {
        self.processes += 1;
        let pid = pid.as_raw_nonzero();
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        if let Ok(statm) = fs::read_to_string(format!("/proc/{pid}/statm")) {
            self.pages += number(statm.split(' ').nth(1));
        }
        if let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) {
            let stat = String::from_utf8_lossy(&stat);
            // After the name in brackets: state, parent, …; the times are fields 14 to 17.
            let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
            self.ticks += fields.skip(11).take(4).map(|field| number(Some(field))).sum::<u64>();
        }
    }
}

/// Memory of a process, where a page that n processes share counts as 1/n. If that cannot be read,
/// all of its memory.
fn proportional_bytes(pid: Pid) -> u64 {
    let pid = pid.as_raw_nonzero();
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = pss.and_then(|pss| pss.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or_else(
        || {
            let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
            let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
            system(libc::_SC_PAGESIZE).saturating_mul(pages)
        },
        |kilobytes| kilobytes.saturating_mul(1024),
    )
}

/// A constant of the system.
fn system(name: libc::c_int) -> u64 {
    // SAFETY: asks for a constant.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory() {
        let this = rustix::process::getpid();
        let mut usage = Usage::default();
        usage.add(this);
        let bound = usage.pages * system(libc::_SC_PAGESIZE);
        let exact = proportional_bytes(this);
        assert!(exact > 100_000, "{exact}");
        assert!(exact <= bound * 2, "{exact} {bound}");
    }

    #[test]
    fn only_given_limits_are_watched() {
        assert!(Watcher::new(Limits::default()).is_none());
        assert!(Watcher::new(Limits { file_size: Some(1), ..Limits::default() }).is_none());
        let limits = Limits { processes: Some(1), memory: Some(u64::MAX), ..Limits::default() };
        let watcher = Watcher::new(limits).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(watcher.exceeded(Pid::from_child(&child)), None);
        assert_eq!(watcher.exceeded(rustix::process::getpid()), Some(Part::Processes));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
