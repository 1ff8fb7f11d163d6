//! Our ends of the streams of a job, and moving data through them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::channel::Channel;
use super::input::{Feed, Piece};
use super::look::Seen;
use crate::autopsy::LAST_BYTES;
use crate::capture::Captured;
use crate::error::Error;
use crate::launch::Stdio;
use crate::request::{Dialogue, Exec, InputStream, Look};
use crate::streams::{Chunks, Output, READ_SIZE, Stream, null_input};

/// Our ends.
pub struct Ends {
    stdin: Option<Feed>,
    stdout: Output,
    stderr: Output,
    channel: Option<Channel>,
    /// Stdout and stderr are sent while the job runs.
    stream: bool,
    buffer: Vec<u8>,
}

/// The job's ends, which are closed here once it has started.
pub struct ChildEnds {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    channel: Option<OwnedFd>,
}

/// Where each stream is among the polled descriptors.
pub struct Places {
    stdin: Option<usize>,
    stdout: Option<usize>,
    stderr: Option<usize>,
    channel: Option<usize>,
    channel_feed: Option<usize>,
}

/// What can be done with each stream.
pub struct Ready {
    stdin: PollFlags,
    stdout: PollFlags,
    stderr: PollFlags,
    channel: PollFlags,
    channel_feed: PollFlags,
}

/// The kept output of both streams, and why a file of one is incomplete.
pub struct Outputs {
    /// Of stdout.
    pub stdout: Captured,
    /// Of stderr.
    pub stderr: Captured,
    /// The first reason.
    pub file_error: Option<Error>,
}

impl ChildEnds {
    /// The descriptors for a new process.
    pub fn stdio<'a>(&'a self, dialogue: &'a Dialogue) -> Stdio<'a> {
        Stdio {
            stdin: self.stdin.as_fd(),
            stdout: self.stdout.as_fd(),
            stderr: self.stderr.as_fd(),
            channel: self.channel.as_ref().map(AsFd::as_fd).zip(dialogue.channel.as_ref()),
        }
    }
}

impl Places {
    /// Reads the result of a poll.
    pub fn ready(&self, fds: &[PollFd<'_>]) -> Ready {
        let at = |place: Option<usize>| place.map_or(PollFlags::empty(), |at| fds[at].revents());
        Ready {
            stdin: at(self.stdin),
            stdout: at(self.stdout),
            stderr: at(self.stderr),
            channel: at(self.channel),
            channel_feed: at(self.channel_feed),
        }
    }
}

impl Ends {
    /// Opens both ends of every stream of `exec`.
    pub fn open(exec: &Exec, input: Vec<u8>) -> Result<(Self, ChildEnds), Error> {
        let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdin, child_stdin) = if input.is_empty() && !exec.dialogue.stdin {
            (None, null_input()?)
        } else {
            let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
            // Only our end: a program expects its stdin to block.
            rustix::io::ioctl_fionbio(&writing, true)?;
            let mut feed = Feed::new(writing);
            if !input.is_empty() {
                feed.push(Piece::first(input, !exec.dialogue.stdin));
            }
            (Some(feed), reading)
        };
        for fd in [&stdout, &stderr] {
            // The job could read its own output back between our poll and our read.
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        let (channel, child_channel) =
            exec.dialogue.channel.as_ref().map(|_| Channel::open()).transpose()?.unzip();
        let ours = Self {
            stdin,
            stdout: Output::new(stdout, exec, exec.stdout_file.as_ref())?,
            stderr: Output::new(stderr, exec, exec.stderr_file.as_ref())?,
            channel,
            stream: exec.stream,
            buffer: Vec::with_capacity(READ_SIZE),
        };
        let theirs = ChildEnds {
            stdin: child_stdin,
            stdout: child_stdout,
            stderr: child_stderr,
            channel: child_channel,
        };
        Ok((ours, theirs))
    }

