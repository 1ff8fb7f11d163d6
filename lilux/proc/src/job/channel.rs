//! The channel of a job: a socket for messages in both directions, beside its three streams.

use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use super::input::Feed;
use crate::streams::{Chunks, Stream};

/// Our end of the socket.
pub struct Channel {
    /// Messages from the job; `None` after the end.
    pub fd: Option<OwnedFd>,
    /// Messages to the job; `None` after the end.
    pub feed: Option<Feed>,
}

impl Channel {
    /// Opens both ends; the second is for the job.
    pub fn open() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Only our end: a program expects its descriptors to block.
        rustix::io::ioctl_fionbio(&ours, true)?;
        let feed = Feed::new(rustix::io::fcntl_dupfd_cloexec(&ours, 0)?);
        Ok((Self { fd: Some(ours), feed: Some(feed) }, theirs))
    }

    /// Writes once.
    pub fn write_more(&mut self) {
        if let Some(feed) = self.feed.take_if(Feed::write_more) {
            // The reading side uses the same socket.
            let _ = shutdown(&feed.fd, Shutdown::Write);
        }
    }

    /// Reads once, and passes it on. Returns the number of bytes.
    pub fn read_once(&mut self, buffer: &mut Vec<u8>, chunks: Option<&dyn Chunks>) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        buffer.clear();
        match rustix::io::read(fd, spare_capacity(buffer)) {
            Ok(n) if n > 0 => {
                if let Some(chunks) = chunks {
                    chunks.send(Stream::Channel, buffer);
                }
                return n;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            _ => self.fd = None,
        }
        0
    }

    /// Reads what the job wrote before its end, but nothing that another process adds meanwhile.
    pub fn drain(&mut self, buffer: &mut Vec<u8>, chunks: Option<&dyn Chunks>) {
        let waiting = self.fd.as_ref().and_then(|fd| rustix::io::ioctl_fionread(fd).ok());
        let mut left = waiting.unwrap_or(0);
        while left > 0 {
            match self.read_once(buffer, chunks) {
                0 => break,
                n => left = left.saturating_sub(n as u64),
            }
        }
        self.fd = None;
    }
}
