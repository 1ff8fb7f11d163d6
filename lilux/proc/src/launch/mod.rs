//! Starting a process.
//!
//! `invocation` prepares what `execve` takes, `linux` or `portable` creates the process, and
//! `child` is the result.

mod child;
mod invocation;
#[cfg(target_os = "linux")]
mod linux;
mod portable;
mod slots;
#[cfg(target_os = "linux")]
mod stack;

pub use child::{Child, Ended};

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::invocation::Invocation;
use self::slots::StartSlots;
use crate::confine::{Confined, Confiner};
use crate::error::Error;
use crate::observe::Observer;
use crate::platform::Platform;
use crate::request::{EnvMode, Program};
use crate::text::OsText;

/// Even one processor can work on another start while a program is loaded from disk.
const MIN_START_SLOTS: usize = 4;

/// The descriptors that the process gets.
#[derive(Clone, Copy)]
pub struct Stdio<'a> {
    /// Becomes descriptor 0.
    pub stdin: BorrowedFd<'a>,
    /// Becomes descriptor 1.
    pub stdout: BorrowedFd<'a>,
    /// Becomes descriptor 2.
    pub stderr: BorrowedFd<'a>,
    /// Stays open, under the number that this variable gets.
    pub channel: Option<(BorrowedFd<'a>, &'a OsText)>,
}

/// How a process is tied to the helper. In each case it leads its own process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// A job: it adopts its orphans, and is killed when the thread that started it ends.
    Job,
    /// A job whose background processes may survive: like `Job`, but in its own session.
    LooseJob,
    /// Independent, in its own session.
    Detached,
}

/// Starts processes. Created once, before the helper changes its own limits.
pub struct Launcher {
    /// Which mechanisms are used.
    pub platform: Platform,
    original_nofile: Rlimit,
    inherited: Vec<(OsString, OsString)>,
    /// Prepares the confinement of jobs.
    pub confiner: Confiner,
    slots: StartSlots,
}

impl Launcher {
    /// Stores the limits and the environment that jobs inherit, then raises the helper's own limit
    /// of open files: each of hundreds of jobs needs a few descriptors.
    pub fn new(platform: Platform) -> Self {
        let original_nofile = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: original_nofile.maximum, ..original_nofile };
        let _ = setrlimit(Resource::Nofile, raised);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            platform,
            original_nofile,
            inherited: std::env::vars_os().collect(),
            confiner: Confiner::new(platform),
            slots: StartSlots::new(processors.max(MIN_START_SLOTS)),
        }
    }

    /// Starts a program and returns once it has been executed.
    pub fn launch(
        &self,
        program: &Program,
        stdio: Stdio<'_>,
        bond: Bond,
        confined: Option<&Confined>,
        observer: Option<&Observer>,
    ) -> Result<Child, Error> {
        let env = self.complete_environment(program, stdio, confined);
        let invocation = Invocation::new(program, &env);
        let _slot = self.slots.acquire();
        match self.platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => {
                let steps = confined.and_then(Confined::steps);
                let (steps, step) = (steps.as_ref(), observer.and_then(Observer::step));
                linux::launch(&invocation, stdio, bond, &self.original_nofile, steps, step)
            }
            Platform::Portable => {
                let _ = observer;
                portable::launch(&invocation, stdio, &self.original_nofile)
            }
        }
    }

    /// The environment of a new process, with the variables of its confinement and its channel.
    pub fn complete_environment<'a>(
        &self,
        program: &'a Program,
        stdio: Stdio<'_>,
        confined: Option<&Confined>,
    ) -> Cow<'a, [(OsText, OsText)]> {
        let mut env = self.environment(program);
        for (name, value) in confined.iter().flat_map(|confined| &confined.variables) {
            set(env.to_mut(), name.clone(), value.clone());
        }
        if let Some((fd, variable)) = stdio.channel {
            let number = match self.platform {
                #[cfg(target_os = "linux")]
                Platform::Linux => linux::CHANNEL,
                Platform::Portable => fd.as_raw_fd(),
            };
            set(env.to_mut(), variable.clone(), OsText::from(number.to_string().as_str()));
        }
        env
    }

    /// The environment that the request gives to a new process.
    pub fn environment<'a>(&self, program: &'a Program) -> Cow<'a, [(OsText, OsText)]> {
        let given = &program.env.0;
        if program.env_mode == EnvMode::Exact {
            return Cow::Borrowed(given);
        }
        let names: HashSet<&[u8]> = given.iter().map(|(name, _)| name.as_bytes()).collect();
        let kept = self.inherited.iter().filter(|(name, _)| !names.contains(name.as_bytes()));
        kept.map(|(name, value)| (OsText::from(name.as_os_str()), OsText::from(value.as_os_str())))
            .chain(given.iter().cloned())
            .collect()
    }
}

fn set(env: &mut Vec<(OsText, OsText)>, name: OsText, value: OsText) {
    env.retain(|(other, _)| *other != name);
    env.push((name, value));
}
