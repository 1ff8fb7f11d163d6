//! Waking a thread that waits for descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe that a thread polls along with its other descriptors. Clones wake the same thread.
#[derive(Clone)]
pub struct Waker(Arc<(OwnedFd, OwnedFd)>);

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Waker {
    /// Opens two descriptors, which a thread keeps for its whole life.
    pub fn new() -> io::Result<Self> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self(Arc::new((reading, writing))))
    }

    /// Wakes the thread. Never blocks: if the pipe is full, the thread is already being woken.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0.1, &[1]);
    }

    /// Discards earlier wake-ups. Call it before checking why the thread was woken, never after.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!(rustix::io::read(&self.0.0, &mut bytes), Ok(n) if n == bytes.len()) {}
    }

    /// Readable after a wake-up.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
