//! One connection: frames in, jobs on threads, frames out.
//!
//! Every thread does the same: it waits for its turn to read a frame, lets the next thread read, and
//! does what the frame asks for. A job is therefore plain sequential code, and a request is not
//! passed between threads before its process runs. A thread with the only job keeps its turn to read
//! until there is something, so that sequential calls wake no second thread. The main thread only
//! waits for [`Event`]s.

mod answers;
mod jobs;
mod operations;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};

use self::answers::Answers;
use self::jobs::RunningJobs;
use crate::frame::{FrameReader, MAX_REQUEST};
use crate::job::Watch;
use crate::launch::Launcher;
use crate::outbox::Outbox;
use crate::prepared::PreparedProcesses;
use crate::sync::lock;
use crate::tree::Supervision;
#[cfg(target_os = "linux")]
use crate::tree::linux::SweepRequest;
use crate::tree::portable::GuardedGroups;
use crate::wake::Waker;

/// At most this many threads wait for a frame; fewer if descriptors are scarce, because each thread
/// keeps two.
const MAX_IDLE: usize = 32;
const DESCRIPTORS_PER_IDLE_THREAD: u64 = 16;
const STACK_SIZE: usize = 128 * 1024;

/// A message to the main thread.
pub enum Event {
    /// End the orphans; see `tree::linux`.
    #[cfg(target_os = "linux")]
    Sweep(SweepRequest),
    /// The connection is closed, or a signal asked this process to end.
    Closed,
    /// The last job has ended after the connection was closed.
    Idle,
}

/// Serves one connection.
pub struct Server {
    reader: Mutex<FrameReader<OwnedFd>>,
    answers: Answers,
    launcher: Launcher,
    supervision: Supervision,
    /// Starts processes that may outlive this one. `None` if this process is the keeper.
    keeper: Option<Arc<Outbox>>,
    jobs: RunningJobs,
    prepared: PreparedProcesses,
    guarded: GuardedGroups,
    /// Threads that wait for their turn to read, or read.
    waiting: AtomicUsize,
    max_idle: usize,
    events: Sender<Event>,
}

/// The parts of a [`Server`].
pub struct ServerParts {
    /// Frames from the caller.
    pub reading: OwnedFd,
    /// Frames to the caller.
    pub outbox: Arc<Outbox>,
    /// Starts the jobs.
    pub launcher: Launcher,
    /// Tracks their process trees.
    pub supervision: Supervision,
    /// The connection to the keeper, unless this process is the keeper.
    pub keeper: Option<Arc<Outbox>>,
    /// Messages to the main thread.
    pub events: Sender<Event>,
}

impl Server {
    /// Creates the server. It reads nothing before [`Self::run`].
    pub fn new(parts: ServerParts) -> Arc<Self> {
        Arc::new(Self {
            reader: Mutex::new(FrameReader::new(parts.reading, MAX_REQUEST)),
            answers: Answers(parts.outbox),
            launcher: parts.launcher,
            supervision: parts.supervision,
            keeper: parts.keeper,
            jobs: RunningJobs::default(),
            prepared: PreparedProcesses::default(),
            guarded: GuardedGroups::default(),
            waiting: AtomicUsize::new(0),
            max_idle: max_idle(),
            events: parts.events,
        })
    }

    /// Serves until the connection is closed and every job has ended. Must be called by the main
    /// thread.
    pub fn run(self: &Arc<Self>, events: &Receiver<Event>) -> io::Result<()> {
        {
            // One thread reads while the other has a job. More are added before they are needed.
            let _no_reading_yet = lock(&self.reader);
            self.add_thread()?;
            self.add_thread()?;
            #[cfg(target_os = "linux")]
            self.supervision.prepare_main_thread();
        }
        for event in events {
            match event {
                #[cfg(target_os = "linux")]
                Event::Sweep(request) => self.supervision.sweep_for(&request),
                Event::Closed | Event::Idle => {}
            }
            if self.jobs.are_done() {
                break;
            }
        }
        Ok(())
    }

    /// Ends every job; [`Self::run`] returns after the last one. Must not be called by the main
    /// thread, which has its own descriptor table and so cannot wake the other threads.
    pub fn close(&self) {
        // First, because the process may end as soon as the last job has.
        self.guarded.kill_all();
        self.jobs.close();
        self.launcher.confiner.close();
        let _ = self.events.send(Event::Closed);
    }

    fn add_thread(self: &Arc<Self>) -> io::Result<()> {
        let waker = Waker::new()?;
        let server = Arc::clone(self);
        std::thread::Builder::new()
            .name("job".into())
            .stack_size(STACK_SIZE)
            .spawn(move || server.serve_frames(&waker))?;
        Ok(())
    }

    fn serve_frames(self: &Arc<Self>, waker: &Waker) {
        let mut kept = None;
        loop {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut reader = kept.take().unwrap_or_else(|| lock(&self.reader));
            let frame = reader.next_frame();
            let mut turn = ReadTurn { reader: Some(reader) };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            match frame {
                Ok(Some(Ok(frame))) => self.handle(frame, &mut turn, waker),
                Ok(Some(Err(error))) => self.answers.refuse(0, &error),
                Ok(None) | Err(_) => return self.close(),
            }
            if self.waiting.load(Ordering::SeqCst) >= self.max_idle {
                return;
            }
            // Giving it back would wake a thread that finds it taken again.
            kept = turn.reader;
        }
    }

    /// Makes sure that another thread can read, so that a cancel or the end of the connection is
    /// noticed while this thread is busy. Returns false if no thread can be started.
    fn has_another_reader(self: &Arc<Self>) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 || self.add_thread().is_ok()
    }
}

fn max_idle() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let affordable = limit.map_or(u64::MAX, |limit| limit / DESCRIPTORS_PER_IDLE_THREAD);
    usize::try_from(affordable).unwrap_or(MAX_IDLE).clamp(1, MAX_IDLE)
}

/// The turn to read, which one thread has at a time.
struct ReadTurn<'a> {
    reader: Option<MutexGuard<'a, FrameReader<OwnedFd>>>,
}

impl ReadTurn<'_> {
    fn has_more(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.has_more())
    }
}

impl Watch for ReadTurn<'_> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(|reader| reader.fd())
    }

    fn hand_over(&mut self) {
        self.reader = None;
    }
}
