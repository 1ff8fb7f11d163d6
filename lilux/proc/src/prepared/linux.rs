//! Copies of a process as children of this one.
//!
//! The kernel takes the *thread* that started the prepared process for the parent of the copies, so
//! that thread waits for all of them: see [`PreparedProcesses::end`].

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
    sockopt,
};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, setpgid, waitid};

use super::packet;
use crate::clock::wait_for;
use crate::confine::Confined;
use crate::error::{Error, PreparedError};
use crate::job::{Control, Watch};
use crate::launch::{Child, Stdio};
use crate::process::linux::threads;
use crate::request::{Confinement, Exec, seconds};
use crate::sync::lock;
use crate::text::OsText;
use crate::tree::linux::reap_own_children;

/// How long a copy may take to announce itself, unless its time limit is shorter.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(5);

/// The prepared processes of a connection, by the ids of their requests.
#[derive(Default)]
pub struct PreparedProcesses(Mutex<HashMap<u64, Arc<Prepared>>>);

/// A running prepared process.
pub struct Prepared {
    process: Pid,
    socket: OwnedFd,
    confinement: Option<(Confinement, Arc<Confined>)>,
    state: Mutex<State>,
    call_ended: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    ended: bool,
    /// Checked at the first call: after that, it only makes copies.
    has_one_thread: bool,
}

/// One call of a prepared process; dropped when its processes have ended.
pub struct PreparedCall(Arc<Prepared>);

/// How the thread of a job waits for its process.
pub struct Waiting<'a> {
    control: &'a Control,
    watch: &'a mut dyn Watch,
    deadline: Instant,
}

/// Both ends of a new socket: ours, and the one for the prepared process.
pub fn control_socket() -> Result<(OwnedFd, OwnedFd), Error> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl PreparedProcesses {
    /// Adds a process that was started by the calling thread.
    pub fn add(
        &self,
        id: u64,
        process: &Child,
        socket: OwnedFd,
        confinement: Option<(Confinement, Arc<Confined>)>,
    ) {
        let prepared = Prepared {
            process: process.pid,
            socket,
            confinement,
            state: Mutex::default(),
            call_ended: Condvar::new(),
        };
        lock(&self.0).insert(id, Arc::new(prepared));
    }

    /// Begins a call of a prepared process.
    pub fn call(&self, id: u64) -> Result<PreparedCall, Error> {
        let found = lock(&self.0).get(&id).cloned();
        let prepared = found.ok_or(PreparedError::Ended)?;
        {
            let mut state = lock(&prepared.state);
            if state.ended {
                return Err(PreparedError::Ended.into());
            }
            state.calls += 1;
        }
        Ok(PreparedCall(prepared))
    }

    /// Called by the thread that started the process, after the process has ended. Returns when all
    /// its calls have ended: they are children of this thread.
    pub fn end(&self, id: u64) {
        let Some(prepared) = lock(&self.0).remove(&id) else { return };
        let mut state = lock(&prepared.state);
        state.ended = true;
        let wait = prepared.call_ended.wait_while(state, |state| state.calls > 0);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
        // Copies that were never started as a job.
        reap_own_children();
    }
}

impl Prepared {
    /// The other threads of a process would be missing in its copies, which may wait for them.
    fn require_one_thread(&self) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if !state.has_one_thread {
            match threads(self.process) {
                Some(1) => state.has_one_thread = true,
                None | Some(0) => return Err(PreparedError::Ended.into()),
                Some(_) => return Err(PreparedError::Threads.into()),
            }
        }
        Ok(())
    }
}

impl Drop for PreparedCall {
    fn drop(&mut self) {
        lock(&self.0.state).calls -= 1;
        self.0.call_ended.notify_all();
    }
}

impl PreparedCall {
    /// The confinement of the call. The request has to ask for that of the prepared process, which
    /// the copy inherits.
    pub fn confine(&self, request: Option<&Confinement>) -> Result<Option<Confined>, Error> {
        match (request, &self.0.confinement) {
            (None, None) => Ok(None),
            (Some(request), Some((own, confined))) if request == own => {
                confined.for_call(&request.tmp).map(Some)
            }
            _ => Err(PreparedError::OtherConfinement.into()),
        }
    }

