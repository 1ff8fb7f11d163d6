//! The system calls that a process may wait in, by their numbers on this machine.

/// A system call that may wait, with the arguments that say for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Reading from a descriptor.
    Read(u64),
    /// Writing to a descriptor.
    Write(u64),
    /// Connecting a socket.
    Connect(u64),
    /// Accepting a connection.
    Accept(u64),
    /// `poll`: the address of its entries, and their number.
    Poll(u64, u64),
    /// `select`: the number of descriptors, and the addresses of the sets to read and to write.
    Select(u64, u64, u64),
    /// `epoll_wait` on a descriptor.
    Epoll(u64),
    /// Waiting for this child.
    Child(i32),
    /// Waiting for any child.
    AnyChild,
    /// A lock or a condition in memory.
    Futex,
    /// A lock on the file of a descriptor.
    Lock(u64),
    /// Opening the file whose name is at this address.
    Open(u64),
    /// Sleeping until or for the time at this address.
    Sleep {
        /// Where a `timespec` is.
        time: u64,
        /// True if it is a time of the monotonic clock, false if it is a duration.
        until: bool,
    },
    /// Waiting for a signal.
    Signal,
    /// Writing a file to its disk.
    Sync,
    /// Something else.
    Other,
}

/// The meaning of a system call.
pub fn wait(number: i64, args: [u64; 6]) -> Wait {
    let [a, b, c, ..] = args;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_poll => return Wait::Poll(a, b),
        libc::SYS_select => return Wait::Select(a, b, c),
        libc::SYS_epoll_wait => return Wait::Epoll(a),
        libc::SYS_open => return Wait::Open(a),
        libc::SYS_pause => return Wait::Signal,
        _ => {}
    }
    match number {
        libc::SYS_read
        | libc::SYS_readv
        | libc::SYS_pread64
        | libc::SYS_preadv
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_splice => Wait::Read(a),
        libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_pwrite64
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_sendfile => Wait::Write(a),
        libc::SYS_connect => Wait::Connect(a),
        libc::SYS_accept | libc::SYS_accept4 => Wait::Accept(a),
        libc::SYS_ppoll => Wait::Poll(a, b),
        libc::SYS_pselect6 => Wait::Select(a, b, c),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Wait::Epoll(a),
        libc::SYS_wait4 => child(a),
        libc::SYS_waitid if a == u64::from(libc::P_PID) => child(b),
        libc::SYS_waitid => Wait::AnyChild,
        libc::SYS_futex => Wait::Futex,
        libc::SYS_flock => Wait::Lock(a),
        libc::SYS_fcntl if is_lock(b) => Wait::Lock(a),
        libc::SYS_openat | libc::SYS_openat2 => Wait::Open(b),
        libc::SYS_nanosleep => Wait::Sleep { time: a, until: false },
        libc::SYS_clock_nanosleep => {
            let absolute = b & 1 != 0;
            let monotonic = i32::try_from(a) == Ok(libc::CLOCK_MONOTONIC);
            Wait::Sleep { time: if absolute && !monotonic { 0 } else { c }, until: absolute }
        }
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => Wait::Signal,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync | libc::SYS_syncfs => Wait::Sync,
        _ => Wait::Other,
    }
}

fn is_lock(command: u64) -> bool {
    [libc::F_SETLKW, libc::F_OFD_SETLKW].iter().any(|&lock| u64::try_from(lock) == Ok(command))
}

/// The kernel prints a pid of -1, which means any child, as an unsigned number.
#[expect(clippy::cast_possible_truncation, reason = "a pid is the lower half of the register")]
fn child(pid: u64) -> Wait {
    let pid = i32::from_ne_bytes((pid as u32).to_ne_bytes());
    if pid > 0 { Wait::Child(pid) } else { Wait::AnyChild }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_any_child_is_recognised() {
        let any = [u64::from(u32::MAX), 0, 0, 0, 0, 0];
        assert_eq!(wait(libc::SYS_wait4, any), Wait::AnyChild);
        assert_eq!(wait(libc::SYS_wait4, [u64::MAX, 0, 0, 0, 0, 0]), Wait::AnyChild);
        assert_eq!(wait(libc::SYS_wait4, [42, 0, 0, 0, 0, 0]), Wait::Child(42));
    }

    #[test]
    fn only_waiting_locks_are_locks() {
        let lock = u64::try_from(libc::F_SETLKW).unwrap();
        assert_eq!(wait(libc::SYS_fcntl, [3, lock, 0, 0, 0, 0]), Wait::Lock(3));
        assert_eq!(wait(libc::SYS_fcntl, [3, 1, 0, 0, 0, 0]), Wait::Other);
    }
}
