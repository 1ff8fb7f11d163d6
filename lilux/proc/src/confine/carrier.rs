//! A thread that carries what the jobs of a profile have in common, and starts them.
//!
//! A child inherits the namespaces, the capabilities and the filter of the thread that creates it.
//! Installing a filter takes the kernel longer than everything else that a confined start adds, so a
//! thread that has the filter already is worth the two switches between threads.
//!
//! The thread is not in the Landlock domain of a job: a domain can signal and inspect itself. So each
//! child enters its own.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};

use super::child::Inherited;
use crate::sync::start_thread;

/// The thread. It ends when this is dropped, and with it the processes that it has started.
pub struct Carrier {
    line: Mutex<Line>,
}

/// The connection to the thread.
struct Line {
    tasks: Sender<Task>,
    /// A first answer when the thread is ready, then one for each task.
    answers: Receiver<()>,
    is_ready: bool,
}

/// The exclusive use of the thread.
pub struct Turn<'a>(MutexGuard<'a, Line>);

/// A function and its argument, which belongs to a thread that waits until the function has returned.
struct Task {
    act: unsafe fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: the thread that created the task waits for the answer, so it does not use what the function
// borrows at the same time.
unsafe impl Send for Task {}

impl Carrier {
    /// Starts the thread, which applies what is inherited to itself. `None` if it cannot be started.
    pub fn start(inherited: Inherited) -> Option<Self> {
        let (tasks, received) = channel::<Task>();
        let (answer, answers) = channel();
        let body = move || {
            // SAFETY: this thread does nothing but start processes.
            if !unsafe { inherited.apply() } || answer.send(()).is_err() {
                return;
            }
            while let Ok(task) = received.recv() {
                // SAFETY: see `Turn::run`.
                unsafe { (task.act)(task.argument) };
                if answer.send(()).is_err() {
                    return;
                }
            }
        };
        start_thread("carrier", body).ok()?;
        Some(Self { line: Mutex::new(Line { tasks, answers, is_ready: false }) })
    }

    /// The thread, unless it is busy or cannot be used. The caller then does without it.
    pub fn turn(&self) -> Option<Turn<'_>> {
        let mut line = match self.line.try_lock() {
            Ok(line) => line,
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return None,
        };
        if !line.is_ready {
            match line.answers.try_recv() {
                Ok(()) => line.is_ready = true,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
            }
        }
        Some(Turn(line))
    }
}

impl Turn<'_> {
    /// Calls the function on the thread, and waits until it has returned. `None` if the thread has
    /// ended.
    pub fn run<T, F: FnOnce() -> T>(&self, act: F) -> Option<T> {
        let mut frame = Frame { act: Some(act), result: None };
        let argument = (&raw mut frame).cast();
        // The frame lives until the answer, or until the thread has ended and uses it no more.
        if self.0.tasks.send(Task { act: call::<T, F>, argument }).is_ok() {
            let _ = self.0.answers.recv();
        }
        frame.result
    }
}

struct Frame<T, F> {
    act: Option<F>,
    result: Option<T>,
}

/// # Safety
///
/// The argument is a frame of these types that nothing else uses.
unsafe fn call<T, F: FnOnce() -> T>(argument: *mut c_void) {
    // SAFETY: see above.
    let frame = unsafe { &mut *argument.cast::<Frame<T, F>>() };
    frame.result = frame.act.take().map(|act| act());
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::confine::child::Privileges;
    use crate::confine::namespaces::Namespaces;

    #[test]
    fn a_function_runs_on_the_thread_and_returns_its_result() {
        let namespaces = Namespaces {
            user: None,
            mount: Err(String::new()),
            net: Err(String::new()),
            listener: None,
        };
        let inherited = Inherited::new(&namespaces, None, Privileges::Limited).unwrap();
        let carrier = Carrier::start(inherited).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let turn = loop {
            if let Some(turn) = carrier.turn() {
                break turn;
            }
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        };
        assert!(carrier.turn().is_none());
        let borrowed = String::from("text");
        let name = || std::thread::current().name().map(String::from);
        let found = turn.run(|| (borrowed.len(), name()));
        assert_eq!(found, Some((4, Some("carrier".into()))));
        drop(turn);
        assert!(carrier.turn().is_some());
    }
}
