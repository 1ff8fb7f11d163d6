//! Threads and locks, as all modules use them.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough for threads that only wait and make a few system calls.
const SMALL_STACK: usize = 64 * 1024;

/// Locks a mutex even if a thread panicked while it held the lock: our critical sections leave the
/// data consistent at every step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a detached thread with a small stack.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.into()).stack_size(SMALL_STACK);
    builder.spawn(body).map(drop)
}
