//! The steps of a confinement in the child, between `clone` and `execve`.
//!
//! The child shares the memory of the helper, so it only makes system calls on what the parent has
//! prepared.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use libc::{c_ulong, sock_filter, sock_fprog};

use super::carrier::Turn;
use super::limits::ProcessLimit;
use super::namespaces::Namespaces;

/// The capabilities that a confined root keeps: CHOWN, `DAC_OVERRIDE` and FOWNER, which are about
/// files, and Landlock and the mount namespace restrict those.
const KEPT_CAPABILITIES: [c_ulong; 3] = [0, 1, 3];
const KEPT_MASK: u32 = 0b1011;
const CAPABILITY_VERSION: u32 = 0x2008_0522;
/// `SECBIT_NOROOT` and its lock: executing a program does not give root any capability.
const ROOT_IS_ORDINARY: c_ulong = 0b11;

/// Everything that the child applies to itself. The descriptors and pointers belong to the parent.
pub struct ChildSteps<'a> {
    /// Descriptors and types of the namespaces, in the order in which they are entered.
    namespaces: Vec<(c_int, c_int)>,
    limits: &'a [ProcessLimit],
    ruleset: Option<c_int>,
    filter: Option<sock_fprog>,
    privileges: Privileges,
    /// The thread from which the child inherits all but its limits and its ruleset.
    carrier: Option<Turn<'a>>,
}

/// What a thread can apply to itself, so that its children inherit it.
pub struct Inherited {
    namespaces: Vec<(OwnedFd, c_int)>,
    filter: Option<Vec<sock_filter>>,
    privileges: Privileges,
}

/// What has to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// Of an ordinary user: capabilities that would survive `execve`.
    Ordinary,
    /// Of root: all capabilities but those over files.
    Root,
    /// Of a root that has no others, as inside a confined job.
    Limited,
    /// Of a root that is not allowed to give them up.
    Stuck,
}

impl Privileges {
    /// Of this process.
    pub fn of_this_process() -> Self {
        const SETPCAP: u32 = 1 << 8;
        const NEEDED: u32 = KEPT_MASK | SETPCAP;
        // SAFETY: a call without arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Self::Ordinary;
        }
        let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
        let mut data = [0_u32; 6];
        // SAFETY: the header and room for the two structures that the call fills.
        let read =
            unsafe { libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr()) == 0 };
        let [low, _, _, high, ..] = data;
        if !read {
            Self::Stuck
        } else if low & !KEPT_MASK == 0 && high == 0 {
            Self::Limited
        } else if low & NEEDED == NEEDED {
            Self::Root
        } else {
            Self::Stuck
        }
    }

    /// Gives them up, for good. Returns false, with errno, if that fails.
    unsafe fn give_up(self) -> bool {
        // SAFETY: plain system calls.
        unsafe {
            (match self {
                Self::Root => limit_root(),
                Self::Limited => true,
                Self::Ordinary | Self::Stuck => clear_capabilities(),
            }) && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        }
    }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

impl<'a> ChildSteps<'a> {
    /// Prepares the steps.
    pub fn new(
        namespaces: &Namespaces,
        limits: &'a [ProcessLimit],
        ruleset: Option<&OwnedFd>,
        filter: Option<&'a [sock_filter]>,
        privileges: Privileges,
        carrier: Option<Turn<'a>>,
    ) -> Self {
        let mut entered = Vec::with_capacity(3);
        let mut enter = |fd: Option<&OwnedFd>, kind| {
            entered.extend(fd.map(|fd| (fd.as_raw_fd(), kind)));
        };
        enter(namespaces.user.as_ref(), libc::CLONE_NEWUSER);
        enter(namespaces.mount.as_ref().ok(), libc::CLONE_NEWNS);
        enter(namespaces.net.as_ref().ok(), libc::CLONE_NEWNET);
        Self {
            namespaces: entered,
            limits,
            ruleset: ruleset.map(AsRawFd::as_raw_fd),
            filter: filter.map(program),
            privileges,
            carrier,
        }
    }

