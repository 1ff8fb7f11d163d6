//! Process groups, the only way to end several processes at once in POSIX.

use std::collections::HashSet;
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::launch::Child;
use crate::report::{KnownBy, TreeReport};
use crate::sync::lock;

/// Kills the rest of the group. Its id cannot have been reused, because the leader is not reaped.
pub fn end_group(child: &Child) -> TreeReport {
    child.signal_group(Signal::KILL);
    TreeReport::empty(KnownBy::ProcessGroup)
}

/// The process groups of running jobs. The keeper kills them if the worker dies.
#[derive(Default)]
pub struct GuardedGroups(Mutex<HashSet<i32>>);

impl GuardedGroups {
    /// Adds a group.
    pub fn guard(&self, group: i32) {
        lock(&self.0).insert(group);
    }

    /// Removes a group that has ended.
    pub fn unguard(&self, group: i32) {
        lock(&self.0).remove(&group);
    }

    /// Kills and removes all groups.
    pub fn kill_all(&self) {
        for group in lock(&self.0).drain() {
            if let Some(group) = Pid::from_raw(group).filter(|group| !group.is_init()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }
}
