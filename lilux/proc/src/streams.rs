//! The three streams of a job: input on its way in, output on its way to where it is wanted.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::capture::{Capture, Captured};
use crate::files::open_output;
use crate::launch::os_message;
use crate::request::Exec;
use crate::text::OsText;
use crate::wake::Waker;

/// What is read at once, and what a pipe holds before it is made larger.
pub const READ_SIZE: usize = 64 * 1024;
/// What a pipe is made to hold, and what is read at once, for a job that fills the former.
const LARGE_READ_SIZE: usize = 256 * 1024;

/// The two output streams of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// Takes output as it comes.
pub trait Chunks {
    /// Whether a chunk may be sent now; if not, the waker is woken once it may.
    fn ready(&self, waker: &Waker) -> bool;
    /// Sends one.
    fn send(&self, stream: Stream, bytes: &[u8]);
}

/// Input on its way to the job.
pub struct Feed {
    /// Our end of the pipe.
    pub fd: OwnedFd,
    bytes: Vec<u8>,
    sent: usize,
}

/// Nothing to read.
pub fn null_input() -> Result<OwnedFd, Errno> {
    use rustix::fs::{Mode, OFlags, open};
    open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

impl Feed {
    /// Our end has to be non-blocking.
    pub fn new(fd: OwnedFd, bytes: Vec<u8>) -> Self {
        Self { fd, bytes, sent: 0 }
    }

    /// True when there is nothing more to write, or nobody to read it.
    pub fn write_more(&mut self) -> bool {
        match rustix::io::write(&self.fd, &self.bytes[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return true,
        }
        self.sent == self.bytes.len()
    }
}

/// One output stream: its pipe, and where the bytes go.
pub struct Output {
    /// Our end of the pipe, until its end.
    pub fd: Option<OwnedFd>,
    capture: Option<Capture>,
    file: Option<File>,
    file_error: Option<String>,
    enlarged: bool,
    amid_a_line: bool,
}

impl Output {
    /// For one of the request's two streams.
    pub fn new(fd: OwnedFd, exec: &Exec, file: Option<&OsText>) -> Result<Self, String> {
        let file = match file {
            None => None,
            Some(path) => Some(open_output("output file", path, false)?),
        };
        let capture = exec.capture.then(|| Capture::new(exec.output_limit));
        Ok(Self {
            fd: Some(fd),
            capture,
            file,
            file_error: None,
            enlarged: false,
            amid_a_line: false,
        })
    }

    /// Whether what was read last did not end in a line end.
    pub fn is_amid_a_line(&self) -> bool {
        self.amid_a_line
    }

    /// Reads once if there is something, and closes the pipe at its end.
    pub fn pump(
        &mut self,
        happened: PollFlags,
        stream: Stream,
        buffer: &mut Vec<u8>,
        chunks: Option<&dyn Chunks>,
    ) {
        if happened.contains(PollFlags::IN) {
            self.read_once(stream, buffer, chunks);
        } else if !happened.is_empty() {
            self.fd = None;
        }
    }

    /// Reads what is in the pipe now, and not what some other process may add meanwhile.
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
                    // A job with much to say: fewer, larger steps. It is no loss if refused.
                    #[cfg(target_os = "linux")]
                    let _ = rustix::pipe::fcntl_setpipe_size(fd, LARGE_READ_SIZE);
                    self.enlarged = true;
                }
                self.take(stream, buffer, chunks);
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

    fn take(&mut self, stream: Stream, bytes: &[u8], chunks: Option<&dyn Chunks>) {
        self.amid_a_line = !bytes.ends_with(b"\n");
        if let Some(chunks) = chunks {
            chunks.send(stream, bytes);
        }
        if let Some(capture) = &mut self.capture {
            capture.push(bytes);
        }
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(bytes)) {
            self.file_error = Some(os_message(&error));
            self.file = None;
        }
    }

    /// What was kept, and why a file is incomplete.
    pub fn finish(self) -> (Captured, Option<String>) {
        (self.capture.map(Capture::finish).unwrap_or_default(), self.file_error)
    }
}
