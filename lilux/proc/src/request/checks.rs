//! Checks of single fields, for requests from frames, from stdin and from the command line.

use std::fmt::Display;

use super::operations::MAX_SECONDS;
use crate::error::Error;
use crate::text::OsText;

/// Checks that the text contains no NUL byte.
pub fn check_text(field: impl Display, text: Option<&OsText>) -> Result<(), Error> {
    match text {
        Some(text) if text.has_nul() => Err(Error::NulByte(field.to_string())),
        _ => Ok(()),
    }
}

/// Checks that an environment variable can have this name.
pub fn check_variable(name: &OsText) -> Result<(), Error> {
    if name.as_bytes().is_empty() || name.as_bytes().contains(&b'=') || name.has_nul() {
        // The text after a stray '=' may be a value, so it is not shown.
        return Err(Error::EnvName(
            name.display().split('=').next().unwrap_or_default().to_owned(),
        ));
    }
    Ok(())
}

/// Checks that a process can have this pid.
pub fn check_pid(pid: i32) -> Result<(), Error> {
    if pid > 0 { Ok(()) } else { Err(Error::Pid(pid)) }
}

/// Checks that a number of seconds can be waited for; `zero` allows 0.
pub fn check_seconds(field: &'static str, seconds: f64, zero: bool) -> Result<(), Error> {
    let above_minimum = if zero { seconds >= 0.0 } else { seconds > 0.0 };
    if above_minimum && seconds <= MAX_SECONDS {
        Ok(())
    } else {
        Err(Error::Seconds { field, zero, seconds })
    }
}
