//! Starting a process on Linux: one `clone` that shares memory until the program is executed.
//!
//! `fork` copies page tables, and the standard library falls back to it as soon as code has to
//! run in the child. A job needs a few system calls there (session, adoption of orphans, a signal
//! when the helper dies), so the child is created the way `posix_spawn` does it:
//! `CLONE_VM | CLONE_VFORK` with its own stack, and `CLONE_PIDFD` for an identity that is never
//! reused. The parent thread sleeps until `execve`, so errors are returned in shared memory.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::process::{Pid, Rlimit};

use super::child::{Child, ExitNotice};
use super::invocation::Invocation;
use super::stack::Stack;
use super::{Bond, Stdio};
use crate::confine::ChildSteps;
use crate::error::{ConfinementError, Error};
use crate::observe::ChildStep;

/// The number of the channel's descriptor in the child. Some shells only know numbers below ten.
pub const CHANNEL: c_int = 3;

thread_local! {
    /// The child's stack. The thread sleeps while the child uses it, so one is enough.
    static STACK: RefCell<Option<Stack>> = const { RefCell::new(None) };
}

/// Where the child was when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Confinement,
    WorkingDirectory,
    Program,
}

/// Everything that the child needs. It is prepared beforehand, because the child must not allocate.
struct Plan<'a> {
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    cwd: *const c_char,
    stdio: [c_int; 3],
    channel: Option<c_int>,
    bond: Bond,
    nofile: libc::rlimit,
    confinement: Option<&'a ChildSteps<'a>>,
    observation: Option<&'a ChildStep>,
    /// Set by the child; an errno.
    failure: Cell<Option<(Step, c_int)>>,
}

/// See [`super::Launcher::launch`].
pub fn launch(
    invocation: &Invocation,
    stdio: Stdio<'_>,
    bond: Bond,
    nofile: &Rlimit,
    confinement: Option<&ChildSteps<'_>>,
    observation: Option<&ChildStep>,
) -> Result<Child, Error> {
    let changes_mounts = confinement.is_some_and(ChildSteps::changes_mounts);
    let needs_cwd = changes_mounts && invocation.cwd.is_none();
    let own_cwd = if needs_cwd { current_folder() } else { None };
    let cwd = invocation.cwd.as_deref().or(own_cwd.as_deref());
    let plan = Plan {
        programs: invocation.programs.iter().map(|program| program.as_ptr()).collect(),
        argv: null_terminated(invocation.argv.iter().map(|word| word.as_ptr())),
        envp: null_terminated(invocation.envp.pointers()),
        cwd: cwd.map_or(ptr::null(), CStr::as_ptr),
        stdio: [stdio.stdin.as_raw_fd(), stdio.stdout.as_raw_fd(), stdio.stderr.as_raw_fd()],
        channel: stdio.channel.map(|(fd, _)| fd.as_raw_fd()),
        bond,
        nofile: libc::rlimit {
            rlim_cur: nofile.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: nofile.maximum.unwrap_or(libc::RLIM_INFINITY),
        },
        confinement,
        observation,
        failure: Cell::new(None),
    };
    let cloned = match confinement.and_then(ChildSteps::carrier) {
        Some(carrier) => carrier.run(|| clone_child(&plan)).unwrap_or_else(|| {
            Err(io::Error::other("the thread that starts the jobs of this profile has ended"))
        }),
        None => clone_child(&plan),
    };
    let child = cloned.map_err(|error| invocation.program_error(error))?;
    let Some((step, errno)) = plan.failure.get() else { return Ok(child) };
    child.reap();
    let error = io::Error::from_raw_os_error(errno);
    Err(match step {
        Step::Confinement => ConfinementError::Refused(error).into(),
        Step::WorkingDirectory => invocation.cwd_error(error),
        Step::Program => invocation.program_error(error),
    })
}

/// The working directory of the helper, which a job gets if its request names none. A job that enters
/// another mount namespace would start at the root.
fn current_folder() -> Option<CString> {
    CString::new(std::env::current_dir().ok()?.into_os_string().into_encoded_bytes()).ok()
}

fn null_terminated(strings: impl Iterator<Item = *const c_char>) -> Vec<*const c_char> {
    strings.chain(std::iter::once(ptr::null())).collect()
}

