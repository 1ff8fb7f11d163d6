//! Waking a thread that sleeps on descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe to oneself. Cloned handles wake the same sleeper.
#[derive(Clone)]
pub struct Waker(Arc<(OwnedFd, OwnedFd)>);

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Waker {
    /// Two descriptors, kept for the life of a thread.
    pub fn new() -> io::Result<Self> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self(Arc::new((reading, writing))))
    }

    /// Never blocks: a full pipe wakes the sleeper as well as one byte more would.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0.1, &[1]);
    }

    /// Forgets the wake-ups so far. The sleeper looks at its reasons afterwards, never before.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!(rustix::io::read(&self.0.0, &mut bytes), Ok(n) if n == bytes.len()) {}
    }

    /// Readable after a wake-up.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
