//! The steps of a confinement in the child, between `clone` and `execve`.
//!
//! The child shares the memory of the helper, so it only makes system calls on what the parent has
//! prepared.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{c_ulong, sock_filter, sock_fprog};

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
    ) -> Self {
        let mut entered = Vec::with_capacity(3);
        let mut enter = |fd: Option<&OwnedFd>, kind| {
            entered.extend(fd.map(|fd| (fd.as_raw_fd(), kind)));
        };
        enter(namespaces.user.as_ref(), libc::CLONE_NEWUSER);
        enter(namespaces.mount.as_ref().ok(), libc::CLONE_NEWNS);
        enter(namespaces.net.as_ref().ok(), libc::CLONE_NEWNET);
        let filter = filter.map(|filter| sock_fprog {
            len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
            filter: filter.as_ptr().cast_mut(),
        });
        Self {
            namespaces: entered,
            limits,
            ruleset: ruleset.map(AsRawFd::as_raw_fd),
            filter,
            privileges,
        }
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
        self.namespaces.iter().all(|&(fd, kind)| unsafe { libc::setns(fd, kind) } == 0)
    }

    /// Gives up what the job may not do. Returns false, with errno, if that fails.
    ///
    /// # Safety
    ///
    /// Only for a child between `clone` and `execve`, as its last step.
    pub unsafe fn restrict(&self) -> bool {
        // SAFETY: plain system calls on memory that the parent keeps.
        unsafe {
            self.limits.iter().all(|(resource, limit)| libc::setrlimit(*resource, limit) == 0)
                && match self.privileges {
                    Privileges::Root => limit_root(),
                    Privileges::Limited => true,
                    Privileges::Ordinary | Privileges::Stuck => clear_capabilities(),
                }
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && self.ruleset.is_none_or(|ruleset| {
                    libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) == 0
                })
                && self.filter.as_ref().is_none_or(|filter| {
                    const SET_MODE_FILTER: c_int = 1;
                    let filter = std::ptr::from_ref(filter);
                    libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0_u32, filter) == 0
                })
        }
    }
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
