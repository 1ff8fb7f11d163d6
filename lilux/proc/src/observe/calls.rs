//! What each system call accesses.

use std::ffi::c_int;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use libc::c_long;

use super::log::{Access, What};
use super::target::{Resolved, Target, interpreter};

/// The longest address of a socket.
const MAX_ADDRESS: usize = 128;
/// Not in `libc` for every processor, but the same number on each.
const FCHMODAT2: c_long = 452;
/// A script may be the interpreter of a script.
const MAX_INTERPRETERS: usize = 4;

/// What a call accesses with some of its arguments. The numbers are the positions of arguments.
#[derive(Clone, Copy)]
pub enum Step {
    /// Opens a path with flags.
    Open { at: At, flags: usize },
    /// Opens a path with a structure that begins with the flags.
    OpenHow { at: At, how: usize },
    /// Does one thing to a path.
    Path { what: What, at: At, follow: bool },
    /// Uses the address of a socket.
    Address { what: What, address: u32 },
    /// Sends a message, which may have an address.
    Message,
    /// Creates a socket.
    Socket,
}

/// Where a path is in the arguments.
#[derive(Clone, Copy)]
pub struct At {
    /// The folder of a relative path; `None` is the working directory.
    folder: Option<usize>,
    path: usize,
}

const fn cwd(path: usize) -> At {
    At { folder: None, path }
}

const fn at(folder: usize) -> At {
    At { folder: Some(folder), path: folder + 1 }
}

/// A call that does something to the name of a file.
const fn name(what: What, at: At) -> Step {
    Step::Path { what, at, follow: false }
}

/// A call that does something to a file.
const fn file(what: What, at: At) -> Step {
    Step::Path { what, at, follow: true }
}

