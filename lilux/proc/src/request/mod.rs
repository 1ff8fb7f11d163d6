//! The operations that a caller can ask for, and the checks before anything runs.

mod checks;
mod fields;
mod program;

pub use program::{EnvMap, EnvMode, Program};

use std::time::Duration;

use serde::Deserialize;
use serde::de::MapAccess;

use self::checks::{check_pid, check_seconds, check_text};
use self::fields::{Fields, from_json};
use crate::error::Error;
use crate::text::OsText;

/// Bytes kept of each output stream by default.
pub const DEFAULT_OUTPUT_LIMIT: usize = 10 * 1024 * 1024;
/// The largest output limit. A result with two such streams still fits a frame.
pub const MAX_OUTPUT_LIMIT: usize = 1024 * 1024 * 1024;
/// Seconds that a job may run by default.
pub const DEFAULT_TIMEOUT: f64 = 300.0;
/// The longest time span of a request: a leap year, in seconds.
pub const MAX_SECONDS: f64 = 366.0 * 24.0 * 3600.0;
/// Default seconds between SIGTERM and SIGKILL when a job is ended early.
pub const DEFAULT_JOB_GRACE: f64 = 0.2;
/// Default seconds between SIGTERM and SIGKILL of the `kill` operation.
pub const DEFAULT_KILL_GRACE: f64 = 3.0;

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
    /// End the running `exec` that has this id.
    Cancel(u64),
    /// Stop reading the output of the streaming `exec` that has this id.
    Pause(u64),
    /// Continue reading the output of the streaming `exec` that has this id.
    Resume(u64),
    /// From worker to keeper on the portable platform: kill this process group if the worker dies.
    Guard(i32),
    /// From worker to keeper on the portable platform: the process group has ended.
    Unguard(i32),
}

/// What happens to processes that are still running when their job ends normally.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// End them, and count them in the result.
    #[default]
    End,
    /// Let them run. (A timeout or a cancel still ends the whole tree.)
    Keep,
}

/// The `exec` operation.
#[derive(Debug)]
pub struct Exec {
    /// What to run.
    pub program: Program,
    /// Text for the job's stdin; over a connection, the frame's payload can be used instead.
    pub stdin: Option<OsText>,
    /// Seconds; `None` means no limit.
    pub timeout: Option<f64>,
    /// Seconds between SIGTERM and SIGKILL on timeout or cancel.
    pub grace: f64,
    /// Bytes kept of each stream.
    pub output_limit: usize,
    /// Send output while the job runs.
    pub stream: bool,
    /// Include output in the result.
    pub capture: bool,
    /// See [`Background`].
    pub background: Background,
    /// All of stdout is also written to this file.
    pub stdout_file: Option<OsText>,
    /// All of stderr is also written to this file.
    pub stderr_file: Option<OsText>,
}

impl Default for Exec {
    fn default() -> Self {
        Self {
            program: Program::default(),
            stdin: None,
            timeout: Some(DEFAULT_TIMEOUT),
            grace: DEFAULT_JOB_GRACE,
            output_limit: DEFAULT_OUTPUT_LIMIT,
            stream: false,
            capture: true,
            background: Background::default(),
            stdout_file: None,
            stderr_file: None,
        }
    }
}

impl Exec {
    /// Reads and checks the request from a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        read_fields::<Self>("exec", json)?.checked()
    }

    /// Returns the request if every field is valid.
    pub fn checked(self) -> Result<Self, Error> {
        self.program.check()?;
        if let Some(timeout) = self.timeout {
            check_seconds("timeout", timeout, false)?;
        }
        check_seconds("grace", self.grace, true)?;
        if self.output_limit > MAX_OUTPUT_LIMIT {
            return Err(Error::OutputLimit(self.output_limit));
        }
        check_text("stdout_file", self.stdout_file.as_ref())?;
        check_text("stderr_file", self.stderr_file.as_ref())?;
        Ok(self)
    }
}

