//! The process tree of a job: finding its processes, ending them, and reporting how that is known.

#[cfg(target_os = "linux")]
pub mod linux;
pub mod portable;

use std::sync::Arc;

use rustix::process::Signal;
use serde_json::json;

use crate::launch::{Bond, Child};
use crate::outbox::Outbox;
use crate::platform::Platform;
use crate::report::{KnownBy, TreeReport};
use crate::request::Background;

/// How the processes of jobs are tracked.
pub enum Supervision {
    /// This process adopts the orphans of its jobs.
    #[cfg(target_os = "linux")]
    Adopting(linux::Adopter),
    /// Each job adopts its own orphans. Processes that are still running when it ends are not
    /// adopted.
    #[cfg(target_os = "linux")]
    Rooted,
    /// Only the job's process group is known. `keeper`, which is informed of each group, kills them
    /// if this process dies.
    Group {
        /// A connection to a process that outlives this one.
        keeper: Option<Arc<Outbox>>,
    },
}

/// What [`Supervision::kill`] achieved.
pub struct Killed {
    /// The number of descendants that were ended.
    pub ended: usize,
    /// True if no descendant is known to be left.
    pub complete: bool,
}

impl Supervision {
    /// For jobs whose background processes may survive, in a process that does not adopt.
    pub fn loose(platform: Platform) -> Self {
        match platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => Self::Rooted,
            Platform::Portable => Self::Group { keeper: None },
        }
    }

    /// How a job is tied to the helper.
    pub fn bond(&self) -> Bond {
        match self {
            #[cfg(target_os = "linux")]
            Self::Adopting(_) => Bond::Job,
            _ => Bond::LooseJob,
        }
    }

    /// Called before a process is started that may outlive the helper. From then on, the keeper
    /// adopts nothing: it could not tell the orphans of that process from those of a job.
    pub fn release_orphans(&self) {
        #[cfg(target_os = "linux")]
        if let Self::Rooted = self {
            linux::stop_adopting();
        }
    }

    /// Registers a job that was started.
    pub fn started(&self, child: &Child) {
        if let Self::Group { keeper: Some(keeper) } = self {
            notify(keeper, "guard", child);
        }
    }

    /// How the state of a job's tree is known.
    pub fn known_by(&self) -> KnownBy {
        match self {
            #[cfg(target_os = "linux")]
            Self::Adopting(_) | Self::Rooted => KnownBy::Subreaper,
            Self::Group { .. } => KnownBy::ProcessGroup,
        }
    }

    /// Called once by the main thread, after it has started the others and before they start jobs.
    #[cfg(target_os = "linux")]
    pub fn prepare_main_thread(&self) {
        if let Self::Adopting(_) = self {
            linux::unshare_descriptors();
        }
    }

    /// Answers a job that waits in [`Self::settle`]. Called by the main thread.
    #[cfg(target_os = "linux")]
    pub fn sweep_for(&self, request: &linux::SweepRequest) {
        if let Self::Adopting(adopter) = self {
            adopter.sweep_for(request);
        }
    }

    /// True if a job may get SIGTERM before SIGKILL. A rooted job must not end before its
    /// descendants: nothing would adopt them.
    pub fn may_terminate(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Rooted => false,
            _ => true,
        }
    }

    /// Kills the tree of a job that is not reaped yet, as far as that is possible while the job's
    /// own process is alive; [`Self::settle`] does the rest.
    pub fn kill(&self, child: &Child) -> Killed {
        match self {
            #[cfg(target_os = "linux")]
            Self::Rooted => linux::kill_rooted(child),
            _ => {
                child.signal_group(Signal::KILL);
                Killed { ended: 0, complete: true }
            }
        }
    }

    /// Ends the processes that a job left running, unless they are kept, and reports. Called after
    /// the job's own process has ended and before it is reaped. `killed` is true if we ended it.
    pub fn settle(&self, child: &Child, background: Background, killed: bool) -> TreeReport {
        let keep = background == Background::Keep && !killed;
        match self {
            #[cfg(target_os = "linux")]
            Self::Adopting(adopter) => adopter.settle(child.pid),
            #[cfg(target_os = "linux")]
            Self::Rooted if killed => TreeReport::empty(KnownBy::Subreaper),
            _ if keep => TreeReport::empty(KnownBy::Unknown),
            Self::Group { keeper: Some(keeper) } => {
                let report = portable::end_group(child);
                notify(keeper, "unguard", child);
                report
            }
            _ => portable::end_group(child),
        }
    }
}

fn notify(keeper: &Outbox, op: &str, child: &Child) {
    keeper.send(&json!({"op": op, "pid": child.raw_pid()}), &[]);
}
