//! Text that is bytes to the operating system.
//!
//! Requests are JSON, and JSON is Unicode; arguments, paths and environments are bytes. Python
//! represents a byte that is not UTF-8 as a lone surrogate (PEP 383, `surrogateescape`), and its
//! JSON encoder writes that as `\udc80` … `\udcff`. [`OsText`] converts those back to bytes, so that
//! every file name can be transmitted.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// Bytes from a JSON string. `Debug` does not show them: they may be a secret.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct OsText(Vec<u8>);

impl OsText {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The bytes as a string of the operating system, such as a path.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The text for messages, with U+FFFD for bytes that are not UTF-8.
    pub fn display(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// True if the text contains a NUL byte, which would end a C string.
    pub fn has_nul(&self) -> bool {
        self.0.contains(&0)
    }

    /// The text as a C string, up to the first NUL; callers check [`Self::has_nul`] first.
    pub fn to_c_string(&self) -> CString {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        CString::new(&self.0[..end]).unwrap_or_default()
    }
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for OsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OsText({} bytes)", self.0.len())
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = OsText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<OsText, E> {
                Ok(OsText(unescape_surrogates(bytes)))
            }
            fn visit_str<E>(self, text: &str) -> Result<OsText, E> {
                Ok(OsText(text.as_bytes().to_vec()))
            }
        }
        // For bytes, serde_json accepts lone surrogates, in their generalised UTF-8 form.
        deserializer.deserialize_bytes(TextVisitor)
    }
}

/// U+DC80..=U+DCFF, as generalised UTF-8 `ED B2 80` ..= `ED B3 BF`, represent the bytes
/// 80..=FF.
fn unescape_surrogates(bytes: &[u8]) -> Vec<u8> {
    if !bytes.contains(&0xED) {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        if let [0xED, high @ (0xB2 | 0xB3), low @ 0x80..=0xBF, ..] = rest {
            out.push(((high - 0xB0) << 6) | (low & 0x3F));
            rest = &rest[3..];
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Vec<u8> {
        serde_json::from_str::<OsText>(json).unwrap().into_bytes()
    }

    #[test]
    fn plain_text_is_utf8() {
        assert_eq!(parse("\"häß\""), "häß".as_bytes());
    }

    #[test]
    fn every_byte_survives_the_surrogate_escape() {
        for byte in 0x80..=0xFFu32 {
            let json = format!("\"a\\udc{byte:02x}z\"");
            assert_eq!(parse(&json), [b'a', u8::try_from(byte).unwrap(), b'z']);
        }
    }

    #[test]
    fn debug_shows_no_content() {
        assert_eq!(format!("{:?}", OsText::from("s3cret")), "OsText(6 bytes)");
    }
}