fn clone_child(plan: &Plan<'_>) -> io::Result<Child> {
    STACK.with_borrow_mut(|stack| {
        let stack = match stack {
            Some(stack) => stack,
            None => stack.insert(Stack::new()?),
        };
        let mut pidfd: c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let signals = BlockedSignals::block();
        // SAFETY: `child_main` only makes async-signal-safe system calls and never returns into
        // Rust; `plan` and the stack outlive it, because CLONE_VFORK suspends this thread until the
        // child has executed a program or exited. Signals are blocked, so none of our handlers can
        // run on the shared memory. The fifth argument is where CLONE_PIDFD stores its result.
        let pid = unsafe {
            libc::clone(
                child_main,
                stack.top(),
                flags,
                ptr::from_ref(plan).cast_mut().cast::<c_void>(),
                ptr::from_mut(&mut pidfd),
            )
        };
        let error = io::Error::last_os_error();
        drop(signals);
        let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or(error)?;
        // SAFETY: clone succeeded, so `pidfd` is an open descriptor without another owner.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Child::new(pid, ExitNotice::Pidfd(pidfd)))
    })
}

/// Runs in the child, on memory shared with the suspended parent.
extern "C" fn child_main(argument: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Plan` that lives until this function has ended.
    let plan = unsafe { &*argument.cast::<Plan<'_>>() };
    // SAFETY: we are the child of `clone_child`. From here on there are only plain system calls on
    // arguments that the parent prepared.
    unsafe {
        // First, because a change of credentials would undo the signal of the bond.
        plan.enter_namespaces();
        plan.set_bond();
        plan.set_stdio();
        plan.set_working_directory();
        plan.reset_limits_and_signals();
        plan.restrict();
        plan.be_observed();
        // Last, because the number may belong to a descriptor that the steps before need.
        plan.set_channel();
        plan.execute()
    }
}

/// The steps of the child, in order. Each is unsafe to call anywhere else: it changes or ends the
/// calling process.
impl Plan<'_> {
    unsafe fn enter_namespaces(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            if self.confinement.is_some_and(|steps| !steps.enter_namespaces()) {
                self.fail(Step::Confinement);
            }
        }
    }

    unsafe fn restrict(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            if self.confinement.is_some_and(|steps| !steps.restrict()) {
                self.fail(Step::Confinement);
            }
        }
    }

    unsafe fn be_observed(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            if self.observation.is_some_and(|step| !step.install()) {
                self.fail(Step::Confinement);
            }
        }
    }

    unsafe fn set_bond(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            if self.bond == Bond::Job {
                // The worker's session has no terminal, so a job does not need its own session. And
                // Linux distributes processor time between sessions: many small ones would starve
                // the caller.
                libc::setpgid(0, 0);
            } else {
                libc::setsid();
            }
            if self.bond != Bond::Detached {
                // Kept across exec: orphans of this job become its own children.
                libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
        }
    }

    unsafe fn set_stdio(&self) {
        for (target, &source) in (0..).zip(&self.stdio) {
            // SAFETY: see `child_main`.
            unsafe {
                if libc::dup2(source, target) < 0 {
                    self.fail(Step::Program);
                }
            }
        }
    }

    unsafe fn set_channel(&self) {
        let Some(source) = self.channel else { return };
        // SAFETY: see `child_main`.
        unsafe {
            let done = if source == CHANNEL {
                // `dup2` to itself would leave the flag that closes it.
                libc::fcntl(source, libc::F_SETFD, 0)
            } else {
                libc::dup2(source, CHANNEL)
            };
            if done < 0 {
                self.fail(Step::Program);
            }
        }
    }

    unsafe fn set_working_directory(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            if !self.cwd.is_null() && libc::chdir(self.cwd) != 0 {
                self.fail(Step::WorkingDirectory);
            }
        }
    }

    /// Restores the caller's limit of open files, and unblocks all signals.
    unsafe fn reset_limits_and_signals(&self) {
        // SAFETY: see `child_main`.
        unsafe {
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const self.nofile);
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        }
    }

    /// Tries each path. Like a shell, reports "permission denied" rather than "not found" if one of
    /// them exists.
    unsafe fn execute(&self) -> ! {
        // SAFETY: see `child_main`.
        unsafe {
            let mut denied = false;
            for &program in &self.programs {
                libc::execve(program, self.argv.as_ptr(), self.envp.as_ptr());
                match *libc::__errno_location() {
                    libc::ENOENT | libc::ENOTDIR => {}
                    libc::EACCES => denied = true,
                    _ => self.fail(Step::Program),
                }
            }
            if denied {
                *libc::__errno_location() = libc::EACCES;
            }
            self.fail(Step::Program)
        }
    }

    /// Stores the reason for the parent and ends the child.
    unsafe fn fail(&self, step: Step) -> ! {
        // SAFETY: reads this thread's errno, then ends the process without unwinding.
        unsafe {
            self.failure.set(Some((step, *libc::__errno_location())));
            libc::_exit(127)
        }
    }
}

/// Blocks all signals of this thread until it is dropped.
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
