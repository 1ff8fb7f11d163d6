//! The processes behind one connection, and who watches whom.
//!
//! ```text
//! caller
//!   keeper      started by the caller; starts what may outlive the helper, and adopts nothing
//!     guardian  adopts; if the worker dies, ends whatever the worker's jobs left, and exits
//!       worker  adopts; reads the connection, runs the jobs
//!         job   leads its own process group, adopts its own orphans
//! ```
//!
//! Whichever of the three is killed, another one notices and ends the jobs: the guardian is the
//! worker's parent, and kills it when the keeper dies; the worker is signalled when the guardian
//! dies. So whoever kills the keeper ends all, also where another of the three has been stopped.
//! Without subreapers there is no guardian: the worker sees its line to the keeper close, and the
//! keeper, which is told of each job's process group, ends what a worker leaves.
//!
//! A detached process must not be below a subreaper, which would adopt it and its orphans, so it
//! takes a process above the guardian to start it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitOptions, waitpid};
#[cfg(target_os = "linux")]
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::clock::wait_for;
use crate::frame::FrameReader;
use crate::launch::Launcher;
use crate::outbox::Outbox;
use crate::platform::Platform;
#[cfg(target_os = "linux")]
use crate::process::linux::end_session;
use crate::server::{Event, Server};
use crate::tree::Supervision;
#[cfg(target_os = "linux")]
use crate::tree::linux::{Adopter, become_subreaper, sweep};
use crate::wake::Waker;

/// The two directions of a connection; they may be the same socket.
pub struct Connection {
    /// Frames from the caller.
    pub reading: OwnedFd,
    /// Frames to the caller.
    pub writing: OwnedFd,
}

impl Connection {
    /// Both directions of a socket.
    pub fn socket(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { reading: socket.try_clone()?, writing: socket })
    }
}

/// What the calling process, now the keeper, holds on to.
pub struct Lineage {
    below: Pid,
    line: UnixStream,
    platform: Platform,
}

/// Starts guardian and worker; the worker does `work` with its end of the line to the keeper, which
/// the calling process becomes. Must be called while there is but one thread.
pub fn start(
    platform: Platform,
    work: impl FnOnce(UnixStream) -> io::Result<u8>,
) -> io::Result<Lineage> {
    let (keeper_end, worker_end) = UnixStream::pair()?;
    #[cfg(target_os = "linux")]
    let keeper = rustix::process::getpid();
    if let Some(below) = fork()? {
        return Ok(Lineage { below, line: keeper_end, platform });
    }
    drop(keeper_end);
    // Away from the caller's terminal: its Ctrl-C is for the caller to handle.
    let _ = rustix::process::setsid();
    match platform {
        #[cfg(target_os = "linux")]
        Platform::Linux => guard(keeper, || work(worker_end)),
        Platform::Portable => end_process(work(worker_end)),
    }
}

/// A forked process must not return into the code of the one it came from.
fn end_process(result: io::Result<u8>) -> ! {
    let code = result.unwrap_or_else(|error| {
        eprintln!("lilux-proc: {error}");
        1
    });
    std::process::exit(code.into())
}

impl Lineage {
    /// Serves the worker's wishes until it is gone, and gives its exit code.
    pub fn keep(self) -> io::Result<u8> {
        let connection = Connection::socket(self.line.into())?;
        let (sender, events) = channel();
        let outbox = Outbox::new(connection.writing)?;
        let supervision = Supervision::loose(self.platform);
        let launcher = Launcher::new(self.platform);
        Server::new(connection.reading, outbox, launcher, supervision, None, sender)
            .run(&events)?;
        #[cfg(target_os = "linux")]
        if self.platform == Platform::Linux {
            end_what_a_killed_guardian_left(self.below);
        }
        wait_for_child(self.below)
    }

    /// A signal to the keeper closes the line, which asks the worker to end.
    pub fn hang_up_on_signal(&self) -> io::Result<()> {
        let line = self.line.try_clone()?;
        on_signal(move || drop(line.shutdown(std::net::Shutdown::Both)))
    }
}

/// The guardian: waits for the worker, and sees to it that nothing is left when it goes.
#[cfg(target_os = "linux")]
fn guard(keeper: Pid, work: impl FnOnce() -> io::Result<u8>) -> ! {
    let guardian = rustix::process::getpid();
    let forked = become_subreaper().and_then(|()| fork());
    match forked {
        Ok(None) => {
            let bound = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
            if rustix::process::getppid() != Some(guardian) {
                end_process(Err(io::Error::other("the guardian died before its worker began")));
            }
            end_process(bound.map_err(io::Error::from).and_then(|()| work()))
        }
        Ok(Some(worker)) => {
            // With it goes our copy of the connection, so the caller can see the worker's end.
            drop(work);
            if kill_worker_when_keeper_dies(keeper, worker).is_err() {
                let _ = kill_process(worker, Signal::KILL);
            }
            let waited = wait_for_child(worker);
            sweep();
            end_process(waited)
        }
        Err(error) => end_process(Err(error)),
    }
}

/// The signal of the keeper's death is one that wakes a stopped guardian, too. A worker is killed
/// and not asked, since it may have been stopped; the guardian, which waits for it, does the rest.
#[cfg(target_os = "linux")]
fn kill_worker_when_keeper_dies(keeper: Pid, worker: Pid) -> io::Result<()> {
    let act = move || {
        if rustix::process::getppid() != Some(keeper) {
            let _ = kill_process(worker, Signal::KILL);
        }
    };
    // SAFETY: two plain system calls, which a handler of signals may make. The worker's pid is its
    // own until it is reaped, and then nothing but the sweep is left to do.
    unsafe { signal_hook::low_level::register(libc::SIGCONT, act)? };
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    // It may have died before.
    act();
    Ok(())
}

