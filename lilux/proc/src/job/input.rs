//! Input for a job, also while it runs: pieces that wait to be written, and who is told.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

/// Bytes for one stream of a job.
pub struct Piece {
    bytes: Vec<u8>,
    /// The stream is closed after it.
    last: bool,
    answer: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl Piece {
    /// Input that came with the request.
    pub fn first(bytes: Vec<u8>, last: bool) -> Self {
        Self { bytes, last, answer: None }
    }

    /// Input for a running job. `answer` is called once: with true when every byte is written, or
    /// with false when that cannot happen any more.
    pub fn answered(
        bytes: Vec<u8>,
        last: bool,
        answer: impl FnOnce(bool) + Send + 'static,
    ) -> Self {
        Self { bytes, last, answer: Some(Box::new(answer)) }
    }

    fn written(mut self) {
        if let Some(answer) = self.answer.take() {
            answer(true);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer(false);
        }
    }
}

/// A stream that is written piece by piece.
pub struct Feed {
    /// Our end.
    pub fd: OwnedFd,
    pieces: VecDeque<Piece>,
    sent: usize,
}

impl Feed {
    /// `fd` has to be non-blocking.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, pieces: VecDeque::new(), sent: 0 }
    }

    /// Adds a piece after those that wait.
    pub fn push(&mut self, piece: Piece) {
        self.pieces.push_back(piece);
    }

    /// True if there is something to write.
    pub fn is_waiting(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Writes once. Returns true after the last piece, or if the job has closed the stream.
    pub fn write_more(&mut self) -> bool {
        let Some(piece) = self.pieces.front() else { return false };
        match rustix::io::write(&self.fd, &piece.bytes[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return true,
        }
        if self.sent < piece.bytes.len() {
            return false;
        }
        let last = piece.last;
        self.sent = 0;
        self.pieces.pop_front().into_iter().for_each(Piece::written);
        last
    }
}