impl Fields for Exec {
    const NAMES: &'static [&'static [&'static str]] = &[
        Program::NAMES[0],
        &["stdin", "timeout", "grace", "output_limit", "stream", "capture", "background"],
        &["stdout_file", "stderr_file"],
    ];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "stdin" => self.stdin = map.next_value()?,
            "timeout" => self.timeout = map.next_value()?,
            "grace" => self.grace = map.next_value()?,
            "output_limit" => self.output_limit = map.next_value()?,
            "stream" => self.stream = map.next_value()?,
            "capture" => self.capture = map.next_value()?,
            "background" => self.background = map.next_value()?,
            "stdout_file" => self.stdout_file = map.next_value()?,
            "stderr_file" => self.stderr_file = map.next_value()?,
            _ => return self.program.read(name, map),
        }
        Ok(true)
    }
}

/// The `spawn` operation.
#[derive(Debug, Default)]
pub struct Spawn {
    /// What to run.
    pub program: Program,
    /// stdout and stderr are appended to this file; without it they are discarded.
    pub log_file: Option<OsText>,
}

impl Spawn {
    /// Reads and checks the request from a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        read_fields::<Self>("spawn", json)?.checked()
    }

    /// Returns the request if every field is valid.
    pub fn checked(self) -> Result<Self, Error> {
        self.program.check()?;
        check_text("log_file", self.log_file.as_ref())?;
        Ok(self)
    }
}

impl Fields for Spawn {
    const NAMES: &'static [&'static [&'static str]] = &[Program::NAMES[0], &["log_file"]];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "log_file" => self.log_file = map.next_value()?,
            _ => return self.program.read(name, map),
        }
        Ok(true)
    }
}

/// The `kill` operation.
#[derive(Debug)]
pub struct Kill {
    /// The process.
    pub pid: i32,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace: f64,
    /// The start time that `spawn` reported. A process with another start time only reuses the pid
    /// and is left alone.
    pub start_time: Option<u64>,
}

impl Default for Kill {
    fn default() -> Self {
        Self { pid: 0, grace: DEFAULT_KILL_GRACE, start_time: None }
    }
}

impl Kill {
    /// Returns the request if every field is valid.
    pub fn checked(self) -> Result<Self, Error> {
        check_pid(self.pid)?;
        if self.pid == 1 {
            return Err(Error::InitProcess);
        }
        check_seconds("grace", self.grace, true)?;
        Ok(self)
    }
}

impl Fields for Kill {
    const NAMES: &'static [&'static [&'static str]] = &[&["pid", "grace", "start_time"]];
    const REQUIRED: &'static [&'static str] = &["pid"];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "pid" => self.pid = map.next_value()?,
            "grace" => self.grace = map.next_value()?,
            "start_time" => self.start_time = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The `status` operation.
#[derive(Debug, Default)]
pub struct Status {
    /// The process.
    pub pid: i32,
    /// See [`Kill::start_time`].
    pub start_time: Option<u64>,
}

impl Status {
    /// Returns the request if every field is valid.
    pub fn checked(self) -> Result<Self, Error> {
        check_pid(self.pid)?;
        Ok(self)
    }
}

impl Fields for Status {
    const NAMES: &'static [&'static [&'static str]] = &[&["pid", "start_time"]];
    const REQUIRED: &'static [&'static str] = &["pid"];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "pid" => self.pid = map.next_value()?,
            "start_time" => self.start_time = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
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
        "kill" => Operation::Kill(read_fields::<Kill>("kill", json)?.checked()?),
        "status" => Operation::Status(read_fields::<Status>("status", json)?.checked()?),
        "cancel" => Operation::Cancel(target("cancel")?),
        "pause" => Operation::Pause(target("pause")?),
        "resume" => Operation::Resume(target("resume")?),
        "guard" => Operation::Guard(group("guard")?),
        "unguard" => Operation::Unguard(group("unguard")?),
        _ => return Err(Error::UnknownOperation),
    })
}

fn read_fields<T: Fields>(op: &'static str, json: &[u8]) -> Result<T, Error> {
    from_json(json).map_err(|error| Error::Field { op, error })
}

fn read<'a, T: Deserialize<'a>>(op: &'static str, json: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(json).map_err(|error| Error::Field { op, error })
}

/// Converts seconds that passed the checks to a duration.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
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
