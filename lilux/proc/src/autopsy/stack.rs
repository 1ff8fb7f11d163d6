//! The stack of a program that offers it.
//!
//! A program offers its stack by opening a memory file of the name [`MEMORY_FILE`] and writing its
//! stack there when it gets SIGUSR2. For Python, two calls do that:
//! `faulthandler.register(signal.SIGUSR2, os.memfd_create("lilux-stack"), chain=False)`. The output of
//! the program is not touched. A process without such a file, or that does not catch the signal, does
//! not get it: it would be killed.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::procfs::{catches, descriptors};

const MEMORY_FILE: &str = "/memfd:lilux-stack (deleted)";
const MAX_STACK: u64 = 16 * 1024;
const POLL: Duration = Duration::from_millis(1);
/// A program that takes longer does not handle the signal; it may be stopped.
const PATIENCE: Duration = Duration::from_millis(20);

/// A process that was asked for its stack.
pub struct Asked {
    file: File,
    before: u64,
    until: Instant,
}

/// Asks a process for its stack, if it offers one.
pub fn ask(pid: i32) -> Option<Asked> {
    // Opened first: what is read afterwards is about the process that gets the signal, or it has ended.
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let signal = Signal::USR2;
    if !catches(pid, signal.as_raw()) {
        return None;
    }
    let fd = descriptors(pid).into_iter().find(|one| one.target == MEMORY_FILE)?.fd;
    // A new description with its own position, unlike a duplicate.
    let file = File::open(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let before = file.metadata().ok()?.len();
    pidfd_send_signal(&pidfd, signal).ok()?;
    Some(Asked { file, before, until: Instant::now() + PATIENCE })
}

impl Asked {
    /// Waits for the stack until the deadline. Returns what was written until then.
    pub fn stack(mut self, deadline: Instant) -> Option<String> {
        let until = deadline.min(self.until);
        let size = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        // It is complete when it has stopped growing: it is written without a pause.
        let mut seen = self.before;
        loop {
            let now = size(&self.file);
            if now > self.before && now == seen {
                break;
            }
            seen = now;
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(POLL);
        }
        let mut bytes = Vec::new();
        std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(self.before)).ok()?;
        self.file.take(MAX_STACK).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        (!text.is_empty()).then_some(text)
    }
}
