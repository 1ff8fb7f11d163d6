//! Files that output goes to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use crate::launch::os_message;
use crate::text::OsText;

/// Opens a file for output, made for its owner only: output may hold secrets.
///
/// A named pipe or a socket is refused, since to open one can take for ever.
pub fn open_output(what: &str, path: &OsText, append: bool) -> Result<File, String> {
    try_open(path, append)
        .map_err(|error| format!("{what} {}: {}", path.display(), os_message(&error)))
}

fn try_open(path: &OsText, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(libc::O_NONBLOCK);
    let options = if append { options.append(true) } else { options.write(true).truncate(true) };
    let file = options.open(path.as_os_str())?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(io::Error::other("not a file that output can be written to"));
    }
    // The process that inherits it does not expect a descriptor that does not block.
    rustix::io::ioctl_fionbio(&file, false)?;
    Ok(file)
}
