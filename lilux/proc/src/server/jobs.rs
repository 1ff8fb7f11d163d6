//! The running jobs of a connection.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::job::{Control, EndRequest};
use crate::sync::lock;

/// The jobs by the ids of their requests.
#[derive(Default)]
pub struct RunningJobs(Mutex<State>);

#[derive(Default)]
struct State {
    running: HashMap<u64, Arc<Control>>,
    /// The prepared processes among them, which only wait.
    prepared: HashSet<u64>,
    closing: bool,
}

/// The answer to a new job.
pub enum Admission {
    /// It may start. This many jobs are running now, without prepared processes.
    Admitted(usize),
    /// The connection is closing.
    Closing,
}

impl RunningJobs {
    /// Adds a job; `prepare` if it becomes a prepared process.
    pub fn admit(
        &self,
        id: u64,
        control: &Arc<Control>,
        prepare: bool,
    ) -> Result<Admission, Error> {
        let mut state = lock(&self.0);
        if state.closing {
            return Ok(Admission::Closing);
        }
        match state.running.entry(id) {
            Entry::Vacant(free) => {
                free.insert(Arc::clone(control));
                if prepare {
                    state.prepared.insert(id);
                }
                Ok(Admission::Admitted(state.running.len() - state.prepared.len()))
            }
            Entry::Occupied(_) => Err(Error::IdInUse(id)),
        }
    }

    /// Removes a job that has ended. Returns true if the connection is closing.
    pub fn remove(&self, id: u64) -> bool {
        let mut state = lock(&self.0);
        state.running.remove(&id);
        state.prepared.remove(&id);
        state.closing
    }

    /// The control of a running job.
    pub fn get(&self, id: u64) -> Option<Arc<Control>> {
        lock(&self.0).running.get(&id).cloned()
    }

    /// Kills all jobs and admits no more.
    pub fn close(&self) {
        let mut state = lock(&self.0);
        state.closing = true;
        for control in state.running.values() {
            control.end(EndRequest::Kill);
        }
    }

    /// True if the connection is closing and the last job has ended.
    pub fn are_done(&self) -> bool {
        let state = lock(&self.0);
        state.closing && state.running.is_empty()
    }
}
