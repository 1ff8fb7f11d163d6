//! Why a job cannot be confined.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::os_message;
use crate::confine::{HostError, Missing, Part};
use crate::text::OsText;

/// Why a confinement is refused.
#[derive(Debug)]
pub enum ConfinementError {
    // Requests.
    /// This path is not absolute.
    RelativePath(String),
    /// This list has more entries than allowed.
    TooManyPaths(&'static str, usize),
    /// The list of hosts has more entries than allowed.
    TooManyHosts(usize),
    /// The entry with this index is not a host.
    Host(usize, HostError),
    /// A name in `tmp` cannot be the name of a variable and a folder.
    FolderName,
    /// A limit is out of range.
    Limit(Part),
    /// The request says `background: keep`.
    Background,
    /// The request says `background: keep`, and `observe`.
    ObservedBackground,

    // This machine.
    /// A path of this list cannot be used.
    Path(&'static str, OsText, io::Error),
    /// The private folder cannot be created here.
    Folder(PathBuf, io::Error),
    /// Required parts cannot be enforced.
    NotEnforced(Vec<Missing>),
    /// The kernel refused to confine the process.
    Refused(io::Error),
}

impl ConfinementError {
    /// True if the request is invalid on every machine.
    pub fn is_invalid_request(&self) -> bool {
        matches!(
            self,
            Self::RelativePath(_)
                | Self::TooManyPaths(..)
                | Self::TooManyHosts(_)
                | Self::Host(..)
                | Self::FolderName
                | Self::Limit(_)
                | Self::Background
                | Self::ObservedBackground
        )
    }
}

impl fmt::Display for ConfinementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RelativePath(field) => write!(f, "{field} is not an absolute path"),
            Self::TooManyPaths(name, most) => {
                write!(f, "confinement.{name} has more than {most} paths")
            }
            Self::TooManyHosts(most) => write!(f, "confinement.net has more than {most} hosts"),
            Self::Host(index, error) => write!(f, "confinement.net[{index}] {error}"),
            Self::FolderName => f.write_str(
                "confinement.tmp must be names of environment variables of letters, digits and '_'",
            ),
            Self::Limit(part) => {
                write!(f, "confinement.limits.{part} must be at least 1 and less than 2^63")
            }
            Self::Background => {
                f.write_str("background must be 'end' for a job with a confinement")
            }
            Self::ObservedBackground => {
                f.write_str("background must be 'end' for a job with observe")
            }
            Self::Path(name, path, error) => {
                write!(f, "confinement.{name} {}: ", path.display())?;
                match error.raw_os_error() {
                    Some(libc::ELOOP) => {
                        f.write_str("contains a symbolic link; give the real path")
                    }
                    _ => f.write_str(&os_message(error)),
                }
            }
            Self::Folder(path, error) => {
                write!(f, "private folder {}: {}", path.display(), os_message(error))
            }
            Self::NotEnforced(missing) => {
                f.write_str("the confinement cannot be enforced here")?;
                let mut separator = ": ";
                for Missing { part, reason } in missing {
                    write!(f, "{separator}{part} ({reason})")?;
                    separator = ", ";
                }
                Ok(())
            }
            Self::Refused(error) => {
                write!(f, "the process cannot be confined: {}", os_message(error))
            }
        }
    }
}
