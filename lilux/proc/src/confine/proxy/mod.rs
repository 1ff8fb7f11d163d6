//! A proxy for jobs whose network consists of a list of hosts.
//!
//! The jobs are in an empty network namespace, in which a listener of this process is all that can be
//! connected to. The proxy checks each request (`head`) against the list, connects from outside
//! (`connect`) and passes bytes on (`relay`). It does not look into encrypted connections.
//!
//! A connection is served by its own thread, and ends when no job of the profile is left.

mod address;
mod body;
mod connect;
mod head;
mod relay;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use self::body::Body;
use self::head::{Head, Kind, MAX_HEAD, Refusal};
use super::hosts::AllowList;
use crate::clock::wait_for;
use crate::sync::lock;
use crate::text::OsText;
use crate::wake::Waker;

/// Where the proxy listens. Each namespace has one proxy, so the port can be the same everywhere.
pub const PORT: u16 = 3128;
/// More connections wait until one has ended; fewer are served if descriptors are scarce.
const MAX_CONNECTIONS: usize = 128;
const DESCRIPTORS_PER_CONNECTION: u64 = 16;
/// The whole head must have arrived by then.
const HEAD_DEADLINE: Duration = Duration::from_secs(15);
/// How long a refused job may take to read why.
const FAREWELL: Duration = Duration::from_secs(1);
/// Until the next attempt if descriptors or threads are scarce.
const SCARCITY: Duration = Duration::from_millis(50);
/// The C library looks names up on the stack of the thread.
const STACK_SIZE: usize = 256 * 1024;

/// A running proxy. It ends when it is dropped.
pub struct Proxy(Arc<Shared>);

/// A job that may use the proxy.
pub struct Visit(Arc<Shared>);

struct Shared {
    list: AllowList,
    waker: Waker,
    max_connections: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    jobs: usize,
    last_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

struct Connection {
    job: TcpStream,
    /// No job is left that wants it.
    ended: AtomicBool,
}

/// The environment variables that lead programs to the proxy, and to nothing without it.
pub fn variables() -> Vec<(OsText, OsText)> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let names = [("HTTP_PROXY", &proxy), ("HTTPS_PROXY", &proxy), ("ALL_PROXY", &proxy)];
    let names = names.into_iter().map(|(name, value)| (name, value.as_str()));
    names
        .chain([("NO_PROXY", "")])
        .flat_map(|(name, value)| [(name.to_owned(), value), (name.to_ascii_lowercase(), value)])
        .map(|(name, value)| (name.as_str().into(), value.into()))
        .collect()
}

impl Proxy {
    /// Starts to accept connections.
    pub fn start(listener: TcpListener, list: AllowList) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (waker, max_connections) = (Waker::new()?, max_connections());
        let shared = Arc::new(Shared { list, waker, max_connections, state: Mutex::default() });
        let accepting = Arc::clone(&shared);
        start_thread("proxy", move || accepting.accept_from(&listener))?;
        Ok(Self(shared))
    }

    /// Serves connections until the last visit is dropped.
    pub fn visit(&self) -> Visit {
        lock(&self.0.state).jobs += 1;
        Visit(Arc::clone(&self.0))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.closed = true;
        state.end_connections();
        self.0.waker.wake();
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.jobs -= 1;
        if state.jobs == 0 {
            state.end_connections();
        }
    }
}

impl State {
    fn end_connections(&self) {
        for connection in self.connections.values() {
            connection.ended.store(true, Ordering::SeqCst);
            let _ = connection.job.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn accept_from(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            self.waker.clear();
            let is_full = {
                let state = lock(&self.state);
                if state.closed {
                    return;
                }
                state.connections.len() >= self.max_connections
            };
            let waker = self.waker.fd();
            let mut fds =
                vec![PollFd::new(&waker, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            fds.truncate(if is_full { 1 } else { 2 });
            wait_for(&mut fds, None);
            if !is_full && !fds[1].revents().is_empty() {
                let accepted = listener.accept().and_then(|(job, _)| self.admit(job));
                if accepted.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                    std::thread::sleep(SCARCITY);
                }
            }
        }
    }

    /// Serves a connection on a new thread, unless the job that made it has already ended.
    fn admit(self: &Arc<Self>, job: TcpStream) -> io::Result<()> {
        let connection = Arc::new(Connection { job, ended: AtomicBool::default() });
        let id = {
            let mut state = lock(&self.state);
            if state.jobs == 0 {
                return Ok(());
            }
            state.last_id += 1;
            let id = state.last_id;
            state.connections.insert(id, Arc::clone(&connection));
            id
        };
        let registered = Registered { shared: Arc::clone(self), id };
        start_thread("proxied", move || {
            // A connection that breaks off has nobody to report it to.
            let _ = connection.serve(&registered.shared.list);
        })
    }
}

/// A connection in the list of a proxy; dropping it removes it.
struct Registered {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        if state.connections.len() >= self.shared.max_connections {
            self.shared.waker.wake();
        }
        state.connections.remove(&self.id);
    }
}

impl Connection {
    fn serve(&self, list: &AllowList) -> io::Result<()> {
        self.job.set_nonblocking(false)?;
        let _ = self.job.set_nodelay(true);
        self.job.set_write_timeout(Some(HEAD_DEADLINE))?;
        let mut bytes = Vec::new();
        let found = self.read_head(&mut bytes, Instant::now() + HEAD_DEADLINE).and_then(|length| {
            let head = Head::parse(&bytes[..length])?;
            let wanted = || !self.ended.load(Ordering::SeqCst);
            Ok((connect::connect(list, &head.destination, wanted)?, head.kind, length))
        });
        let (server, kind, length) = match found {
            Ok(found) => found,
            Err(refusal) => return self.refuse(&refusal),
        };
        let early = bytes.split_off(length);
        let body = match kind {
            Kind::Tunnel => {
                (&self.job).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                Body::Everything
            }
            Kind::Request(head, body) => {
                server.set_write_timeout(Some(HEAD_DEADLINE))?;
                (&server).write_all(&head)?;
                body
            }
        };
        relay::relay(&self.job, &server, early, body, &self.ended)
    }

