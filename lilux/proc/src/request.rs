//! What a caller may ask for, and the checks that every request passes before anything runs.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::time::Duration;

use crate::checks::{check_exec, check_path, check_pid, check_seconds, check_strings};
use crate::text::OsText;

/// Bytes kept of each output stream unless the request says otherwise.
pub const DEFAULT_OUTPUT_LIMIT: usize = 10 * 1024 * 1024;
/// The largest output limit that can be asked for; two streams and a header still fit a frame.
pub const MAX_OUTPUT_LIMIT: usize = 1024 * 1024 * 1024;
/// Seconds that a job may run unless the request says otherwise.
pub const DEFAULT_TIMEOUT: f64 = 300.0;
/// The longest time span that a request may name: a leap year, in seconds.
pub const MAX_SECONDS: f64 = 366.0 * 24.0 * 3600.0;
/// Seconds between SIGTERM and SIGKILL when a job is ended early.
pub const DEFAULT_JOB_GRACE: f64 = 0.2;
/// Seconds between SIGTERM and SIGKILL of the `kill` operation.
pub const DEFAULT_KILL_GRACE: f64 = 3.0;

/// A request that cannot be carried out, said so that the caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// `invalid_frame`, `invalid_request` or `unknown_operation`.
    pub kind: &'static str,
    /// Names the field, never a value that could be a secret.
    pub message: String,
}

impl Invalid {
    /// A frame that is not what the protocol says.
    pub fn frame(message: impl Into<String>) -> Self {
        Self { kind: "invalid_frame", message: message.into() }
    }

    /// An operation that there is not, or not for this caller.
    pub fn unknown_operation() -> Self {
        let message =
            "unknown operation; use one of exec, spawn, kill, status, cancel, pause, resume";
        Self { kind: "unknown_operation", message: message.into() }
    }

    /// The machine gives us no thread.
    pub fn busy() -> Self {
        let message = "no thread or descriptor is free for it; try again when others have ended";
        Self { kind: "unavailable", message: message.into() }
    }

    /// A request that asks for what cannot be.
    pub fn request(message: impl Into<String>) -> Self {
        Self { kind: "invalid_request", message: message.into() }
    }
}

/// The operations of `lilux-proc`.
#[derive(Debug)]
pub enum Operation {
    /// Run a command and wait for it.
    Exec(Box<Exec>),
    /// Start a command that outlives its caller.
    Spawn(Box<Spawn>),
    /// End a process: SIGTERM, then SIGKILL.
    Kill(Kill),
    /// Say whether a process is alive.
    Status(Status),
    /// End the running `exec` that has this id.
    Cancel(u64),
    /// Stop reading the output of a streaming `exec` (true), or go on (false).
    Hold(u64, bool),
    /// Portable supervision only: end this process group should the caller vanish.
    Guard(i32),
    /// Portable supervision only: the group is gone.
    Unguard(i32),
}

/// An ordered environment, later names winning over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct EnvMap(pub Vec<(OsText, OsText)>);

/// What happens to the environment of the helper itself.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EnvMode {
    /// The given variables are laid over the helper's own.
    #[default]
    Merge,
    /// The given variables are all there is.
    Exact,
}

/// What happens to processes that a job leaves running when it ends normally.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// They are ended, and counted in the result.
    #[default]
    End,
    /// They live on. (A timeout or a cancel still ends the whole tree.)
    Keep,
}

// `_id` and `_op` were read before; they are named so that no other field goes unnoticed.

