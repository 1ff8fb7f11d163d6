//! Where the body of a request ends.
//!
//! What follows a body is another request. It would reach the same server without being checked, so
//! nothing but the body is passed on.

/// How long a chunk header with its extensions may be, and the trailer of a body.
const MAX_OVERHEAD: usize = 4096;

/// What is left to pass on.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// Everything, until the connection is closed: a tunnel.
    Everything,
    /// This many bytes.
    Length(u64),
    /// Chunks, and where in them we are.
    Chunked(Place),
}

/// The next byte of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// A digit of the size of a chunk, or what follows it.
    Size { value: u64, digits: usize },
    /// An extension; this many bytes have been read.
    Extension { value: u64, length: usize },
    /// The line feed after a size.
    SizeEnd { value: u64 },
    /// This many bytes of data.
    Data(u64),
    /// The carriage return after the data.
    DataReturn,
    /// The line feed after the data.
    DataEnd,
    /// A trailer of which this many bytes have been read; whether its line is empty so far.
    Trailer { length: usize, empty: bool },
    /// The line feed of a trailer.
    TrailerEnd { length: usize, empty: bool },
    /// Nothing.
    Done,
}

/// The body is not what its head says.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl Body {
    /// The start of a chunked body.
    pub fn chunked() -> Self {
        Self::Chunked(Place::START)
    }

    /// True if nothing is left to pass on.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Place::Done))
    }

    /// How many of the next bytes belong to the body.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Everything => Ok(bytes.len()),
            Self::Length(left) => Ok(take(left, bytes.len())),
            Self::Chunked(place) => {
                let mut taken = 0;
                while taken < bytes.len() && *place != Place::Done {
                    if let Place::Data(left) = place {
                        taken += take(left, bytes.len() - taken);
                        if *left == 0 {
                            *place = Place::DataReturn;
                        }
                    } else {
                        *place = place.after(bytes[taken]).ok_or(Malformed)?;
                        taken += 1;
                    }
                }
                Ok(taken)
            }
        }
    }
}

fn take(left: &mut u64, available: usize) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
    *left -= taken as u64;
    taken
}

impl Place {
    const START: Self = Self::Size { value: 0, digits: 0 };

    /// The place after this byte; `None` if the byte must not be here.
    fn after(&self, byte: u8) -> Option<Self> {
        const MAX_DIGITS: usize = 15;
        let plain = byte == b'\t' || !byte.is_ascii_control();
        match (self, byte) {
            (&(Self::Size { value, digits: 1.. } | Self::Extension { value, .. }), b'\r') => {
                Some(Self::SizeEnd { value })
            }
            (&Self::Size { value, digits: 1.. }, b';') => {
                Some(Self::Extension { value, length: 0 })
            }
            (&Self::Size { value, digits }, _) if digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Some(Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 })
            }
            (&Self::Extension { value, length }, _) if plain && length < MAX_OVERHEAD => {
                Some(Self::Extension { value, length: length + 1 })
            }
            (Self::SizeEnd { value: 0 }, b'\n') => Some(Self::Trailer { length: 0, empty: true }),
            (&Self::SizeEnd { value }, b'\n') => Some(Self::Data(value)),
            (Self::DataReturn, b'\r') => Some(Self::DataEnd),
            (Self::DataEnd, b'\n') => Some(Self::START),
            (&Self::Trailer { length, empty }, b'\r') => Some(Self::TrailerEnd { length, empty }),
            (&Self::Trailer { length, .. }, _) if plain && length < MAX_OVERHEAD => {
                Some(Self::Trailer { length: length + 1, empty: false })
            }
            (Self::TrailerEnd { empty: true, .. }, b'\n') => Some(Self::Done),
            (&Self::TrailerEnd { length, empty: false }, b'\n') => {
                Some(Self::Trailer { length, empty: true })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes belong to the body, fed in pieces of each size.
    fn taken(bytes: &[u8]) -> Result<usize, Malformed> {
        let by = |size: usize| -> Result<usize, Malformed> {
            let mut body = Body::chunked();
            bytes.chunks(size).map(|piece| body.take(piece)).sum()
        };
        let whole = by(bytes.len());
        for size in 1..8 {
            assert_eq!(by(size), whole);
        }
        whole
    }

    #[test]
    fn a_body_ends_where_its_length_says() {
        let mut body = Body::Length(5);
        assert_eq!((body.take(b"abc"), body.take(b"defg")), (Ok(3), Ok(2)));
        assert!(body.is_complete());
        assert_eq!(body.take(b"GET / HTTP/1.1"), Ok(0));
        assert!(!Body::Everything.is_complete());
    }

    #[test]
    fn a_chunked_body_ends_after_its_last_chunk() {
        for body in [
            &b"0\r\n\r\n"[..],
            b"5\r\nhello\r\n0\r\n\r\n",
            b"A;name=\"x\"\r\n0123456789\r\n00\r\nTrailer: x\r\nOther: y\r\n\r\n",
        ] {
            assert_eq!(taken(body), Ok(body.len()));
            let smuggled = [body, b"GET / HTTP/1.1\r\n\r\n"].concat();
            assert_eq!(taken(&smuggled), Ok(body.len()));
        }
    }

    #[test]
    fn a_malformed_chunk_is_refused() {
        for body in [
            &b"\r\n"[..],
            b";x\r\n",
            b"-1\r\n",
            b"0x5\r\n",
            b" 5\r\n",
            b"5 \r\n",
            b"5\n",
            b"5\rh",
            b"5;a\nhello",
            b"5\r\nhello0\r\n",
            b"5\r\nhello\n",
            b"1234567890abcdef0\r\n",
            b"0\r\nTrailer\nx",
            b"0\r\n\rx",
        ] {
            assert_eq!(taken(body), Err(Malformed), "{:?}", String::from_utf8_lossy(body));
        }
        let long = [b"1;", "x".repeat(MAX_OVERHEAD + 1).as_bytes()].concat();
        assert_eq!(taken(&long), Err(Malformed));
        let long = [b"0\r\n", "x: y\r\n".repeat(MAX_OVERHEAD).as_bytes()].concat();
        assert_eq!(taken(&long), Err(Malformed));
    }
}
