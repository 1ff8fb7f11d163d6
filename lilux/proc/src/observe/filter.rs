//! The filter that stops a call and notifies the helper.

use std::ffi::c_int;
use std::io;

use libc::sock_filter;

use super::calls::{CALLS, Step};
use crate::confine::bpf::{Code, allow_foreign, compile};
use crate::confine::seccomp::{ARCHITECTURE, by_number};

/// Why this machine cannot observe jobs.
pub fn missing() -> Option<&'static str> {
    const GET_ACTION_AVAIL: u32 = 2;
    let notify = libc::SECCOMP_RET_USER_NOTIF;
    if ARCHITECTURE.is_none() {
        return Some("this processor has no list of system calls");
    }
    // SAFETY: asks whether the kernel knows the action that the argument points to.
    let known =
        unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0_u32, &raw const notify) };
    (known != 0).then_some("this kernel does not notify of system calls")
}

/// The reason if the kernel refused the filter.
pub fn refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        // A process has at most one.
        Some(libc::EBUSY) => "the helper is observed by another program".into(),
        _ => format!("the kernel refused to observe the process: {error}"),
    }
}

/// The filter for a child that passes its listener on with `sendmsg` on `handover`: nobody could
/// answer a notification of that call.
pub fn filter(handover: c_int) -> Option<Vec<sock_filter>> {
    let notify = Code::notify();
    let decisions = CALLS.iter().map(|(call, steps)| {
        let code = match steps.first() {
            // Without an address, the data goes where the socket is connected to.
            Some(Step::Address { address, .. }) => Code::if_zero(*address, &Code::allow(), &notify),
            Some(Step::Message) => {
                let fd = handover.unsigned_abs();
                Code::if_argument(0, u32::MAX, fd, Code::allow(), notify.clone())
            }
            _ => notify.clone(),
        };
        (*call, code)
    });
    let mut filter = compile(ARCHITECTURE?, &by_number(decisions.collect()))?;
    allow_foreign(&mut filter);
    Some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::bpf::tests::{ALLOWED, decide};

    #[test]
    fn only_calls_with_paths_and_addresses_are_stopped() {
        let filter = filter(9).unwrap();
        let arch = ARCHITECTURE.unwrap();
        let stopped = |call: libc::c_long, args| {
            decide(&filter, arch, u32::try_from(call).unwrap(), args)
                == libc::SECCOMP_RET_USER_NOTIF
        };
        for (call, _) in CALLS {
            assert!(stopped(*call, [1, 1, 1, 1, 1, 1]), "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_write, libc::SYS_newfstatat, libc::SYS_exit_group] {
            assert!(!stopped(call, [1; 6]), "{call}");
        }
        assert!(!stopped(libc::SYS_sendto, [1, 1, 1, 1, 0, 0]));
        assert!(!stopped(libc::SYS_sendmsg, [9, 1, 1, 1, 1, 1]));
        assert_eq!(decide(&filter, 0x4000_0003, 5, [1; 6]), ALLOWED);
    }
}
