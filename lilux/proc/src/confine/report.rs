//! What the kernel enforces for a job, and what it cannot.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The parts of a confinement that are enforced or missing independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Contents and names of files: read, write, execute.
    Fs,
    /// The network is off, or limited to internet protocols.
    Net,
    /// No unix socket outside the job can be reached.
    Unix,
    /// No process outside the job can be signalled.
    Signals,
    /// No program gives the job more rights, and root has only rights over files.
    Privileges,
    /// System calls that reach around the other parts are refused: tracing, mounts, keys, …
    Syscalls,
    /// Modes, owners, times and attributes of files outside `write` cannot be changed.
    Attributes,
    /// The paths in `read_only`.
    ReadOnly,
    /// The paths in `hidden`.
    Hidden,
    /// The limit of memory.
    Memory,
    /// The limit of processor time.
    Cpu,
    /// The limit of processes.
    Processes,
    /// The limit of the size of files.
    FileSize,
}

/// A part that was asked for and cannot be enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The part.
    pub part: Part,
    /// Why it cannot be enforced.
    pub reason: String,
}

/// What is enforced for one job, or what this machine can enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The mechanism of each enforced part.
    pub enforced: BTreeMap<Part, String>,
    /// The other parts that were asked for.
    pub missing: Vec<Missing>,
}

impl Report {
    /// Adds a part: its mechanism, or why it is missing.
    pub fn add(&mut self, part: Part, outcome: Result<impl Into<String>, impl Into<String>>) {
        match outcome {
            Ok(mechanism) => drop(self.enforced.insert(part, mechanism.into())),
            Err(reason) => self.missing.push(Missing { part, reason: reason.into() }),
        }
    }

    /// The missing parts that are required; `None` requires all.
    pub fn unmet(&self, require: Option<&[Part]>) -> Vec<Missing> {
        let required = |part| require.is_none_or(|parts| parts.contains(&part));
        self.missing.iter().filter(|missing| required(missing.part)).cloned().collect()
    }
}

impl Part {
    /// What a limit counts, for messages.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory => "bytes of memory",
            Self::Cpu => "seconds of processor time",
            Self::Processes => "processes",
            _ => "bytes in a file",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_unmet_unless_they_are_not_required() {
        let mut report = Report::default();
        report.add(Part::Fs, Ok::<_, &str>("landlock 7"));
        report.add(Part::ReadOnly, Err::<&str, _>("no namespaces"));
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"enforced":{"fs":"landlock 7"},"missing":[{"part":"read_only","reason":"no namespaces"}]}"#
        );
        assert_eq!(report.unmet(None).len(), 1);
        assert_eq!(report.unmet(Some(&[Part::ReadOnly])).len(), 1);
        assert!(report.unmet(Some(&[Part::Fs])).is_empty());
        assert!(report.unmet(Some(&[])).is_empty());
        assert_eq!(Part::FileSize.to_string(), "file_size");
    }
}
