//! One `exec`: a thread starts the process, moves its input and output, and waits for its end.

mod channel;
mod control;
mod ends;
mod input;
mod limits;
mod look;
mod start;

pub use control::{Control, EndRequest};
pub use input::Piece;
pub use look::{Looked, Looking, Seen};

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use self::ends::{Ends, Outputs};
use self::limits::Confinement;
use self::start::not_started;
use crate::autopsy::{self, Autopsy, Mask};
use crate::clock::wait_for;
use crate::confine::Part;
use crate::error::Error;
use crate::launch::{Child, Ended, Launcher};
use crate::observe::Observer;
use crate::prepared::{PreparedCall, PreparedProcesses};
use crate::report::{ExecReport, Finished, KnownBy, TreeReport, Truncated};
use crate::request::{AutopsyWhen, Exec, seconds};
use crate::streams::Chunks;
use crate::tree::Supervision;

/// How long to wait for the job's own process after SIGKILL. A process that is stuck in the kernel
/// takes longer, and one that changed its user does not get the signal.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// A descriptor that the thread of a job watches in addition to the job.
pub trait Watch {
    /// Readable when there is something to do; `None` if there is nothing to watch.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// Lets another thread do it.
    fn hand_over(&mut self);
}

/// For a thread that only watches its job.
pub struct NoWatch;

impl Watch for NoWatch {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn hand_over(&mut self) {}
}

/// What a job uses.
pub struct Context<'a> {
    /// Starts processes.
    pub launcher: &'a Launcher,
    /// Tracks the process tree.
    pub supervision: &'a Supervision,
    /// Ends or pauses this job.
    pub control: &'a Control,
    /// Receives output and messages while the job runs, if the request asks for that.
    pub chunks: Option<&'a dyn Chunks>,
    /// The prepared processes of the connection, and the id of this request.
    pub prepared: Option<(&'a PreparedProcesses, u64)>,
}

/// Runs a job until its process and everything that it started have ended. Fails only if a prepared
/// process cannot be used, before anything has happened.
pub fn run(
    exec: Exec,
    input: Vec<u8>,
    context: &Context<'_>,
    watch: &mut dyn Watch,
) -> Result<Finished, Error> {
    let began = Instant::now();
    if let Err(error) = exec.program.check_command() {
        return Ok(not_started(&error, began));
    }
    match Job::start(exec, input, context, watch) {
        Ok(job) => Ok(job.run_to_end(began, watch)),
        Err(error @ Error::Prepared(_)) => Err(error),
        Err(error) => Ok(not_started(&Error::start(error), began)),
    }
}

/// Rounded to microseconds, since the clock is not more precise.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// How far the end of a job has progressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Terminating(Reason, Instant),
    /// SIGKILL was sent; a process that still exists at this time cannot be ended.
    Killed(Reason, Instant),
}

/// Why a job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Timeout,
    Cancel,
    Limit(Part),
}

struct Job<'a> {
    context: &'a Context<'a>,
    exec: Exec,
    child: Child,
    confinement: Option<Confinement>,
    /// Dropped when the process has been reaped.
    _call: Option<PreparedCall>,
    observer: Option<Observer>,
    ends: Ends,
    phase: Phase,
    deadline: Option<Instant>,
    descendants_ended: usize,
    descendants_complete: bool,
    autopsy: Option<Autopsy>,
}

