//! Passing the keeper's answers on to the caller.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};

use crate::clock::wait_for;
use crate::frame::FrameReader;
use crate::outbox::Outbox;
use crate::sync::start_thread;
use crate::wake::Waker;

/// Starts a thread that passes frames of up to `limit` bytes from the keeper on to `outbox`, if there
/// is one. It calls `at_end` when the keeper closes the connection.
pub fn relay(
    keeper: OwnedFd,
    limit: usize,
    outbox: Option<Arc<Outbox>>,
    at_end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let waker = Waker::new()?;
    start_thread("relay", move || {
        let mut reader = FrameReader::new(keeper, limit);
        while let Ok(Some(Ok(frame))) = reader.next_frame() {
            if let Some(outbox) = &outbox {
                // If the caller does not read, the keeper has to wait, and so its jobs.
                while !outbox.has_room(&waker) {
                    wait_for(&mut [PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)], None);
                    waker.clear();
                }
                outbox.send_raw_parts(&frame.header, vec![frame.payload]);
            }
        }
        at_end();
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::frame::prefix;

    #[test]
    fn frames_up_to_the_limit_are_relayed_until_the_keeper_closes() {
        let (mut keeper, worker) = UnixStream::pair().unwrap();
        let (to_caller, caller) = UnixStream::pair().unwrap();
        let (sender, ended) = channel();
        let limit = 1_000_000;
        let outbox = Outbox::new(to_caller.into()).unwrap();
        relay(worker.into(), limit, Some(outbox), move || sender.send(()).unwrap()).unwrap();
        let large = vec![b'x'; limit - 4 - 2];
        std::thread::spawn(move || {
            for payload in [&large[..], b"small"] {
                keeper.write_all(&prefix(2, payload.len())).unwrap();
                keeper.write_all(b"{}").unwrap();
                keeper.write_all(payload).unwrap();
            }
        });
        let mut reader = FrameReader::new(caller, limit);
        assert_eq!(reader.next_frame().unwrap().unwrap().unwrap().payload.len(), limit - 6);
        assert_eq!(reader.next_frame().unwrap().unwrap().unwrap().payload, b"small");
        ended.recv().unwrap();
    }
}
