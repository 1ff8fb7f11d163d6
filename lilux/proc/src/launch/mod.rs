//! Starting a process, and learning how it ended.

#[cfg(target_os = "linux")]
mod linux;
mod portable;

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::process::{Pid, Rlimit, Signal, WaitId, WaitIdOptions};

use crate::platform::Platform;
use crate::request::{EnvMap, EnvMode};
use crate::text::OsText;

/// Where a bare command name is looked for if the process has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// What to run, in the form in which the kernel takes it.
pub struct Recipe {
    /// Paths to try, in order; the first that can be executed is.
    programs: Vec<CString>,
    argv: Vec<CString>,
    envp: Vec<CString>,
    cwd: Option<CString>,
}

/// The three descriptors that the process gets.
#[derive(Clone, Copy)]
pub struct Stdio<'a> {
    /// Becomes 0.
    pub stdin: BorrowedFd<'a>,
    /// Becomes 1.
    pub stdout: BorrowedFd<'a>,
    /// Becomes 2.
    pub stderr: BorrowedFd<'a>,
}

/// How a process is tied to the helper. Either way it leads a process group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// A job: it adopts its own orphans, and dies with the thread that started it.
    Job,
    /// A job whose background processes may live on: as above, in a session of its own.
    LooseJob,
    /// It lives its own life.
    Detached,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A started process that nobody else will reap, so its pid stays its own until [`Child::reap`].
pub struct Child {
    /// Its process id, and the id of its process group.
    pub pid: Pid,
    exit: OwnedFd,
    exit_is_pidfd: bool,
}

/// Starts processes; made once, before the helper changes its own limits.
pub struct Launcher {
    /// Which mechanisms are used.
    pub platform: Platform,
    original_nofile: Rlimit,
    inherited: Vec<(OsString, OsString)>,
    starts: Turnstile,
}

/// Starting is work for a processor, so only a few starts run at once; four keep two processors
/// busy while each waits for its program to be loaded. Running processes are never held up.
struct Turnstile {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Turnstile {
    fn new(at_once: usize) -> Self {
        Self { free: Mutex::new(at_once), freed: Condvar::new() }
    }

    fn pass<T>(&self, start: impl FnOnce() -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        let started = start();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
        started
    }
}

impl Recipe {
    /// Strings were checked for NUL when the request was.
    pub fn new(
        command: &OsText,
        args: &[OsText],
        cwd: Option<&OsText>,
        env: Vec<(OsText, OsText)>,
    ) -> Self {
        let path = env.iter().rev().find(|(name, _)| name.as_bytes() == b"PATH");
        let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
        let programs = if command.as_bytes().contains(&b'/') {
            vec![command.to_c_string()]
        } else {
            path.split(|&b| b == b':').map(|dir| beneath(dir, command)).collect()
        };
        let envp = env
            .into_iter()
            .map(|(name, value)| {
                let mut entry = name.into_bytes();
                entry.push(b'=');
                entry.extend_from_slice(value.as_bytes());
                CString::new(entry).unwrap_or_default()
            })
            .collect();
        Self {
            programs,
            argv: std::iter::once(command).chain(args).map(OsText::to_c_string).collect(),
            envp,
            cwd: cwd.map(OsText::to_c_string),
        }
    }

