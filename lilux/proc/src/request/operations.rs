//! The requests of the operations `exec`, `spawn`, `kill` and `status`.

use std::time::Duration;

use serde::Deserialize;
use serde::de::MapAccess;

use super::checks::{check_pid, check_seconds, check_text, check_variable};
use super::fields::{Fields, from_json};
use super::{Confinement, Program};
use crate::error::{ConfinementError, Error, PreparedError};
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
/// Seconds that an autopsy may take by default.
pub const DEFAULT_AUTOPSY_BUDGET: f64 = 0.05;
/// Default seconds between SIGTERM and SIGKILL of the `kill` operation.
pub const DEFAULT_KILL_GRACE: f64 = 3.0;

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

/// How the process of a job comes into being.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The program is executed.
    #[default]
    Program,
    /// The program is executed, and becomes a prepared process.
    Prepare,
    /// The prepared process with this id is copied.
    Prepared(u64),
}

/// When the processes of a job are looked at before they are ended.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AutopsyWhen {
    /// On timeout.
    #[default]
    Timeout,
    /// On timeout and on cancel.
    Always,
    /// Not at all.
    Never,
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
    /// What the job may touch; without it, everything that the helper may.
    pub confinement: Option<Box<Confinement>>,
    /// See [`AutopsyWhen`].
    pub autopsy: AutopsyWhen,
    /// Seconds that an autopsy may take.
    pub autopsy_budget: f64,
    /// Report what the job tries to open, change, execute and connect to.
    pub observe: bool,
    /// See [`Dialogue`].
    pub dialogue: Dialogue,
    /// See [`Start`].
    pub start: Start,
}

/// What stays open for [`Input`] while the job runs.
#[derive(Debug, Default)]
pub struct Dialogue {
    /// The stdin of the job; the field `input` of the request.
    pub stdin: bool,
    /// A socket whose number is in this variable; what the job writes there is sent at once.
    pub channel: Option<OsText>,
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
            confinement: None,
            autopsy: AutopsyWhen::default(),
            autopsy_budget: DEFAULT_AUTOPSY_BUDGET,
            observe: false,
            dialogue: Dialogue::default(),
            start: Start::default(),
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
        self.timeout.map_or(Ok(()), |timeout| check_seconds("timeout", timeout, false))?;
        check_seconds("grace", self.grace, true)?;
        check_seconds("autopsy_budget", self.autopsy_budget, true)?;
        if self.output_limit > MAX_OUTPUT_LIMIT {
            return Err(Error::OutputLimit(self.output_limit));
        }
        check_text("stdout_file", self.stdout_file.as_ref())?;
        check_text("stderr_file", self.stderr_file.as_ref())?;
        if let Some(name) = &self.dialogue.channel {
            check_variable(name)?;
        }
        if let Some(confinement) = &self.confinement {
            confinement.check()?;
            // Limits and private folders end with the job.
            if self.background == Background::Keep {
                return Err(ConfinementError::Background.into());
            }
        }
        // The calls of a process that nobody answers would fail.
        if self.observe && self.background == Background::Keep {
            return Err(ConfinementError::ObservedBackground.into());
        }
        if self.start != Start::Program {
            // The calls of a prepared process would be noted as its own.
            if self.observe {
                return Err(PreparedError::Combination("observe").into());
            }
            if self.background == Background::Keep {
                return Err(PreparedError::Combination("background: keep").into());
            }
        }
        // Its channel is for the calls.
        if self.start == Start::Prepare && (self.dialogue.stdin || self.dialogue.channel.is_some())
        {
            return Err(PreparedError::Combination("input or channel").into());
        }
        Ok(self)
    }
}

impl Fields for Exec {
    const NAMES: &'static [&'static [&'static str]] = &[
        Program::NAMES[0],
        &["stdin", "timeout", "grace", "output_limit", "stream", "capture", "background"],
        &["stdout_file", "stderr_file", "autopsy", "autopsy_budget", "confinement", "observe"],
        &["input", "channel", "start"],
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
            "confinement" => self.confinement = map.next_value()?,
            "autopsy" => self.autopsy = map.next_value()?,
            "autopsy_budget" => self.autopsy_budget = map.next_value()?,
            "observe" => self.observe = map.next_value()?,
            "input" => self.dialogue.stdin = map.next_value()?,
            "channel" => self.dialogue.channel = map.next_value()?,
            "start" => self.start = map.next_value()?,
            _ => return self.program.read(name, map),
        }
        Ok(true)
    }
}

/// A stream of a running job that takes input.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum InputStream {
    /// Descriptor 0.
    #[default]
    Stdin,
    /// The socket of its channel.
    Channel,
}

/// The `input` operation; its bytes are the payload.
#[derive(Debug, Deserialize)]
pub struct Input {
    /// The id of the running `exec`.
    pub target: u64,
    /// Where to.
    #[serde(default)]
    pub stream: InputStream,
    /// Close the stream afterwards.
    #[serde(default)]
    pub last: bool,
}

/// The most bytes of one stream that a look returns.
const MAX_LOOK: usize = 256 * 1024;

/// The `look` operation.
#[derive(Debug, Deserialize)]
pub struct Look {
    /// The id of the running `exec`.
    pub target: u64,
    /// The first byte of stdout; a negative number counts from the end.
    #[serde(default)]
    pub stdout_from: i64,
    /// The same of stderr.
    #[serde(default)]
    pub stderr_from: i64,
    /// Bytes of each stream.
    #[serde(default = "Look::max_limit")]
    pub limit: usize,
}

impl Look {
    fn max_limit() -> usize {
        MAX_LOOK
    }

    /// The request, with a limit that fits a frame.
    pub fn checked(mut self) -> Self {
        self.limit = self.limit.min(MAX_LOOK);
        self
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
    /// Reads and checks the request from a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        read_fields::<Self>("kill", json)?.checked()
    }

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
    /// Reads and checks the request from a JSON object.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        read_fields::<Self>("status", json)?.checked()
    }

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

fn read_fields<T: Fields>(op: &'static str, json: &[u8]) -> Result<T, Error> {
    from_json(json).map_err(|error| Error::Field { op, error })
}

/// Converts seconds that passed the checks to a duration.
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
}