    /// Reads until the head is complete; what follows it may be read, too. Returns its length. The
    /// deadline is for the whole head, however slowly it arrives.
    fn read_head(&self, bytes: &mut Vec<u8>, deadline: Instant) -> Result<usize, Refusal> {
        let mut buffer = [0; 4096];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Some(left.max(Duration::from_millis(1)));
            let read =
                self.job.set_read_timeout(timeout).and_then(|()| (&self.job).read(&mut buffer));
            match read {
                Ok(0) => return Err(Refusal::bad("the head is not complete")),
                Ok(length) => {
                    let searched = bytes.len().saturating_sub(3);
                    bytes.extend_from_slice(&buffer[..length]);
                    if let Some(end) = head::length(&bytes[searched..]) {
                        return Ok(searched + end);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    return Err(Refusal { status: 408, message: "the head took too long".into() });
                }
            }
            if bytes.len() > MAX_HEAD {
                return Err(Refusal { status: 431, message: "the head is too long".into() });
            }
            if left.is_zero() {
                return Err(Refusal { status: 408, message: "the head took too long".into() });
            }
        }
    }

    /// The message is also the reason in the status line, because programs show that of a tunnel.
    fn refuse(&self, refusal: &Refusal) -> io::Result<()> {
        let Refusal { status, message } = refusal;
        let length = message.len() + 1;
        let answer = format!(
            "HTTP/1.1 {status} {message}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{message}\n"
        );
        (&self.job).write_all(answer.as_bytes())?;
        self.job.shutdown(Shutdown::Write)?;
        // Closing a socket with unread data would reset the connection before the answer is read.
        let deadline = Instant::now() + FAREWELL;
        let mut buffer = [0; 4096];
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            self.job.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            if (&self.job).read(&mut buffer)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn max_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let affordable = limit.map_or(u64::MAX, |limit| limit / DESCRIPTORS_PER_CONNECTION);
    usize::try_from(affordable).unwrap_or(MAX_CONNECTIONS).clamp(1, MAX_CONNECTIONS)
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.into()).stack_size(STACK_SIZE);
    builder.spawn(body).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let job = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ended = AtomicBool::default();
        (job, Connection { job: listener.accept().unwrap().0, ended })
    }

    #[test]
    fn a_head_that_arrives_byte_by_byte_must_arrive_in_time() {
        let (job, connection) = connection();
        let sender = std::thread::spawn(move || {
            while (&job).write_all(b"a").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let started = Instant::now();
        let refusal = connection
            .read_head(&mut Vec::new(), started + Duration::from_millis(200))
            .unwrap_err();
        assert_eq!((refusal.status, refusal.message.as_str()), (408, "the head took too long"));
        assert!(started.elapsed() < Duration::from_secs(5));
        drop(connection);
        sender.join().unwrap();
    }

    #[test]
    fn nothing_is_served_when_no_job_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let list = AllowList::parse(&[address.to_string()]).unwrap();
        let proxy = Proxy::start(listener, list).unwrap();
        let answer = || {
            let mut job = TcpStream::connect(address).unwrap();
            let _ = job.write_all(b"CONNECT a.org:1 HTTP/1.1\r\n\r\n");
            let mut answer = String::new();
            let _ = job.read_to_string(&mut answer);
            answer
        };
        assert_eq!(answer(), "");
        let visit = proxy.visit();
        assert!(answer().starts_with("HTTP/1.1 403 a.org:1 is not an allowed host\r\n"));
        let mut open = TcpStream::connect(address).unwrap();
        open.write_all(b"CONN").unwrap();
        while lock(&proxy.0.state).connections.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(visit);
        let mut rest = Vec::new();
        let _ = open.read_to_end(&mut rest);
        assert_eq!(answer(), "");
        drop(proxy);
    }
}