    /// Why nothing runs, in words that name what is missing.
    fn explain(&self, chdir_failed: bool, error: &io::Error) -> String {
        let reason = os_message(error);
        if chdir_failed {
            let cwd = self.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
            return format!("working directory {}: {reason}", cwd.unwrap_or_default());
        }
        let command = self.argv[0].to_string_lossy();
        let relative_to_cwd = self.cwd.is_some() && !command.starts_with('/');
        let existing = self.programs.iter().find(|program| {
            !relative_to_cwd
                && std::path::Path::new(std::ffi::OsStr::from_bytes(program.to_bytes())).is_file()
        });
        match existing {
            Some(program) if error.kind() == io::ErrorKind::NotFound => format!(
                "{}: the interpreter that its first line names does not exist",
                program.to_string_lossy()
            ),
            _ => format!("{command}: {reason}"),
        }
    }
}

/// An empty part of PATH means the working directory, as POSIX has it.
fn beneath(dir: &[u8], command: &OsText) -> CString {
    let dir = if dir.is_empty() { b"." } else { dir };
    CString::new([dir, b"/", command.as_bytes()].concat()).unwrap_or_default()
}

/// The system's words without Rust's "(os error 2)".
pub fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

impl Launcher {
    /// Remembers the limits and the environment that jobs are to inherit, then raises the helper's
    /// own limit of open files: hundreds of jobs need a handful of descriptors each.
    pub fn new(platform: Platform) -> Self {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let original_nofile = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: original_nofile.maximum, ..original_nofile };
        let _ = setrlimit(Resource::Nofile, raised);
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            platform,
            original_nofile,
            inherited: std::env::vars_os().collect(),
            starts: Turnstile::new(processors.max(4)),
        }
    }

    /// The environment of a process, by the rule of `mode`.
    pub fn environment(&self, env: &EnvMap, mode: EnvMode) -> Vec<(OsText, OsText)> {
        if mode == EnvMode::Exact {
            return env.0.clone();
        }
        let given: std::collections::HashSet<&[u8]> =
            env.0.iter().map(|(name, _)| name.as_bytes()).collect();
        let kept = self.inherited.iter().filter(|(name, _)| !given.contains(name.as_bytes()));
        kept.map(|(name, value)| (OsText::from(name.as_os_str()), OsText::from(value.as_os_str())))
            .chain(env.0.iter().cloned())
            .collect()
    }

    /// Returns once the program runs. The error is what comes after `Failed to spawn: `.
    pub fn launch(&self, recipe: &Recipe, stdio: Stdio<'_>, bond: Bond) -> Result<Child, String> {
        self.starts.pass(|| match self.platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => linux::launch(recipe, stdio, bond, &self.original_nofile),
            Platform::Portable => portable::launch(recipe, stdio, &self.original_nofile),
        })
    }
}

impl Child {
    /// Becomes readable when the process has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.exit.as_fd()
    }

    /// Signals the process and all that stayed in its group. Sound as long as it is not reaped.
    pub fn signal_group(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    /// Signals the process alone; false if it does not take signals from us.
    pub fn signal(&self, signal: Signal) -> bool {
        rustix::process::kill_process(self.pid, signal).is_ok()
    }

    /// Waits until a stop that was asked for has come, or the end. Until then the process may be in
    /// the middle of starting another.
    pub fn wait_until_stopped(&self) {
        let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(self.wait_id(), either) {}
    }

    /// Waits for the end and frees the pid.
    pub fn reap(self) -> io::Result<Ended> {
        loop {
            let id = self.wait_id();
            match rustix::process::waitid(id, WaitIdOptions::EXITED) {
                Ok(Some(status)) => {
                    let code = status.exit_status().map(Ended::Code);
                    let signal = status.terminating_signal().map(Ended::Signal);
                    return code.or(signal).ok_or_else(|| io::Error::other("no exit status"));
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The same on a thread of its own; `then` is done when the process has ended.
    pub fn reap_in_background(self, then: impl FnOnce() + Send + 'static) {
        let reaper = std::thread::Builder::new().name("reaper".into()).stack_size(64 * 1024);
        let _ = reaper.spawn(move || {
            let _ = self.reap();
            then();
        });
    }

    #[cfg(target_os = "linux")]
    fn wait_id(&self) -> WaitId<'_> {
        if self.exit_is_pidfd { WaitId::PidFd(self.exit.as_fd()) } else { WaitId::Pid(self.pid) }
    }

    #[cfg(not(target_os = "linux"))]
    fn wait_id(&self) -> WaitId<'_> {
        WaitId::Pid(self.pid)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_starts_run_at_once_than_there_are_places_and_none_is_forgotten() {
        let turnstile = Turnstile::new(2);
        let (inside, most, passed) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    turnstile.pass(|| {
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                    passed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(passed.into_inner(), 12);
    }
}
