//! The checks that a request passes before anything runs.

use crate::request::{EnvMap, Exec, Invalid, MAX_OUTPUT_LIMIT, MAX_SECONDS};
use crate::text::OsText;

/// Checks a request whoever made it: a frame, a file or flags.
pub fn check_exec(exec: &Exec) -> Result<(), Invalid> {
    check_strings(&exec.command, &exec.args, exec.cwd.as_ref(), &exec.env)?;
    if let Some(timeout) = exec.timeout {
        check_seconds("timeout", timeout, false)?;
    }
    check_seconds("grace", exec.grace, true)?;
    if exec.output_limit > MAX_OUTPUT_LIMIT {
        return Err(Invalid::request(format!(
            "output_limit must be at most {MAX_OUTPUT_LIMIT} bytes, got {}; write larger output to \
             a file with stdout_file and stderr_file",
            exec.output_limit
        )));
    }
    check_path("stdout_file", exec.stdout_file.as_ref())?;
    check_path("stderr_file", exec.stderr_file.as_ref())
}

/// What is to be run can be passed to a program.
pub fn check_strings(
    command: &OsText,
    args: &[OsText],
    cwd: Option<&OsText>,
    env: &EnvMap,
) -> Result<(), Invalid> {
    check_path("command", Some(command))?;
    check_path("cwd", cwd)?;
    for (index, arg) in args.iter().enumerate() {
        check_path(&format!("args[{index}]"), Some(arg))?;
    }
    for (name, value) in &env.0 {
        // What stands behind a stray '=' may be a value.
        let shown = name.display().split('=').next().unwrap_or_default().to_owned();
        if name.as_bytes().is_empty() || name.as_bytes().contains(&b'=') || name.has_nul() {
            return Err(Invalid::request(format!(
                "env has the name {shown:?}, which is empty or contains '=' or NUL"
            )));
        }
        check_path(&format!("env[{shown:?}]"), Some(value))?;
    }
    Ok(())
}

/// A C string can hold it.
pub fn check_path(field: &str, text: Option<&OsText>) -> Result<(), Invalid> {
    match text {
        Some(text) if text.has_nul() => Err(Invalid::request(format!(
            "{field} contains a NUL byte, which no program can be given; remove it"
        ))),
        _ => Ok(()),
    }
}

/// A process can have it.
pub fn check_pid(pid: i32) -> Result<(), Invalid> {
    if pid > 0 {
        Ok(())
    } else {
        Err(Invalid::request(format!("pid must be a positive number, got {pid}")))
    }
}

/// A span of time that can be waited for; `zero` allows none at all.
pub fn check_seconds(field: &str, seconds: f64, zero: bool) -> Result<(), Invalid> {
    let low = if zero { seconds >= 0.0 } else { seconds > 0.0 };
    if low && seconds <= MAX_SECONDS {
        return Ok(());
    }
    let bound = if zero { "at least 0" } else { "above 0" };
    Err(Invalid::request(format!(
        "{field} must be a number of seconds {bound} and at most {MAX_SECONDS}, got {seconds}"
    )))
}
