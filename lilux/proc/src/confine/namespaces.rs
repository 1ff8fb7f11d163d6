//! Namespaces of a profile: created once by a holder process, entered by each job.
//!
//! The holder is a new `lilux-proc`, not a fork: a process that creates a user namespace must be
//! readable for its user, and a fork would contain the secrets of other jobs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::{Deserialize, Serialize};

use super::proxy;
use crate::clock::wait_for;
use crate::request::{Confinement, Net};
use crate::sync::start_thread;
use crate::text::OsText;

/// A file system that does not answer must not block jobs forever.
const HOLDER_DEADLINE: Duration = Duration::from_secs(5);

/// What the holder achieved; each error is why a namespace cannot be used.
#[derive(Debug, Serialize, Deserialize)]
pub struct Held {
    /// A user namespace was created; it has to be entered first.
    pub user: bool,
    /// The mount namespace.
    pub mount: Option<String>,
    /// The network namespace.
    pub net: Option<String>,
}

/// The namespaces that each job of a profile enters.
pub struct Namespaces {
    /// Entered first, because it gives the rights to enter the others.
    pub user: Option<OwnedFd>,
    /// The mount namespace, or why there is none.
    pub mount: Outcome,
    /// The network namespace, or why there is none.
    pub net: Outcome,
    /// A listener in the network namespace, if one was asked for.
    pub listener: Option<TcpListener>,
}

/// A namespace that is entered, or the reason why not.
pub type Outcome = Result<OwnedFd, String>;

/// Creates the namespaces of a profile. `writable` is a folder in addition to those of the request.
pub fn create(confinement: &Confinement, writable: Option<&OsStr>) -> Namespaces {
    try_create(confinement, writable).unwrap_or_else(|error| Namespaces {
        user: None,
        mount: Err(error.clone()),
        net: Err(error),
        listener: None,
    })
}

fn try_create(confinement: &Confinement, writable: Option<&OsStr>) -> Result<Namespaces, String> {
    let fail = |error: io::Error| error.to_string();
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    let mut holder = start_holder(confinement, writable, theirs).map_err(fail)?;
    let held = answer_of(&mut holder);
    let opened = held.map(|held| {
        let pid = holder.id();
        let open = |name: &str| -> Outcome {
            let opened = File::open(format!("/proc/{pid}/ns/{name}"));
            opened.map(OwnedFd::from).map_err(|error| error.to_string())
        };
        let usable = |error: Option<String>, name| error.map_or_else(|| open(name), Err);
        let user = if held.user { open("user").map(Some)? } else { None };
        let (mount, mut net) = (usable(held.mount, "mnt"), usable(held.net, "net"));
        let mut listener = None;
        if net.is_ok() && matches!(confinement.net, Net::Hosts(_)) {
            match receive_listener(&ours) {
                Ok(received) => listener = Some(received),
                Err(error) => net = Err(error.to_string()),
            }
        }
        Ok(Namespaces { user, mount, net, listener })
    });
    // The descriptors keep the namespaces alive. Its end can take longer than the rest.
    let _ = holder.kill();
    let _ = start_thread("holder", move || drop(holder.wait()));
    opened?
}

fn start_holder(
    confinement: &Confinement,
    writable: Option<&OsStr>,
    stdin: UnixStream,
) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("hold-namespaces").env_clear();
    let mut option = |name: &str, paths: &mut dyn Iterator<Item = &OsStr>| {
        for path in paths {
            command.arg(name).arg(path);
        }
    };
    let write = confinement.write.iter().map(OsText::as_os_str);
    option("--write", &mut write.chain(writable));
    option("--read-only", &mut confinement.read_only.iter().map(OsText::as_os_str));
    option("--hidden", &mut confinement.hidden.iter().map(OsText::as_os_str));
    if confinement.net != Net::All {
        command.arg("--net");
    }
    if let Net::Hosts(_) = confinement.net {
        command.args(["--listen", &proxy::PORT.to_string()]);
    }
    command.stdin(OwnedFd::from(stdin)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Takes the listener that the holder has sent before its answer.
fn receive_listener(socket: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket, &mut parts, &mut ancillary, flags)?;
    let sent = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    sent.map(TcpListener::from).ok_or_else(|| io::Error::other("the listener was not sent"))
}

fn answer_of(holder: &mut Child) -> Result<Held, String> {
    let stdout = holder.stdout.take().ok_or("the holder of the namespaces has no output")?;
    let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
    wait_for(&mut fds, Some(Instant::now() + HOLDER_DEADLINE));
    if fds[0].revents().is_empty() {
        return Err("creating the namespaces took too long".into());
    }
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|_| "the holder of the namespaces died".into())
}
