//! Receives the notifications of a job and answers each with "go on".

use std::io;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{seccomp_notif, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::calls::accesses;
use super::log::Log;
use super::target::Target;
use crate::clock::wait_for;

/// The kernel writes a structure of its own version, which may be longer than ours.
#[repr(C)]
struct Buffer<T> {
    known: T,
    longer: [u64; 16],
}

/// Notes the accesses of a job until all of its processes have ended or `stopped` is closed.
///
/// `started` is false until the job has executed its program in `cwd`.
pub fn observe(receiving: OwnedFd, stopped: &OwnedFd, started: &AtomicBool, cwd: &Path) -> Log {
    let mut log = Log::default();
    let Some(listener) = receive(&receiving) else { return log };
    drop(receiving);
    synchronous(&listener);
    loop {
        let mut fds =
            [PollFd::new(&listener, PollFlags::IN), PollFd::new(stopped, PollFlags::empty())];
        wait_for(&mut fds, None);
        let (notified, stop) = (fds[0].revents(), fds[1].revents());
        if notified.contains(PollFlags::IN) {
            if let Some(notification) = next(&listener) {
                let launch = (!started.load(Ordering::SeqCst)).then_some(cwd);
                note(&listener, &notification, launch, &mut log);
                go_on(&listener, notification.id);
            }
        } else if !notified.is_empty() || !stop.is_empty() {
            return log;
        }
    }
}

/// Waits for the listener. `None` if the child did not install its filter.
fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut data = [IoSliceMut::new(&mut byte)];
    while let Err(error) = recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC) {
        if error != rustix::io::Errno::INTR {
            return None;
        }
    }
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Each call waits for this thread, so both are best run on the same processor. Since Linux 6.6.
fn synchronous(listener: &OwnedFd) {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: the argument is a number. An older kernel refuses it, which changes nothing.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP);
    }
}

/// The next notification; `None` if the process that made the call has ended.
fn next(listener: &OwnedFd) -> Option<seccomp_notif> {
    // SAFETY: plain numbers, which may be zero; the kernel expects that they are.
    let mut buffer = unsafe { std::mem::zeroed::<Buffer<seccomp_notif>>() };
    // SAFETY: the buffer is large enough for the structure of the kernel.
    let received = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut buffer)
    };
    (received == 0).then_some(buffer.known)
}

/// Lets the call go on as if it had not been stopped.
fn go_on(listener: &OwnedFd, id: u64) {
    // SAFETY: plain numbers, which may be zero.
    let mut buffer = unsafe { std::mem::zeroed::<Buffer<seccomp_notif_resp>>() };
    buffer.known.id = id;
    buffer.known.flags = 1; // SECCOMP_USER_NOTIF_FLAG_CONTINUE
    // SAFETY: the buffer is large enough for the structure of the kernel. The call fails if the
    // process has ended, and then nobody waits for it.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut buffer) };
}

fn note(listener: &OwnedFd, call: &seccomp_notif, launch: Option<&Path>, log: &mut Log) {
    let Ok(pid) = i32::try_from(call.pid) else { return };
    let target = Target::new(pid, launch);
    let found = accesses(call.data.nr.into(), &call.data.args, &target);
    // Another process may have got the pid while its memory was read.
    let id = call.id;
    // SAFETY: the argument points to the number that is asked about.
    let valid = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0
    };
    match found {
        _ if !valid => {}
        Ok(found) => {
            for access in found {
                log.add(access, || target.program());
            }
        }
        Err(error) if is_harmless(&error) => {}
        Err(_) => log.unreadable += 1,
    }
}

/// The call itself will fail with this error.
fn is_harmless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EFAULT | libc::EBADF | libc::ENAMETOOLONG))
}
