//! Arbitrary bytes on a connection: frames and requests, or errors with a message.
//!
//! Run it in the directory above: `cargo +nightly fuzz run frames -- -max_total_time=60`.

#![no_main]
#![allow(dead_code, missing_docs, unused_imports)]

#[path = "../../src/clock.rs"]
mod clock;
#[path = "../../src/confine/report.rs"]
mod confine;
#[path = "../../src/error/mod.rs"]
mod error;
#[path = "../../src/frame.rs"]
mod frame;
#[path = "../../src/request/mod.rs"]
mod request;
#[path = "../../src/text.rs"]
mod text;

use libfuzzer_sys::fuzz_target;

/// The capacity of a pipe.
const PIPE: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(PIPE)];
    let (reading, writing) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&writing, bytes).expect("room in the pipe");
    drop(writing);
    let mut reader = frame::FrameReader::new(reading, frame::MAX_REQUEST);
    while let Some(frame) = reader.next_frame().expect("a pipe can be read") {
        let Ok(frame) = frame else { continue };
        assert!(frame.header.len() + frame.payload.len() <= bytes.len());
        let _ = request::parse(&frame.header);
    }
    // Most inputs are not frames, so each is also parsed as a request.
    if let (_, Err(error)) = request::parse(bytes) {
        assert!(!error.to_string().is_empty());
    }
});
