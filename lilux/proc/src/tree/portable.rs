//! Process groups: what POSIX has for keeping processes together.

use rustix::process::Signal;

use crate::launch::Child;
use crate::report::{KnownBy, TreeReport};

/// Ends what is left of the group. Its id is still taken, since the leader is not reaped.
pub fn end_group(child: &Child) -> TreeReport {
    child.signal_group(Signal::KILL);
    TreeReport::empty(KnownBy::ProcessGroup)
}