impl Job<'_> {
    fn run_to_end(mut self, began: Instant, watch: &mut dyn Watch) -> Finished {
        let mut given_up = false;
        while !given_up && !self.wait_and_move(watch) {
            given_up = self.advance(watch);
        }
        let duration_ms = milliseconds(began.elapsed());
        self.ends.drain(self.context.chunks);
        let pid = self.child.raw_pid();
        let (tree, ended) = if given_up {
            let known_by = self.context.supervision.known_by();
            self.child.reap_in_background(|| ());
            (TreeReport { known_by, ended: self.descendants_ended, survivors: vec![pid] }, None)
        } else {
            let killed = self.phase != Phase::Running;
            let mut tree =
                self.context.supervision.settle(&self.child, self.exec.background, killed);
            tree.ended += self.descendants_ended;
            if !self.descendants_complete {
                tree.known_by = KnownBy::Unknown;
            }
            (tree, self.child.reap())
        };
        let Outputs { stdout, mut stderr, file_error } = self.ends.finish();
        let confinement = self.confinement.as_ref();
        let (return_code, signal) = match ended {
            Some(Ended::Code(code)) => (code, None),
            Some(Ended::Signal(signal)) => (128 + signal, Some(signal)),
            None => (-1, None),
        };
        let reason = match self.phase {
            Phase::Running => confinement.and_then(|own| own.ended_by(ended)).map(Reason::Limit),
            Phase::Terminating(reason, _) | Phase::Killed(reason, _) => Some(reason),
        };
        if let Some(reason) = reason {
            let line = match reason {
                Reason::Timeout => Error::TimedOut(self.exec.timeout.unwrap_or_default()),
                Reason::Cancel => Error::Cancelled,
                Reason::Limit(part) => confinement.map_or(Error::Internal, |own| own.message(part)),
            };
            let inside_line = stderr.parts.last().is_some_and(|part| !part.ends_with(b"\n"));
            let newline = if inside_line { "\n" } else { "" };
            stderr.parts.push(format!("{newline}{line}").into_bytes());
        }
        Finished {
            report: ExecReport {
                success: reason.is_none() && return_code == 0,
                return_code: if reason.is_some() { -1 } else { return_code },
                duration_ms,
                pid: Some(pid),
                timed_out: reason == Some(Reason::Timeout),
                cancelled: reason == Some(Reason::Cancel),
                signal,
                truncated: Truncated { stdout: stdout.omitted, stderr: stderr.omitted },
                tree,
                file_error,
                limit: match reason {
                    Some(Reason::Limit(part)) => Some(part),
                    _ => None,
                },
                confinement: self.confinement.map(Confinement::finish),
                autopsy: self.autopsy,
                observation: self.observer.map(Observer::finish),
            },
            stdout: stdout.parts,
            stderr: stderr.parts,
        }
    }

    /// Waits until something happens and moves data. Returns true if the process has ended.
    fn wait_and_move(&mut self, watch: &mut dyn Watch) -> bool {
        let control = self.context.control;
        let waker = control.waker();
        let may_read =
            self.context.chunks.is_none_or(|chunks| !control.is_paused() && chunks.ready(waker));
        let mut fds = Vec::with_capacity(8);
        fds.push(PollFd::from_borrowed_fd(self.child.exit_fd(), PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN));
        let places = self.ends.poll(&mut fds, may_read);
        let watched = watch.fd().map(|fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            fds.len() - 1
        });
        wait_for(&mut fds, self.next_deadline());
        let exited = !fds[0].revents().is_empty();
        let woken = !fds[1].revents().is_empty();
        let ready = places.ready(&fds);
        if watched.is_some_and(|at| !fds[at].revents().is_empty()) {
            watch.hand_over();
        }
        if woken {
            waker.clear();
            for (stream, piece) in control.take_input() {
                self.ends.take(stream, piece);
            }
            for looking in control.take_looks() {
                let [stdout, stderr] = self.ends.look(&looking.request);
                looking.found(Looked { pid: self.child.raw_pid(), stdout, stderr });
            }
        }
        self.ends.move_data(&ready, self.context.chunks);
        exited
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => {
                let check = self.confinement.as_ref().and_then(Confinement::next_check);
                self.deadline.into_iter().chain(check).min()
            }
            Phase::Terminating(_, kill_at) => Some(kill_at),
            Phase::Killed(_, give_up_at) => Some(give_up_at),
        }
    }

    /// Starts or continues to end the job if it has to end. Returns true if it cannot be ended.
    fn advance(&mut self, watch: &mut dyn Watch) -> bool {
        let now = Instant::now();
        let requested = self.context.control.end_request();
        match self.phase {
            Phase::Running | Phase::Terminating(..) if requested == Some(EndRequest::Kill) => {
                self.kill(Reason::Cancel, watch);
            }
            Phase::Running if requested.is_some() => self.terminate(Reason::Cancel, now, watch),
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.terminate(Reason::Timeout, now, watch);
            }
            Phase::Running => {
                let child = &self.child;
                let exceeded = self.confinement.as_mut().and_then(|own| own.exceeded(child));
                if let Some(part) = exceeded {
                    self.kill(Reason::Limit(part), watch);
                }
            }
            Phase::Terminating(reason, kill_at) if kill_at <= now => self.kill(reason, watch),
            Phase::Killed(_, give_up_at) => return give_up_at <= now,
            Phase::Terminating(..) => {}
        }
        false
    }

    fn terminate(&mut self, reason: Reason, now: Instant, watch: &mut dyn Watch) {
        // Looking at the processes may take as long as the request allows.
        watch.hand_over();
        self.examine(reason);
        if !self.context.supervision.may_terminate() {
            return self.kill(reason, watch);
        }
        self.child.signal_group(Signal::TERM);
        // A stopped job handles SIGTERM only after it is continued.
        self.child.signal_group(Signal::CONT);
        self.phase = Phase::Terminating(reason, now + seconds(self.exec.grace));
    }

    /// Finds out what the processes wait for, before a signal changes it.
    fn examine(&mut self, reason: Reason) {
        let wanted = match self.exec.autopsy {
            AutopsyWhen::Timeout => reason == Reason::Timeout,
            AutopsyWhen::Always => true,
            AutopsyWhen::Never => false,
        };
        if wanted {
            self.autopsy = Some(autopsy::examine(
                self.context.launcher.platform,
                self.child.raw_pid(),
                seconds(self.exec.autopsy_budget),
                Mask::new(&self.context.launcher.environment(&self.exec.program)),
                self.ends.last_output(),
            ));
        }
    }

    fn kill(&mut self, reason: Reason, watch: &mut dyn Watch) {
        // Processes that are stuck in the kernel are waited for.
        watch.hand_over();
        let killed = self.context.supervision.kill(&self.child);
        self.descendants_ended += killed.ended;
        self.descendants_complete &= killed.complete;
        self.phase = Phase::Killed(reason, Instant::now() + STUCK_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;
    use crate::request::Program;
    use crate::wake::Waker;

    /// Nothing ever arrives here.
    struct Quiet {
        handed_over: bool,
    }

    impl Watch for Quiet {
        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn hand_over(&mut self) {
            self.handed_over = true;
        }
    }

    fn is_handed_over_by(args: &[&str], timeout: f64) -> bool {
        let launcher = Launcher::new(Platform::Portable);
        let context = Context {
            launcher: &launcher,
            supervision: &Supervision::loose(Platform::Portable),
            control: &Control::new(Waker::new().unwrap()),
            chunks: None,
            prepared: None,
        };
        let args = args.iter().map(|&arg| arg.into()).collect();
        let program = Program { command: "sleep".into(), args, ..Program::default() };
        let exec = Exec { program, timeout: Some(timeout), ..Exec::default() };
        let mut watch = Quiet { handed_over: false };
        let finished = run(exec, Vec::new(), &context, &mut watch).unwrap();
        assert_eq!(finished.report.timed_out, watch.handed_over);
        watch.handed_over
    }

    #[test]
    fn a_job_that_has_to_be_ended_keeps_no_other_request_waiting() {
        assert!(is_handed_over_by(&["300"], 0.05));
        // A call that ends by itself wakes no other thread.
        assert!(!is_handed_over_by(&["0"], 300.0));
    }
}