/// A guardian that was killed has ended nothing, and if the worker was killed in the same instant,
/// neither has anybody else. What stayed in their session can still be found: its id, the pid of
/// the guardian, is not given to another before the guardian is reaped.
#[cfg(target_os = "linux")]
fn end_what_a_killed_guardian_left(guardian: Pid) {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(guardian), ended) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some(status)) if status.terminating_signal().is_some() => {
                return end_session(guardian);
            }
            _ => return,
        }
    }
}

/// What a worker is made of.
pub struct WorkerParts {
    /// Starts its jobs.
    pub launcher: Launcher,
    /// Keeps their trees together.
    pub supervision: Supervision,
    /// The line to the keeper.
    pub keeper: KeeperLine,
}

/// The worker's line to its keeper.
pub struct KeeperLine {
    /// The keeper's answers.
    pub reading: OwnedFd,
    /// Requests to it.
    pub outbox: Arc<Outbox>,
}

/// Makes the calling process a worker. It has to be on its main thread, and the only one.
pub fn worker_parts(
    line: UnixStream,
    platform: Platform,
    events: &Sender<Event>,
) -> io::Result<WorkerParts> {
    let launcher = Launcher::new(platform);
    #[cfg(target_os = "linux")]
    let adopter = match platform {
        Platform::Linux => {
            let ask = events.clone();
            Some(Adopter::new(move |request| drop(ask.send(Event::Sweep(request))))?)
        }
        Platform::Portable => None,
    };
    let connection = Connection::socket(line.into())?;
    let keeper =
        KeeperLine { reading: connection.reading, outbox: Outbox::new(connection.writing)? };
    let group = Supervision::Group { keeper: Some(Arc::clone(&keeper.outbox)) };
    #[cfg(target_os = "linux")]
    let supervision = adopter.map_or(group, Supervision::Adopting);
    #[cfg(not(target_os = "linux"))]
    let supervision = {
        let _ = events;
        group
    };
    Ok(WorkerParts { launcher, supervision, keeper })
}

/// The worker of a connection: serves it until it is closed.
pub fn serve(connection: Connection, line: UnixStream, platform: Platform) -> io::Result<u8> {
    let (sender, events) = channel();
    let WorkerParts { launcher, supervision, keeper } = worker_parts(line, platform, &sender)?;
    let outbox = Outbox::new(connection.writing)?;
    let to_caller = Arc::clone(&outbox);
    let server =
        Server::new(connection.reading, outbox, launcher, supervision, Some(keeper.outbox), sender);
    let hung_up = Arc::clone(&server);
    relay(keeper.reading, Some(to_caller), move || hung_up.close())?;
    let signalled = Arc::clone(&server);
    on_signal(move || signalled.close())?;
    server.run(&events)?;
    Ok(0)
}

/// The keeper's answers are the caller's; its end is ours, which `at_the_end` brings about.
pub fn relay(
    reading: OwnedFd,
    outbox: Option<Arc<Outbox>>,
    at_the_end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let waker = Waker::new()?;
    std::thread::Builder::new().name("relay".into()).stack_size(64 * 1024).spawn(move || {
        let mut reader = FrameReader::new(reading);
        while let Ok(Some(Ok(frame))) = reader.next_frame() {
            if let Some(outbox) = &outbox {
                // A caller that does not read holds up the keeper, and so the job behind it.
                while !outbox.has_room(&waker) {
                    wait_for(&mut [PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN)], None);
                    waker.clear();
                }
                outbox.send_raw(&frame.header, &frame.payload);
            }
        }
        at_the_end();
    })?;
    Ok(())
}

/// Does something on a thread of its own whenever this process is asked to end.
pub fn on_signal(act: impl Fn() + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).stack_size(64 * 1024).spawn(move || {
        for _ in signals.forever() {
            act();
        }
    })?;
    Ok(())
}

/// None in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread only, so the child finds every lock free and may go on as usual.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// The exit code of a child; failure if a signal ended it.
fn wait_for_child(pid: Pid) -> io::Result<u8> {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(ended) => {
                let code = ended.and_then(|(_, status)| status.exit_status());
                let code = code.and_then(|code| u8::try_from(code).ok());
                return Ok(code.unwrap_or(1));
            }
        }
    }
}

/// Makes this process fit to be the first of a lineage.
pub fn prepare() -> io::Result<()> {
    close_inherited_on_exec();
    // Caught signals are reset when a job is executed, ignored ones are not: a job must not start
    // with the deaf ears of whoever started us.
    for signal in 1..32 {
        // SAFETY: plain C structures; the dispositions of this process are ours to set.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            if known && action.sa_sigaction == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    // Writing to a closed pipe is an error here, not the end.
    signal_hook::flag::register(libc::SIGPIPE, Arc::default())?;
    #[cfg(target_os = "linux")]
    {
        // Secrets of one job pass through our memory; another job of the same user may not look.
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    Ok(())
}

/// Descriptors that the caller let us inherit are none of a job's business.
fn close_inherited_on_exec() {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_RANGE_CLOEXEC: libc::c_int = 4;
        // SAFETY: sets a flag on descriptors and closes none.
        if unsafe { libc::close_range(3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) } == 0 {
            return;
        }
    }
    for raw in 3..1024 {
        // SAFETY: a number that is no open descriptor is answered with an error and nothing else.
        unsafe {
            let flags = libc::fcntl(raw, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(raw, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
}

/// Takes stdin and stdout for a connection and leaves nothing in their place.
pub fn take_stdio() -> io::Result<Connection> {
    let reading = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let writing = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing.as_fd())?;
    rustix::stdio::dup2_stdout(nothing.as_fd())?;
    Ok(Connection { reading, writing })
}
