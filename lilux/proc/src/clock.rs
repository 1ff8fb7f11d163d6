//! Waiting for descriptors with a deadline.

use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};

/// Sleeps until one of `fds` is ready or the deadline has passed. `None` means no deadline.
/// A signal may end the sleep with nothing ready, so callers check again.
pub fn wait_for(fds: &mut [PollFd<'_>], deadline: Option<Instant>) {
    let timeout = deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    if poll(fds, timeout.as_ref()).is_err() {
        for fd in fds {
            fd.clear_revents();
        }
    }
}

/// True if a descriptor is readable now.
pub fn is_readable(fd: &impl std::os::fd::AsFd) -> bool {
    let mut fds = [PollFd::new(fd, rustix::event::PollFlags::IN)];
    wait_for(&mut fds, Some(Instant::now()));
    !fds[0].revents().is_empty()
}
