//! The frames that a server sends.

use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, ErrorKind};
use crate::job::{Looked, Seen};
use crate::outbox::Outbox;
use crate::report::{ExecReport, Finished};
use crate::streams::{Chunks, Stream};
use crate::wake::Waker;

/// Sends answers to requests.
#[derive(Clone)]
pub struct Answers(pub Arc<Outbox>);

/// Sends the output of one job while it runs.
pub struct ChunkSender<'a> {
    id: u64,
    outbox: &'a Outbox,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum AnswerKind {
    Result,
    Error,
}

#[derive(Serialize)]
struct Answer<'a, T> {
    id: u64,
    kind: AnswerKind,
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
struct LookAnswer {
    found: bool,
    pid: i32,
    stdout: Part,
    stderr: Part,
}

/// A part of one stream; its bytes are in the payload.
#[derive(Serialize)]
struct Part {
    start: u64,
    bytes: usize,
    total: u64,
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: ErrorKind,
    message: &'a Error,
}

#[derive(Serialize)]
struct Chunk {
    id: u64,
    kind: Stream,
}

impl Answers {
    /// Sends the result of any operation but `exec`.
    pub fn result(&self, id: u64, body: &impl Serialize) {
        self.0.send(&Answer { id, kind: AnswerKind::Result, body }, &[]);
    }

    /// Sends the result of an `exec` with its output.
    pub fn exec_result(&self, id: u64, finished: Finished) {
        let Finished { report, stdout, stderr } = finished;
        let length = |parts: &Vec<Vec<u8>>| parts.iter().map(Vec::len).sum();
        let body = ExecAnswer {
            report: &report,
            stdout_bytes: length(&stdout),
            stderr_bytes: length(&stderr),
        };
        let output = stdout.into_iter().chain(stderr).collect();
        self.0.send_parts(&Answer { id, kind: AnswerKind::Result, body: &body }, output);
    }

    /// Sends what a look found.
    pub fn looked(&self, id: u64, looked: Looked) {
        let part =
            |seen: &Seen| Part { start: seen.start, bytes: seen.bytes.len(), total: seen.total };
        let body = LookAnswer {
            found: true,
            pid: looked.pid,
            stdout: part(&looked.stdout),
            stderr: part(&looked.stderr),
        };
        let output = vec![looked.stdout.bytes, looked.stderr.bytes];
        self.0.send_parts(&Answer { id, kind: AnswerKind::Result, body: &body }, output);
    }

    /// Refuses a request.
    pub fn refuse(&self, id: u64, error: &Error) {
        let body = Refusal { error: error.kind(), message: error };
        self.0.send(&Answer { id, kind: AnswerKind::Error, body: &body }, &[]);
    }

    /// Streams the output of the job with this id.
    pub fn chunks(&self, id: u64) -> ChunkSender<'_> {
        ChunkSender { id, outbox: &self.0 }
    }
}

impl Chunks for ChunkSender<'_> {
    fn ready(&self, waker: &Waker) -> bool {
        self.outbox.has_room(waker)
    }

    fn send(&self, stream: Stream, bytes: &[u8]) {
        self.outbox.send(&Chunk { id: self.id, kind: stream }, bytes);
    }
}
