//! The results of the operations, as JSON.

use serde::Serialize;

use crate::autopsy::Autopsy;
use crate::confine::{self, Part};
use crate::error::Error;
use crate::observe::Observation;

/// How the state of a job's process tree is known.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The kernel handed every orphan of the job to a subreaper, which saw all of them.
    Subreaper,
    /// The job's process group was killed; a process that left the group would not be seen.
    ProcessGroup,
    /// Nothing was started, so nothing is left.
    NotStarted,
    /// The job may have left processes behind.
    Unknown,
}

/// What happened to the processes that a job started.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct TreeReport {
    /// How the rest of this report is known.
    pub known_by: KnownBy,
    /// Processes that outlived the job's own process and were ended.
    pub ended: usize,
    /// Processes that could not be ended.
    pub survivors: Vec<i32>,
}

impl TreeReport {
    /// No process was ended, and none is known to be left.
    pub fn empty(known_by: KnownBy) -> Self {
        Self { known_by, ended: 0, survivors: Vec::new() }
    }
}

/// Omitted bytes of each stream.
#[derive(Debug, Clone, Copy, Default, Serialize, PartialEq, Eq)]
pub struct Truncated {
    /// Of stdout.
    pub stdout: u64,
    /// Of stderr.
    pub stderr: u64,
}

/// The result of `exec`, without its output.
#[derive(Debug, Serialize)]
pub struct ExecReport {
    /// True if the job's process exited with code 0 before any timeout or cancel.
    pub success: bool,
    /// The exit code; 128 + n after signal n; -1 if it did not start, timed out or was cancelled.
    pub return_code: i32,
    /// From the request to the end of the job's process.
    pub duration_ms: f64,
    /// The process of the job, if it started.
    pub pid: Option<i32>,
    /// The time limit was reached.
    pub timed_out: bool,
    /// The caller cancelled the job.
    pub cancelled: bool,
    /// The signal that killed the job's process.
    pub signal: Option<i32>,
    /// Omitted bytes.
    pub truncated: Truncated,
    /// What happened to the process tree.
    pub tree: TreeReport,
    /// Why a `stdout_file` or `stderr_file` is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_error: Option<Error>,
    /// The limit of its confinement that the job exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Part>,
    /// What was enforced, if the job was confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<confine::Report>,
    /// What the processes did when the job had to be ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autopsy: Option<Autopsy>,
    /// What the job tried, if it was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
}

/// The result of `exec` and its output.
#[derive(Debug)]
pub struct Finished {
    /// Everything but the output.
    pub report: ExecReport,
    /// Kept bytes of stdout, in parts.
    pub stdout: Vec<Vec<u8>>,
    /// Kept bytes of stderr, in parts.
    pub stderr: Vec<Vec<u8>>,
}

/// The result of `spawn`.
#[derive(Debug, Default, Serialize)]
pub struct SpawnReport {
    /// The program is running.
    pub success: bool,
    /// Its process.
    pub pid: Option<i32>,
    /// When it started. The unit depends on the platform; only compare it.
    pub start_time: Option<u64>,
    /// Why it is not running.
    pub error: Option<Error>,
}

/// How `kill` ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KillMethod {
    /// It ended after SIGTERM.
    Terminated,
    /// It ended after SIGKILL.
    Killed,
    /// It had already ended.
    AlreadyDead,
    /// It is still running.
    #[serde(rename = "")]
    None,
}

/// The result of `kill`.
#[derive(Debug, Serialize)]
pub struct KillReport {
    /// The process has ended.
    pub success: bool,
    /// The pid of the request.
    pub pid: i32,
    /// How it ended.
    pub method: KillMethod,
    /// Why it is still running.
    pub error: Option<Error>,
}

impl KillReport {
    /// The process has ended.
    pub fn ended(pid: i32, method: KillMethod) -> Self {
        Self { success: true, pid, method, error: None }
    }

    /// The process is still running.
    pub fn failed(pid: i32, error: Error) -> Self {
        Self { success: false, pid, method: KillMethod::None, error: Some(error) }
    }
}

/// The result of `status`.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// The pid of the request.
    pub pid: i32,
    /// True if the process is running, sleeping or stopped; false for a zombie.
    pub alive: bool,
}
