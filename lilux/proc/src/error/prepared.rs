//! Why a call of a prepared process cannot start.

use std::fmt;
use std::io;

use super::os_message;

/// Why a prepared process cannot be started, or cannot take a call. The call has had no effect.
#[derive(Debug)]
pub enum PreparedError {
    // Requests.
    /// A request with something that a prepared process cannot have.
    Combination(&'static str),
    /// The request comes from the command line.
    NoConnection,

    // This machine, now.
    /// This platform has no prepared processes.
    Unsupported,
    /// The confinement of the call differs from that of the prepared process.
    OtherConfinement,
    /// The call cannot get a private folder.
    Confinement(String),
    /// A path of the confinement is now another file.
    PathsChanged,
    /// The arguments and the environment are too long.
    TooLarge,
    /// The prepared process has more than one thread.
    Threads,
    /// No prepared process with the id of the request is running. One that ended is soon forgotten, so
    /// it is not distinguished from one that never existed.
    Ended,
    /// The prepared process does not answer.
    Silent,
    /// The call was cancelled before it started.
    Cancelled,
    /// A system call failed.
    Os(io::Error),
}

impl PreparedError {
    /// True if the request is invalid on every machine.
    pub fn is_invalid_request(&self) -> bool {
        matches!(self, Self::Combination(_) | Self::NoConnection)
    }
}

impl fmt::Display for PreparedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Combination(other) => {
                write!(f, "a prepared process cannot have {other}; remove it, or start the program")
            }
            Self::NoConnection => {
                f.write_str("a prepared process needs a connection; use lilux-proc serve")
            }
            Self::Unsupported => f.write_str("this platform has no prepared processes; run the command"),
            Self::OtherConfinement => f.write_str(
                "the prepared process has another confinement; give the call the same one",
            ),
            Self::Confinement(reason) => {
                write!(f, "the call cannot be confined: {reason}; run the command")
            }
            Self::PathsChanged => f.write_str(
                "a path of the confinement has changed since the process was prepared; prepare it again",
            ),
            Self::TooLarge => f.write_str(
                "the arguments and environment of the call are longer than 128 KiB; run the command",
            ),
            Self::Threads => {
                f.write_str("the prepared process has more than one thread; run the command")
            }
            Self::Ended => f.write_str("the prepared process is not running; prepare it again"),
            Self::Silent => f.write_str("the prepared process does not answer; end it, and prepare it again"),
            Self::Cancelled => f.write_str("the call was cancelled before it started"),
            Self::Os(error) => {
                write!(f, "the prepared process cannot be reached: {}; run the command", os_message(error))
            }
        }
    }
}
