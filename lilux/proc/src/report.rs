//! What the operations answer, as JSON.

use serde::Serialize;

/// How it is known what became of a job's tree.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// Every orphan of the job was handed to a subreaper by the kernel, and all were seen.
    Subreaper,
    /// The job's process group was killed; a process that left the group would not be seen.
    ProcessGroup,
    /// Nothing was started, so nothing is left.
    NotStarted,
    /// Nothing is known about what the job left behind.
    Unknown,
}

/// What became of the processes that a job started.
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
    /// Nothing was started, or nothing is left.
    pub fn empty(known_by: KnownBy) -> Self {
        Self { known_by, ended: 0, survivors: Vec::new() }
    }
}

/// Bytes left out of each stream.
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
    /// The job's process ended by itself, with code 0.
    pub success: bool,
    /// The exit code; 128 + n after signal n; -1 if it did not start, timed out or was cancelled.
    pub return_code: i32,
    /// From the request to the end of the job's process.
    pub duration_ms: f64,
    /// The process of the job, if it started.
    pub pid: Option<i32>,
    /// The time limit was reached.
    pub timed_out: bool,
    /// The caller asked for the end.
    pub cancelled: bool,
    /// The signal that ended the job's process.
    pub signal: Option<i32>,
    /// Bytes left out.
    pub truncated: Truncated,
    /// What became of the tree.
    pub tree: TreeReport,
    /// Why a `stdout_file` or `stderr_file` is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_error: Option<String>,
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
    /// When it started, in a unit that only comparison gives a meaning.
    pub start_time: Option<u64>,
    /// Why it is not running.
    pub error: Option<String>,
}

/// The result of `kill`.
#[derive(Debug, Serialize)]
pub struct KillReport {
    /// The process is gone.
    pub success: bool,
    /// As asked.
    pub pid: i32,
    /// `terminated`, `killed`, `already_dead`, or empty if it is still there.
    pub method: &'static str,
    /// Why it is still there.
    pub error: Option<String>,
}

/// The result of `status`.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// As asked.
    pub pid: i32,
    /// It runs, sleeps or is stopped. A zombie is not alive.
    pub alive: bool,
}
