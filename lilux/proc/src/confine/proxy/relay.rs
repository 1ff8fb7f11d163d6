//! Passing bytes on between a job and a server, in both directions at once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::body::Body;
use crate::clock::wait_for;

const BUFFER: usize = 64 * 1024;
/// How long the other direction of a connection may be silent after one has ended. A process that
/// was killed looks like one that has only finished sending.
const SILENCE_OF_A_HALF: Duration = Duration::from_secs(60);

/// One direction.
struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and not yet written.
    pending: std::ops::Range<usize>,
    /// Nothing more is read.
    at_end: bool,
    /// The end has been passed on, too.
    done: bool,
}

impl<'a> Direction<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream, early: Vec<u8>) -> Self {
        let pending = 0..early.len();
        let mut buffer = early;
        buffer.resize(buffer.len().max(BUFFER), 0);
        Self { from, to, buffer, pending, at_end: false, done: false }
    }

    fn can_read(&self) -> bool {
        self.pending.is_empty() && !self.at_end
    }

    /// Reads once. Returns false if nothing has arrived.
    fn read(&mut self) -> io::Result<bool> {
        match self.from.read(&mut self.buffer) {
            Ok(length) => {
                self.pending = 0..length;
                self.at_end = length == 0;
                Ok(true)
            }
            Err(error) if is_temporary(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes what it can, then passes the end on.
    fn write(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.to.write(&self.buffer[self.pending.clone()]) {
                Ok(length) => self.pending.start += length,
                Err(error) if is_temporary(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.at_end && !self.done {
            self.done = true;
            self.to.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }

    /// Writes, or stops if the other side does not want more. It may still have sent an answer.
    fn write_or_stop(&mut self) {
        if self.write().is_err() {
            self.pending = 0..0;
            self.at_end = true;
            self.done = true;
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Passes on everything until both sides have ended. A request is passed on up to the end of its
/// `body`, and its answer up to the end of the connection. `early` was already read from the job.
/// Returns an error if a side breaks off, or when another thread sets `ended` and shuts `job` down.
pub fn relay(
    job: &TcpStream,
    server: &TcpStream,
    early: Vec<u8>,
    mut body: Body,
    ended: &AtomicBool,
) -> io::Result<()> {
    job.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    let is_tunnel = body == Body::Everything;
    let mut up = Direction::new(job, server, early);
    let mut down = Direction::new(server, job, Vec::new());
    let mut answered = false;
    limit(&mut up, &mut body)?;
    up.write_or_stop();
    while !(down.done && (up.done || !is_tunnel)) {
        let half = up.at_end || down.at_end;
        let ready = wait(&up, &down, half.then(|| Instant::now() + SILENCE_OF_A_HALF))?;
        if ended.load(Ordering::SeqCst) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if ready.from_job && up.can_read() && up.read()? {
            if body.is_complete() && !up.pending.is_empty() {
                if answered {
                    return Ok(());
                }
                // Another request: it is not passed on. The answer to the first one is.
                up.at_end = true;
            }
            limit(&mut up, &mut body)?;
            // The server of a request might understand the end of the connection as a cancellation.
            up.done |= up.at_end && !is_tunnel;
        }
        if ready.from_server && down.can_read() {
            answered |= down.read()?;
        }
        up.write_or_stop();
        down.write()?;
    }
    Ok(())
}

/// Limits what was read from the job to the body.
fn limit(up: &mut Direction<'_>, body: &mut Body) -> io::Result<()> {
    let taken = body.take(&up.buffer[up.pending.clone()]);
    let taken = taken.map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    up.pending.end = up.pending.start + taken;
    Ok(())
}

struct Ready {
    from_job: bool,
    from_server: bool,
}

/// Waits until a direction can go on. An error if a side has broken off, or if it took too long.
fn wait(up: &Direction<'_>, down: &Direction<'_>, deadline: Option<Instant>) -> io::Result<Ready> {
    let mut fds = Vec::with_capacity(2);
    let sides = [(up, down), (down, up)];
    let watched = sides.map(|(reading, writing)| {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, reading.can_read());
        interest.set(PollFlags::OUT, !writing.pending.is_empty());
        // After we have ended our half, the end of the other half is not news until it is read.
        let watched = !interest.is_empty() || !writing.done;
        if watched {
            fds.push(PollFd::new(reading.from, interest));
        }
        watched
    });
    wait_for(&mut fds, deadline);
    if fds.iter().all(|fd| fd.revents().is_empty())
        && deadline.is_some_and(|deadline| Instant::now() >= deadline)
    {
        return Err(ErrorKind::TimedOut.into());
    }
    let over = PollFlags::ERR | PollFlags::HUP;
    let mut events = fds.iter().map(PollFd::revents);
    let mut readable = [false; 2];
    for (at, (reading, _)) in sides.into_iter().enumerate() {
        let events = if watched[at] { events.next().unwrap_or(over) } else { PollFlags::empty() };
        if events.intersects(over) && !reading.can_read() {
            return Err(ErrorKind::ConnectionReset.into());
        }
        readable[at] = events.intersects(PollFlags::IN | over);
    }
    Ok(Ready { from_job: readable[0], from_server: readable[1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn relayed(early: &[u8], body: Body) -> (TcpStream, TcpStream) {
        let ((job, inner_job), (server, inner_server)) = (pair(), pair());
        let early = early.to_vec();
        std::thread::spawn(move || {
            relay(&inner_job, &inner_server, early, body, &AtomicBool::new(false))
        });
        for stream in [&job, &server] {
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        (job, server)
    }

    fn everything(mut stream: &TcpStream) -> Vec<u8> {
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        read
    }

    #[test]
    fn each_half_of_a_tunnel_ends_by_itself() {
        let (job, server) = relayed(b"early ", Body::Everything);
        (&job).write_all(b"question").unwrap();
        job.shutdown(Shutdown::Write).unwrap();
        assert_eq!(everything(&server), b"early question");
        (&server).write_all(b"answer").unwrap();
        drop(server);
        assert_eq!(everything(&job), b"answer");

        let (job, server) = relayed(b"", Body::Everything);
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(everything(&job), b"");
        (&job).write_all(b"still heard").unwrap();
        drop(job);
        assert_eq!(everything(&server), b"still heard");
    }

    #[test]
    fn a_slow_reader_gets_everything() {
        let (job, server) = relayed(b"", Body::Everything);
        let sent: Vec<u8> = (0..20_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || (&server).write_all(&sent).map(|()| drop(server)));
        std::thread::sleep(Duration::from_millis(50));
        assert!(everything(&job) == expected);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_second_request_is_not_passed_on() {
        let (job, server) = relayed(b"HEAD\r\n\r\nbody", Body::Length(12));
        (&job).write_all(b"GET http://other/ HTTP/1.1\r\n\r\n").unwrap();
        let mut read = [0; 12];
        (&server).read_exact(&mut read).unwrap();
        (&server).write_all(b"answer").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(everything(&job), b"answer");
        assert_eq!(everything(&server), b"");
    }

    #[test]
    fn a_second_request_after_the_answer_ends_the_connection() {
        let (job, server) = relayed(b"GET", Body::Length(3));
        (&server).write_all(b"answer").unwrap();
        let mut read = [0; 6];
        (&job).read_exact(&mut read).unwrap();
        (&job).write_all(b"GET http://other/ HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(everything(&server), b"GET");
    }

    #[test]
    fn a_reset_ends_both_sides() {
        let (job, server) = relayed(b"", Body::Everything);
        (&server).write_all(b"unread").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        // Closing a socket with unread data resets the connection.
        drop(job);
        assert!(matches!((&server).read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}
