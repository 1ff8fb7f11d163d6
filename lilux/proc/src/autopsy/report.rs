//! What an autopsy found, as JSON.

use serde::Serialize;

/// What the processes of a job did just before the job was ended.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Autopsy {
    /// Why nothing, or not everything, is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// How long it took.
    pub elapsed_ms: f64,
    /// The processes of the job; each parent comes before its children.
    pub processes: Vec<Process>,
    /// Processes that exist but are not described.
    pub unexamined: usize,
    /// The last lines of the output until then.
    pub output: LastLines,
}

/// The last lines of each stream.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LastLines {
    /// Of stdout.
    pub stdout: String,
    /// Of stderr.
    pub stderr: String,
}

/// One process. None of the texts contains a value of the environment or of an argument.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// The id of its parent.
    pub parent: i32,
    /// The program and what may be shown of its arguments.
    pub command: String,
    /// For example `sleeping`.
    pub state: &'static str,
    /// User and system time.
    pub cpu_seconds: f64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// What it waits for, in words.
    pub waits_for: String,
    /// The stack of a program that offers one, such as a Python tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Autopsy {
    /// Nothing is known.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self { missing: Some(reason.into()), ..Self::default() }
    }
}
