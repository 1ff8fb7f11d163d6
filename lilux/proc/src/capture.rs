//! Output kept within a limit: the head, the tail, and how much was left out between them.

use std::collections::VecDeque;

/// One output stream of a job. Memory is bounded by the limit, whatever the job writes.
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
    /// All of it, or head, a line that tells the gap, and tail.
    pub bytes: Vec<u8>,
    /// Bytes of the stream that are not in `bytes`.
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

    /// Takes in what the stream said next.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        let (lost, kept) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(kept);
        self.omitted += (lost.len() + excess) as u64;
    }

    /// The end of the stream. Where something was left out, the cut does not go through a
    /// character of UTF-8, and a line says how many bytes are missing.
    pub fn finish(mut self) -> Captured {
        let (front, back) = self.tail.as_slices();
        if self.omitted == 0 {
            self.head.extend_from_slice(front);
            self.head.extend_from_slice(back);
            return Captured { bytes: self.head, omitted: 0 };
        }
        let split_char = incomplete_suffix(&self.head);
        self.head.truncate(self.head.len() - split_char);
        let orphaned = self.tail.iter().take(3).take_while(|&&b| is_continuation(b)).count();
        self.tail.drain(..orphaned);
        let omitted = self.omitted + (split_char + orphaned) as u64;
        let (front, back) = self.tail.as_slices();
        let mark = format!("\n[... {omitted} bytes left out ...]\n");
        let bytes = [&self.head, mark.as_bytes(), front, back].concat();
        Captured { bytes, omitted }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// How many bytes at the end start a character without finishing it.
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

    fn capture(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece);
        }
        capture.finish()
    }

    #[test]
    fn output_up_to_the_limit_is_whole() {
        for pieces in [&[b"0123456789".as_slice()] as &[&[u8]], &[b"012", b"3456", b"789"]] {
            let captured = capture(10, pieces);
            assert_eq!(captured, Captured { bytes: b"0123456789".to_vec(), omitted: 0 });
        }
    }

    #[test]
    fn beyond_the_limit_head_and_tail_stay_and_the_gap_is_counted() {
        let captured = capture(4, &[b"abc", b"defgh", b"ij"]);
        assert_eq!(captured.bytes, b"ab\n[... 6 bytes left out ...]\nij");
        assert_eq!(captured.omitted, 6);
    }

    #[test]
    fn the_pieces_do_not_matter() {
        let text: Vec<u8> = (0..2000u32).map(|n| b'a' + (n % 26).to_le_bytes()[0]).collect();
        let whole = capture(100, &[&text]);
        for size in [1, 3, 49, 50, 51, 99, 100, 101, 777] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(capture(100, &pieces), whole);
        }
        assert_eq!(whole.omitted, 1900);
    }

    #[test]
    fn the_cut_spares_characters() {
        let text = "é".repeat(100);
        let captured = capture(10, &[text.as_bytes()]);
        let shown = String::from_utf8(captured.bytes).unwrap();
        assert_eq!(shown, "éé\n[... 192 bytes left out ...]\néé");
        assert_eq!(captured.omitted, 192);
    }

    #[test]
    fn a_limit_of_zero_keeps_nothing_but_the_count() {
        assert_eq!(capture(0, &[b"abc"]).omitted, 3);
    }
}
