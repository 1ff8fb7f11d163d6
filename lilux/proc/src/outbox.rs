//! The sending side of a connection: many threads send whole frames, and none of them blocks.
//!
//! The thread that made a frame writes as much as the peer takes without blocking. A separate thread
//! writes the rest, so a peer that stops reading can delay answers but never a job's timeout. Streams
//! of output check [`Outbox::has_room`] first.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::clock::wait_for;
use crate::frame;
use crate::sync::{lock, start_thread};
use crate::wake::Waker;

/// Streams wait while at least this many bytes are queued.
const FULL: usize = 1024 * 1024;

/// Sends frames; see the module.
pub struct Outbox {
    fd: OwnedFd,
    is_socket: bool,
    state: Mutex<State>,
    queued: Condvar,
}

#[derive(Default)]
struct State {
    /// Buffers that are not completely sent, each with the number of bytes already sent.
    queue: VecDeque<(Vec<u8>, usize)>,
    /// The sum of queued bytes.
    bytes: usize,
    broken: bool,
    waiting: Vec<Waker>,
}

impl Outbox {
    /// Takes a pipe or a socket. A pipe is made non-blocking; on a socket, each call is, because the
    /// other direction may be in use elsewhere.
    pub fn new(fd: OwnedFd) -> std::io::Result<Arc<Self>> {
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        let is_socket = kind == rustix::fs::FileType::Socket;
        if is_socket {
            // Room for a chunk of output or two. A smaller buffer also works.
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(&fd, FULL);
        } else {
            let flags = rustix::fs::fcntl_getfl(&fd)?;
            rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        }
        let outbox =
            Arc::new(Self { fd, is_socket, state: Mutex::default(), queued: Condvar::new() });
        let sender = Arc::clone(&outbox);
        start_thread("outbox", move || sender.send_queued())?;
        Ok(outbox)
    }

    /// Sends a header and a payload as one frame. A closed connection is not an error here: the
    /// reading side notices it and ends everything.
    pub fn send(&self, header: &impl Serialize, payload: &[u8]) {
        let header = serde_json::to_vec(header).unwrap_or_default();
        let prefix = frame::prefix(header.len(), payload.len());
        let parts = [&prefix, header.as_slice(), payload];
        let mut state = lock(&self.state);
        let taken = self.write_at_once(&mut state, &parts);
        if taken < parts.iter().map(|part| part.len()).sum() {
            Self::queue(&mut state, parts.concat(), taken);
            self.queued.notify_one();
        }
    }

    /// Sends a frame with a payload in parts, which are not copied if they have to be queued.
    pub fn send_parts(&self, header: &impl Serialize, payload: Vec<Vec<u8>>) {
        self.send_raw_parts(&serde_json::to_vec(header).unwrap_or_default(), payload);
    }

    /// Sends a frame whose header is already JSON, with a payload in parts.
    pub fn send_raw_parts(&self, header: &[u8], payload: Vec<Vec<u8>>) {
        let prefix = frame::prefix(header.len(), payload.iter().map(Vec::len).sum());
        let mut parts = vec![[&prefix, header].concat()];
        parts.extend(payload);
        let mut state = lock(&self.state);
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let mut taken = self.write_at_once(&mut state, &slices);
        let incomplete = taken < slices.iter().map(|slice| slice.len()).sum();
        for part in parts {
            let here = taken.min(part.len());
            taken -= here;
            if here < part.len() {
                Self::queue(&mut state, part, here);
            }
        }
        if incomplete {
            self.queued.notify_one();
        }
    }

    /// Writes what the peer takes without blocking, unless frames are queued. Returns the number of
    /// bytes.
    fn write_at_once(&self, state: &mut State, parts: &[&[u8]]) -> usize {
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut left = slices.as_mut_slice();
        let mut taken = 0;
        while state.queue.is_empty() && !state.broken && !left.is_empty() {
            match self.write(left) {
                Ok(n) => {
                    taken += n;
                    IoSlice::advance_slices(&mut left, n);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => state.broken = true,
            }
        }
        taken
    }

    fn queue(state: &mut State, bytes: Vec<u8>, taken: usize) {
        if !state.broken {
            state.bytes += bytes.len() - taken;
            state.queue.push_back((bytes, taken));
        }
    }

    /// True if a stream may send now; if not, `waker` is woken when it may.
    pub fn has_room(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.state);
        let room = state.bytes < FULL || state.broken;
        if !room && !state.waiting.contains(waker) {
            state.waiting.push(waker.clone());
        }
        room
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        if self.is_socket {
            let mut none = rustix::net::SendAncillaryBuffer::default();
            let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
            rustix::net::sendmsg(&self.fd, parts, &mut none, flags)
        } else {
            rustix::io::writev(&self.fd, parts)
        }
    }

    /// Writes queued bytes, on the outbox's own thread.
    fn send_queued(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some((front, taken)) = state.queue.front() else {
                state = self.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = front.len() - taken;
            match self.write(&[IoSlice::new(&front[*taken..])]) {
                Ok(n) => {
                    state.bytes -= n;
                    if n == left {
                        state.queue.pop_front();
                    } else if let Some((_, taken)) = state.queue.front_mut() {
                        *taken += n;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    drop(state);
                    let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
                    wait_for(&mut fds, None);
                    state = lock(&self.state);
                }
                Err(_) => {
                    state.broken = true;
                    state.queue.clear();
                    state.bytes = 0;
                }
            }
            if state.bytes < FULL {
                for waker in state.waiting.drain(..) {
                    waker.wake();
                }
            }
        }
    }
}
