//! The output of a job: it is captured, streamed and saved.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde::Serialize;

use crate::capture::{Capture, Captured};
use crate::error::{Error, FileRole};
use crate::files::open_output;
use crate::job::Seen;
use crate::request::Exec;
use crate::text::OsText;
use crate::wake::Waker;

/// Bytes read at once; also the default capacity of a pipe.
pub const READ_SIZE: usize = 64 * 1024;
/// Pipe capacity, and bytes read at once, for a job that fills the default capacity.
const LARGE_READ_SIZE: usize = 256 * 1024;

/// What a job writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
    /// The socket of its channel.
    Channel,
}

/// Receives output while the job runs.
pub trait Chunks {
    /// True if a chunk may be sent now; if not, `waker` is woken when it may.
    fn ready(&self, waker: &Waker) -> bool;
    /// Sends one chunk.
    fn send(&self, stream: Stream, bytes: &[u8]);
}

/// An empty stdin.
pub fn null_input() -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags, open};
    open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// One output stream: its pipe, and its destinations.
pub struct Output {
    /// Our end of the pipe; `None` after the end of the stream.
    pub fd: Option<OwnedFd>,
    capture: Option<Capture>,
    file: Option<File>,
    file_error: Option<Error>,
    enlarged: bool,
    inside_line: bool,
}

impl Output {
    /// One of the two streams of `exec`; `file` also gets all of it.
    pub fn new(fd: OwnedFd, exec: &Exec, file: Option<&OsText>) -> Result<Self, Error> {
        let file = file.map(|path| open_output(FileRole::Output, path)).transpose()?;
        let capture = exec.capture.then(|| Capture::new(exec.output_limit));
        Ok(Self {
            fd: Some(fd),
            capture,
            file,
            file_error: None,
            enlarged: false,
            inside_line: false,
        })
    }

    /// True if the bytes read last did not end with a newline.
    pub fn is_inside_line(&self) -> bool {
        self.inside_line
    }

    /// Reads once if there is data, and closes the pipe at the end of the stream.
    pub fn pump(
        &mut self,
        ready: PollFlags,
        stream: Stream,
        buffer: &mut Vec<u8>,
        chunks: Option<&dyn Chunks>,
    ) {
        if ready.contains(PollFlags::IN) {
            self.read_once(stream, buffer, chunks);
        } else if !ready.is_empty() {
            self.fd = None;
        }
    }

    /// Reads the bytes that are in the pipe now, but none that another process adds meanwhile.
    pub fn drain(&mut self, stream: Stream, buffer: &mut Vec<u8>, chunks: Option<&dyn Chunks>) {
        let waiting = self.fd.as_ref().and_then(|fd| rustix::io::ioctl_fionread(fd).ok());
        let mut left = waiting.unwrap_or(0);
        while left > 0 {
            match self.read_once(stream, buffer, chunks) {
                0 => break,
                n => left = left.saturating_sub(n as u64),
            }
        }
        self.fd = None;
    }

    fn read_once(
        &mut self,
        stream: Stream,
        buffer: &mut Vec<u8>,
        chunks: Option<&dyn Chunks>,
    ) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        buffer.clear();
        match rustix::io::read(fd, spare_capacity(buffer)) {
            Ok(0) => self.fd = None,
            Ok(n) => {
                let enlarge = n >= READ_SIZE && !self.enlarged;
                if enlarge {
                    // Fewer, larger reads for a job with much output. It also works if refused.
                    #[cfg(target_os = "linux")]
                    let _ = rustix::pipe::fcntl_setpipe_size(fd, LARGE_READ_SIZE);
                    self.enlarged = true;
                }
                self.deliver(stream, buffer, chunks);
                if enlarge {
                    buffer.clear();
                    buffer.reserve_exact(LARGE_READ_SIZE);
                }
                return n;
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.fd = None,
        }
        0
    }

    fn deliver(&mut self, stream: Stream, bytes: &[u8], chunks: Option<&dyn Chunks>) {
        self.inside_line = !bytes.ends_with(b"\n");
        if let Some(chunks) = chunks {
            chunks.send(stream, bytes);
        }
        if let Some(capture) = &mut self.capture {
            capture.push(bytes);
        }
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(bytes)) {
            self.file_error = Some(error.into());
            self.file = None;
        }
    }

    /// Up to `size` bytes from the end of what was read and kept so far.
    pub fn last(&self, size: usize) -> Vec<u8> {
        self.capture.as_ref().map_or_else(Vec::new, |capture| capture.last(size))
    }

    /// A part of what was read and kept so far; see [`Capture::look`].
    pub fn look(&self, from: i64, limit: usize) -> Seen {
        self.capture.as_ref().map_or_else(Seen::default, |capture| capture.look(from, limit))
    }

    /// The kept output, and why the file is incomplete.
    pub fn finish(self) -> (Captured, Option<Error>) {
        (self.capture.map(Capture::finish).unwrap_or_default(), self.file_error)
    }
}
