//! Starting a process on Linux: one `clone` that shares memory until the program is executed.
//!
//! `fork` copies page tables, and the standard library falls back to it as soon as code has to
//! run in the child. A job needs a few system calls there (its own session, adoption of its
//! orphans, a signal should we die), so the child is made by hand the way `posix_spawn` does it:
//! `CLONE_VM | CLONE_VFORK` with a stack of its own, and `CLONE_PIDFD` for an identity that cannot
//! be reused. The thread sleeps until the program runs, so errors come back in shared memory.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::process::{Pid, Rlimit};

use super::{Bond, Child, Recipe, Stdio};

const STACK_SIZE: usize = 64 * 1024;

thread_local! {
    /// The child's stack. The thread sleeps while the child uses it, so one is enough.
    static STACK: RefCell<Vec<u8>> = RefCell::new(vec![0; STACK_SIZE]);
}

/// All that the child needs, made ready before it exists: it must not allocate.
struct Plan {
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    cwd: *const c_char,
    stdio: [c_int; 3],
    bond: Bond,
    nofile: libc::rlimit,
    chdir_failed: Cell<bool>,
    error: Cell<c_int>,
}

/// See [`super::Launcher::launch`].
pub fn launch(
    recipe: &Recipe,
    stdio: Stdio<'_>,
    bond: Bond,
    nofile: &Rlimit,
) -> Result<Child, String> {
    let plan = Plan {
        programs: recipe.programs.iter().map(|program| program.as_ptr()).collect(),
        argv: terminated(&recipe.argv),
        envp: terminated(&recipe.envp),
        cwd: recipe.cwd.as_deref().map_or(ptr::null(), CStr::as_ptr),
        stdio: [stdio.stdin.as_raw_fd(), stdio.stdout.as_raw_fd(), stdio.stderr.as_raw_fd()],
        bond,
        nofile: libc::rlimit {
            rlim_cur: nofile.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: nofile.maximum.unwrap_or(libc::RLIM_INFINITY),
        },
        chdir_failed: Cell::new(false),
        error: Cell::new(0),
    };
    let (pid, pidfd) = clone_child(&plan).map_err(|error| recipe.explain(false, &error))?;
    let child = Child { pid, exit: pidfd, exit_is_pidfd: true };
    if plan.error.get() == 0 {
        return Ok(child);
    }
    let _ = child.reap();
    Err(recipe.explain(plan.chdir_failed.get(), &io::Error::from_raw_os_error(plan.error.get())))
}

fn terminated(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain(std::iter::once(ptr::null())).collect()
}

fn clone_child(plan: &Plan) -> io::Result<(Pid, OwnedFd)> {
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let signals = BlockedSignals::block();
    let result = STACK.with_borrow_mut(|stack| {
        let end = stack.as_mut_ptr_range().end;
        let top = end.wrapping_sub(end.align_offset(16).wrapping_add(16) % 16);
        // SAFETY: `child_main` only makes async-signal-safe system calls and never returns into
        // Rust; `plan` and the stack outlive it, because CLONE_VFORK holds this thread until the
        // child has executed a program or exited. Signals are blocked, so no handler of ours can
        // run on the shared memory. The fifth argument is where CLONE_PIDFD stores its result.
        unsafe {
            libc::clone(
                child_main,
                top.cast::<c_void>(),
                flags,
                ptr::from_ref(plan).cast_mut().cast::<c_void>(),
                ptr::from_mut(&mut pidfd),
            )
        }
    });
    let error = io::Error::last_os_error();
    drop(signals);
    match Pid::from_raw(result) {
        // SAFETY: clone succeeded, so `pidfd` is an open descriptor that nobody else owns.
        Some(pid) if result > 0 => Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
        _ => Err(error),
    }
}

/// Runs in the child, on memory shared with the sleeping parent.
extern "C" fn child_main(argument: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Plan` that lives until this function has ended.
    let plan = unsafe { &*argument.cast::<Plan>() };
    // SAFETY: each call below is a plain system call on arguments that the parent made ready.
    unsafe {
        if plan.bond == Bond::Job {
            // The worker's session has no terminal, so the job needs none of its own; and Linux
            // shares processors between sessions, where many small ones would crowd out the caller.
            libc::setpgid(0, 0);
        } else {
            libc::setsid();
        }
        if plan.bond != Bond::Detached {
            // Kept across exec: what this job orphans becomes its own child, never a stranger's.
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        for (target, &source) in (0..).zip(&plan.stdio) {
            if libc::dup2(source, target) < 0 {
                plan.fail();
            }
        }
        if !plan.cwd.is_null() && libc::chdir(plan.cwd) != 0 {
            plan.chdir_failed.set(true);
            plan.fail();
        }
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const plan.nofile);
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        let mut refused = 0;
        for &program in &plan.programs {
            libc::execve(program, plan.argv.as_ptr(), plan.envp.as_ptr());
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => refused = libc::EACCES,
                _ => plan.fail(),
            }
        }
        if refused != 0 {
            *libc::__errno_location() = refused;
        }
        plan.fail()
    }
}

impl Plan {
    /// Ends the child and leaves the reason for the parent.
    fn fail(&self) -> ! {
        // SAFETY: reads this thread's errno, then ends the process without unwinding.
        unsafe {
            self.error.set(*libc::__errno_location());
            libc::_exit(127)
        }
    }
}

/// All signals held back from this thread for as long as it lives.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn block() -> Self {
        // SAFETY: plain C structures, filled by the calls that take them.
        unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `block` saved.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut());
        }
    }
}
