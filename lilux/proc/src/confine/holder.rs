//! The process that creates namespaces, in which everything but the granted paths is read-only.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::namespaces::Held;
use super::paths;
use crate::cli::{Exit, HoldArgs};
use crate::error::{Error, os_message};
use crate::text::OsText;

/// Creates the namespaces, reports, and keeps them until stdin is closed. The process must have one
/// thread.
pub fn hold(args: &HoldArgs) -> Result<Exit, Error> {
    let held = create(args);
    let mut line = serde_json::to_vec(&held).map_err(io::Error::from)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    let _ = io::stdin().read(&mut [0; 1]);
    Ok(Exit::Success)
}

fn create(args: &HoldArgs) -> Held {
    // SAFETY: two calls without arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // Root does not need a user namespace, and would lose its access to the files of other users.
    let needs_user = user != 0;
    if needs_user {
        let entered = unshare(libc::CLONE_NEWUSER).and_then(|()| map_ids(user, group));
        if let Err(error) = entered {
            let reason = format!("user namespaces cannot be used: {}", os_message(&error));
            return Held { user: false, mount: Some(reason.clone()), net: Some(reason) };
        }
    }
    let mounts = unshare(libc::CLONE_NEWNS)
        .and_then(|()| refuse_chroot())
        .and_then(|()| set_up_mounts(args));
    let net = if args.net { set_up_network(args.listen) } else { Ok(()) };
    let reason = |what: &str, outcome: io::Result<()>| {
        outcome.err().map(|error| format!("{what} cannot be used: {}", os_message(&error)))
    };
    Held {
        user: needs_user,
        mount: reason("mount namespaces", mounts),
        net: if args.net {
            reason("network namespaces", net)
        } else {
            Some("not asked for".into())
        },
    }
}

fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: changes the namespaces of this process, which has one thread.
    check(unsafe { libc::unshare(flags) }.into())
}

/// A job that enters a mount namespace starts at the root of that namespace, and so would leave the
/// chroot that the helper may be in. Entering our own namespace shows where that root is.
fn refuse_chroot() -> io::Result<()> {
    let expected = root_of_this_process()?;
    let own = File::open("/proc/self/ns/mnt")?;
    // SAFETY: an open descriptor of a namespace.
    check(unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWNS) }.into())?;
    let found = root_of_this_process()?;
    if found == expected { Ok(()) } else { Err(io::Error::other("lilux-proc runs in a chroot")) }
}

/// The mount and the inode of the root.
fn root_of_this_process() -> io::Result<(u64, u64)> {
    // SAFETY: a C string and a structure that the call fills.
    unsafe {
        let mut found = std::mem::zeroed::<libc::statx>();
        let mask = libc::STATX_INO | libc::STATX_MNT_ID;
        check(libc::statx(libc::AT_FDCWD, c"/".as_ptr(), 0, mask, &raw mut found).into())?;
        Ok((found.stx_mnt_id, found.stx_ino))
    }
}

/// In the namespace, the user and the group are the same as outside.
fn map_ids(user: u32, group: u32) -> io::Result<()> {
    // Without this, the kernel does not let an ordinary user map a group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))
}

/// Enters an empty network. With a port, a listener for that port is sent to the parent.
fn set_up_network(listen: Option<u16>) -> io::Result<()> {
    unshare(libc::CLONE_NEWNET)?;
    let Some(port) = listen else { return Ok(()) };
    set_loopback_up()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [listener.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Stdin is a socket whose other end the parent keeps.
    sendmsg(io::stdin(), &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

fn set_loopback_up() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: a structure of numbers, in which the name and the flags are then set.
    unsafe {
        let mut request = std::mem::zeroed::<libc::ifreq>();
        let name = c"lo";
        name.as_ptr().copy_to_nonoverlapping(request.ifr_name.as_mut_ptr(), name.count_bytes());
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request).into())
    }
}

/// A copy of a part of the file tree, which is mounted over that part.
struct Cover {
    path: OsText,
    tree: OwnedFd,
}

