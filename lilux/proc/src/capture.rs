//! Output kept within a limit: the head, the tail, and the number of omitted bytes between them.

use std::collections::VecDeque;

use crate::job::Seen;

/// One output stream of a job. The limit bounds its memory, however much the job writes.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    omitted: u64,
}

/// What a [`Capture`] kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The whole output, or its head, a line with the number of omitted bytes, and its tail. In
    /// parts, to avoid copying.
    pub parts: Vec<Vec<u8>>,
    /// Bytes of the stream that are not in `parts`.
    pub omitted: u64,
}

impl Capture {
    /// Keeps up to `limit` bytes, half of them from the start and half from the end.
    pub fn new(limit: usize) -> Self {
        let head_limit = limit - limit / 2;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            omitted: 0,
        }
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        let (dropped, kept) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        if self.tail.capacity() == 0 {
            // Exactly the limit: a ring buffer comes to use all of its capacity.
            self.tail.reserve_exact(self.tail_limit);
        }
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(kept);
        self.omitted += (dropped.len() + excess) as u64;
    }

    /// Up to `size` bytes from the end of what was kept so far.
    pub fn last(&self, size: usize) -> Vec<u8> {
        let from_tail = size.min(self.tail.len());
        let from_head = if self.omitted == 0 { size - from_tail } else { 0 };
        let head = &self.head[self.head.len().saturating_sub(from_head)..];
        let tail = self.tail.iter().skip(self.tail.len() - from_tail);
        head.iter().chain(tail).copied().collect()
    }

    /// Up to `limit` bytes that follow each other, from the byte with the number `from`; a negative
    /// number counts from the end. Bytes that were not kept are skipped.
    pub fn look(&self, from: i64, limit: usize) -> Seen {
        let head = self.head.len() as u64;
        let total = head + self.omitted + self.tail.len() as u64;
        let wanted = match u64::try_from(from) {
            Ok(from) => from.min(total),
            Err(_) => total.saturating_sub(from.unsigned_abs()),
        };
        let tail_start = head + self.omitted;
        let start =
            if wanted >= head && self.omitted > 0 { wanted.max(tail_start) } else { wanted };
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let from_head = &self.head[at(start.min(head))..];
        let follows = start >= tail_start || self.omitted == 0;
        let tail = self.tail.iter().skip(at(start.saturating_sub(tail_start)));
        let from_tail = tail.take(if follows { limit } else { 0 });
        let bytes = from_head.iter().chain(from_tail).take(limit).copied().collect();
        Seen { start, bytes, total }
    }

    /// Ends the stream. If bytes were omitted, a line gives their number, and no UTF-8 character is
    /// cut in two.
    pub fn finish(mut self) -> Captured {
        let mut parts = Vec::new();
        let mut omitted = self.omitted;
        if omitted > 0 {
            let split_char = incomplete_suffix(&self.head);
            self.head.truncate(self.head.len() - split_char);
            let orphaned = self.tail.iter().take(3).take_while(|&&b| is_continuation(b)).count();
            self.tail.drain(..orphaned);
            omitted += (split_char + orphaned) as u64;
        }
        parts.push(self.head);
        if omitted > 0 {
            parts.push(format!("\n[... {omitted} bytes left out ...]\n").into_bytes());
        }
        parts.push(self.tail.into());
        parts.retain(|part| !part.is_empty());
        Captured { parts, omitted }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The number of bytes at the end that start a UTF-8 character but do not complete it.
fn incomplete_suffix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if is_continuation(byte) {
            continue;
        }
        let length = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => 1,
        };
        return if length > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: usize, pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece);
        }
        let Captured { parts, omitted } = capture.finish();
        (parts.concat(), omitted)
    }

    #[test]
    fn output_up_to_the_limit_is_complete() {
        for pieces in [&[b"0123456789".as_slice()] as &[&[u8]], &[b"012", b"3456", b"789"]] {
            assert_eq!(capture(10, pieces), (b"0123456789".to_vec(), 0));
        }
    }

    #[test]
    fn above_the_limit_head_and_tail_are_kept_and_omitted_bytes_are_counted() {
        let captured = capture(4, &[b"abc", b"defgh", b"ij"]);
        assert_eq!(captured, (b"ab\n[... 6 bytes left out ...]\nij".to_vec(), 6));
    }

    #[test]
    fn the_result_does_not_depend_on_the_pieces() {
        let text: Vec<u8> = (0..2000u32).map(|n| b'a' + (n % 26).to_le_bytes()[0]).collect();
        let whole = capture(100, &[&text]);
        for size in [1, 3, 49, 50, 51, 99, 100, 101, 777] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(capture(100, &pieces), whole);
        }
        assert_eq!(whole.1, 1900);
    }

    #[test]
    fn characters_are_not_cut_in_two() {
        let text = "é".repeat(100);
        let (bytes, omitted) = capture(10, &[text.as_bytes()]);
        let shown = String::from_utf8(bytes).unwrap();
        assert_eq!(shown, "éé\n[... 192 bytes left out ...]\néé");
        assert_eq!(omitted, 192);
    }

    #[test]
    fn the_last_bytes_are_contiguous() {
        let mut capture = Capture::new(8);
        capture.push(b"abcde");
        assert_eq!(capture.last(3), b"cde");
        assert_eq!(capture.last(100), b"abcde");
        capture.push(b"fghij");
        assert_eq!(capture.last(100), b"ghij");
    }

    #[test]
    fn a_look_goes_on_where_the_last_one_ended_and_skips_what_was_not_kept() {
        let mut capture = Capture::new(8);
        let seen = |capture: &Capture, from, limit| {
            let Seen { start, bytes, total } = capture.look(from, limit);
            (start, String::from_utf8(bytes).unwrap(), total)
        };
        assert_eq!(seen(&capture, 0, 10), (0, String::new(), 0));
        capture.push(b"abcdef");
        assert_eq!(seen(&capture, 0, 3), (0, "abc".into(), 6));
        assert_eq!(seen(&capture, 3, 10), (3, "def".into(), 6));
        assert_eq!(seen(&capture, -2, 10), (4, "ef".into(), 6));
        assert_eq!(seen(&capture, -99, 10), (0, "abcdef".into(), 6));
        assert_eq!(seen(&capture, 99, 10), (6, String::new(), 6));
        capture.push(b"ghijkl");
        assert_eq!(seen(&capture, 2, 10), (2, "cd".into(), 12));
        assert_eq!(seen(&capture, 4, 10), (8, "ijkl".into(), 12));
        assert_eq!(seen(&capture, 9, 2), (9, "jk".into(), 12));
        assert_eq!(seen(&capture, -6, 10), (8, "ijkl".into(), 12));
        assert_eq!(seen(&capture, 12, 10), (12, String::new(), 12));
    }

    #[test]
    fn a_limit_of_zero_only_counts() {
        assert_eq!(capture(0, &[b"abc"]).1, 3);
    }
}
