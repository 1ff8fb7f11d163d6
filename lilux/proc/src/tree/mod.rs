//! A job is its whole tree: finding what a job started, ending it, and saying how that is known.

#[cfg(target_os = "linux")]
pub mod linux;
mod portable;

use std::sync::Arc;

use crate::launch::{Bond, Child};
use crate::outbox::Outbox;
use crate::platform::Platform;
use crate::report::{KnownBy, TreeReport};
use crate::request::Background;

/// How the processes of jobs are kept together.
pub enum Supervision {
    /// This process adopts whatever its jobs leave behind.
    #[cfg(target_os = "linux")]
    Adopting(linux::Adopter),
    /// Each job adopts its own orphans, and what it leaves behind goes free.
    #[cfg(target_os = "linux")]
    Rooted,
    /// Only the job's process group is known. If this process vanishes, `keeper`, which is told of
    /// each group, ends them.
    Group {
        /// A connection to a process that outlives this one.
        keeper: Option<Arc<Outbox>>,
    },
}

impl Supervision {
    /// For jobs whose background processes may live on, run by a process that adopts nothing.
    pub fn loose(platform: Platform) -> Self {
        match platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => Self::Rooted,
            Platform::Portable => Self::Group { keeper: None },
        }
    }

    /// How a job is to be tied to the helper.
    pub fn bond(&self) -> Bond {
        match self {
            #[cfg(target_os = "linux")]
            Self::Adopting(_) => Bond::Job,
            _ => Bond::LooseJob,
        }
    }

    /// To be told of each job that runs.
    pub fn started(&self, child: &Child) {
        if let Self::Group { keeper: Some(keeper) } = self {
            tell(keeper, "guard", child);
        }
    }

    /// How anything is known of a job's tree.
    pub fn known_by(&self) -> KnownBy {
        match self {
            #[cfg(target_os = "linux")]
            Self::Adopting(_) | Self::Rooted => KnownBy::Subreaper,
            Self::Group { .. } => KnownBy::ProcessGroup,
        }
    }

    /// Called by the main thread once, after it has started the others and before they start jobs.
    #[cfg(target_os = "linux")]
    pub fn prepare_main_thread(&self) {
        if let Self::Adopting(_) = self {
            linux::keep_own_descriptors();
        }
    }

    /// Answers a job that waits in [`Self::settle`]. Called by the main thread.
    #[cfg(target_os = "linux")]
    pub fn sweep_for(&self, request: &linux::SweepRequest) {
        if let Self::Adopting(adopter) = self {
            adopter.sweep_for(request);
        }
    }

    /// Whether a job may be asked to end before it is killed. What a job leaves behind when it ends
    /// by itself goes free where nobody adopts it, so there the whole tree is killed at once.
    pub fn may_ask(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Rooted => false,
            _ => true,
        }
    }

    /// Kills the tree of a job that is not reaped yet, as far as that works while the job's own
    /// process is alive; [`Self::settle`] does the rest. Gives the number of descendants ended, and
    /// whether no other is known to be left.
    pub fn kill(&self, child: &Child) -> (usize, bool) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Rooted => linux::kill_rooted(child),
            _ => {
                child.signal_group(rustix::process::Signal::KILL);
                (0, true)
            }
        }
    }

    /// After the job's own process has ended, and before it is reaped: ends what it left running,
    /// unless that is to be kept, and reports. `killed` says that the job was ended by us.
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
                tell(keeper, "unguard", child);
                report
            }
            _ => portable::end_group(child),
        }
    }
}

fn tell(keeper: &Outbox, op: &str, child: &Child) {
    keeper.send(&serde_json::json!({"op": op, "pid": child.pid.as_raw_nonzero()}), &[]);
}
