//! One connection: frames in, jobs on threads, frames out.
//!
//! Every thread does the same: it takes its turn to read a frame, lets the next thread read, and
//! does what the frame asks for. A job is therefore plain code that runs from top to bottom, and a
//! request goes from the wire to the new process without changing threads. A thread with the only
//! job even keeps its turn to read until there is something, so that one call after the other
//! wakes no second thread. The main thread only waits for [`Event`]s.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use crate::detach::spawn_detached;
use crate::frame::{Frame, FrameReader};
use crate::job::{self, Control, Lookout, Surroundings};
use crate::launch::Launcher;
use crate::outbox::{Outbox, OutboxStream};
use crate::platform::Platform;
use crate::process;
use crate::report::{ExecReport, Finished};
use crate::request::{self, Background, Exec, Invalid, Operation};
use crate::streams::Chunks;
use crate::tree::Supervision;
#[cfg(target_os = "linux")]
use crate::tree::linux::SweepRequest;
use crate::wake::Waker;

/// Threads that wait for a frame beyond these end; fewer where descriptors are scarce, of which each
/// thread keeps two.
const MAX_IDLE: usize = 32;
const DESCRIPTORS_TO_AN_IDLE_THREAD: u64 = 16;
const STACK_SIZE: usize = 128 * 1024;

/// What the main thread is told.
pub enum Event {
    /// End the orphans; see `tree::linux`.
    #[cfg(target_os = "linux")]
    Sweep(SweepRequest),
    /// The connection is closed, or a signal asks for the end.
    Closed,
    /// The last job has ended after the connection was closed.
    Idle,
}

/// Serves one connection.
pub struct Server {
    reader: Mutex<FrameReader<OwnedFd>>,
    outbox: Arc<Outbox>,
    launcher: Launcher,
    supervision: Supervision,
    keeper: Option<Arc<Outbox>>,
    jobs: Mutex<Jobs>,
    guarded: Mutex<HashSet<i32>>,
    waiting: AtomicUsize,
    max_idle: usize,
    events: Sender<Event>,
}

#[derive(Default)]
struct Jobs {
    running: HashMap<u64, Arc<Control>>,
    closing: bool,
}

#[derive(Serialize)]
struct Answer<'a, T> {
    id: u64,
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Serialize)]
struct ExecAnswer<'a> {
    #[serde(flatten)]
    report: &'a ExecReport,
    stdout_bytes: usize,
    stderr_bytes: usize,
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Found {
    found: bool,
}

