//! One `exec`: a thread that starts the process, moves its input and output, and sees to its end.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::clock::wait_for;
use crate::launch::{Child, Ended, Launcher, Recipe, Stdio};
use crate::report::{ExecReport, Finished, KnownBy, TreeReport, Truncated};
use crate::request::{Exec, seconds};
use crate::streams::{Chunks, Feed, Output, READ_SIZE, Stream, null_input};
use crate::tree::Supervision;
use crate::wake::Waker;

/// How long the job's own process may take to go after SIGKILL. One that is stuck in the kernel
/// takes longer, and one that became another user's does not listen.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// Something else that the thread of a job looks after while the job runs.
pub trait Lookout {
    /// Readable when there is something to do; `None` if there is nothing to look after.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// Leaves it to another thread.
    fn hand_over(&mut self);
}

/// For a thread that has nothing but its job.
pub struct NoLookout;

impl Lookout for NoLookout {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn hand_over(&mut self) {}
}

/// How others end a running job.
pub struct Control {
    wish: AtomicU8,
    held: AtomicBool,
    waker: Waker,
}

const RUN: u8 = 0;
const CANCEL: u8 = 1;
const KILL: u8 = 2;

impl Control {
    /// For a job on the thread that sleeps on `waker`.
    pub fn new(waker: Waker) -> Self {
        waker.clear();
        Self { wish: AtomicU8::new(RUN), held: AtomicBool::new(false), waker }
    }

    /// SIGTERM, the request's grace, SIGKILL.
    pub fn cancel(&self) {
        self.ask(CANCEL);
    }

    /// SIGKILL at once.
    pub fn kill(&self) {
        self.ask(KILL);
    }

    /// Stops or goes on reading the output of a job that streams it: the pipes fill up, and the
    /// job waits.
    pub fn hold(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
        self.waker.wake();
    }

    fn ask(&self, wish: u8) {
        self.wish.fetch_max(wish, Ordering::SeqCst);
        self.waker.wake();
    }
}

/// What a job needs from its surroundings.
pub struct Surroundings<'a> {
    /// Starts processes.
    pub launcher: &'a Launcher,
    /// Keeps trees together.
    pub supervision: &'a Supervision,
    /// Ends this job early.
    pub control: &'a Control,
    /// Where output goes as it comes, if the request asks for that.
    pub chunks: Option<&'a dyn Chunks>,
}

/// Runs a job to its end and to the end of all that it started.
pub fn run(
    exec: Exec,
    input: Vec<u8>,
    around: &Surroundings<'_>,
    lookout: &mut dyn Lookout,
) -> Finished {
    let began = Instant::now();
    if exec.command.as_bytes().is_empty() {
        return not_started("No command specified".into(), began);
    }
    let job = match Job::start(exec, input, around) {
        Ok(job) => job,
        Err(error) => return not_started(format!("Failed to spawn: {error}"), began),
    };
    job.run_to_end(began, lookout)
}

fn not_started(stderr: String, began: Instant) -> Finished {
    Finished {
        report: ExecReport {
            success: false,
            return_code: -1,
            duration_ms: milliseconds(began.elapsed()),
            pid: None,
            timed_out: false,
            cancelled: false,
            signal: None,
            truncated: Truncated::default(),
            tree: TreeReport::empty(KnownBy::NotStarted),
            file_error: None,
        },
        stdout: Vec::new(),
        stderr: vec![stderr.into_bytes()],
    }
}

fn milliseconds(duration: Duration) -> f64 {
    // Microseconds are all that the clock is good for.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Why a job is being ended, and how far that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// SIGTERM was sent; SIGKILL follows at this moment.
    Ending(Reason, Instant),
    /// SIGKILL was sent; a process that is still there at this moment is not ours to end.
    Killed(Reason, Instant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Timeout,
    Cancel,
}

struct Job<'a> {
    around: &'a Surroundings<'a>,
    exec: Exec,
    child: Child,
    stdin: Option<Feed>,
    stdout: Output,
    stderr: Output,
    buffer: Vec<u8>,
    phase: Phase,
    deadline: Option<Instant>,
    ended_below: usize,
    all_ended_below: bool,
}