    /// Starts the call: copies the prepared process and returns once the copy runs.
    pub fn launch(
        &self,
        exec: &Exec,
        env: &[(OsText, OsText)],
        stdio: Stdio<'_>,
        confined: Option<&Confined>,
        mut waiting: Waiting<'_>,
    ) -> Result<Child, Error> {
        self.0.require_one_thread()?;
        let limit = exec.timeout.map_or(ANNOUNCED_WITHIN, seconds).min(ANNOUNCED_WITHIN);
        waiting.deadline = Instant::now() + limit;
        let (ours, theirs) = control_socket()?;
        sockopt::set_socket_passcred(&ours, true)?;
        let descriptors = [
            ("stdin", Some(stdio.stdin)),
            ("stdout", Some(stdio.stdout)),
            ("stderr", Some(stdio.stderr)),
            ("call", Some(theirs.as_fd())),
            ("channel", stdio.channel.map(|(fd, _)| fd)),
            ("ruleset", confined.and_then(Confined::own_ruleset)),
        ];
        let (names, fds): (Vec<_>, Vec<_>) =
            descriptors.into_iter().filter_map(|(name, fd)| Some((name, fd?))).unzip();
        let packet = packet::encode(&names, &exec.program, env)?;
        self.send(&packet, &fds, &mut waiting)?;
        // Only the prepared process and the copy have it now: if they end, so does the socket.
        drop(theirs);
        waiting.wait_until(&ours, PollFlags::IN)?;
        let child = adopt(sender(&ours)?)?;
        // A copy that has just ended is reported like any other job.
        let _ = send(&ours, &[1], SendFlags::NOSIGNAL);
        Ok(child)
    }

    fn send(
        &self,
        packet: &[u8],
        fds: &[BorrowedFd<'_>],
        waiting: &mut Waiting<'_>,
    ) -> Result<(), Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
            match sendmsg(&self.0.socket, &[IoSlice::new(packet)], &mut ancillary, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    waiting.wait_until(&self.0.socket, PollFlags::OUT)?;
                }
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(PreparedError::Ended.into()),
                Err(error) => return Err(PreparedError::Os(error.into()).into()),
            }
        }
    }
}

impl<'a> Waiting<'a> {
    /// For a job that `control` can end, on a thread that also has to watch something else.
    pub fn new(control: &'a Control, watch: &'a mut dyn Watch) -> Self {
        Self { control, watch, deadline: Instant::now() }
    }

    /// Waits for one event of a socket; not longer than until the deadline or the end of the job.
    fn wait_until(&mut self, socket: &OwnedFd, event: PollFlags) -> Result<(), Error> {
        loop {
            let waker = self.control.waker();
            let mut fds = vec![
                PollFd::new(socket, event),
                PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN),
            ];
            fds.extend(self.watch.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            wait_for(&mut fds, Some(self.deadline));
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return Ok(());
            }
            if ready[1] {
                waker.clear();
            }
            if ready.get(2) == Some(&true) {
                self.watch.hand_over();
            }
            if self.control.end_request().is_some() {
                return Err(PreparedError::Cancelled.into());
            }
            if self.deadline <= Instant::now() {
                return Err(PreparedError::Silent.into());
            }
        }
    }
}

/// The process that announced itself. The kernel says who it is.
fn sender(socket: &OwnedFd) -> Result<Pid, Error> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::DONTWAIT);
    let announced = received.is_ok_and(|received| received.bytes == 1);
    let mut pids = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
        _ => None,
    });
    pids.next().filter(|_| announced).ok_or_else(|| PreparedError::Ended.into())
}

/// Takes over a copy. Refuses a process that is not our child, or that has executed a program and so
/// may be another job.
fn adopt(pid: Pid) -> Result<Child, Error> {
    let ended = |_| Error::from(PreparedError::Ended);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(ended)?;
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::PidFd(pidfd.as_fd()), look).map_err(ended)?;
    setpgid(Some(pid), Some(pid)).map_err(ended)?;
    Ok(Child::adopted(pid, pidfd))
}
