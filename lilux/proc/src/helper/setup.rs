//! Preparing a process for running jobs: descriptors, signals and memory.

use std::io;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::sync::start_thread;

/// Undoes what the caller's process passed on to this one, before any other process is started.
pub fn prepare() -> io::Result<()> {
    close_inherited_on_exec();
    reset_ignored_signals();
    // Writing to a closed pipe becomes an error instead of a signal that kills this process.
    signal_hook::flag::register(libc::SIGPIPE, Arc::default())?;
    #[cfg(target_os = "linux")]
    {
        // Secrets of jobs pass through our memory; other processes of the same user must not read it.
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    Ok(())
}

/// Calls `act` on a separate thread whenever a signal asks this process to end.
pub fn on_signal(act: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    start_thread("signals", move || {
        for _ in signals.forever() {
            act();
        }
    })
}

/// `execve` resets the handlers of signals, but a job would inherit the ignored ones.
fn reset_ignored_signals() {
    for signal in 1..32 {
        // SAFETY: plain C structures; only the signal dispositions of this process change.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            if known && action.sa_sigaction == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// A job must not get descriptors that this process inherited.
fn close_inherited_on_exec() {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_RANGE_CLOEXEC: libc::c_int = 4;
        // SAFETY: sets a flag on descriptors and closes none.
        if unsafe { libc::close_range(3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) } == 0 {
            return;
        }
    }
    for raw in 3..1024 {
        // SAFETY: for a number that is not an open descriptor, the calls only return an error.
        unsafe {
            let flags = libc::fcntl(raw, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(raw, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
}
