//! What a process waits for, in words.

use std::cell::{OnceCell, RefCell};

use super::calls::{Wait, wait};
use super::ends::{Ends, lock_holder};
use super::masking::command;
use super::procfs::{Call, Snapshot, call, memory, other_threads, place, target, text_at, watched};
use super::sockets::{Socket, Sockets};

const MAX_THREADS: usize = 32;
const MAX_POLLED: u64 = 64;
/// So many of the things that an event loop waits for are named.
const MAX_NAMED: usize = 3;

/// The processes of a job, and what they have in common.
pub struct Scene {
    /// The processes.
    pub processes: Vec<Snapshot>,
    ends: OnceCell<Ends>,
    sockets: RefCell<Sockets>,
}

impl Scene {
    /// Of these processes.
    pub fn new(processes: Vec<Snapshot>) -> Self {
        Self { processes, ends: OnceCell::new(), sockets: RefCell::default() }
    }

    /// What a process waits for.
    pub fn waits_for(&self, process: &Snapshot) -> String {
        match process.state {
            'R' => return "busy on the CPU".into(),
            'T' => return "stopped by a signal".into(),
            't' => return "stopped by a debugger".into(),
            'Z' | 'X' => return format!("ended; {} has not noticed", self.label(process.parent)),
            _ => {}
        }
        let words = self.call_in_words(process, process.call, &process.place);
        match (&words, process.state) {
            (Some(words), _) => words.clone(),
            (None, 'D') => "waiting in the kernel, for a disk or a device".into(),
            (None, _) if process.call == Call::Denied => {
                "unknown: the process belongs to another user or protects itself".into()
            }
            (None, _) => "waiting in the kernel, for an unknown reason".into(),
        }
    }

    fn call_in_words(&self, process: &Snapshot, call: Call, place: &str) -> Option<String> {
        let Call::System(number, args) = call else {
            return (call == Call::Running).then(|| "busy on the CPU".into());
        };
        let pid = process.pid;
        Some(match wait(number, args) {
            Wait::Read(fd) => self.reading(pid, fd, place),
            Wait::Write(fd) => self.writing(pid, fd),
            Wait::Connect(fd) => self.connecting(pid, fd),
            Wait::Accept(fd) => format!("waiting for a connection {}", self.object(pid, fd)?),
            Wait::Poll(address, count) => self.polling(pid, &polled(pid, address, count), place),
            Wait::Select(count, reading, writing) => {
                let mut fds = selected(pid, count, reading);
                fds.extend(selected(pid, count, writing));
                self.polling(pid, &fds, place)
            }
            Wait::Epoll(fd) => self.polling(pid, &watched(pid, fd), place),
            Wait::Child(child) => format!("waiting for child {}", self.label(child)),
            Wait::AnyChild => self.any_child(pid),
            Wait::Futex => self.other_thread(process),
            Wait::Lock(fd) => {
                let path = target(pid, fd).unwrap_or_else(|| "a file".into());
                let holder = lock_holder(pid).map(|holder| self.label(holder));
                let held = holder.map_or_else(String::new, |holder| format!(", held by {holder}"));
                format!("waiting for a lock on {path}{held}")
            }
            Wait::Open(name) => {
                let path = text_at(pid, name).unwrap_or_else(|| "a file".into());
                if is_fifo_open(place) {
                    format!("opening the FIFO {path}, whose other end nobody opens")
                } else {
                    format!("opening {path}")
                }
            }
            Wait::Sleep { time, until } => sleeping(pid, time, until),
            Wait::Signal => "waiting for a signal".into(),
            Wait::Sync => "waiting until the disk has written a file".into(),
            Wait::Other if place.is_empty() => format!("waiting in system call {number}"),
            Wait::Other => format!("waiting in system call {number} ({place})"),
        })
    }

    fn reading(&self, pid: i32, fd: u64, place: &str) -> String {
        let Some(target) = target(pid, fd) else { return format!("reading descriptor {fd}") };
        let fifo = place.contains("pipe_read") && target.starts_with('/');
        if target.starts_with("pipe:") || fifo {
            let name = if fifo { format!("the FIFO {target}") } else { "a pipe".into() };
            return self.reading_pipe(pid, fd, &target, &name);
        }
        if target.starts_with("socket:") {
            return match self.sockets.borrow_mut().find(pid, &target) {
                Some(Socket::Connecting(peer)) => connecting_to(&peer.to_string()),
                Some(Socket::Connected(peer)) => format!("waiting for data from {peer}"),
                Some(Socket::Udp(Some(peer))) => format!("waiting for an answer from {peer} (UDP)"),
                Some(Socket::Udp(None)) => "waiting for a packet (UDP)".into(),
                Some(Socket::Unix(Some(path))) => format!("waiting for data on {path}"),
                _ => "waiting for data on a socket".into(),
            };
        }
        if is_terminal(&target) {
            return format!("reading the terminal {target}");
        }
        match target.strip_prefix("anon_inode:") {
            Some("inotify") => "waiting for changes of files".into(),
            Some(kind) => format!("waiting for {}", kind.trim_matches(['[', ']'])),
            None => format!("reading {target}"),
        }
    }

