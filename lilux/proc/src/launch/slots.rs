//! A limit on how many processes are started at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::sync::lock;

/// Places for processes that are being started. Running processes do not occupy any.
///
/// Starting a process is work for a processor, so starting many at once only makes each one slower.
pub struct StartSlots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// One occupied place; dropping it frees the place.
#[must_use]
pub struct StartSlot<'a>(&'a StartSlots);

impl StartSlots {
    /// Allows `count` starts at the same time.
    pub fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a free place and occupies it.
    pub fn acquire(&self) -> StartSlot<'_> {
        let free = self.freed.wait_while(lock(&self.free), |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        StartSlot(self)
    }
}

impl Drop for StartSlot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn starts_at_the_same_time_are_limited_and_all_get_a_turn() {
        let slots = StartSlots::new(2);
        let (inside, most, passed) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let slot = slots.acquire();
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(slot);
                    passed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(passed.into_inner(), 12);
    }

    #[test]
    fn a_panic_frees_the_slot() {
        let slots = StartSlots::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _slot = slots.acquire();
            panic!("a start that fails");
        }));
        assert!(panicked.is_err());
        assert_eq!(*lock(&slots.free), 1);
    }
}
