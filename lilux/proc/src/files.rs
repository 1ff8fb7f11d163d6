//! Files that output is written to.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use crate::error::{Error, FileRole};
use crate::text::OsText;

/// Opens a file for output; a log is appended to, other files are overwritten. A new file is only
/// readable by its owner, because output may contain secrets.
///
/// A named pipe or a socket is refused, because opening one can block forever.
pub fn open_output(role: FileRole, path: &OsText) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(libc::O_NONBLOCK);
    match role {
        FileRole::Log => options.append(true),
        FileRole::Output => options.write(true).truncate(true),
    };
    let failed = |error| Error::OutputFile(role, path.clone(), error);
    let file = options.open(path.as_os_str()).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(Error::OutputFileType(role, path.clone()));
    }
    // A process that inherits the descriptor expects it to block.
    rustix::io::ioctl_fionbio(&file, false).map_err(|error| failed(error.into()))?;
    Ok(file)
}