    fn reading_pipe(&self, pid: i32, fd: u64, target: &str, name: &str) -> String {
        let writers = self.ends().writers(target);
        let others: Vec<i32> = writers.iter().copied().filter(|&writer| writer != pid).collect();
        let name = if fd == 0 && name == "a pipe" { "stdin" } else { name };
        let Some(&first) = others.first() else {
            return if writers.is_empty() {
                format!("reading {name}, whose writer does not belong to the job")
            } else {
                format!("reading {name}, which nobody writes to: it holds the other end itself")
            };
        };
        if others.iter().all(|&writer| self.waits_for_a_child(writer)) {
            let holder = self.label(first);
            return format!(
                "reading {name}, which nobody writes to: {holder} holds the other end and waits \
                 for a child"
            );
        }
        let active = others.iter().find(|&&writer| !self.waits_for_a_child(writer));
        let writer = self.label(*active.unwrap_or(&first));
        let name = if name == "stdin" { "a pipe" } else { name };
        format!("reading {name} whose writer is {writer}")
    }

    fn writing(&self, pid: i32, fd: u64) -> String {
        let Some(target) = target(pid, fd) else { return format!("writing to descriptor {fd}") };
        if target.starts_with("pipe:") {
            let mut readers = self.ends().readers(&target).iter();
            return match readers.find(|&&reader| reader != pid) {
                Some(&reader) => {
                    format!("writing to a pipe, which {} does not read", self.label(reader))
                }
                None if fd == 1 || fd == 2 => "writing its output, which is read slowly".into(),
                None => "writing to a pipe, which nobody reads".into(),
            };
        }
        match self.object(pid, fd) {
            Some(object) if target.starts_with("socket:") => format!("sending on {object}"),
            _ => format!("writing to {target}"),
        }
    }

    fn connecting(&self, pid: i32, fd: u64) -> String {
        let socket =
            target(pid, fd).and_then(|target| self.sockets.borrow_mut().find(pid, &target));
        match socket {
            Some(Socket::Connecting(peer) | Socket::Connected(peer)) => {
                connecting_to(&peer.to_string())
            }
            Some(Socket::Unix(_)) => "connecting to a unix socket that accepts nothing".into(),
            _ => "connecting to a server".into(),
        }
    }