impl<'a> Job<'a> {
    fn start(exec: Exec, input: Vec<u8>, around: &'a Surroundings<'a>) -> Result<Self, String> {
        let recipe = Recipe::new(
            &exec.command,
            &exec.args,
            exec.cwd.as_ref(),
            around.launcher.environment(&exec.env, exec.env_mode),
        );
        let words = |error: Errno| crate::launch::os_message(&error.into());
        let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC).map_err(words)?;
        let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC).map_err(words)?;
        let (stdin, child_stdin) = if input.is_empty() {
            (None, null_input().map_err(words)?)
        } else {
            let (reading, writing) = pipe_with(PipeFlags::CLOEXEC).map_err(words)?;
            // Only our end: a program does not expect its stdin to be non-blocking.
            rustix::io::ioctl_fionbio(&writing, true).map_err(words)?;
            (Some(Feed::new(writing, input)), reading)
        };
        for fd in [&stdout, &stderr] {
            // The job may take back what it wrote between our poll and our read.
            rustix::io::ioctl_fionbio(fd, true).map_err(words)?;
        }
        let stdout = Output::new(stdout, &exec, exec.stdout_file.as_ref())?;
        let stderr = Output::new(stderr, &exec, exec.stderr_file.as_ref())?;
        let descriptors = Stdio {
            stdin: child_stdin.as_fd(),
            stdout: child_stdout.as_fd(),
            stderr: child_stderr.as_fd(),
        };
        let child = around.launcher.launch(&recipe, descriptors, around.supervision.bond())?;
        around.supervision.started(&child);
        let deadline = exec.timeout.map(|timeout| Instant::now() + seconds(timeout));
        Ok(Self {
            around,
            exec,
            child,
            stdin,
            stdout,
            stderr,
            buffer: Vec::with_capacity(READ_SIZE),
            phase: Phase::Running,
            deadline,
            ended_below: 0,
            all_ended_below: true,
        })
    }

    fn run_to_end(mut self, began: Instant, lookout: &mut dyn Lookout) -> Finished {
        let mut given_up = false;
        while !given_up && !self.wait_and_move(lookout) {
            given_up = self.advance();
        }
        let duration_ms = milliseconds(began.elapsed());
        self.read_what_is_there();
        let pid = self.child.pid.as_raw_nonzero().get();
        let (tree, ended) = if given_up {
            let known_by = self.around.supervision.known_by();
            self.child.reap_in_background(|| ());
            (TreeReport { known_by, ended: self.ended_below, survivors: vec![pid] }, None)
        } else {
            let killed = self.phase != Phase::Running;
            let mut tree =
                self.around.supervision.settle(&self.child, self.exec.background, killed);
            tree.ended += self.ended_below;
            if !self.all_ended_below {
                tree.known_by = KnownBy::Unknown;
            }
            (tree, self.child.reap().ok())
        };
        let (stdout, stdout_error) = self.stdout.finish();
        let (mut stderr, stderr_error) = self.stderr.finish();
        let (return_code, signal) = match ended {
            Some(Ended::Code(code)) => (code, None),
            Some(Ended::Signal(signal)) => (128 + signal, Some(signal)),
            None => (-1, None),
        };
        let reason = match self.phase {
            Phase::Running => None,
            Phase::Ending(reason, _) | Phase::Killed(reason, _) => Some(reason),
        };
        if let Some(reason) = reason {
            let line = match reason {
                Reason::Timeout => format!(
                    "Command timed out after {} seconds",
                    self.exec.timeout.unwrap_or_default()
                ),
                Reason::Cancel => "Command cancelled".into(),
            };
            let unfinished = stderr.parts.last().is_some_and(|part| !part.ends_with(b"\n"));
            let line = if unfinished { format!("\n{line}") } else { line };
            stderr.parts.push(line.into_bytes());
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
                file_error: stdout_error.or(stderr_error),
            },
            stdout: stdout.parts,
            stderr: stderr.parts,
        }
    }

    /// Sleeps until something happens, moves data, and says whether the process has ended.
    fn wait_and_move(&mut self, lookout: &mut dyn Lookout) -> bool {
        let waker = &self.around.control.waker;
        let held = || self.around.control.held.load(Ordering::SeqCst);
        let may_read = self.around.chunks.is_none_or(|chunks| !held() && chunks.ready(waker));
        let mut fds = Vec::with_capacity(6);
        fds.push(PollFd::from_borrowed_fd(self.child.exit_fd(), PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN));
        let outputs = [&self.stdout, &self.stderr].map(|output| {
            let fd = output.fd.as_ref().filter(|_| may_read)?;
            fds.push(PollFd::new(fd, PollFlags::IN));
            Some(fds.len() - 1)
        });
        let stdin = self.stdin.as_ref().map(|feed| {
            fds.push(PollFd::new(&feed.fd, PollFlags::OUT));
            fds.len() - 1
        });
        let other = lookout.fd().map(|fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            fds.len() - 1
        });
        wait_for(&mut fds, self.next_moment());
        let happened = |at: Option<usize>| at.map_or(PollFlags::empty(), |at| fds[at].revents());
        let exited = !fds[0].revents().is_empty();
        let woken = !fds[1].revents().is_empty();
        let [stdout, stderr] = outputs.map(happened);
        let stdin = happened(stdin);
        if !happened(other).is_empty() {
            lookout.hand_over();
        }
        if woken {
            waker.clear();
        }
        // A line that was begun is ended before the other stream has its say.
        let stderr_first = self.stderr.is_amid_a_line();
        let mut both = [
            (&mut self.stdout, Stream::Stdout, stdout),
            (&mut self.stderr, Stream::Stderr, stderr),
        ];
        if stderr_first {
            both.reverse();
        }
        for (output, stream, happened) in both {
            output.pump(happened, stream, &mut self.buffer, self.around.chunks);
        }
        if !stdin.is_empty() && self.stdin.as_mut().is_some_and(Feed::write_more) {
            self.stdin = None;
        }
        exited
    }

    fn next_moment(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => self.deadline,
            Phase::Ending(_, kill_at) => Some(kill_at),
            Phase::Killed(_, give_up_at) => Some(give_up_at),
        }
    }

    /// Looks whether the job has to end, or has been given long enough to. True if there is nothing
    /// more that could be done.
    fn advance(&mut self) -> bool {
        let now = Instant::now();
        let wish = self.around.control.wish.load(Ordering::SeqCst);
        match self.phase {
            Phase::Running | Phase::Ending(..) if wish == KILL => self.kill(Reason::Cancel),
            Phase::Running if wish == CANCEL => self.terminate(Reason::Cancel, now),
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.terminate(Reason::Timeout, now);
            }
            Phase::Ending(reason, kill_at) if kill_at <= now => self.kill(reason),
            Phase::Killed(_, give_up_at) => return give_up_at <= now,
            _ => {}
        }
        false
    }

    fn terminate(&mut self, reason: Reason, now: Instant) {
        if !self.around.supervision.may_ask() {
            return self.kill(reason);
        }
        self.child.signal_group(Signal::TERM);
        // A stopped job would not notice.
        self.child.signal_group(Signal::CONT);
        self.phase = Phase::Ending(reason, now + seconds(self.exec.grace));
    }

    fn kill(&mut self, reason: Reason) {
        let (ended, all) = self.around.supervision.kill(&self.child);
        self.ended_below += ended;
        self.all_ended_below &= all;
        self.phase = Phase::Killed(reason, Instant::now() + STUCK_AFTER);
    }

    /// What was written before the end, even if some other process still holds the pipes.
    fn read_what_is_there(&mut self) {
        let stderr_first = self.stderr.is_amid_a_line();
        let mut both = [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)];
        if stderr_first {
            both.reverse();
        }
        for (output, stream) in both {
            output.drain(stream, &mut self.buffer, self.around.chunks);
        }
    }
}
