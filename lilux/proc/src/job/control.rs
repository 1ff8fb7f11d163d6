//! Ending, pausing, feeding or looking at a job from another thread.

use std::sync::Mutex;

use super::input::Piece;
use super::look::Looking;
use crate::request::InputStream;
use crate::sync::lock;
use crate::wake::Waker;

/// How a job has to end. The later variant takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndRequest {
    /// SIGTERM, the grace of the request, then SIGKILL.
    Cancel,
    /// SIGKILL at once.
    Kill,
}

/// Controls a running job.
pub struct Control {
    state: Mutex<State>,
    waker: Waker,
}

#[derive(Default)]
struct State {
    end: Option<EndRequest>,
    paused: bool,
    /// Not yet taken by the job. What is left after its end is dropped with this record.
    input: Vec<(InputStream, Piece)>,
    /// Not yet answered, in the same way.
    looks: Vec<Looking>,
}

impl Control {
    /// For a job on the thread that polls `waker`.
    pub fn new(waker: Waker) -> Self {
        waker.clear();
        Self { state: Mutex::default(), waker }
    }

    /// Asks the job to end.
    pub fn end(&self, request: EndRequest) {
        {
            let mut state = lock(&self.state);
            state.end = state.end.max(Some(request));
        }
        self.waker.wake();
    }

    /// Stops or continues reading the output of a streaming job. While paused, the pipes fill up
    /// and the job blocks.
    pub fn set_paused(&self, paused: bool) {
        lock(&self.state).paused = paused;
        self.waker.wake();
    }

    /// Adds input for a stream of the job.
    pub fn feed(&self, stream: InputStream, piece: Piece) {
        lock(&self.state).input.push((stream, piece));
        self.waker.wake();
    }

    /// Lets somebody look at the output so far.
    pub fn look(&self, looking: Looking) {
        lock(&self.state).looks.push(looking);
        self.waker.wake();
    }

    /// Takes the looks that wait for an answer.
    pub fn take_looks(&self) -> Vec<Looking> {
        std::mem::take(&mut lock(&self.state).looks)
    }

    /// Takes the input that was added.
    pub fn take_input(&self) -> Vec<(InputStream, Piece)> {
        std::mem::take(&mut lock(&self.state).input)
    }

    /// How the job has to end, if it has to.
    pub fn end_request(&self) -> Option<EndRequest> {
        lock(&self.state).end
    }

    /// True if the output must not be read now.
    pub fn is_paused(&self) -> bool {
        lock(&self.state).paused
    }

    /// Wakes the job's thread after each change.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }
}
