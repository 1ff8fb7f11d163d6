//! Every error that a caller can see, with all of its wording.
//!
//! Messages name the field, the path or the process, but never a value that could be a secret.

mod confinement;
mod prepared;

pub use confinement::ConfinementError;
pub use prepared::PreparedError;

use std::ffi::CString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::confine::Part;
use crate::frame::MAX_HEADER;
use crate::request::{MAX_OUTPUT_LIMIT, MAX_SECONDS};
use crate::text::OsText;

/// The `error` field of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The bytes do not follow the protocol.
    InvalidFrame,
    /// A field is missing, unknown or out of range.
    InvalidRequest,
    /// The operation does not exist, or callers may not use it.
    UnknownOperation,
    /// The request is valid, but the machine cannot do it now.
    Unavailable,
    /// A prepared process cannot take the call, which has had no effect. It can be run instead.
    NotPrepared,
    /// A defect of this program.
    Internal,
}

const NEEDS_CONNECTION: &str = "needs a connection that can send more; use `lilux-proc serve`";

/// What an output file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// `stdout_file` or `stderr_file` of an `exec`.
    Output,
    /// `log_file` of a `spawn`.
    Log,
}

/// Why a frame, a request, a start or an operation failed.
#[derive(Debug)]
pub enum Error {
    // Frames.
    /// The frame has fewer than the four bytes of its header length.
    FrameTooShort(usize),
    /// The header is longer than the frame.
    HeaderBeyondFrame {
        /// Announced bytes of the header.
        header: usize,
        /// Bytes of header and payload together.
        body: usize,
    },
    /// The header is larger than [`MAX_HEADER`].
    HeaderTooLarge(usize),
    /// The frame is larger than this connection allows.
    FrameTooLarge {
        /// Announced bytes of the frame.
        frame: usize,
        /// What the connection allows.
        limit: usize,
    },

    // Requests.
    /// The header is not JSON, or does not name an operation.
    NotARequest(serde_json::Error),
    /// A field of the request is missing, unknown or has the wrong type.
    Field {
        /// The operation.
        op: &'static str,
        /// The decoder's error.
        error: serde_json::Error,
    },
    /// The operation does not exist, or callers may not use it.
    UnknownOperation,
    /// This field contains a NUL byte, which ends a C string.
    NulByte(String),
    /// The part before `=` of a bad name of an environment variable.
    EnvName(String),
    /// The pid is not positive.
    Pid(i32),
    /// Process 1 must not be killed.
    InitProcess,
    /// A number of seconds is out of range.
    Seconds {
        /// The field.
        field: &'static str,
        /// True if zero is in range.
        zero: bool,
        /// The number that was given.
        seconds: f64,
    },
    /// The output limit is above [`MAX_OUTPUT_LIMIT`].
    OutputLimit(usize),
    /// Stdin was given in the header and as payload.
    StdinTwice,
    /// This field needs a connection, over which more can be sent.
    NeedsConnection(&'static str),
    /// `--stdin-file` cannot be read.
    StdinFile(PathBuf, io::Error),
    /// A running job has the same id.
    IdInUse(u64),
    /// No thread or file descriptor is available for the request.
    Busy,
    /// A panic while a job was running.
    Internal,

    // Starting a process.
    /// The command is empty.
    NoCommand,
    /// A process was not started.
    Start(Box<Error>),
    /// The working directory cannot be entered.
    WorkingDirectory(CString, io::Error),
    /// The program cannot be executed.
    Program(CString, io::Error),
    /// The program is a script whose interpreter does not exist.
    Interpreter(CString),
    /// An output file cannot be opened.
    OutputFile(FileRole, OsText, io::Error),
    /// An output file is a pipe, a socket or a directory.
    OutputFileType(FileRole, OsText),

    /// The job cannot be confined.
    Confinement(ConfinementError),
    /// A prepared process cannot be used.
    Prepared(PreparedError),

    // Ending a job early.
    /// The job exceeded this limit.
    LimitExceeded(Part, u64),
    /// The job reached its time limit, in seconds.
    TimedOut(f64),
    /// The caller cancelled the job.
    Cancelled,

    // Other processes.
    /// The process belongs to another user.
    NotPermitted(i32),
    /// The process did not end after SIGKILL.
    Stuck(i32),
    /// The state of the process cannot be read.
    Inspect(i32, io::Error),

    // Starting the helper.
    /// `serve` was started from a terminal.
    Terminal,
    /// `--fd` is not an open descriptor.
    Descriptor(i32, io::Error),

    /// A system call failed.
    Os(io::Error),
}

impl Error {
    /// Wraps the reason why a process was not started.
    pub fn start(reason: impl Into<Self>) -> Self {
        Self::Start(Box::new(reason.into()))
    }