    /// Descriptors of `poll`, `select` or an event loop.
    fn polling(&self, pid: i32, fds: &[u64], place: &str) -> String {
        for &fd in fds {
            let socket =
                target(pid, fd).and_then(|target| self.sockets.borrow_mut().find(pid, &target));
            if let Some(Socket::Connecting(peer)) = socket {
                return connecting_to(&peer.to_string());
            }
        }
        if let [only] = fds {
            return self.reading(pid, *only, place);
        }
        let mut objects: Vec<String> = Vec::new();
        for object in fds.iter().filter_map(|&fd| self.object(pid, fd)) {
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        let more = objects.len().saturating_sub(MAX_NAMED);
        objects.truncate(MAX_NAMED);
        match (objects.is_empty(), more) {
            (true, _) => "waiting for a timer or an event of its own (event loop)".into(),
            (_, 0) => format!("waiting for events: {} (event loop)", objects.join(", ")),
            _ => format!("waiting for events: {} and {more} more (event loop)", objects.join(", ")),
        }
    }

    /// What a descriptor is, for a list. `None` for one that only the process itself uses.
    fn object(&self, pid: i32, fd: u64) -> Option<String> {
        let target = target(pid, fd)?;
        if target.starts_with("pipe:") {
            let other = |pids: &[i32]| pids.iter().copied().find(|&other| other != pid);
            if let Some(writer) = other(self.ends().writers(&target)) {
                return Some(format!("a pipe from {}", self.label(writer)));
            }
            if let Some(reader) = other(self.ends().readers(&target)) {
                return Some(format!("a pipe to {}", self.label(reader)));
            }
            return (fd <= 2)
                .then(|| ["stdin", "stdout", "stderr"][usize::try_from(fd).unwrap_or(0)].into());
        }
        if target.starts_with("socket:") {
            return match self.sockets.borrow_mut().find(pid, &target)? {
                Socket::Connecting(peer) => Some(connecting_to(&peer.to_string())),
                Socket::Connected(peer) => Some(format!("data from {peer}")),
                Socket::Listening(address) => Some(format!("on {address}")),
                Socket::Udp(Some(peer)) => Some(format!("an answer from {peer} (UDP)")),
                Socket::Udp(None) => Some("a packet (UDP)".into()),
                Socket::Unix(path) => path.map(|path| format!("on {path}")),
            };
        }
        match target.strip_prefix("anon_inode:") {
            Some("inotify") => Some("changes of files".into()),
            Some("[pidfd]") => Some("the end of a process".into()),
            Some(_) => None,
            None if target == "/dev/null" => None,
            None => Some(target),
        }
    }

    fn any_child(&self, pid: i32) -> String {
        let children: Vec<&Snapshot> =
            self.processes.iter().filter(|one| one.parent == pid && one.state != 'Z').collect();
        match children.as_slice() {
            [] => "waiting for a child".into(),
            [only] => format!("waiting for child {}", self.label(only.pid)),
            [first, ..] => format!(
                "waiting for one of {} children, such as {}",
                children.len(),
                self.label(first.pid)
            ),
        }
    }

    /// The main thread waits for something in memory: usually for another thread.
    fn other_thread(&self, process: &Snapshot) -> String {
        let pid = process.pid;
        for thread in other_threads(pid, MAX_THREADS) {
            let call = call(pid, thread);
            if let Call::System(number, args) = call {
                if matches!(wait(number, args), Wait::Futex) {
                    continue;
                }
            }
            if let Some(words) = self.call_in_words(process, call, &place(pid, thread)) {
                return format!("waiting for a thread of its own, which is {words}");
            }
        }
        "waiting for a lock or a condition in its own memory (futex)".into()
    }

    fn waits_for_a_child(&self, pid: i32) -> bool {
        self.find(pid).is_some_and(|process| match process.call {
            Call::System(number, args) => {
                matches!(wait(number, args), Wait::Child(_) | Wait::AnyChild)
            }
            _ => false,
        })
    }

    fn ends(&self) -> &Ends {
        self.ends.get_or_init(|| {
            let mut ends = Ends::default();
            for process in &self.processes {
                ends.add(process.pid);
            }
            ends
        })
    }

    fn find(&self, pid: i32) -> Option<&Snapshot> {
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// `4711 sleep 300`; only the number if the process does not belong to the job.
    fn label(&self, pid: i32) -> String {
        match self.find(pid) {
            Some(process) => format!("{pid} {}", command(&process.name, &process.argv)),
            None => pid.to_string(),
        }
    }
}

fn connecting_to(peer: &str) -> String {
    format!("connecting to {peer} (SYN sent)")
}

fn is_terminal(target: &str) -> bool {
    target.starts_with("/dev/pts/") || target.starts_with("/dev/tty")
}

fn is_fifo_open(place: &str) -> bool {
    place.contains("fifo_open") || place.contains("wait_for_partner")
}

/// The descriptors in the entries of `poll`, 8 bytes each.
fn polled(pid: i32, address: u64, count: u64) -> Vec<u64> {
    let length = usize::try_from(count.min(MAX_POLLED)).unwrap_or(0) * 8;
    memory(pid, address, length)
        .chunks_exact(8)
        .filter_map(|entry| u64::try_from(i32::from_ne_bytes(entry[..4].try_into().ok()?)).ok())
        .collect()
}

/// The descriptors in a set of `select`.
fn selected(pid: i32, count: u64, address: u64) -> Vec<u64> {
    if address == 0 {
        return Vec::new();
    }
    let length = usize::try_from(count.min(1024).div_ceil(8)).unwrap_or(0);
    let set = memory(pid, address, length);
    (0..count.min(1024))
        .filter(|bit| {
            let byte = usize::try_from(bit / 8).ok().and_then(|at| set.get(at));
            byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        })
        .collect()
}

fn sleeping(pid: i32, time: u64, until: bool) -> String {
    let seconds = memory(pid, time, 8);
    let seconds = <[u8; 8]>::try_from(&*seconds).ok().map(i64::from_ne_bytes);
    match seconds {
        Some(seconds) if until => {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_sec;
            format!("sleeping for another {} s", (seconds - now).max(0))
        }
        Some(seconds) if seconds > 0 => format!("sleeping for {seconds} s"),
        _ => "sleeping".into(),
    }
}
