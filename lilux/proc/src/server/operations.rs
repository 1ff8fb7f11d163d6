//! What a server does for each request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;

use super::jobs::Admission;
use super::{Event, ReadTurn, Server};
use crate::detach::spawn_detached;
use crate::error::Error;
use crate::frame::Frame;
use crate::job::{self, Context, Control, EndRequest, Looking, Piece, Watch};
use crate::platform::Platform;
use crate::process;
use crate::request::{self, Background, Exec, Input, Look, Operation, Start};
use crate::streams::Chunks;
use crate::wake::Waker;

#[derive(Serialize)]
struct Found {
    found: bool,
}

impl Server {
    /// Carries out one request and answers it.
    pub(super) fn handle(self: &Arc<Self>, frame: Frame, turn: &mut ReadTurn<'_>, waker: &Waker) {
        let (id, operation) = request::parse(&frame.header);
        let done = operation.and_then(|operation| match &self.keeper {
            Some(keeper) if self.is_for_keeper(&operation) => match operation {
                // Only the worker itself may send these to the keeper.
                Operation::Guard(_) | Operation::Unguard(_) => Err(Error::UnknownOperation),
                _ => {
                    keeper.send_raw_parts(&frame.header, vec![frame.payload]);
                    Ok(())
                }
            },
            _ => self.perform(id, operation, frame.payload, turn, waker),
        });
        if let Err(error) = done {
            self.answers.refuse(id, &error);
        }
    }

    /// True for processes that may outlive this one: the keeper starts them, because it does not
    /// adopt. Without pidfds, only the parent of a process can wait for it, so the keeper also does
    /// `kill` and `status`.
    fn is_for_keeper(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Exec(exec) => exec.background == Background::Keep,
            Operation::Spawn(_) | Operation::Guard(_) | Operation::Unguard(_) => true,
            Operation::Cancel(target) | Operation::Pause(target) | Operation::Resume(target) => {
                self.jobs.get(*target).is_none()
            }
            Operation::Input(input) => self.jobs.get(input.target).is_none(),
            Operation::Look(look) => self.jobs.get(look.target).is_none(),
            Operation::Probe => false,
            Operation::Kill(_) | Operation::Status(_) => {
                self.launcher.platform == Platform::Portable
            }
        }
    }

    fn perform(
        self: &Arc<Self>,
        id: u64,
        operation: Operation,
        payload: Vec<u8>,
        turn: &mut ReadTurn<'_>,
        waker: &Waker,
    ) -> Result<(), Error> {
        let platform = self.launcher.platform;
        match operation {
            Operation::Exec(exec) => self.exec(id, *exec, payload, turn, waker)?,
            Operation::Spawn(spawn) => {
                self.supervision.release_orphans();
                self.answers.result(id, &spawn_detached(&self.launcher, &spawn));
            }
            Operation::Kill(kill) => {
                if !self.has_another_reader() {
                    return Err(Error::Busy);
                }
                turn.hand_over();
                self.answers.result(id, &process::kill(platform, &kill));
            }
            Operation::Status(status) => {
                self.answers.result(id, &process::status(platform, &status)?);
            }
            Operation::Probe => self.answers.result(id, &self.launcher.confiner.probe()?),
            Operation::Cancel(target) => {
                self.control(id, target, |job| job.end(EndRequest::Cancel));
            }
            Operation::Input(input) => self.feed(id, &input, payload),
            Operation::Look(look) => self.look(id, look),
            Operation::Pause(target) => self.control(id, target, |job| job.set_paused(true)),
            Operation::Resume(target) => self.control(id, target, |job| job.set_paused(false)),
            Operation::Guard(group) => self.guarded.guard(group),
            Operation::Unguard(group) => self.guarded.unguard(group),
        }
        Ok(())
    }

    fn exec(
        self: &Arc<Self>,
        id: u64,
        mut exec: Exec,
        payload: Vec<u8>,
        turn: &mut ReadTurn<'_>,
        waker: &Waker,
    ) -> Result<(), Error> {
        let input = match exec.stdin.take() {
            None => payload,
            Some(text) if payload.is_empty() => text.into_bytes(),
            Some(_) => return Err(Error::StdinTwice),
        };
        if !self.has_another_reader() {
            return Err(Error::Busy);
        }
        let control = Arc::new(Control::new(waker.clone()));
        let prepare = exec.start == Start::Prepare;
        match self.jobs.admit(id, &control, prepare)? {
            Admission::Admitted(1) if !turn.has_more() && !prepare => {}
            Admission::Admitted(_) => turn.hand_over(),
            // The end of the connection is the answer.
            Admission::Closing => return Ok(()),
        }
        let chunks =
            (exec.stream || exec.dialogue.channel.is_some()).then(|| self.answers.chunks(id));
        self.supervision.release_orphans();
        let context = Context {
            launcher: &self.launcher,
            supervision: &self.supervision,
            control: &control,
            chunks: chunks.as_ref().map(|chunks| chunks as &dyn Chunks),
            prepared: Some((&self.prepared, id)),
        };
        let finished = catch_unwind(AssertUnwindSafe(|| job::run(exec, input, &context, turn)));
        if self.jobs.remove(id) {
            // We ended the job. The end of the connection is the answer.
            if self.jobs.are_done() {
                let _ = self.events.send(Event::Idle);
            }
            return Ok(());
        }
        match finished.unwrap_or(Err(Error::Internal)) {
            Ok(finished) => self.answers.exec_result(id, finished),
            Err(error) => self.answers.refuse(id, &error),
        }
        if prepare {
            self.prepared.end(id);
        }
        Ok(())
    }

    fn control(&self, id: u64, target: u64, act: impl Fn(&Control)) {
        let control = self.jobs.get(target);
        if let Some(control) = &control {
            act(control);
        }
        self.answers.result(id, &Found { found: control.is_some() });
    }

    /// Answers when the job has taken the bytes, so that a caller does not send more than it takes.
    fn feed(&self, id: u64, input: &Input, payload: Vec<u8>) {
        let answers = self.answers.clone();
        let piece = Piece::answered(payload, input.last, move |found| {
            answers.result(id, &Found { found });
        });
        if let Some(control) = self.jobs.get(input.target) {
            control.feed(input.stream, piece);
        }
    }

    /// Answers with the output so far, or that there is no such job.
    fn look(&self, id: u64, look: Look) {
        let answers = self.answers.clone();
        let target = look.target;
        let looking = Looking::new(look, move |looked| match looked {
            Some(looked) => answers.looked(id, looked),
            None => answers.result(id, &Found { found: false }),
        });
        if let Some(control) = self.jobs.get(target) {
            control.look(looking);
        }
    }
}
