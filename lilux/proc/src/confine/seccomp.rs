//! Seccomp: system calls that reach around the other parts are refused.
//!
//! The rule is Landlock's, the namespaces' and the user's own rights; this filter closes the ways
//! around them. It is not a list of the calls that programs need: a libc starts to use a new call at
//! any time, and a confined program would break. But a call that was not yet known when this file was
//! written is refused as if the kernel did not have it, and programs fall back to an older one. So
//! every call that is possible has been reviewed.

use libc::{EACCES, ENOSYS, EPERM, c_long, sock_filter};

use super::bpf::{Code, compile};
use super::network::Reach;

/// The last call that was reviewed: `removexattrat`.
const LAST_KNOWN: u32 = 466;

/// The flags of `clone` for new namespaces, in which a process would have all capabilities.
const NEW_NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// Refused with EPERM. What needs a capability is not listed, because a confined job has none but those
/// over files, and cannot enter a namespace in which it would have more. Neither is what needs the right
/// to trace another process, which Landlock denies; `ptrace` itself is a second line.
const REFUSED: &[c_long] = &[
    // Memory, descriptors and execution of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Memory, semaphores and queues that all processes of a user share.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    // Watching files that cannot be read.
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Keys of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // System calls that this filter does not see, and other large parts of the kernel.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
];

/// The processor, as seccomp calls it.
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
pub const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const ARCHITECTURE: Option<u32> = None;

/// The filter, or why there is none.
pub fn filter(reach: Reach, unix: bool) -> Result<Vec<sock_filter>, String> {
    let architecture = ARCHITECTURE.ok_or("this processor has no list of system calls")?;
    if !available() {
        return Err("this kernel has no seccomp filters".into());
    }
    compile(architecture, &entries(reach, unix)).ok_or_else(|| "the filter is too long".into())
}

fn available() -> bool {
    const GET_ACTION_AVAIL: u32 = 2;
    let kill_process = 0x8000_0000_u32;
    // SAFETY: asks whether the kernel knows the action that the argument points to.
    unsafe {
        libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0_u32, &raw const kill_process) == 0
    }
}

/// The decisions by number; see [`compile`].
fn entries(reach: Reach, unix: bool) -> Vec<(u32, Code)> {
    let (allow, refuse) = (Code::allow(), Code::fail(EPERM));
    let mut decisions: Vec<(c_long, Code)> =
        REFUSED.iter().map(|&call| (call, refuse.clone())).collect();
    decisions.extend([
        // The flags are in memory, where a filter cannot see them. libc falls back to clone.
        (libc::SYS_clone3, Code::fail(ENOSYS)),
        (
            libc::SYS_clone,
            Code::if_bits(0, NEW_NAMESPACES.unsigned_abs(), refuse.clone(), allow.clone()),
        ),
        // A limit of another process can end it; reading one is harmless.
        (
            libc::SYS_prlimit64,
            Code::if_argument(0, u32::MAX, 0, allow.clone(), Code::if_zero(2, &allow, &refuse)),
        ),
        // A job adopts what its processes leave behind, so that its limits count the whole tree.
        (
            libc::SYS_prctl,
            Code::if_argument(
                0,
                u32::MAX,
                libc::PR_SET_CHILD_SUBREAPER.unsigned_abs(),
                Code::if_zero(1, &refuse, &allow),
                allow.clone(),
            ),
        ),
        (libc::SYS_socket, socket(reach, unix)),
    ]);
    if !unix {
        decisions.push((libc::SYS_socketpair, unaddressed_pair()));
    }
    let mut entries = by_number(decisions);
    entries.push((LAST_KNOWN + 1, Code::fail(ENOSYS)));
    entries
}