    /// The thread that has to create the child, if there is one.
    pub fn carrier(&self) -> Option<&Turn<'a>> {
        self.carrier.as_ref()
    }

    /// True if the child gets another file tree, in which it starts at the root.
    pub fn changes_mounts(&self) -> bool {
        self.namespaces.iter().any(|&(_, kind)| kind == libc::CLONE_NEWNS)
    }

    /// Enters the namespaces. Returns false, with errno, if that fails.
    ///
    /// # Safety
    ///
    /// Only for a child between `clone` and `execve`.
    pub unsafe fn enter_namespaces(&self) -> bool {
        // SAFETY: the parent keeps the descriptors open.
        let enter = |&(fd, kind): &(c_int, c_int)| unsafe { libc::setns(fd, kind) } == 0;
        self.carrier.is_some() || self.namespaces.iter().all(enter)
    }

    /// Gives up what the job may not do. Returns false, with errno, if that fails.
    ///
    /// # Safety
    ///
    /// Only for a child between `clone` and `execve`, as its last step.
    pub unsafe fn restrict(&self) -> bool {
        let is_carried = self.carrier.is_some();
        // SAFETY: plain system calls on memory that the parent keeps.
        unsafe {
            self.limits.iter().all(|(resource, limit)| libc::setrlimit(*resource, limit) == 0)
                && (is_carried || self.privileges.give_up())
                && self.ruleset.is_none_or(|ruleset| {
                    libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) == 0
                })
                && (is_carried || self.filter.as_ref().is_none_or(|filter| install(filter)))
        }
    }
}

impl Inherited {
    /// Copies what is needed. `None` if the namespaces include one of users, which only a process
    /// with a single thread can enter.
    pub fn new(
        namespaces: &Namespaces,
        filter: Option<&[sock_filter]>,
        privileges: Privileges,
    ) -> Option<Self> {
        if namespaces.user.is_some() {
            return None;
        }
        let mut entered = Vec::with_capacity(2);
        let (mount, net) = (namespaces.mount.as_ref().ok(), namespaces.net.as_ref().ok());
        for (fd, kind) in [(mount, libc::CLONE_NEWNS), (net, libc::CLONE_NEWNET)] {
            if let Some(fd) = fd {
                entered.push((fd.try_clone().ok()?, kind));
            }
        }
        Some(Self { namespaces: entered, filter: filter.map(<[_]>::to_vec), privileges })
    }

    /// Applies it to this thread for good. Returns false if a part of that fails.
    ///
    /// # Safety
    ///
    /// Only for a thread that from then on does nothing but start processes: it may see another file
    /// tree than the other threads.
    pub unsafe fn apply(self) -> bool {
        // SAFETY: system calls that change this thread alone.
        unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
            let changes_mounts = self.namespaces.iter().any(|(_, kind)| *kind == libc::CLONE_NEWNS);
            // The threads of a process have one root and one working directory until then.
            (!changes_mounts || libc::unshare(libc::CLONE_FS) == 0)
                && self.namespaces.iter().all(|(fd, kind)| libc::setns(fd.as_raw_fd(), *kind) == 0)
                && self.privileges.give_up()
                && self.filter.as_deref().is_none_or(|filter| install(&program(filter)))
        }
    }
}

fn program(filter: &[sock_filter]) -> sock_fprog {
    sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
        filter: filter.as_ptr().cast_mut(),
    }
}

/// Installs a filter. Returns false, with errno, if that fails.
unsafe fn install(filter: &sock_fprog) -> bool {
    const SET_MODE_FILTER: c_int = 1;
    let filter = ptr::from_ref(filter);
    // SAFETY: the filter lives during the call.
    unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0_u32, filter) == 0 }
}

/// Makes root an ordinary user that has some capabilities. Ambient ones survive `execve`.
unsafe fn limit_root() -> bool {
    #[repr(C)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let kept = KEPT_MASK;
    let data = [
        Data { effective: kept, permitted: kept, inheritable: kept },
        Data { effective: 0, permitted: 0, inheritable: 0 },
    ];
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    // SAFETY: plain system calls on memory of this function.
    unsafe {
        libc::prctl(libc::PR_SET_SECUREBITS, ROOT_IS_ORDINARY, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) == 0
            && KEPT_CAPABILITIES.iter().all(|&capability| {
                let raise = libc::PR_CAP_AMBIENT_RAISE;
                libc::prctl(libc::PR_CAP_AMBIENT, raise, capability, 0, 0) == 0
            })
    }
}

/// Removes the capabilities that would survive `execve`.
unsafe fn clear_capabilities() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 }
}