    /// The `error` field of a refusal. An error that is neither the caller's mistake nor a defect of
    /// this program is `Unavailable`.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::FrameTooShort(_)
            | Self::HeaderBeyondFrame { .. }
            | Self::HeaderTooLarge(_)
            | Self::FrameTooLarge { .. } => ErrorKind::InvalidFrame,
            Self::NotARequest(_)
            | Self::Field { .. }
            | Self::NulByte(_)
            | Self::EnvName(_)
            | Self::Pid(_)
            | Self::InitProcess
            | Self::Seconds { .. }
            | Self::OutputLimit(_)
            | Self::StdinTwice
            | Self::NeedsConnection(_)
            | Self::StdinFile(..)
            | Self::IdInUse(_) => ErrorKind::InvalidRequest,
            Self::Confinement(error) if error.is_invalid_request() => ErrorKind::InvalidRequest,
            Self::Prepared(error) if error.is_invalid_request() => ErrorKind::InvalidRequest,
            Self::Prepared(_) => ErrorKind::NotPrepared,
            Self::UnknownOperation => ErrorKind::UnknownOperation,
            Self::Internal => ErrorKind::Internal,
            _ => ErrorKind::Unavailable,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameTooShort(frame) => {
                write!(f, "frame of {frame} bytes has no room for its header length")
            }
            Self::HeaderBeyondFrame { header, body } => {
                write!(f, "header length {header} is beyond the frame's {body} bytes")
            }
            Self::HeaderTooLarge(header) => {
                write!(f, "header of {header} bytes is over the limit of {MAX_HEADER}")
            }
            Self::FrameTooLarge { frame, limit } => {
                write!(f, "frame of {frame} bytes is over the limit of {limit}")
            }
            Self::NotARequest(error) => {
                write!(f, "request cannot be read: {}", without_values(error))
            }
            Self::Field { op, error } => write!(f, "{op} request: {}", without_values(error)),
            Self::UnknownOperation => f.write_str(
                "unknown operation; use one of exec, spawn, kill, status, probe, cancel, pause, resume",
            ),
            Self::NulByte(field) => write!(f, "{field} contains a NUL byte; remove it"),
            Self::EnvName(name) => {
                write!(f, "env name {name:?} is empty or contains '=' or NUL; rename it")
            }
            Self::Pid(pid) => write!(f, "pid must be a positive number, got {pid}"),
            Self::InitProcess => {
                f.write_str("pid 1 is the first process of the system and cannot be killed")
            }
            Self::Seconds { field, zero, seconds } => {
                let bound = if *zero { "at least 0" } else { "above 0" };
                write!(
                    f,
                    "{field} must be a number of seconds {bound} and at most {MAX_SECONDS}, \
                     got {seconds}"
                )
            }
            Self::OutputLimit(limit) => write!(
                f,
                "output_limit must be at most {MAX_OUTPUT_LIMIT} bytes, got {limit}; write larger \
                 output to a file with stdout_file and stderr_file"
            ),
            Self::StdinTwice => {
                f.write_str("stdin is given both in the header and as payload; give one of them")
            }
            Self::NeedsConnection(name) => write!(f, "{name} {NEEDS_CONNECTION}"),
            Self::StdinFile(path, error) => {
                write!(f, "--stdin-file {}: {}", path.display(), os_message(error))
            }
            Self::IdInUse(id) => write!(
                f,
                "id {id} belongs to a job that is still running; give each request its own id"
            ),
            Self::Busy => f.write_str(
                "no thread or file descriptor is available for this request; try again when other \
                 jobs have ended",
            ),
            Self::Internal => f.write_str("internal error of lilux-proc; please report it"),
            Self::NoCommand => f.write_str("No command specified"),
            Self::Start(reason) => write!(f, "Failed to spawn: {reason}"),
            Self::WorkingDirectory(path, error) => {
                write!(f, "working directory {}: {}", path.to_string_lossy(), os_message(error))
            }
            Self::Program(command, error) => {
                write!(f, "{}: {}", command.to_string_lossy(), os_message(error))
            }
            Self::Interpreter(program) => write!(
                f,
                "{}: the interpreter in its first line does not exist",
                program.to_string_lossy()
            ),
            Self::OutputFile(role, path, error) => {
                write!(f, "{role} {}: {}", path.display(), os_message(error))
            }
            Self::OutputFileType(role, path) => {
                write!(f, "{role} {}: not a regular file or a device", path.display())
            }
            Self::Confinement(error) => error.fmt(f),
            Self::Prepared(error) => error.fmt(f),
            Self::LimitExceeded(part, limit) => {
                write!(f, "Command ended: it used more than {limit} {}", part.unit())
            }
            Self::TimedOut(seconds) => write!(f, "Command timed out after {seconds} seconds"),
            Self::Cancelled => f.write_str("Command cancelled"),
            Self::NotPermitted(pid) => {
                write!(f, "not permitted to signal process {pid}; it belongs to another user")
            }
            Self::Stuck(pid) => write!(
                f,
                "process {pid} was sent SIGKILL but has not ended; it is stuck in the kernel"
            ),
            Self::Inspect(pid, error) => {
                write!(f, "process {pid} cannot be inspected: {}", os_message(error))
            }
            Self::Terminal => f.write_str(
                "serve needs a pipe or a socket, not a terminal; see lilux-proc serve --help",
            ),
            Self::Descriptor(number, error) => write!(f, "--fd {number}: {}", os_message(error)),
            Self::Os(error) => f.write_str(&os_message(error)),
        }
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "output file",
            Self::Log => "log file",
        })
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

impl From<ConfinementError> for Error {
    fn from(error: ConfinementError) -> Self {
        Self::Confinement(error)
    }
}

impl From<PreparedError> for Error {
    fn from(error: PreparedError) -> Self {
        Self::Prepared(error)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Os(error.into())
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The system's message without Rust's suffix "(os error 2)".
pub fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The decoder's message without the value that it quotes, which may be a secret.
fn without_values(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let quotes_a_value = ["invalid type", "invalid value", "invalid length", "unknown variant"]
        .into_iter()
        .find(|kind| message.starts_with(kind));
    match (quotes_a_value, message.rfind(", expected ")) {
        (Some(kind), Some(at)) => format!("{kind}{}", &message[at..]),
        _ => message,
    }
}
