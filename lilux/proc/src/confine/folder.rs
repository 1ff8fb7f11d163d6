//! The private folder of a job.
//!
//! All of them lie in one folder of the user, which a mount namespace can keep writable as a whole;
//! Landlock gives each job its own.

use std::ffi::{CString, OsString};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::ConfinementError;
use crate::text::OsText;

/// A folder that is removed, with everything in it, when it is dropped.
pub struct PrivateFolder {
    path: PathBuf,
    created: Option<State>,
    /// The folders for the variables.
    inner: Vec<Inner>,
    /// It was created so long before the job that every change has another time.
    is_settled: bool,
}

struct Inner {
    variable: OsText,
    path: PathBuf,
    created: Option<State>,
}

/// Seconds: two changes may have the same time if they follow each other closely.
const SETTLED: i64 = 1;

/// What a job can change about an empty folder.
#[derive(PartialEq, Eq)]
struct State {
    mode: u32,
    owner: (u32, u32),
    changed: (i64, i64),
    modified: (i64, i64),
}

impl PrivateFolder {
    /// Creates a folder in `parent`, and in it an empty folder for each variable.
    pub fn new(parent: &Path, variables: &[OsText]) -> Result<Self, ConfinementError> {
        let fail = |error| ConfinementError::Folder(parent.to_owned(), error);
        let path = match unique(parent) {
            // Another job may have taken the rights away meanwhile.
            Err(_) => unique(&self::parent()?).map_err(fail)?,
            Ok(path) => path,
        };
        let mut folder = Self { path, created: None, inner: Vec::new(), is_settled: false };
        for variable in variables {
            let path = folder.path.join(variable.as_os_str().to_ascii_lowercase());
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(ConfinementError::Folder(path, error));
                }
                _ => {}
            }
            folder.inner.push(Inner { variable: variable.clone(), path, created: None });
        }
        for inner in &mut folder.inner {
            inner.created = state(&inner.path);
        }
        folder.created = state(&folder.path);
        Ok(folder)
    }

    /// Notes that another job gets it.
    pub fn occupy(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let now = i64::try_from(now).unwrap_or(0);
        // The outer folder was changed last.
        self.is_settled =
            self.created.as_ref().is_some_and(|created| created.changed.0 + SETTLED < now);
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The variables with the paths of their folders.
    pub fn variables(&self) -> Vec<(OsText, OsText)> {
        let pair = |inner: &Inner| (inner.variable.clone(), OsText::from(inner.path.as_os_str()));
        self.inner.iter().map(pair).collect()
    }

    /// True if it has folders for these variables.
    pub fn has(&self, variables: &[OsText]) -> bool {
        self.inner.iter().map(|inner| &inner.variable).eq(variables)
    }

    /// True if no job has left a trace in it, so that another one may get it. Creating and removing
    /// folders takes longer than many jobs.
    pub fn is_untouched(&self) -> bool {
        let is_same =
            |path: &Path, created: &Option<State>| created.is_some() && state(path) == *created;
        is_same(&self.path, &self.created)
            && self.inner.iter().all(|inner| is_same(&inner.path, &inner.created))
            && (self.is_settled || self.looks_untouched())
    }

    /// The same without the times.
    fn looks_untouched(&self) -> bool {
        let names = fs::read_dir(&self.path).map_or(usize::MAX, Iterator::count);
        names == self.inner.len()
            && self.inner.iter().all(|inner| {
                fs::read_dir(&inner.path).is_ok_and(|mut names| names.next().is_none())
            })
            && has_no_attributes(&self.path)
            && self.inner.iter().all(|inner| has_no_attributes(&inner.path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.path).is_err() {
            // The job may have taken its own rights to a folder away.
            let _ = parent();
            unlock(&self.path);
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn unique(parent: &Path) -> io::Result<PathBuf> {
    let template = CString::new(parent.join("XXXXXX").into_os_string().into_vec())?.into_raw();
    // SAFETY: a C string of ours, which the call changes in place. The mode is 0700.
    let (created, path) = unsafe {
        let created = !libc::mkdtemp(template).is_null();
        (created, CString::from_raw(template))
    };
    let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
    if created { Ok(path) } else { Err(io::Error::last_os_error()) }
}

fn state(folder: &Path) -> Option<State> {
    let found = fs::symlink_metadata(folder).ok()?;
    Some(State {
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
        changed: (found.ctime(), found.ctime_nsec()),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}

#[cfg(target_os = "linux")]
fn has_no_attributes(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string; no buffer is given, so only the size is returned. A file system without
    // extended attributes returns an error.
    unsafe { libc::llistxattr(path.as_ptr(), std::ptr::null_mut(), 0) <= 0 }
}

#[cfg(not(target_os = "linux"))]
fn has_no_attributes(_: &Path) -> bool {
    false
}

/// Gives this user all rights to a folder and the folders below it. Every process of the job has
/// ended, so nothing is replaced meanwhile.
fn unlock(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

/// The parent of the private folders of this user, which is created if it does not exist. A folder
/// that belongs to someone else is not used.
pub fn parent() -> Result<PathBuf, ConfinementError> {
    // SAFETY: a call without arguments.
    let user = unsafe { libc::geteuid() };
    let base = std::env::temp_dir();
    let base = base.canonicalize().map_err(|error| ConfinementError::Folder(base, error))?;
    let parent = base.join(format!("lilux-{user}"));
    let fail = |error| ConfinementError::Folder(parent.clone(), error);
    match DirBuilder::new().mode(0o700).create(&parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fail(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(&parent).map_err(fail)?;
    if !found.is_dir() || found.uid() != user {
        return Err(fail(io::Error::other("belongs to someone else; remove it")));
    }
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(&parent, Permissions::from_mode(0o700)).map_err(fail)?;
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PrivateFolder {
        PrivateFolder::new(&parent().unwrap(), &["TMPDIR".into(), "HOME".into()]).unwrap()
    }

    #[test]
    fn a_private_folder_is_removed_even_if_the_job_locked_it() {
        let folder = folder();
        let path = folder.path().to_owned();
        assert_eq!(folder.variables()[1].1.as_os_str(), path.join("home").as_os_str());
        fs::create_dir_all(path.join("home/a/b")).unwrap();
        fs::write(path.join("home/a/b/file"), "text").unwrap();
        fs::set_permissions(path.join("home/a"), Permissions::from_mode(0o0)).unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn every_trace_of_a_job_is_noticed() {
        let traces: [fn(&Path); 5] = [
            |_| (),
            |path| fs::write(path.join("home/file"), "").unwrap(),
            |path| fs::write(path.join("file"), "").unwrap(),
            |path| {
                fs::set_permissions(path.join("home"), Permissions::from_mode(0o755)).unwrap();
            },
            |path| {
                fs::remove_dir(path.join("home")).unwrap();
                std::os::unix::fs::symlink("/etc", path.join("home")).unwrap();
            },
        ];
        let untouched = traces.map(|leave_trace| {
            let folder = folder();
            leave_trace(folder.path());
            folder.is_untouched()
        });
        assert_eq!(untouched, [true, false, false, false, false]);
    }

    #[test]
    fn the_times_of_a_folder_are_not_enough_right_after_its_creation() {
        let mut folder = folder();
        folder.occupy();
        assert!(!folder.is_settled);
        fs::write(folder.path().join("home/file"), "").unwrap();
        // As if the file had been created in the same tick of the clock.
        folder.created = state(&folder.path);
        folder.inner.iter_mut().for_each(|inner| inner.created = state(&inner.path));
        assert!(!folder.is_untouched());
        folder.created.as_mut().unwrap().changed.0 -= 2 * SETTLED;
        folder.occupy();
        assert!(folder.is_settled && !folder.is_untouched());
    }
}
