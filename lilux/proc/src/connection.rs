//! The two directions of a connection, from a socket, from stdin and stdout, or from `--fd`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::Error;

/// Both directions of a connection; they may be the same socket.
pub struct Connection {
    /// Frames from the peer.
    pub reading: OwnedFd,
    /// Frames to the peer.
    pub writing: OwnedFd,
}

impl Connection {
    /// Uses a socket for both directions.
    pub fn from_socket(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { reading: socket.try_clone()?, writing: socket })
    }

    /// Takes over stdin and stdout, and replaces them with /dev/null.
    pub fn from_stdio() -> Result<Self, Error> {
        if rustix::termios::isatty(rustix::stdio::stdin()) {
            return Err(Error::Terminal);
        }
        let reading = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let writing = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let null = open_null()?;
        rustix::stdio::dup2_stdin(null.as_fd())?;
        rustix::stdio::dup2_stdout(null.as_fd())?;
        Ok(Self { reading, writing })
    }

    /// Takes over the inherited socket with this number, and replaces it with /dev/null.
    pub fn from_inherited(number: i32) -> Result<Self, Error> {
        let failed = |error| Error::Descriptor(number, error);
        if number < 0 {
            return Err(failed(io::Error::from_raw_os_error(libc::EBADF)));
        }
        // SAFETY: only borrowed to be duplicated, which fails if it is not open.
        let inherited = unsafe { BorrowedFd::borrow_raw(number) };
        let socket =
            rustix::io::fcntl_dupfd_cloexec(inherited, 3).map_err(|error| failed(error.into()))?;
        // An open copy in the keeper would hide the end of the worker from the peer. The number
        // stays occupied, because it may be one of the first three.
        let null = open_null()?;
        // SAFETY: the descriptor is open, and nothing else in this program uses it.
        let mut place = unsafe { OwnedFd::from_raw_fd(number) };
        rustix::io::dup2(&null, &mut place)?;
        std::mem::forget(place);
        Ok(Self::from_socket(socket)?)
    }
}

fn open_null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}
