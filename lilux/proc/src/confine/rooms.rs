//! Private folders, and those that jobs did not use, which are kept for later jobs.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::folder::PrivateFolder;
use crate::sync::lock;
use crate::text::OsText;

/// How many private folders are kept for later jobs.
const MAX_IDLE: usize = 4;

/// The private folders below one folder.
pub struct Rooms {
    parent: PathBuf,
    idle: Mutex<Vec<Room>>,
}

/// A private folder and the ruleset that allows it.
pub struct Room {
    /// The folder.
    pub folder: PrivateFolder,
    /// `None` if there is no Landlock.
    pub ruleset: Option<OwnedFd>,
}

impl Rooms {
    /// Creates nothing yet.
    pub fn new(parent: PathBuf) -> Self {
        Self { parent, idle: Mutex::default() }
    }

    /// Where the folders are.
    pub fn parent(&self) -> &Path {
        &self.parent
    }

    /// A kept folder with a folder for each variable.
    pub fn take(&self, variables: &[OsText]) -> Option<Room> {
        let mut room = lock(&self.idle).pop().filter(|room| room.folder.has(variables))?;
        room.folder.occupy();
        Some(room)
    }

    /// Takes back the private folder of a job that has ended. It is removed if the job used it.
    pub fn vacate(&self, room: Room) {
        if room.folder.is_untouched() {
            let mut idle = lock(&self.idle);
            if idle.len() < MAX_IDLE {
                idle.push(room);
            }
        }
    }

    /// Removes the private folders that no job has.
    pub fn remove_idle(&self) {
        lock(&self.idle).clear();
    }
}
