//! What the processes of a job wait for, found out just before the job is ended.
//!
//! `procfs` reads the state of each process, `calls` interprets the system call that it is in, `ends`
//! and `sockets` find who is at the other end, and `words` says it. `masking` decides what may be
//! shown, and `stack` gets the stack of a program that offers one.
//!
//! Looking must never delay the end of a job: it happens on its own thread, because reading /proc can
//! block if a process is stuck in the kernel, and the job continues when the time is over.

// Other systems only say that nothing is known.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod ends;
mod masking;
#[cfg(target_os = "linux")]
mod procfs;
mod report;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "linux")]
mod words;

pub use masking::Mask;
pub use report::{Autopsy, LastLines};

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::platform::Platform;
use crate::sync::{lock, start_thread};

/// The job waits at most this much longer than the budget. A busy machine does not start the thread at
/// once, and reading /proc may block.
const OVERRUN: Duration = Duration::from_millis(200);
/// So many lines of each output stream are kept, if they are short.
const LAST_LINES: usize = 3;
/// Bytes to take from the end of an output stream.
pub const LAST_BYTES: usize = 1000;

/// Looks at the process tree of a job. `last` has the last bytes of stdout and stderr.
pub fn examine(
    platform: Platform,
    root: i32,
    budget: Duration,
    mask: Mask,
    last: [Vec<u8>; 2],
) -> Autopsy {
    let began = Instant::now();
    let [stdout, stderr] = last.map(|bytes| last_lines(&bytes));
    let output = LastLines { stdout: mask.apply(&stdout), stderr: mask.apply(&stderr) };
    let mut autopsy = match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => {
            on_thread(budget, move |found| tree(root, Instant::now() + budget, &mask, found))
        }
        Platform::Portable => {
            Autopsy::unavailable("this platform does not say what processes wait for")
        }
    };
    let _ = (root, budget);
    autopsy.output = output;
    autopsy.elapsed_ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    autopsy
}

/// Calls `look` on a thread and returns what it has found when the time is over.
#[cfg(target_os = "linux")]
fn on_thread(budget: Duration, look: impl FnOnce(&Mutex<Autopsy>) + Send + 'static) -> Autopsy {
    let nothing = Autopsy::unavailable("the processes could not be read in time");
    let shared = Arc::new(Mutex::new(nothing));
    let found = Arc::clone(&shared);
    let (done, wait) = sync_channel::<()>(1);
    let started = start_thread("autopsy", move || {
        look(&found);
        drop(done);
    });
    if started.is_err() {
        return Autopsy::unavailable("no thread was available to look at the processes");
    }
    let _ = wait.recv_timeout(budget + OVERRUN);
    lock(&shared).clone()
}

/// Describes the tree below `root` in `found`, until the time is over.
#[cfg(target_os = "linux")]
fn tree(root: i32, until: Instant, mask: &Mask, found: &Mutex<Autopsy>) {
    use rustix::process::Pid;

    use self::words::Scene;
    use crate::tree::linux::with_descendants;

    /// More processes are only counted.
    const MAX_PROCESSES: usize = 100;
    const MAX_COUNTED: usize = 10_000;

    let in_time = || Instant::now() < until;
    let pids: Vec<i32> = Pid::from_raw(root)
        .map(|root| with_descendants(root, MAX_COUNTED))
        .unwrap_or_default()
        .into_iter()
        .map(|pid| pid.as_raw_nonzero().get())
        .collect();
    // The processes that are described or have ended meanwhile.
    let report = |examined: usize, processes: &[report::Process]| {
        let (all, unexamined) = (pids.len(), pids.len() - examined);
        let missing =
            (unexamined > 0).then(|| format!("only {examined} of {all} processes were examined"));
        let processes = processes.to_vec();
        *lock(found) = Autopsy { missing, processes, unexamined, ..Autopsy::default() };
    };
    report(0, &[]);
    let mut snapshots = Vec::new();
    let mut ended = 0;
    for &pid in pids.iter().take(MAX_PROCESSES) {
        if !in_time() {
            break;
        }
        match procfs::Snapshot::read(pid) {
            Some(snapshot) => snapshots.push(snapshot),
            None => ended += 1,
        }
    }
    let scene = Scene::new(snapshots);
    let mut processes: Vec<report::Process> = Vec::new();
    for snapshot in &scene.processes {
        if !in_time() {
            break;
        }
        processes.push(report::Process {
            pid: snapshot.pid,
            parent: snapshot.parent,
            command: mask.apply(&masking::command(&snapshot.name, &snapshot.argv)),
            state: snapshot.state_name(),
            cpu_seconds: seconds_of(snapshot.cpu_ticks),
            memory_bytes: snapshot.pages * rustix::param::page_size() as u64,
            waits_for: mask.apply(&scene.waits_for(snapshot)),
            stack: None,
        });
    }
    report(ended + processes.len(), &processes);
    // Last: the signal interrupts what the process was waiting for.
    let asked: Vec<_> = processes
        .iter()
        .map(|process| if in_time() { stack::ask(process.pid) } else { None })
        .collect();
    for (process, asked) in processes.iter_mut().zip(asked) {
        process.stack = asked.and_then(|asked| asked.stack(until)).map(|text| mask.apply(&text));
    }
    report(ended + processes.len(), &processes);
}

#[cfg(target_os = "linux")]
#[expect(clippy::cast_precision_loss, reason = "no process has run for that long")]
fn seconds_of(ticks: u64) -> f64 {
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    (seconds * 100.0).round() / 100.0
}

/// The last lines of the end of a stream, without an incomplete first one.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = match text.split_once('\n') {
        Some((_, rest)) if bytes.len() >= LAST_BYTES && !rest.trim().is_empty() => rest,
        _ => &text,
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_lines() {
        assert_eq!(last_lines(b"a\nb\n\nc\nd"), "b\nc\nd");
        let mut long = vec![b'x'; LAST_BYTES];
        long.extend(b"\nlast\n");
        assert_eq!(last_lines(&long), "last");
        assert_eq!(last_lines(b""), "");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_budget_of_zero_describes_nothing_and_says_so() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let found = Mutex::default();
        tree(own, Instant::now(), &Mask::default(), &found);
        let autopsy = lock(&found).clone();
        assert!(autopsy.processes.is_empty());
        assert!(autopsy.missing.unwrap().starts_with("only 0 of "));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_look_that_blocks_does_not_delay_the_job() {
        let (block, blocked) = std::sync::mpsc::channel::<()>();
        let autopsy = on_thread(Duration::ZERO, move |_| blocked.recv().unwrap_or(()));
        drop(block);
        assert_eq!(autopsy.missing.unwrap(), "the processes could not be read in time");
    }
}
