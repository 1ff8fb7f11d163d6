//! The frames of a connection.
//!
//! ```text
//! u32 LE  bytes that follow this field
//! u32 LE  bytes of the header
//! header  one JSON object
//! payload raw bytes: stdin of a request; stdout, then stderr of a result; output of a chunk
//! ```
//!
//! A malformed frame is reported and skipped by its length, so the connection stays usable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};

use crate::clock::wait_for;
use crate::error::Error;
use crate::request::MAX_OUTPUT_LIMIT;

/// The largest frame that is accepted from a caller.
pub const MAX_REQUEST: usize = 512 * 1024 * 1024;
/// The largest frame that is sent to a caller: both streams at the largest output limit, and room
/// for the header and for the lines that are added to the output.
pub const MAX_ANSWER: usize = 2 * MAX_OUTPUT_LIMIT + MAX_HEADER;
/// The largest header, which contains arguments and environment.
pub const MAX_HEADER: usize = 16 * 1024 * 1024;
const PREFIX: usize = 8;
const READ_AHEAD: usize = 64 * 1024;

const _: () = assert!(MAX_ANSWER < u32::MAX as usize, "the length field of a frame is a u32");

/// One frame as it was received.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// JSON, not yet parsed.
    pub header: Vec<u8>,
    /// Raw bytes.
    pub payload: Vec<u8>,
}

/// The two length fields before a header and its payload.
pub fn prefix(header: usize, payload: usize) -> [u8; PREFIX] {
    let total = u32::try_from(header + payload + 4).unwrap_or(u32::MAX);
    let header = u32::try_from(header).unwrap_or(u32::MAX);
    let mut bytes = [0; PREFIX];
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    bytes[4..].copy_from_slice(&header.to_le_bytes());
    bytes
}

/// Checks the length fields of a frame with at least the four bytes of its header length.
fn check_lengths(total: usize, header: usize, limit: usize) -> Result<(), Error> {
    let body = total - 4;
    if header > body {
        Err(Error::HeaderBeyondFrame { header, body })
    } else if header > MAX_HEADER {
        Err(Error::HeaderTooLarge(header))
    } else if total > limit {
        Err(Error::FrameTooLarge { frame: total, limit })
    } else {
        Ok(())
    }
}

/// Reads frames from a blocking descriptor, many small ones with one system call.
pub struct FrameReader<F> {
    fd: F,
    limit: usize,
    buffer: Vec<u8>,
    start: usize,
}

impl<F: AsFd> FrameReader<F> {
    /// `limit` is the largest accepted frame, in bytes.
    pub fn new(fd: F, limit: usize) -> Self {
        Self { fd, limit, buffer: Vec::with_capacity(READ_AHEAD), start: 0 }
    }

    /// Readable when there is more to read than was read ahead.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// True if a frame, or a part of one, was read ahead.
    pub fn has_more(&self) -> bool {
        self.buffered() > 0
    }

    /// The next frame, or `None` at the end of the stream. A frame that the end cuts short is
    /// dropped.
    pub fn next_frame(&mut self) -> io::Result<Option<Result<Frame, Error>>> {
        let Some(head) = self.take_array::<4>()? else { return Ok(None) };
        let total = u32::from_le_bytes(head) as usize;
        if total < 4 {
            return Ok(self.skip(total)?.then_some(Err(Error::FrameTooShort(total))));
        }
        let Some(head) = self.take_array::<4>()? else { return Ok(None) };
        let header = u32::from_le_bytes(head) as usize;
        let body = total - 4;
        if let Err(error) = check_lengths(total, header, self.limit) {
            return Ok(self.skip(body)?.then_some(Err(error)));
        }
        let Some(header_bytes) = self.take(header)? else { return Ok(None) };
        let Some(payload) = self.take(body - header)? else { return Ok(None) };
        Ok(Some(Ok(Frame { header: header_bytes, payload })))
    }

    fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Reads once; false at the end of the stream.
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

    /// Exactly `count` bytes. Memory grows with the bytes received, not with the announced length.
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

/// Retries after an interruption, waits if the caller made the descriptor non-blocking, and treats a
/// reset connection as the end of the stream.
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

    const LIMIT: usize = 4_000_000;

    /// Reads `bytes` that arrive in pieces of `piece` bytes.
    fn read_all(bytes: &[u8], piece: usize) -> Vec<Result<Frame, Error>> {
        let (reading, writing) = std::io::pipe().unwrap();
        let bytes = bytes.to_vec();
        let feeder = std::thread::spawn(move || {
            let mut writing = writing;
            for part in bytes.chunks(piece) {
                writing.write_all(part).unwrap();
            }
        });
        let mut reader = FrameReader::new(reading, LIMIT);
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
            let second = frames[1].as_ref().unwrap();
            assert_eq!((&*second.header, &*second.payload), (&b"{\"a\":1}"[..], &b"payload"[..]));
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
    fn malformed_frames_are_reported_and_the_next_frame_is_read() {
        let mut bytes = vec![2, 0, 0, 0, 9, 9];
        bytes.extend([8, 0, 0, 0, 200, 0, 0, 0, 1, 2, 3, 4]);
        bytes.extend(frame(b"{}", &vec![0; LIMIT]));
        bytes.extend(frame(b"{}", b"fine"));
        let frames = read_all(&bytes, 300_000);
        let message = |n: usize| frames[n].as_ref().unwrap_err().to_string();
        assert_eq!(message(0), "frame of 2 bytes has no room for its header length");
        assert_eq!(message(1), "header length 200 is beyond the frame's 4 bytes");
        assert_eq!(message(2), "frame of 4000006 bytes is over the limit of 4000000");
        assert_eq!(frames[3].as_ref().unwrap().payload, b"fine");
    }

    #[test]
    fn a_frame_cut_short_by_the_end_is_dropped() {
        let whole = frame(b"{\"a\":1}", b"payload");
        for cut in 0..whole.len() {
            assert!(read_all(&whole[..cut], 4).is_empty(), "cut at {cut}");
        }
    }

    #[test]
    fn an_answer_may_be_as_large_as_the_output_limits_allow() {
        let (header, added_lines) = (4096, 200);
        let result = 4 + header + 2 * (MAX_OUTPUT_LIMIT + added_lines);
        assert!(check_lengths(result, header, MAX_ANSWER).is_ok());
        assert!(check_lengths(result, header, MAX_REQUEST).is_err());
    }
}
