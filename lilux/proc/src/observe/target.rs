//! The process that makes a call: its memory, and what a path means to it.

use std::ffi::{OsStr, c_int, c_void};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// The longest path that the kernel accepts, with its NUL.
const PATH_MAX: usize = 4096;
/// Reads do not cross the end of a page, because the next one may not be mapped.
const PAGE: usize = 4096;
/// How many links to a missing file are followed.
const MAX_LINKS: usize = 8;

/// A process that waits for the answer to its call.
pub struct Target<'a> {
    pid: i32,
    /// It may be the child before `execve`, in this working directory. That process shares our
    /// memory, and we may not look at it from outside, because the helper is not dumpable.
    launch: Option<&'a Path>,
}

/// A path, as the kernel will look it up.
#[derive(Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Absolute and without links, as far as it exists.
    pub path: PathBuf,
    /// It exists.
    pub exists: bool,
}

impl<'a> Target<'a> {
    /// A process by the id of one of its threads.
    pub fn new(pid: i32, launch: Option<&'a Path>) -> Self {
        Self { pid, launch }
    }

    /// The program that it executes.
    pub fn program(&self) -> String {
        let program = fs::read_link(self.proc("exe")).unwrap_or_default();
        program.to_string_lossy().into_owned()
    }

    /// Fills the buffer from its memory, and returns how many bytes could be read.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_memory(self.pid, address, buffer);
        match &read {
            Err(error) if self.launch.is_some() && error.raw_os_error() == Some(libc::EPERM) => {
                read_memory(own_pid(), address, buffer)
            }
            _ => read,
        }
    }

    /// A number from its memory.
    pub fn number(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// A string from its memory.
    fn text(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < PATH_MAX {
            let next = address.wrapping_add(text.len() as u64);
            let mut page = [0; PAGE];
            let length = PAGE - usize::try_from(next % PAGE as u64).unwrap_or(0);
            let length = self.read(next, &mut page[..length])?.max(1);
            if let Some(end) = page[..length].iter().position(|&byte| byte == 0) {
                text.extend(&page[..end]);
                return Ok(text);
            }
            text.extend(&page[..length]);
        }
        Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    /// The path at an address; `None` if there is none, or it does not name a file.
    ///
    /// `folder` is the descriptor that a relative path begins at. `follow` tells whether a link at
    /// the end of the path is followed.
    pub fn path(&self, folder: c_int, address: u64, follow: bool) -> io::Result<Option<Resolved>> {
        if address == 0 {
            return Ok(None);
        }
        let text = self.text(address)?;
        let path = PathBuf::from(OsStr::from_bytes(&text));
        let path = if path.is_absolute() {
            path
        } else {
            let base = match folder {
                libc::AT_FDCWD => self.working_directory()?,
                folder => fs::read_link(self.proc(&format!("fd/{folder}")))?,
            };
            // The descriptor of a pipe or a socket.
            if !base.is_absolute() {
                return Ok(None);
            }
            if text.is_empty() { base } else { base.join(path) }
        };
        Ok(Some(self.resolve(&path, follow)))
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        let cwd = fs::read_link(self.proc("cwd"));
        cwd.or_else(|error| self.launch.map(Path::to_path_buf).ok_or(error))
    }

    /// An absolute path without its links.
    pub fn resolve(&self, path: &Path, follow: bool) -> Resolved {
        match self.own(path) {
            Some(path) => Resolved { path, exists: true },
            None => resolve(path, follow, MAX_LINKS),
        }
    }

    /// A path below `/proc/self`, which would be ours if we looked it up.
    fn own(&self, path: &Path) -> Option<PathBuf> {
        let path = lexical(path);
        if path.starts_with("/dev/fd") || is_standard_stream(&path) {
            return Some(path);
        }
        let rest = path.strip_prefix("/proc").ok()?;
        let mut parts = rest.components();
        let first = parts.next()?.as_os_str().to_string_lossy().into_owned();
        let is_own = ["self", "thread-self"].contains(&first.as_str());
        if is_own || first == self.pid.to_string() {
            return Some(Path::new("/proc/self").join(parts.as_path()));
        }
        Some(path)
    }

    fn proc(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }
}

fn is_standard_stream(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
}

/// The pid of the helper.
pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let Ok(start) = usize::try_from(address) else {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    };
    let base = std::ptr::without_provenance_mut::<c_void>(start);
    let remote = libc::iovec { iov_base: base, iov_len: buffer.len() };
    // SAFETY: writes into `buffer` only; the kernel checks the address in the other process.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

fn resolve(path: &Path, follow: bool, links: usize) -> Resolved {
    if follow {
        if let Ok(path) = fs::canonicalize(path) {
            return Resolved { path, exists: true };
        }
        // A link to a file that does not exist yet.
        if links > 0
            && let (Ok(link), Some(parent)) = (fs::read_link(path), path.parent())
        {
            return resolve(&parent.join(link), true, links - 1);
        }
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return match fs::canonicalize(path) {
            Ok(path) => Resolved { path, exists: true },
            Err(_) => Resolved { path: lexical(path), exists: false },
        };
    };
    let path = resolve(parent, true, links).path.join(name);
    let exists = !follow && fs::symlink_metadata(&path).is_ok();
    Resolved { path, exists }
}

/// Removes `.` and `..` without looking at files.
fn lexical(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// The interpreter in the first line of a script.
pub fn interpreter(script: &Path) -> Option<PathBuf> {
    if !fs::metadata(script).ok()?.is_file() {
        return None;
    }
    let mut options = fs::OpenOptions::new();
    // It may have become a FIFO by now.
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(script).ok()?;
    let mut line = Vec::with_capacity(256);
    file.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let path = PathBuf::from(std::ffi::OsString::from_vec(line[..end].to_vec()));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_are_resolved_as_far_as_they_exist() {
        let folder = std::env::temp_dir().join(format!("lilux-observe-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("real")).unwrap();
        let folder = fs::canonicalize(&folder).unwrap();
        symlink("real", folder.join("link")).unwrap();
        symlink("real/new", folder.join("dangling")).unwrap();
        fs::write(folder.join("real/script"), "#! /usr/bin/env -S sh\n").unwrap();
        let at = |name: &str, follow| {
            let found = resolve(&folder.join(name), follow, MAX_LINKS);
            let path = found.path.strip_prefix(&folder).unwrap().to_path_buf();
            (path.to_string_lossy().into_owned(), found.exists)
        };
        assert_eq!(at("link/script", true), ("real/script".into(), true));
        assert_eq!(at("link/none/deeper", true), ("real/none/deeper".into(), false));
        assert_eq!(at("dangling", true), ("real/new".into(), false));
        assert_eq!(at("link", false), ("link".into(), true));
        assert_eq!(at("link/none", false), ("real/none".into(), false));
        assert_eq!(interpreter(&folder.join("link/script")), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(&folder.join("link")), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_own_folder_in_proc_is_not_resolved() {
        let target = Target::new(4711, None);
        let at = |path: &str| target.resolve(Path::new(path), true).path;
        assert_eq!(at("/proc/4711/../self/status"), Path::new("/proc/self/status"));
        assert_eq!(at("/proc/thread-self/maps"), Path::new("/proc/self/maps"));
        assert_eq!(at("/proc/4711/environ"), Path::new("/proc/self/environ"));
        assert_eq!(at("/proc/1/environ"), Path::new("/proc/1/environ"));
        assert_eq!(at("/dev/stdout"), Path::new("/dev/stdout"));
    }
}