/// The `exec` operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exec {
    #[serde(rename = "id")]
    pub(crate) _id: IgnoredAny,
    #[serde(rename = "op")]
    pub(crate) _op: IgnoredAny,
    /// A name looked up on the job's PATH, or a path.
    pub command: OsText,
    /// Passed as they are; no shell sees them.
    pub args: Vec<OsText>,
    /// Where the job starts.
    pub cwd: Option<OsText>,
    /// See [`EnvMode`].
    pub env: EnvMap,
    /// See [`EnvMode`].
    pub env_mode: EnvMode,
    /// Text for the job's stdin; over a connection the frame's payload is used instead.
    pub stdin: Option<OsText>,
    /// Seconds; null means no limit.
    #[serde(deserialize_with = "some_timeout")]
    pub timeout: Option<f64>,
    /// Seconds between SIGTERM and SIGKILL on timeout or cancel.
    pub grace: f64,
    /// Bytes kept of each stream.
    pub output_limit: usize,
    /// Send output as it comes.
    pub stream: bool,
    /// Keep output for the result.
    pub capture: bool,
    /// See [`Background`].
    pub background: Background,
    /// The whole of stdout is also written here.
    pub stdout_file: Option<OsText>,
    /// The whole of stderr is also written here.
    pub stderr_file: Option<OsText>,
}

impl Default for Exec {
    fn default() -> Self {
        Self {
            _id: IgnoredAny,
            _op: IgnoredAny,
            command: OsText::default(),
            args: Vec::new(),
            cwd: None,
            env: EnvMap::default(),
            env_mode: EnvMode::default(),
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

/// The `spawn` operation.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Spawn {
    #[serde(rename = "id")]
    pub(crate) _id: IgnoredAny,
    #[serde(rename = "op")]
    pub(crate) _op: IgnoredAny,
    /// A name looked up on the process's PATH, or a path.
    pub command: OsText,
    /// Passed as they are; no shell sees them.
    pub args: Vec<OsText>,
    /// Where the process starts.
    pub cwd: Option<OsText>,
    /// See [`EnvMode`].
    pub env: EnvMap,
    /// See [`EnvMode`].
    pub env_mode: EnvMode,
    /// stdout and stderr are appended here; without it they go nowhere.
    pub log_file: Option<OsText>,
}

/// The `kill` operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "op")]
    _op: IgnoredAny,
    /// The process.
    pub pid: i32,
    /// Seconds between SIGTERM and SIGKILL.
    #[serde(default = "default_kill_grace")]
    pub grace: f64,
    /// What `spawn` told; guards against a pid that was given to another process since.
    #[serde(default)]
    pub start_time: Option<u64>,
}

/// The `status` operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "op")]
    _op: IgnoredAny,
    /// The process.
    pub pid: i32,
    /// See [`Kill::start_time`].
    #[serde(default)]
    pub start_time: Option<u64>,
}

#[derive(Deserialize)]
struct Target {
    target: u64,
}

#[derive(Deserialize)]
struct GroupId {
    pid: i32,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: u64,
    op: String,
}

fn default_kill_grace() -> f64 {
    DEFAULT_KILL_GRACE
}

/// Present and null means "no limit"; absent takes the default of the struct.
fn some_timeout<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Option::<f64>::deserialize(deserializer)
}

