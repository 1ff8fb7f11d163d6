//! Waiting for descriptors until a moment.

use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};

/// Sleeps until one of `fds` is ready or the moment has come. No moment means no limit.
/// An interruption counts as a wake-up with nothing ready; callers look again anyway.
pub fn wait_for(fds: &mut [PollFd<'_>], until: Option<Instant>) {
    let timeout = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
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

/// Whether a descriptor is readable now.
pub fn is_readable(fd: &impl std::os::fd::AsFd) -> bool {
    let mut fds = [PollFd::new(fd, rustix::event::PollFlags::IN)];
    wait_for(&mut fds, Some(Instant::now()));
    !fds[0].revents().is_empty()
}