/// Which sockets can be created.
fn socket(reach: Reach, unix: bool) -> Code {
    let (allow, refuse) = (Code::allow(), Code::fail(EACCES));
    let family = |family: i32, then, otherwise| {
        Code::if_argument(0, u32::MAX, family.unsigned_abs(), then, otherwise)
    };
    let mut code = refuse.clone();
    if let Reach::Proxy(_) = reach {
        const TYPE_WITHOUT_FLAGS: u32 = 0xf;
        // No datagrams, and no other protocol of streams, which Landlock does not restrict.
        let protocol = |number: i32, then, otherwise| {
            Code::if_argument(2, u32::MAX, number.unsigned_abs(), then, otherwise)
        };
        let tcp = protocol(libc::IPPROTO_TCP, allow.clone(), refuse.clone());
        let tcp = protocol(0, allow.clone(), tcp);
        let stream = libc::SOCK_STREAM.unsigned_abs();
        let tcp = Code::if_argument(1, TYPE_WITHOUT_FLAGS, stream, tcp, refuse.clone());
        code = family(libc::AF_INET, tcp, code);
    }
    if reach == Reach::Everything {
        // libc asks the kernel for the addresses of this machine when it resolves a name.
        let route = Code::if_argument(2, u32::MAX, 0, allow.clone(), refuse);
        code = family(libc::AF_NETLINK, route, code);
        code = family(libc::AF_INET, allow.clone(), code);
        code = family(libc::AF_INET6, allow.clone(), code);
    }
    if unix {
        code = family(libc::AF_UNIX, allow, code);
    }
    code
}

/// A pair of connected stream sockets cannot be connected to anything else. A pair of datagram
/// sockets can: `sendto` takes the path of any other one.
fn unaddressed_pair() -> Code {
    // SOCK_STREAM and SOCK_SEQPACKET are the types 1 and 5; no other one looks like 1 without this bit.
    const TYPE_WITHOUT_BIT_2: u32 = 0b1011;
    Code::if_argument(1, TYPE_WITHOUT_BIT_2, 1, Code::allow(), Code::fail(EACCES))
}

