//! Reads the state of one process from /proc. No read can block on anything but the process itself.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};

/// What a process is doing, as /proc says.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its id.
    pub pid: i32,
    /// The id of its parent.
    pub parent: i32,
    /// The kernel's name for it.
    pub name: String,
    /// Its arguments, as far as they are shown at all.
    pub argv: Vec<String>,
    /// The letter of its state.
    pub state: char,
    /// User and system time, in clock ticks.
    pub cpu_ticks: u64,
    /// Resident pages.
    pub pages: u64,
    /// What its main thread is doing.
    pub call: Call,
    /// The function of the kernel in which it waits; may be empty.
    pub place: String,
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It runs its own code.
    Running,
    /// It is inside this system call, with these arguments.
    System(i64, [u64; 6]),
    /// The kernel does not say, or this process may not know.
    Unknown,
    /// This process may not know: another user, or a process that protects itself.
    Denied,
}

const MAX_CMDLINE: u64 = 4096;
const MAX_DESCRIPTORS: usize = 256;

impl Snapshot {
    /// Reads it; `None` if the process has ended.
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets, and may contain brackets and spaces.
        let open = stat.iter().position(|&b| b == b'(')?;
        let close = stat.iter().rposition(|&b| b == b')')?;
        let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            name,
            argv: argv(pid),
            state: fields.first()?.chars().next()?,
            cpu_ticks: number(11)? + number(12)?,
            pages: number(21)?,
            call: call(pid, pid),
            place: place(pid, pid),
        })
    }

    /// The state in words.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            'R' => "running",
            'S' | 'I' => "sleeping",
            'D' => "waiting in the kernel",
            'T' => "stopped",
            't' => "traced",
            'Z' | 'X' => "ended",
            _ => "unknown",
        }
    }
}

fn argv(pid: i32) -> Vec<String> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) {
        let _ = file.take(MAX_CMDLINE).read_to_end(&mut bytes);
    }
    let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|&b| b == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// What a thread of a process is doing.
pub fn call(pid: i32, thread: i32) -> Call {
    match fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")) {
        Ok(text) => parse_call(&text),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Call::Denied,
        Err(_) => Call::Unknown,
    }
}

fn parse_call(text: &str) -> Call {
    if text.trim() == "running" {
        return Call::Running;
    }
    let mut fields = text.split_ascii_whitespace();
    let Some(number) = fields.next().and_then(|text| text.parse::<i64>().ok()) else {
        return Call::Unknown;
    };
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        let hex = fields.next().and_then(|text| text.strip_prefix("0x"));
        match hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(value) => *argument = value,
            None => return Call::Unknown,
        }
    }
    if number < 0 { Call::Unknown } else { Call::System(number, arguments) }
}

/// The function of the kernel in which a thread waits, or nothing.
pub fn place(pid: i32, thread: i32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/wchan")).unwrap_or_default();
    if text.trim() == "0" { String::new() } else { text.trim().to_owned() }
}

/// The other threads of a process with their states, at most `limit`.
pub fn other_threads(pid: i32, limit: usize) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let threads = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    threads.filter(|&thread: &i32| thread != pid).take(limit).collect()
}

/// What a descriptor refers to, such as `pipe:[4711]` or a path.
pub fn target(pid: i32, fd: u64) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// An open descriptor.
pub struct Descriptor {
    /// Its number.
    pub fd: u64,
    /// See [`target`].
    pub target: String,
    /// Opened for writing; for reading otherwise, or for both.
    pub writes: bool,
    /// Opened for reading.
    pub reads: bool,
}

/// The descriptors of a process, as many as are looked at.
pub fn descriptors(pid: i32) -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten().take(MAX_DESCRIPTORS) {
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(target) = target(pid, fd) else { continue };
        // The mode of the link is the mode of the descriptor; the file itself is not touched.
        let Ok(link) = fs::symlink_metadata(entry.path()) else { continue };
        let mode = link.permissions().mode();
        found.push(Descriptor { fd, target, writes: mode & 0o200 != 0, reads: mode & 0o400 != 0 });
    }
    found
}

/// The descriptors that an epoll descriptor watches.
pub fn watched(pid: i32, epoll: u64) -> Vec<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok())
        .take(MAX_DESCRIPTORS)
        .collect()
}

/// Some bytes of the memory of a process, as many as can be read.
pub fn memory(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let read = File::open(format!("/proc/{pid}/mem"))
        .and_then(|memory| memory.read_at(&mut bytes, address))
        .unwrap_or(0);
    bytes.truncate(read);
    bytes
}

/// The text at an address, up to its NUL byte.
pub fn text_at(pid: i32, address: u64) -> Option<String> {
    let bytes = memory(pid, address, 512);
    let end = bytes.iter().position(|&b| b == 0)?;
    (end > 0).then(|| String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// True if the process catches the signal.
pub fn catches(pid: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_syscall_is_read() {
        assert_eq!(parse_call("running\n"), Call::Running);
        assert_eq!(parse_call("-1 0x7ffd 0x7f00\n"), Call::Unknown);
        assert_eq!(
            parse_call("0 0x3 0x7f 0x400 0x0 0x0 0x0 0x7ffd 0x7f00\n"),
            Call::System(0, [3, 0x7f, 0x400, 0, 0, 0])
        );
        assert_eq!(parse_call(""), Call::Unknown);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let own = Snapshot::read(pid).unwrap();
        assert_eq!(own.pid, pid);
        assert!(!own.argv.is_empty());
        assert!(Snapshot::read(i32::MAX).is_none());
    }
}