/// The calls that are observed. A process can only read or change what it has opened by one of
/// these, or inherited.
pub const CALLS: &[(c_long, &[Step])] = &[
    (libc::SYS_openat, &[Step::Open { at: at(0), flags: 2 }]),
    (libc::SYS_openat2, &[Step::OpenHow { at: at(0), how: 2 }]),
    (libc::SYS_execve, &[file(What::Execute, cwd(0))]),
    (libc::SYS_execveat, &[file(What::Execute, at(0))]),
    (libc::SYS_truncate, &[file(What::Write, cwd(0))]),
    (libc::SYS_mkdirat, &[name(What::Create, at(0))]),
    (libc::SYS_mknodat, &[name(What::Create, at(0))]),
    (libc::SYS_symlinkat, &[name(What::Create, at(1))]),
    (libc::SYS_linkat, &[name(What::Create, at(2))]),
    (libc::SYS_unlinkat, &[name(What::Remove, at(0))]),
    (libc::SYS_renameat2, &[name(What::Remove, at(0)), name(What::Create, at(2))]),
    (libc::SYS_renameat, &[name(What::Remove, at(0)), name(What::Create, at(2))]),
    (libc::SYS_fchmodat, &[file(What::Change, at(0))]),
    (FCHMODAT2, &[file(What::Change, at(0))]),
    (libc::SYS_fchownat, &[file(What::Change, at(0))]),
    (libc::SYS_utimensat, &[file(What::Change, at(0))]),
    (libc::SYS_setxattr, &[file(What::Change, cwd(0))]),
    (libc::SYS_lsetxattr, &[name(What::Change, cwd(0))]),
    (libc::SYS_removexattr, &[file(What::Change, cwd(0))]),
    (libc::SYS_lremovexattr, &[name(What::Change, cwd(0))]),
    (libc::SYS_socket, &[Step::Socket]),
    (libc::SYS_connect, &[Step::Address { what: What::Connect, address: 1 }]),
    (libc::SYS_bind, &[Step::Address { what: What::Bind, address: 1 }]),
    (libc::SYS_sendto, &[Step::Address { what: What::Connect, address: 4 }]),
    (libc::SYS_sendmsg, &[Step::Message]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, &[Step::Open { at: cwd(0), flags: 1 }]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, &[file(What::Create, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, &[name(What::Create, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, &[name(What::Create, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, &[name(What::Create, cwd(1))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, &[name(What::Create, cwd(1))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, &[name(What::Remove, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, &[name(What::Remove, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, &[name(What::Remove, cwd(0)), name(What::Create, cwd(1))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, &[file(What::Change, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, &[file(What::Change, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, &[name(What::Change, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utime, &[file(What::Change, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utimes, &[file(What::Change, cwd(0))]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_futimesat, &[file(What::Change, at(0))]),
];

/// What a call accesses. Fails if the memory of the process cannot be read.
pub fn accesses(number: c_long, args: &[u64; 6], target: &Target<'_>) -> io::Result<Vec<Access>> {
    let steps = CALLS.iter().find(|(call, _)| *call == number).map_or(&[][..], |(_, steps)| steps);
    let mut found = Vec::new();
    for step in steps {
        match *step {
            Step::Open { at, flags } => {
                found.extend(opened(target, args, at, low(args[flags]))?);
            }
            Step::OpenHow { at, how } => {
                let flags = low(target.number(args[how])?);
                found.extend(opened(target, args, at, flags)?);
            }
            Step::Path { what, at, follow } => {
                if let Some(path) = path(target, args, at, follow)? {
                    found.extend(interpreters(what, &path, target));
                    found.push(access(what, path));
                }
            }
            Step::Address { what, address } => {
                let address = address as usize;
                found.extend(addressed(target, what, args[address], args[address + 1])?);
            }
            Step::Message => {
                // The structure begins with the address and its length, a `u32`.
                let (name, length) = (target.number(args[1])?, target.number(args[1] + 8)?);
                let length = length & u64::from(u32::MAX);
                found.extend(addressed(target, What::Connect, name, length)?);
            }
            Step::Socket => found.push(socket(args)),
        }
    }
    Ok(found)
}

/// An argument that is an `int`: its low half.
#[expect(clippy::cast_possible_truncation, reason = "the kernel ignores the rest, too")]
fn low(argument: u64) -> c_int {
    argument as c_int
}

fn path(
    target: &Target<'_>,
    args: &[u64; 6],
    at: At,
    follow: bool,
) -> io::Result<Option<Resolved>> {
    let folder = at.folder.map_or(libc::AT_FDCWD, |folder| low(args[folder]));
    target.path(folder, args[at.path], follow)
}

fn access(what: What, path: Resolved) -> Access {
    let Resolved { path, exists } = path;
    Access { what, target: path.to_string_lossy().into_owned(), exists }
}

fn opened(
    target: &Target<'_>,
    args: &[u64; 6],
    at: At,
    flags: c_int,
) -> io::Result<Option<Access>> {
    // Only a reference, with which nothing can be read.
    if flags & libc::O_PATH != 0 {
        return Ok(None);
    }
    let follow = flags & libc::O_NOFOLLOW == 0;
    let Some(path) = path(target, args, at, follow)? else { return Ok(None) };
    let temporary = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let what = if temporary || flags & libc::O_CREAT != 0 && !path.exists {
        What::Create
    } else if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
        What::Write
    } else {
        What::Read
    };
    Ok(Some(access(what, path)))
}

/// The kernel opens the interpreter of a script by itself.
fn interpreters(what: What, path: &Resolved, target: &Target<'_>) -> Vec<Access> {
    let mut found = Vec::new();
    if what == What::Execute {
        let mut script = path.path.clone();
        while let Some(next) = interpreter(&script).filter(|_| found.len() < MAX_INTERPRETERS) {
            let next = target.resolve(&next, true);
            script.clone_from(&next.path);
            found.push(access(what, next));
        }
    }
    found
}

fn socket(args: &[u64; 6]) -> Access {
    const TYPE: c_int = 0xf;
    let name = match low(args[0]) {
        libc::AF_UNIX => "unix".into(),
        libc::AF_INET | libc::AF_INET6 if low(args[1]) & TYPE == libc::SOCK_RAW => "raw".into(),
        libc::AF_INET => "inet".into(),
        libc::AF_INET6 => "inet6".into(),
        libc::AF_NETLINK => "netlink".into(),
        family => format!("family {family}"),
    };
    Access { what: What::Socket, target: name, exists: true }
}

/// The address of a socket; nothing for families other than internet and unix.
fn addressed(
    target: &Target<'_>,
    what: What,
    address: u64,
    length: u64,
) -> io::Result<Vec<Access>> {
    let mut bytes = [0; MAX_ADDRESS];
    let length = usize::try_from(length).unwrap_or(MAX_ADDRESS).min(MAX_ADDRESS);
    if address == 0 || length < 2 {
        return Ok(Vec::new());
    }
    let length = target.read(address, &mut bytes[..length])?;
    if let Some(internet) = internet(&bytes[..length]) {
        return Ok(vec![Access { what, target: internet.to_string(), exists: true }]);
    }
    if family(&bytes) != libc::AF_UNIX || length == 2 {
        return Ok(Vec::new());
    }
    let name = &bytes[2..length];
    if let Some(hidden) = name.strip_prefix(&[0]) {
        let target = format!("@{}", String::from_utf8_lossy(hidden));
        return Ok(vec![Access { what: What::Unix, target, exists: true }]);
    }
    let Some(path) = target.path(libc::AT_FDCWD, address + 2, true)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    if what == What::Bind {
        let created = Path::new(&path.path).to_string_lossy().into_owned();
        found.push(Access { what: What::Create, target: created, exists: path.exists });
    }
    found.push(access(What::Unix, path));
    Ok(found)
}

fn family(address: &[u8]) -> c_int {
    c_int::from(u16::from_ne_bytes([address[0], address[1]]))
}

fn internet(address: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(address.get(2..4)?.try_into().ok()?);
    match family(address) {
        libc::AF_INET => {
            let ip: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            Some((Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            Some((Ipv6Addr::from(ip), port).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::target::own_pid;
    use std::ffi::CString;

    fn of(number: c_long, args: [u64; 6]) -> Vec<(What, String, bool)> {
        let target = Target::new(own_pid(), None);
        let found = accesses(number, &args, &target).unwrap();
        found.into_iter().map(|one| (one.what, one.target, one.exists)).collect()
    }

    fn address_of<T>(value: *const T) -> u64 {
        value.addr() as u64
    }

    #[test]
    fn flags_tell_what_an_open_does() {
        let text = CString::new("/etc/passwd").unwrap();
        let new = CString::new("/etc/no-such-file").unwrap();
        let open = |path: &CString, flags: c_int| {
            let flags = u64::from(flags.unsigned_abs());
            let mut found = of(libc::SYS_openat, [0, address_of(path.as_ptr()), flags, 0, 0, 0]);
            found.pop().map(|(what, _, exists)| (what, exists))
        };
        assert_eq!(open(&text, libc::O_RDONLY), Some((What::Read, true)));
        assert_eq!(open(&text, libc::O_RDWR), Some((What::Write, true)));
        assert_eq!(open(&text, libc::O_RDONLY | libc::O_CREAT), Some((What::Read, true)));
        assert_eq!(open(&new, libc::O_WRONLY | libc::O_CREAT), Some((What::Create, false)));
        assert_eq!(open(&new, libc::O_RDONLY), Some((What::Read, false)));
        assert_eq!(open(&text, libc::O_PATH), None);
    }

    #[test]
    fn addresses_are_shown_with_their_ports() {
        let connect = |bytes: &[u8]| {
            of(libc::SYS_connect, [3, address_of(bytes.as_ptr()), bytes.len() as u64, 0, 0, 0])
        };
        let found = connect(&[2, 0, 1, 187, 127, 0, 0, 1]);
        assert_eq!(found, [(What::Connect, "127.0.0.1:443".into(), true)]);
        let mut six = vec![10, 0, 0, 53, 0, 0, 0, 0];
        six.extend([0; 15]);
        six.push(1);
        assert_eq!(connect(&six), [(What::Connect, "[::1]:53".into(), true)]);
        assert_eq!(connect(b"\x01\0\0bus"), [(What::Unix, "@bus".into(), true)]);
        assert_eq!(connect(b"\x01\0/no/bus\0"), [(What::Unix, "/no/bus".into(), false)]);
        assert!(connect(&[0, 0, 0, 0]).is_empty());
    }
}