/// Turns decisions about single calls into entries that apply up to the next one.
pub fn by_number(mut decisions: Vec<(c_long, Code)>) -> Vec<(u32, Code)> {
    decisions.sort_by_key(|(call, _)| *call);
    let mut entries: Vec<(u32, Code)> = Vec::new();
    let mut next_allowed = 0;
    for (call, code) in decisions {
        let call = u32::try_from(call).unwrap_or(u32::MAX);
        if call > next_allowed && next_allowed > 0 {
            entries.push((next_allowed, Code::allow()));
        }
        if call != next_allowed || entries.last().is_none_or(|(_, before)| *before != code) {
            entries.push((call, code));
        }
        next_allowed = call + 1;
    }
    entries.push((next_allowed, Code::allow()));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::bpf::tests::{ALLOWED, KILLED, decide, failed};

    fn decision(reach: Reach, unix: bool, call: c_long, args: [u64; 6]) -> u32 {
        let arch = ARCHITECTURE.unwrap();
        let filter = compile(arch, &entries(reach, unix)).unwrap();
        decide(&filter, arch, u32::try_from(call).unwrap(), args)
    }

    fn with(call: c_long, args: [u64; 6]) -> u32 {
        decision(Reach::Nothing, false, call, args)
    }

    #[test]
    fn each_refused_call_is_refused_and_its_neighbours_are_not() {
        let special = [
            libc::SYS_clone3,
            libc::SYS_clone,
            libc::SYS_prctl,
            libc::SYS_prlimit64,
            libc::SYS_socket,
            libc::SYS_socketpair,
        ];
        for call in 0..=i64::from(LAST_KNOWN) {
            if special.contains(&call) {
                continue;
            }
            let expected = if REFUSED.contains(&call) { failed(EPERM) } else { ALLOWED };
            assert_eq!(with(call, [0; 6]), expected, "{call}");
        }
    }

    #[test]
    fn a_call_that_was_not_reviewed_does_not_exist() {
        for call in [467, 470, 1000, 0x4000_0000, 0x4000_0029, 0xffff_ffff] {
            assert_eq!(with(call, [0; 6]), failed(ENOSYS));
        }
    }

    #[test]
    fn a_foreign_architecture_is_killed() {
        let filter = filter(Reach::Everything, true).unwrap();
        assert_eq!(decide(&filter, 0x4000_0003, 0, [0; 6]), KILLED);
    }

    #[test]
    fn new_namespaces_are_refused_and_threads_are_not() {
        assert_eq!(with(libc::SYS_clone, [0x0011_0000, 0, 0, 0, 0, 0]), ALLOWED);
        let new_user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        assert_eq!(with(libc::SYS_clone, [new_user | 0x11, 0, 0, 0, 0, 0]), failed(EPERM));
        assert_eq!(with(libc::SYS_clone3, [0; 6]), failed(ENOSYS));
    }

    #[test]
    fn only_granted_socket_families_are_allowed() {
        let socket = |reach, unix, family: i32, protocol| {
            let family = u64::from(family.unsigned_abs());
            decision(reach, unix, libc::SYS_socket, [family, 1, protocol, 0, 0, 0]) == ALLOWED
        };
        let families = 0..50;
        let allowed = |reach, unix| -> Vec<i32> {
            families.clone().filter(|&family| socket(reach, unix, family, 0)).collect()
        };
        assert_eq!(allowed(Reach::Nothing, false), [0; 0]);
        assert_eq!(allowed(Reach::Nothing, true), [libc::AF_UNIX]);
        assert_eq!(
            allowed(Reach::Everything, false),
            [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
        );
        assert!(!socket(Reach::Everything, true, libc::AF_NETLINK, 9));
    }

    #[test]
    fn a_proxy_is_reached_by_tcp_only() {
        let socket = |family: i32, kind: i32, protocol: i32| {
            let args = [family, kind, protocol].map(|n| u64::from(n.unsigned_abs()));
            let args = [args[0], args[1], args[2], 0, 0, 0];
            decision(Reach::Proxy(3128), false, libc::SYS_socket, args) == ALLOWED
        };
        let (stream, flags) = (libc::SOCK_STREAM, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        assert!(socket(libc::AF_INET, stream, 0) && socket(libc::AF_INET, stream | flags, 6));
        assert!(!socket(libc::AF_INET, stream, libc::IPPROTO_MPTCP));
        assert!(!socket(libc::AF_INET, stream, libc::IPPROTO_SCTP));
        assert!(!socket(libc::AF_INET, libc::SOCK_DGRAM, 0));
        assert!(!socket(libc::AF_INET, libc::SOCK_RAW, 1));
        for family in (0..50).filter(|&family| family != libc::AF_INET) {
            assert!(!socket(family, stream, 0), "{family}");
        }
    }

    #[test]
    fn a_datagram_pair_is_refused_without_unix_sockets() {
        let pair = |unix, kind: u64| {
            decision(Reach::Nothing, unix, libc::SYS_socketpair, [1, kind, 0, 0, 0, 0]) == ALLOWED
        };
        let allowed: Vec<u64> = (0..16).filter(|&kind| pair(false, kind | 0o2_000_000)).collect();
        assert_eq!(allowed, [1, 5]);
        assert!(pair(true, 2));
    }

    #[test]
    fn a_job_cannot_stop_adopting_its_orphans() {
        let prctl = |option: i32, value| {
            with(libc::SYS_prctl, [u64::from(option.unsigned_abs()), value, 0, 0, 0, 0])
        };
        assert_eq!(prctl(libc::PR_SET_CHILD_SUBREAPER, 0), failed(EPERM));
        assert_eq!(prctl(libc::PR_SET_CHILD_SUBREAPER, 1), ALLOWED);
        assert_eq!(prctl(libc::PR_SET_PDEATHSIG, 0), ALLOWED);
    }

    #[test]
    fn only_own_limits_can_be_changed() {
        let prlimit = |pid, new| with(libc::SYS_prlimit64, [pid, 0, new, 0, 0, 0]) == ALLOWED;
        assert!(prlimit(0, 0x1000) && prlimit(42, 0));
        assert!(!prlimit(42, 0x1000) && !prlimit(42, 0x10_0000_0000));
    }
}