fn max_idle() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let affordable = limit.map_or(u64::MAX, |limit| limit / DESCRIPTORS_TO_AN_IDLE_THREAD);
    usize::try_from(affordable).unwrap_or(MAX_IDLE).clamp(1, MAX_IDLE)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked has answered with an error; what it left behind is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// `keeper` takes what may outlive this process; without it, this process does that itself.
    pub fn new(
        reading: OwnedFd,
        outbox: Arc<Outbox>,
        launcher: Launcher,
        supervision: Supervision,
        keeper: Option<Arc<Outbox>>,
        events: Sender<Event>,
    ) -> Arc<Self> {
        Arc::new(Self {
            reader: Mutex::new(FrameReader::new(reading)),
            outbox,
            launcher,
            supervision,
            keeper,
            jobs: Mutex::default(),
            guarded: Mutex::default(),
            waiting: AtomicUsize::new(0),
            max_idle: max_idle(),
            events,
        })
    }

    /// Serves until the connection is closed and every job has ended. Blocks the calling thread,
    /// which has to be the main one.
    pub fn run(self: &Arc<Self>, events: &Receiver<Event>) -> io::Result<()> {
        {
            // One to read while the other has a job; more are added before they are needed.
            let _nobody_reads_yet = lock(&self.reader);
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
            let jobs = lock(&self.jobs);
            if jobs.closing && jobs.running.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Ends every job, and with the last one [`Self::run`]. Not for the main thread, which has
    /// descriptors of its own and so cannot wake the others.
    pub fn close(&self) {
        let mut jobs = lock(&self.jobs);
        jobs.closing = true;
        let _ = self.events.send(Event::Closed);
        for control in jobs.running.values() {
            control.kill();
        }
        for group in lock(&self.guarded).drain() {
            if let Some(group) = Pid::from_raw(group).filter(|group| !group.is_init()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
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
        loop {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut reader = lock(&self.reader);
            let frame = reader.next_frame();
            let turn = Turn { reader: Some(reader) };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            match frame {
                Ok(Some(Ok(frame))) => self.handle(frame, turn, waker),
                Ok(Some(Err(invalid))) => self.refuse(0, &invalid),
                Ok(None) | Err(_) => return self.close(),
            }
            if self.waiting.load(Ordering::SeqCst) >= self.max_idle {
                return;
            }
        }
    }

    /// Before this thread turns to something that takes time, another has to be ready to read: a
    /// cancel, or the end of the connection, must not go unseen. False if there can be none.
    fn has_another_reader(self: &Arc<Self>) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 || self.add_thread().is_ok()
    }

    fn handle(self: &Arc<Self>, frame: Frame, mut turn: Turn<'_>, waker: &Waker) {
        let (id, operation) = request::parse(&frame.header);
        let operation = match operation {
            Ok(operation) => operation,
            Err(invalid) => return self.refuse(id, &invalid),
        };
        if let Some(keeper) = self.keeper.as_ref().filter(|_| self.is_for_keeper(&operation)) {
            return match operation {
                // What a worker tells its keeper is not for a caller to say.
                Operation::Guard(_) | Operation::Unguard(_) => {
                    self.refuse(id, &Invalid::unknown_operation());
                }
                _ => keeper.send_raw(&frame.header, &frame.payload),
            };
        }
        match operation {
            Operation::Exec(exec) => self.exec(id, *exec, frame.payload, turn, waker),
            Operation::Spawn(spawn) => self.answer(id, &spawn_detached(&self.launcher, &spawn)),
            Operation::Kill(kill) => {
                if !self.has_another_reader() {
                    return self.refuse(id, &Invalid::busy());
                }
                turn.hand_over();
                self.answer(id, &process::kill(self.launcher.platform, &kill));
            }
            Operation::Status(status) => match process::status(self.launcher.platform, &status) {
                Ok(report) => self.answer(id, &report),
                Err(message) => self.refuse(id, &Invalid { kind: "unavailable", message }),
            },
            Operation::Cancel(target) => self.control(id, target, Control::cancel),
            Operation::Hold(target, held) => self.control(id, target, |job| job.hold(held)),
            Operation::Guard(group) => drop(lock(&self.guarded).insert(group)),
            Operation::Unguard(group) => drop(lock(&self.guarded).remove(&group)),
        }
    }

    /// What outlives this process is started by one that adopts nothing, and without pidfds only
    /// the parent of a process can wait for its end.
    fn is_for_keeper(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Exec(exec) => exec.background == Background::Keep,
            Operation::Spawn(_) | Operation::Guard(_) | Operation::Unguard(_) => true,
            Operation::Cancel(target) | Operation::Hold(target, _) => {
                !lock(&self.jobs).running.contains_key(target)
            }
            Operation::Kill(_) | Operation::Status(_) => {
                self.launcher.platform == Platform::Portable
            }
        }
    }

    fn exec(
        self: &Arc<Self>,
        id: u64,
        mut exec: Exec,
        payload: Vec<u8>,
        mut turn: Turn<'_>,
        waker: &Waker,
    ) {
        let input = match exec.stdin.take() {
            None => payload,
            Some(text) if payload.is_empty() => text.into_bytes(),
            Some(_) => {
                let both = "stdin is given twice, in the header and as payload; give one";
                return self.refuse(id, &Invalid { kind: "invalid_request", message: both.into() });
            }
        };
        if !self.has_another_reader() {
            return self.refuse(id, &Invalid::busy());
        }
        let control = Arc::new(Control::new(waker.clone()));
        match self.admit(id, &control) {
            Ok(Some(1)) if !turn.has_more() => {}
            Ok(Some(_)) => turn.hand_over(),
            // The caller, if there is one, learns of our end from the connection.
            Ok(None) => return,
            Err(invalid) => return self.refuse(id, &invalid),
        }
        let stream = exec.stream.then_some(OutboxStream { id, outbox: &self.outbox });
        let around = Surroundings {
            launcher: &self.launcher,
            supervision: &self.supervision,
            control: &control,
            chunks: stream.as_ref().map(|stream| stream as &dyn Chunks),
        };
        let finished = catch_unwind(AssertUnwindSafe(|| job::run(exec, input, &around, &mut turn)));
        if self.dismiss(id) {
            // Ended because we end. The caller, if there is one, learns that from the connection.
            return;
        }
        match finished {
            Ok(Finished { report, stdout, stderr }) => {
                let length = |parts: &Vec<Vec<u8>>| parts.iter().map(Vec::len).sum();
                let body = ExecAnswer {
                    report: &report,
                    stdout_bytes: length(&stdout),
                    stderr_bytes: length(&stderr),
                };
                let parts = stdout.into_iter().chain(stderr).collect();
                self.outbox.send_owned(&Answer { id, kind: "result", body: &body }, parts);
            }
            Err(_) => self.refuse(
                id,
                &Invalid {
                    kind: "internal",
                    message: "a defect of lilux-proc; please report it".into(),
                },
            ),
        }
    }

    fn control(&self, id: u64, target: u64, act: impl Fn(&Control)) {
        let control = lock(&self.jobs).running.get(&target).cloned();
        if let Some(control) = &control {
            act(control);
        }
        self.answer(id, &Found { found: control.is_some() });
    }

    /// Gives the number of jobs that now run, or none if no more are taken.
    fn admit(&self, id: u64, control: &Arc<Control>) -> Result<Option<usize>, Invalid> {
        let mut jobs = lock(&self.jobs);
        if jobs.closing {
            return Ok(None);
        }
        match jobs.running.entry(id) {
            Entry::Vacant(free) => {
                free.insert(Arc::clone(control));
                Ok(Some(jobs.running.len()))
            }
            Entry::Occupied(_) => Err(Invalid {
                kind: "invalid_request",
                message: format!(
                    "id {id} is in use by a job that still runs; give each request its own"
                ),
            }),
        }
    }

    /// Says whether the server is closing.
    fn dismiss(&self, id: u64) -> bool {
        let mut jobs = lock(&self.jobs);
        jobs.running.remove(&id);
        if jobs.closing && jobs.running.is_empty() {
            let _ = self.events.send(Event::Idle);
        }
        jobs.closing
    }

    fn answer(&self, id: u64, body: &impl Serialize) {
        self.outbox.send(&Answer { id, kind: "result", body }, &[]);
    }

    fn refuse(&self, id: u64, invalid: &Invalid) {
        let body = Refusal { error: invalid.kind, message: &invalid.message };
        self.outbox.send(&Answer { id, kind: "error", body: &body }, &[]);
    }
}

/// The turn to read, held by one thread at a time.
struct Turn<'a> {
    reader: Option<MutexGuard<'a, FrameReader<OwnedFd>>>,
}

impl Turn<'_> {
    fn has_more(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.has_more())
    }
}

impl Lookout for Turn<'_> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(|reader| reader.fd())
    }

    fn hand_over(&mut self) {
        self.reader = None;
    }
}
