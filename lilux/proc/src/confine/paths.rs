//! Paths of a confinement: opened without following links, and recognised later.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::text::OsText;

/// Which file a path named. While a ruleset or a mount refers to the file, no other file gets the same
/// numbers. The mode and the owner are included for the parent of the private folders: a job, which may
/// write below it, could open it to others or close it to the next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    mode: u32,
    owner: u32,
}

/// A path and what it named when the profile was compiled; `None` if it did not exist.
pub struct KnownPath {
    path: CString,
    identity: Option<Identity>,
}

/// Paths in one folder. As long as nothing in the folder was created, removed or renamed, each of them
/// names the same file; asking the folder is cheaper than asking for each of hundreds of paths. This
/// does not notice a changed mode, so it is for paths that are only read.
pub struct KnownFolder {
    folder: CString,
    changed: Option<(Identity, (i64, i64))>,
    paths: Vec<KnownPath>,
}

impl KnownFolder {
    /// Remembers paths, of which each is directly in `folder`.
    pub fn new(folder: &OsText, paths: Vec<KnownPath>) -> Self {
        /// Seconds: two changes may have the same time if they follow each other closely.
        const SETTLED: i64 = 10;
        let folder = folder.to_c_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let changed = last_change(&folder)
            .filter(|(_, (seconds, _))| seconds + SETTLED < i64::try_from(now).unwrap_or(0));
        Self { folder, changed, paths }
    }

    /// True if each path still names the same file, or still none.
    pub fn is_unchanged(&self) -> bool {
        (self.changed.is_some() && last_change(&self.folder) == self.changed)
            || self.paths.iter().all(KnownPath::is_unchanged)
    }
}

/// Which folder it is, and when an entry or an attribute of it changed. Nobody can set that time.
fn last_change(folder: &CStr) -> Option<(Identity, (i64, i64))> {
    let stat = lstat(folder)?;
    Some((Identity::from_stat(&stat), (stat.st_ctime, stat.st_ctime_nsec)))
}

fn lstat(path: &CStr) -> Option<libc::stat> {
    // SAFETY: a C string and a structure that the call fills.
    unsafe {
        let mut stat = std::mem::zeroed::<libc::stat>();
        (libc::lstat(path.as_ptr(), &raw mut stat) == 0).then_some(stat)
    }
}

impl Identity {
    /// True for a folder.
    pub fn is_folder(self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }

    fn from_stat(stat: &libc::stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, mode: stat.st_mode, owner: stat.st_uid }
    }
}

impl KnownPath {
    /// Records what a path named.
    pub fn new(path: &OsText, identity: Option<Identity>) -> Self {
        Self { path: path.to_c_string(), identity }
    }

    /// True if the path still names the same file, or still none.
    pub fn is_unchanged(&self) -> bool {
        lstat(&self.path).as_ref().map(Identity::from_stat) == self.identity
    }
}

/// Opens a path as a reference to its file, and says which file that is.
pub fn open(path: &OsText) -> io::Result<(OwnedFd, Identity)> {
    open_with(path, 0)
}

/// As [`open`], but a link at the end of the path is what is opened.
pub fn open_link(path: &OsText) -> io::Result<(OwnedFd, Identity)> {
    open_with(path, libc::O_NOFOLLOW)
}

fn open_with(path: &OsText, flags: libc::c_int) -> io::Result<(OwnedFd, Identity)> {
    let how = OpenHow {
        flags: u64::from((libc::O_PATH | libc::O_CLOEXEC | flags).unsigned_abs()),
        mode: 0,
        resolve: RESOLVE_NO_SYMLINKS,
    };
    let path = path.to_c_string();
    // SAFETY: a C string and a structure, with its size, that live during the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: a new descriptor without another owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an open descriptor and a structure that the call fills.
    unsafe {
        let mut stat = std::mem::zeroed::<libc::stat>();
        if libc::fstat(fd.as_raw_fd(), &raw mut stat) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((fd, Identity::from_stat(&stat)))
    }
}

const RESOLVE_NO_SYMLINKS: u64 = 4;

#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_followed_and_a_new_folder_is_noticed() {
        let base = std::env::temp_dir().canonicalize().unwrap();
        let base = base.join(format!("lilux-paths-{}", std::process::id()));
        let folder = base.join("folder");
        std::fs::create_dir_all(&folder).unwrap();
        symlink(&folder, base.join("link")).unwrap();
        let text = |name: &str| OsText::from(base.join(name).as_os_str());
        for name in ["link", "link/below"] {
            assert_eq!(open(&text(name)).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        }
        assert!(!open_link(&text("link")).unwrap().1.is_folder());
        assert_eq!(open_link(&text("link/below")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        let (kept, identity) = open(&text("folder")).unwrap();
        assert!(identity.is_folder());
        let known = KnownPath::new(&text("folder"), Some(identity));
        let absent = KnownPath::new(&text("absent"), None);
        assert!(known.is_unchanged() && absent.is_unchanged());
        std::fs::remove_dir(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(base.join("absent")).unwrap();
        assert!(!known.is_unchanged() && !absent.is_unchanged());
        // The folder has just changed, so its time does not tell anything yet.
        let wrong = || vec![KnownPath::new(&text("folder"), None)];
        assert!(!KnownFolder::new(&text(""), wrong()).is_unchanged());
        let usr = KnownFolder::new(&OsText::from("/usr"), wrong());
        assert_eq!(usr.is_unchanged(), usr.changed.is_some());
        drop(kept);
        std::fs::remove_dir_all(base).unwrap();
    }
}
