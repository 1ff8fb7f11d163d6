//! What a running job has written so far, for somebody who looks at it.

use crate::request::Look;

/// A part of one output stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of bytes before `bytes` in the stream.
    pub start: u64,
    /// Bytes that follow each other in the stream.
    pub bytes: Vec<u8>,
    /// The size of the stream so far.
    pub total: u64,
}

/// What a look found.
#[derive(Debug)]
pub struct Looked {
    /// The job's process.
    pub pid: i32,
    /// Of stdout.
    pub stdout: Seen,
    /// Of stderr.
    pub stderr: Seen,
}

/// A look at a running job. It is answered once, with `None` if the job ended before.
pub struct Looking {
    /// What to look at.
    pub request: Look,
    answer: Option<Box<dyn FnOnce(Option<Looked>) + Send>>,
}

impl Looking {
    /// `answer` is called by the thread of the job.
    pub fn new(request: Look, answer: impl FnOnce(Option<Looked>) + Send + 'static) -> Self {
        Self { request, answer: Some(Box::new(answer)) }
    }

    /// Answers.
    pub fn found(mut self, looked: Looked) {
        if let Some(answer) = self.answer.take() {
            answer(Some(looked));
        }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer(None);
        }
    }
}