    /// Adds the descriptors that have to be polled. Output waits unless `may_read`.
    pub fn poll<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, may_read: bool) -> Places {
        let mut add = |fd: Option<&'a OwnedFd>, flags| {
            fds.push(PollFd::new(fd?, flags));
            Some(fds.len() - 1)
        };
        let reading = |fd: &'a Option<OwnedFd>| fd.as_ref().filter(|_| may_read);
        let writing = |feed: &'a Feed| feed.is_waiting().then_some(&feed.fd);
        let channel = self.channel.as_ref();
        Places {
            stdout: add(reading(&self.stdout.fd), PollFlags::IN),
            stderr: add(reading(&self.stderr.fd), PollFlags::IN),
            stdin: add(self.stdin.as_ref().and_then(writing), PollFlags::OUT),
            channel: add(channel.and_then(|own| reading(&own.fd)), PollFlags::IN),
            channel_feed: add(
                channel.and_then(|own| own.feed.as_ref()).and_then(writing),
                PollFlags::OUT,
            ),
        }
    }

    /// Reads and writes once where something is ready.
    pub fn move_data(&mut self, ready: &Ready, chunks: Option<&dyn Chunks>) {
        self.for_each_output(chunks, |output, stream, buffer, chunks| {
            let ready = if stream == Stream::Stdout { ready.stdout } else { ready.stderr };
            output.pump(ready, stream, buffer, chunks);
        });
        if !ready.stdin.is_empty() {
            drop(self.stdin.take_if(Feed::write_more));
        }
        if let Some(channel) = &mut self.channel {
            if !ready.channel.is_empty() {
                channel.read_once(&mut self.buffer, chunks);
            }
            if !ready.channel_feed.is_empty() {
                channel.write_more();
            }
        }
    }

    /// Takes input for a stream. A closed stream takes none: the piece is dropped.
    pub fn take(&mut self, stream: InputStream, piece: Piece) {
        let feed = match stream {
            InputStream::Stdin => self.stdin.as_mut(),
            InputStream::Channel => self.channel.as_mut().and_then(|own| own.feed.as_mut()),
        };
        if let Some(feed) = feed {
            feed.push(piece);
        }
    }

    /// Reads what was written before the end, even if another process keeps the pipes open.
    pub fn drain(&mut self, chunks: Option<&dyn Chunks>) {
        self.for_each_output(chunks, Output::drain);
        if let Some(channel) = &mut self.channel {
            channel.drain(&mut self.buffer, chunks);
        }
    }

    /// The end of what both outputs have so far.
    pub fn last_output(&self) -> [Vec<u8>; 2] {
        [&self.stdout, &self.stderr].map(|output| output.last(LAST_BYTES))
    }

    /// What both outputs have so far, as far as the request asks for it.
    pub fn look(&self, look: &Look) -> [Seen; 2] {
        [(&self.stdout, look.stdout_from), (&self.stderr, look.stderr_from)]
            .map(|(output, from)| output.look(from, look.limit))
    }

    /// The kept output.
    pub fn finish(self) -> Outputs {
        let (stdout, stdout_error) = self.stdout.finish();
        let (stderr, stderr_error) = self.stderr.finish();
        Outputs { stdout, stderr, file_error: stdout_error.or(stderr_error) }
    }

    /// Calls `act` for both outputs. The stream whose last line is incomplete comes first, so that
    /// the other stream does not interrupt the line.
    fn for_each_output(
        &mut self,
        chunks: Option<&dyn Chunks>,
        mut act: impl FnMut(&mut Output, Stream, &mut Vec<u8>, Option<&dyn Chunks>),
    ) {
        let stderr_first = self.stderr.is_inside_line();
        let mut both = [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)];
        if stderr_first {
            both.reverse();
        }
        for (output, stream) in both {
            act(output, stream, &mut self.buffer, chunks.filter(|_| self.stream));
        }
    }
}
