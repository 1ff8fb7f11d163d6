//! The frames of a connection.
//!
//! ```text
//! u32 LE  bytes that follow this field
//! u32 LE  bytes of the header
//! header  one JSON object
//! payload raw bytes: stdin of a request; stdout, then stderr of a result; output of a chunk
//! ```
//!
//! A frame that makes no sense is told and skipped by its length, so the connection goes on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};

use crate::clock::wait_for;
use crate::request::Invalid;

/// The largest frame that is accepted from a caller.
pub const MAX_REQUEST: usize = 512 * 1024 * 1024;
/// The largest header, which holds arguments and environment.
pub const MAX_HEADER: usize = 16 * 1024 * 1024;
const PREFIX: usize = 8;
const READ_AHEAD: usize = 64 * 1024;

/// One frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// JSON, not yet parsed.
    pub header: Vec<u8>,
    /// Raw bytes.
    pub payload: Vec<u8>,
}

/// The two length fields in front of a header and its payload.
pub fn prefix(header: usize, payload: usize) -> [u8; PREFIX] {
    let total = u32::try_from(header + payload + 4).unwrap_or(u32::MAX);
    let header = u32::try_from(header).unwrap_or(u32::MAX);
    let mut bytes = [0; PREFIX];
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    bytes[4..].copy_from_slice(&header.to_le_bytes());
    bytes
}

/// Reads frames from a blocking descriptor, many small ones with one system call.
pub struct FrameReader<F> {
    fd: F,
    buffer: Vec<u8>,
    start: usize,
}

impl<F: AsFd> FrameReader<F> {
    /// Nothing is read yet.
    pub fn new(fd: F) -> Self {
        Self { fd, buffer: Vec::with_capacity(READ_AHEAD), start: 0 }
    }

    /// Readable when there is more to read than was read ahead.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether a frame, or a part of one, was read ahead.
    pub fn has_more(&self) -> bool {
        self.buffered() > 0
    }

    /// The next frame, `None` at the end of the stream. A frame cut short by the end is no frame.
    pub fn next_frame(&mut self) -> io::Result<Option<Result<Frame, Invalid>>> {
        let Some(head) = self.take_array::<4>()? else { return Ok(None) };
        let total = u32::from_le_bytes(head) as usize;
        if total < 4 {
            return if self.skip(total)? {
                Ok(Some(Err(Invalid::frame(format!(
                    "a frame of {total} bytes has no room for its header length"
                )))))
            } else {
                Ok(None)
            };
        }
        let Some(head) = self.take_array::<4>()? else { return Ok(None) };
        let header = u32::from_le_bytes(head) as usize;
        let body = total - 4;
        let complaint = if header > body {
            Some(format!("the header length {header} is beyond the frame of {body} bytes"))
        } else if header > MAX_HEADER {
            Some(format!("the header of {header} bytes is over the limit of {MAX_HEADER}"))
        } else if total > MAX_REQUEST {
            Some(format!("the frame of {total} bytes is over the limit of {MAX_REQUEST}"))
        } else {
            None
        };
        if let Some(complaint) = complaint {
            return Ok(self.skip(body)?.then(|| Err(Invalid::frame(complaint))));
        }
        let Some(header_bytes) = self.take(header)? else { return Ok(None) };
        let Some(payload) = self.take(body - header)? else { return Ok(None) };
        Ok(Some(Ok(Frame { header: header_bytes, payload })))
    }

    fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// One read of whatever is there; false at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        self.buffer.reserve(READ_AHEAD);
        let buffer = &mut self.buffer;
        let n = read_retrying(&self.fd, || rustix::io::read(&self.fd, spare_capacity(buffer)))?;
        Ok(n > 0)
    }

    fn take_array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        while self.buffered() < N {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let mut array = [0; N];
        array.copy_from_slice(&self.buffer[self.start..self.start + N]);
        self.start += N;
        Ok(Some(array))
    }

    /// Exactly `count` bytes. Memory grows with what arrives, not with what a length promises.
    fn take(&mut self, count: usize) -> io::Result<Option<Vec<u8>>> {
        let mut filled = count.min(self.buffered());
        let mut bytes = self.buffer[self.start..self.start + filled].to_vec();
        self.start += filled;
        while filled < count {
            if filled == bytes.len() {
                let step = (count - filled).min(filled.max(READ_AHEAD));
                bytes.resize(filled + step, 0);
            }
            match read_retrying(&self.fd, || rustix::io::read(&self.fd, &mut bytes[filled..]))? {
                0 => return Ok(None),
                n => filled += n,
            }
        }
        Ok(Some(bytes))
    }

    fn skip(&mut self, count: usize) -> io::Result<bool> {
        let mut left = count;
        loop {
            let step = left.min(self.buffered());
            self.start += step;
            left -= step;
            if left == 0 {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }
}

/// Interruptions are tried again, and a peer that is gone has ended the stream, however it went. A
/// descriptor that the caller made non-blocking is waited for.
fn read_retrying(
    fd: &impl AsFd,
    mut read: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match read() {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => wait_for(&mut [PollFd::new(fd, PollFlags::IN)], None),
            Err(rustix::io::Errno::CONNRESET) => return Ok(0),
            other => return Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn frame(header: &[u8], payload: &[u8]) -> Vec<u8> {
        [&prefix(header.len(), payload.len()), header, payload].concat()
    }

    /// What a reader makes of `bytes` when they arrive in pieces of `piece` bytes.
    fn read_all(bytes: &[u8], piece: usize) -> Vec<Result<Frame, Invalid>> {
        let (reading, writing) = std::io::pipe().unwrap();
        let bytes = bytes.to_vec();
        let feeder = std::thread::spawn(move || {
            let mut writing = writing;
            for part in bytes.chunks(piece) {
                writing.write_all(part).unwrap();
            }
        });
        let mut reader = FrameReader::new(reading);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push(frame);
        }
        feeder.join().unwrap();
        frames
    }

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let bytes = [frame(b"{}", b""), frame(b"{\"a\":1}", b"payload"), frame(b"", b"x")].concat();
        for piece in [1, 2, 3, 5, 7, 1000] {
            let frames = read_all(&bytes, piece);
            assert_eq!(frames.len(), 3);
            assert_eq!(
                frames[1],
                Ok(Frame { header: b"{\"a\":1}".to_vec(), payload: b"payload".to_vec() })
            );
        }
    }

    #[test]
    fn a_payload_larger_than_the_read_ahead_is_whole() {
        let payload: Vec<u8> = (0..3_000_001u32).map(|n| n.to_le_bytes()[0]).collect();
        let frames = read_all(&[frame(b"{}", &payload), frame(b"{}", b"end")].concat(), 100_000);
        assert_eq!(frames[0].as_ref().unwrap().payload, payload);
        assert_eq!(frames[1].as_ref().unwrap().payload, b"end");
    }

    #[test]
    fn nonsense_is_told_and_the_next_frame_is_read() {
        let mut bytes = vec![2, 0, 0, 0, 9, 9];
        bytes.extend([8, 0, 0, 0, 200, 0, 0, 0, 1, 2, 3, 4]);
        bytes.extend(frame(b"{}", b"fine"));
        let frames = read_all(&bytes, 3);
        assert!(frames[0].as_ref().unwrap_err().message.contains("no room"));
        assert!(frames[1].as_ref().unwrap_err().message.contains("header length 200 is beyond"));
        assert_eq!(frames[2].as_ref().unwrap().payload, b"fine");
    }

    #[test]
    fn a_frame_cut_by_the_end_is_no_frame() {
        let whole = frame(b"{\"a\":1}", b"payload");
        for cut in 0..whole.len() {
            assert!(read_all(&whole[..cut], 4).is_empty(), "cut at {cut}");
        }
    }
}