impl<'de> Deserialize<'de> for EnvMap {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = EnvMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvMap, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(EnvMap(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Reads one request. The id is given even for a request that is refused, where it can be read.
pub fn parse(json: &[u8]) -> (u64, Result<Operation, Invalid>) {
    match serde_json::from_slice::<Head>(json) {
        Ok(head) => (head.id, parse_operation(&head.op, json)),
        Err(error) => {
            let id = serde_json::from_slice::<serde_json::Value>(json)
                .ok()
                .and_then(|value| value.get("id")?.as_u64())
                .unwrap_or(0);
            (id, Err(Invalid::request(format!("the request is not understood: {}", told(&error)))))
        }
    }
}

/// Reads a request whose operation is known.
pub fn parse_operation(op: &str, json: &[u8]) -> Result<Operation, Invalid> {
    match op {
        "exec" => {
            let exec: Exec = read(op, json)?;
            check_exec(&exec)?;
            Ok(Operation::Exec(Box::new(exec)))
        }
        "spawn" => {
            let spawn: Spawn = read(op, json)?;
            check_strings(&spawn.command, &spawn.args, spawn.cwd.as_ref(), &spawn.env)?;
            check_path("log_file", spawn.log_file.as_ref())?;
            Ok(Operation::Spawn(Box::new(spawn)))
        }
        "kill" => {
            let kill: Kill = read(op, json)?;
            check_pid(kill.pid)?;
            if kill.pid == 1 {
                return Err(Invalid::request("pid 1 is the system's own and is not ended"));
            }
            check_seconds("grace", kill.grace, true)?;
            Ok(Operation::Kill(kill))
        }
        "status" => {
            let status: Status = read(op, json)?;
            check_pid(status.pid)?;
            Ok(Operation::Status(status))
        }
        "cancel" => Ok(Operation::Cancel(read::<Target>(op, json)?.target)),
        "pause" => Ok(Operation::Hold(read::<Target>(op, json)?.target, true)),
        "resume" => Ok(Operation::Hold(read::<Target>(op, json)?.target, false)),
        "guard" => Ok(Operation::Guard(read::<GroupId>(op, json)?.pid)),
        "unguard" => Ok(Operation::Unguard(read::<GroupId>(op, json)?.pid)),
        _ => Err(Invalid::unknown_operation()),
    }
}

fn read<'a, T: Deserialize<'a>>(op: &str, json: &'a [u8]) -> Result<T, Invalid> {
    serde_json::from_slice(json)
        .map_err(|error| Invalid::request(format!("{op} request: {}", told(&error))))
}

/// The decoder's message without the value that it quotes, which may be a secret.
fn told(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let quotes_a_value = ["invalid type", "invalid value", "invalid length", "unknown variant"]
        .into_iter()
        .find(|kind| message.starts_with(kind));
    match (quotes_a_value, message.rfind(", expected ")) {
        (Some(kind), Some(at)) => format!("{kind}{}", &message[at..]),
        _ => message,
    }
}

/// Seconds that passed `checks::check_seconds`, as a duration.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        parse(json.as_bytes()).1.unwrap_err().message
    }

    #[test]
    fn an_absent_timeout_is_the_default_and_null_is_none() {
        let exec = |json: &str| match parse(json.as_bytes()).1.unwrap() {
            Operation::Exec(exec) => exec.timeout,
            _ => unreachable!(),
        };
        assert_eq!(exec(r#"{"op":"exec"}"#), Some(DEFAULT_TIMEOUT));
        assert_eq!(exec(r#"{"op":"exec","timeout":null}"#), None);
        assert_eq!(exec(r#"{"op":"exec","timeout":2}"#), Some(2.0));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_quoted_back() {
        let message = refusal(r#"{"op":"exec","args":"s3cret, expected nothing"}"#);
        assert!(!message.contains("s3cret"), "{message}");
        assert!(
            message.starts_with("exec request: invalid type, expected a sequence"),
            "{message}"
        );
    }

    #[test]
    fn absurd_numbers_are_named() {
        assert_eq!(
            refusal(r#"{"op":"exec","timeout":-1}"#),
            "timeout must be a number of seconds above 0 and at most 31622400, got -1"
        );
        assert!(refusal(r#"{"op":"exec","timeout":1e300}"#).starts_with("timeout must be"));
        assert!(refusal(r#"{"op":"kill","pid":0}"#).starts_with("pid must be a positive number"));
        assert!(refusal(r#"{"op":"exec","output_limit":9999999999}"#).contains("stdout_file"));
    }

    #[test]
    fn a_nul_byte_is_refused_by_field() {
        assert_eq!(
            refusal(r#"{"op":"exec","command":"a","args":["b","c\u0000d"]}"#),
            "args[1] contains a NUL byte, which no program can be given; remove it"
        );
        assert!(refusal(r#"{"op":"exec","env":{"A=B":"x"}}"#).contains("'='"));
    }

    #[test]
    fn the_id_of_a_refused_request_is_kept() {
        assert_eq!(parse(br#"{"id":7,"op":"dance"}"#).0, 7);
        assert_eq!(parse(br#"{"id":8,"op":5}"#).0, 8);
        assert_eq!(parse(b"not json").0, 0);
    }
}
