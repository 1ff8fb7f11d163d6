//! Whatever bytes come over a connection: frames and requests, or a refusal that names no value.
//!
//! `cargo +nightly fuzz run frames -- -max_total_time=60`, in the folder above.

#![no_main]
#![allow(dead_code, missing_docs)]

#[path = "../../src/checks.rs"]
mod checks;
#[path = "../../src/clock.rs"]
mod clock;
#[path = "../../src/frame.rs"]
mod frame;
#[path = "../../src/request.rs"]
mod request;
#[path = "../../src/text.rs"]
mod text;

use libfuzzer_sys::fuzz_target;

/// What a pipe holds without a reader.
const PIPE: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(PIPE)];
    let (reading, writing) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&writing, bytes).expect("room in the pipe");
    drop(writing);
    let mut reader = frame::FrameReader::new(reading);
    while let Some(found) = reader.next_frame().expect("a pipe can be read") {
        let Ok(found) = found else { continue };
        assert!(found.header.len() + found.payload.len() <= bytes.len());
        let _ = request::parse(&found.header);
    }
    // Most inputs are no frames, so each is a request as well.
    if let (_, Err(refused)) = request::parse(bytes) {
        assert!(!refused.message.is_empty());
    }
});
