//! The step of an observed child between `clone` and `execve`.

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{c_ulong, sock_filter, sock_fprog};

use super::filter::filter;

const SET_MODE_FILTER: c_int = 1;
/// The call waits for its answer even if a signal arrives. Since Linux 5.19.
const UNINTERRUPTED: c_ulong =
    libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// What the child installs, and where it sends the listener.
pub struct ChildStep {
    filter: Vec<sock_filter>,
    handover: OwnedFd,
    /// Set by the child; an errno.
    failure: Cell<Option<c_int>>,
}

impl ChildStep {
    /// Prepares the step. The child sends the listener to `handover`.
    pub fn new(handover: OwnedFd) -> Self {
        let filter = filter(handover.as_raw_fd()).unwrap_or_default();
        Self { filter, handover, failure: Cell::new(None) }
    }

    /// Why the kernel refused to install the filter.
    pub fn failure(&self) -> Option<io::Error> {
        self.failure.get().map(io::Error::from_raw_os_error)
    }

    /// Installs the filter. Returns false, with errno, if the process cannot go on.
    ///
    /// # Safety
    ///
    /// Only for a child between `clone` and `execve`, as its last step.
    pub unsafe fn install(&self) -> bool {
        let program = sock_fprog {
            len: u16::try_from(self.filter.len()).unwrap_or(u16::MAX),
            filter: self.filter.as_ptr().cast_mut(),
        };
        let program = &raw const program;
        // SAFETY: plain system calls on memory that lives until they return.
        unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
                return false;
            }
            let seccomp =
                |flags: c_ulong| libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, program);
            let mut listener = seccomp(UNINTERRUPTED);
            if listener < 0 && *libc::__errno_location() == libc::EINVAL {
                listener = seccomp(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
            }
            match c_int::try_from(listener) {
                Ok(listener) if listener >= 0 => send(self.handover.as_raw_fd(), listener),
                _ => {
                    self.failure.set(Some(*libc::__errno_location()));
                    true
                }
            }
        }
    }
}

/// Sends a descriptor over a socket. Without allocation.
#[expect(clippy::cast_possible_truncation, reason = "the size of a number")]
unsafe fn send(socket: c_int, descriptor: c_int) -> bool {
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0_u64; 4];
    // SAFETY: the structures are as the call expects them; `control` has room for one descriptor and
    // the alignment of a header.
    unsafe {
        let size = libc::CMSG_SPACE(size_of::<c_int>() as u32);
        let mut message = std::mem::zeroed::<libc::msghdr>();
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) == 1
    }
}