fn set_up_mounts(args: &HoldArgs) -> io::Result<()> {
    const EVERYTHING_BELOW: i32 = libc::AT_RECURSIVE;
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let mut covers = Vec::new();
    for path in args.write.iter().map(PathBuf::as_path).chain(pinned(args)) {
        let path = OsText::from(path.as_os_str());
        let (target, _) = paths::open(&path)?;
        covers.push(Cover::copy(path, &target)?);
    }
    for path in &args.read_only {
        let path = OsText::from(path.as_os_str());
        // What does not exist cannot be covered; the report says so.
        if let Some((target, _)) = existing(paths::open_link(&path))? {
            let cover = Cover::copy(path, &target)?;
            make_read_only(cover.tree.as_raw_fd(), c"", EVERYTHING_BELOW | libc::AT_EMPTY_PATH)?;
            covers.push(cover);
        }
    }
    make_read_only(libc::AT_FDCWD, c"/", EVERYTHING_BELOW)?;
    // A cover hides what is mounted below it, so the outer ones come first.
    covers.sort_by_key(|cover| depth(&cover.path));
    for cover in covers {
        cover.put()?;
    }
    args.hidden.iter().try_for_each(|path| hide(&OsText::from(path.as_os_str())))
}

impl Cover {
    fn copy(path: OsText, target: &OwnedFd) -> io::Result<Self> {
        Ok(Self { path, tree: copy_tree(target.as_raw_fd(), c"")? })
    }

    /// A link is covered by itself: then it cannot be replaced.
    fn put(self) -> io::Result<()> {
        let (target, _) = paths::open_link(&self.path)?;
        move_mount(&self.tree, &target)
    }
}

/// The writable folders that contain a protected path. A job could move such a folder away and put
/// another one in its place, but a folder that something is mounted on cannot be moved.
fn pinned(args: &HoldArgs) -> BTreeSet<&Path> {
    let protected =
        args.read_only.iter().chain(&args.hidden).filter(|path| path.symlink_metadata().is_ok());
    protected
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|path| is_inside(path, args))
        .collect()
}

/// True for a path below a writable one, unless a read-only one lies in between.
fn is_inside(path: &Path, args: &HoldArgs) -> bool {
    let listed = |list: &[PathBuf]| {
        let containing = list.iter().filter(|outer| path.starts_with(outer));
        containing.map(|outer| outer.components().count()).max()
    };
    listed(&args.write) > listed(&args.read_only) && !args.write.iter().any(|outer| outer == path)
}

fn depth(path: &OsText) -> usize {
    path.as_bytes().split(|&b| b == b'/').filter(|part| !part.is_empty()).count()
}

fn existing<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match opened {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Covers a file with /dev/null, and a folder with an empty one.
fn hide(path: &OsText) -> io::Result<()> {
    let Some((target, identity)) = existing(paths::open(path))? else { return Ok(()) };
    if identity.is_folder() {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let target = CString::new(format!("/proc/self/fd/{}", target.as_raw_fd()))?;
        return mount(c"none", &target, Some(c"tmpfs"), flags, Some(c"size=4k,mode=0755"));
    }
    move_mount(&copy_tree(libc::AT_FDCWD, c"/dev/null")?, &target)
}

fn mount(
    source: &CStr,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    data: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: C strings that live during the call.
    check(
        unsafe {
            let data = pointer(data).cast();
            libc::mount(source.as_ptr(), target.as_ptr(), pointer(kind), flags, data)
        }
        .into(),
    )
}

fn copy_tree(at: i32, path: &CStr) -> io::Result<OwnedFd> {
    const CLONE: i32 = 1;
    let flags = CLONE | libc::O_CLOEXEC | libc::AT_RECURSIVE | libc::AT_EMPTY_PATH;
    // SAFETY: a C string that lives during the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, at, path.as_ptr(), flags) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn move_mount(tree: &OwnedFd, target: &OwnedFd) -> io::Result<()> {
    const FROM_DESCRIPTOR: u32 = 0x04;
    const TO_DESCRIPTOR: u32 = 0x40;
    // SAFETY: two open descriptors and empty C strings.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            FROM_DESCRIPTOR | TO_DESCRIPTOR,
        )
    })
}

fn make_read_only(at: i32, path: &CStr, flags: i32) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const READ_ONLY: u64 = 1;
    let attr = MountAttr { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: a C string and a structure, with its size, that live during the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
}

fn check(returned: libc::c_long) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_between_a_writable_and_a_protected_path_are_pinned() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let args = HoldArgs {
            net: false,
            listen: None,
            write: paths(&["/usr", "/usr/lib/os-release", "/dev"]),
            read_only: paths(&["/usr/bin/env", "/usr/lib", "/etc/passwd", "/usr/absent/file"]),
            hidden: paths(&["/usr/lib/os-release", "/dev/pts/ptmx"]),
        };
        let pinned: Vec<_> = pinned(&args).into_iter().collect();
        let expected: &[&str] = &["/dev/pts", "/usr/bin"];
        let expected: Vec<_> =
            expected.iter().map(Path::new).filter(|path| path.exists()).collect();
        assert_eq!(pinned, expected);
    }
}
