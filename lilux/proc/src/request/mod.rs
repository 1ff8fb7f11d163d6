//! The operations that a caller can ask for, and the checks before anything runs.

mod checks;
mod confinement;
mod fields;
mod operations;
mod program;

pub use confinement::{Confinement, Limits, Net};
pub use operations::{
    AutopsyWhen, Background, DEFAULT_JOB_GRACE, DEFAULT_KILL_GRACE, DEFAULT_OUTPUT_LIMIT,
    DEFAULT_TIMEOUT, Dialogue, Exec, Input, InputStream, Kill, Look, MAX_OUTPUT_LIMIT, MAX_SECONDS,
    Spawn, Start, Status, seconds,
};
pub use program::{EnvMap, EnvMode, Program};

use serde::Deserialize;

use crate::error::Error;

/// The operations of `lilux-proc`.
#[derive(Debug)]
pub enum Operation {
    /// Run a command and wait for it.
    Exec(Box<Exec>),
    /// Start a command that outlives its caller.
    Spawn(Box<Spawn>),
    /// End a process: SIGTERM, then SIGKILL.
    Kill(Kill),
    /// Report whether a process is alive.
    Status(Status),
    /// Report what confinement this machine can enforce.
    Probe,
    /// End the running `exec` that has this id.
    Cancel(u64),
    /// Write to a stream of a running `exec`.
    Input(Input),
    /// Report the output of a running `exec` so far.
    Look(Look),
    /// Stop reading the output of the streaming `exec` that has this id.
    Pause(u64),
    /// Continue reading the output of the streaming `exec` that has this id.
    Resume(u64),
    /// From worker to keeper on the portable platform: kill this process group if the worker dies.
    Guard(i32),
    /// From worker to keeper on the portable platform: the process group has ended.
    Unguard(i32),
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: u64,
    op: String,
}

#[derive(Deserialize)]
struct Target {
    target: u64,
}

#[derive(Deserialize)]
struct GroupId {
    pid: i32,
}

/// Reads one request. The id is returned for a refused request too, if it can be read.
pub fn parse(json: &[u8]) -> (u64, Result<Operation, Error>) {
    match serde_json::from_slice::<Head>(json) {
        Ok(head) => (head.id, parse_operation(&head.op, json)),
        Err(error) => {
            let id = serde_json::from_slice::<serde_json::Value>(json)
                .ok()
                .and_then(|value| value.get("id")?.as_u64())
                .unwrap_or(0);
            (id, Err(Error::NotARequest(error)))
        }
    }
}

fn parse_operation(op: &str, json: &[u8]) -> Result<Operation, Error> {
    let target = |op| -> Result<u64, Error> { Ok(read::<Target>(op, json)?.target) };
    let group = |op| -> Result<i32, Error> { Ok(read::<GroupId>(op, json)?.pid) };
    Ok(match op {
        "exec" => Operation::Exec(Box::new(Exec::parse(json)?)),
        "spawn" => Operation::Spawn(Box::new(Spawn::parse(json)?)),
        "kill" => Operation::Kill(Kill::parse(json)?),
        "status" => Operation::Status(Status::parse(json)?),
        "probe" => Operation::Probe,
        "cancel" => Operation::Cancel(target("cancel")?),
        "input" => Operation::Input(read("input", json)?),
        "look" => Operation::Look(read::<Look>("look", json)?.checked()),
        "pause" => Operation::Pause(target("pause")?),
        "resume" => Operation::Resume(target("resume")?),
        "guard" => Operation::Guard(group("guard")?),
        "unguard" => Operation::Unguard(group("unguard")?),
        _ => return Err(Error::UnknownOperation),
    })
}

fn read<'a, T: Deserialize<'a>>(op: &'static str, json: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|error| Error::Field { op, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        parse(json.as_bytes()).1.unwrap_err().to_string()
    }

    #[test]
    fn a_missing_timeout_is_the_default_and_null_is_no_limit() {
        let timeout = |json: &str| match parse(json.as_bytes()).1.unwrap() {
            Operation::Exec(exec) => exec.timeout,
            _ => unreachable!(),
        };
        assert_eq!(timeout(r#"{"op":"exec"}"#), Some(DEFAULT_TIMEOUT));
        assert_eq!(timeout(r#"{"op":"exec","timeout":null}"#), None);
        assert_eq!(timeout(r#"{"op":"exec","timeout":2}"#), Some(2.0));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_quoted() {
        let message = refusal(r#"{"op":"exec","args":"s3cret, expected nothing"}"#);
        assert!(!message.contains("s3cret"), "{message}");
        assert!(
            message.starts_with("exec request: invalid type, expected a sequence"),
            "{message}"
        );
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(
            refusal(r#"{"op":"exec","timeout":-1}"#),
            "timeout must be a number of seconds above 0 and at most 31622400, got -1"
        );
        assert!(refusal(r#"{"op":"exec","timeout":1e300}"#).starts_with("timeout must be"));
        assert!(refusal(r#"{"op":"kill","pid":0}"#).starts_with("pid must be a positive number"));
        assert!(refusal(r#"{"op":"exec","output_limit":9999999999}"#).contains("stdout_file"));
    }

    #[test]
    fn a_nul_byte_is_reported_with_its_field() {
        assert_eq!(
            refusal(r#"{"op":"exec","command":"a","args":["b","c\u0000d"]}"#),
            "args[1] contains a NUL byte; remove it"
        );
        assert_eq!(
            refusal(r#"{"op":"exec","env":{"A=B":"x"}}"#),
            "env name \"A\" is empty or contains '=' or NUL; rename it"
        );
    }

    #[test]
    fn unknown_repeated_and_missing_fields_are_refused() {
        assert!(refusal(r#"{"op":"spawn","timeout":1}"#).starts_with(
            "spawn request: unknown field `timeout`, expected one of `command`, `args`, `cwd`, \
             `env`, `env_mode`, `log_file`"
        ));
        let twice = r#"{"op":"exec","command":"a","command":"b"}"#;
        assert!(refusal(twice).starts_with("exec request: duplicate field `command`"));
        assert!(refusal(r#"{"op":"kill"}"#).starts_with("kill request: missing field `pid`"));
    }

    #[test]
    fn the_id_of_a_refused_request_is_kept() {
        assert_eq!(parse(br#"{"id":7,"op":"dance"}"#).0, 7);
        assert_eq!(parse(br#"{"id":8,"op":5}"#).0, 8);
        assert_eq!(parse(b"not json").0, 0);
    }
}
