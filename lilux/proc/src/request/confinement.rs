//! What a job may touch, as the caller describes it.

use serde::Deserialize;

use super::checks::check_text;
use crate::confine::{AllowList, Part};
use crate::error::{ConfinementError, Error};
use crate::text::OsText;

/// The largest number of an `rlimit` that every kernel takes.
const MAX_LIMIT: u64 = i64::MAX as u64;
/// The most entries in one list. A profile keeps a descriptor for each.
const MAX_PATHS: usize = 256;

/// What a job may touch. What is not named is not allowed.
///
/// Paths are absolute and contain no symbolic link: a link that one job has put into a folder that it
/// may write would otherwise widen what the next job may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Confinement {
    /// Files and folders to read. One that does not exist is skipped.
    pub read: Vec<OsText>,
    /// Files and folders to read and write, but not to execute. They must exist.
    pub write: Vec<OsText>,
    /// Programs, and folders of programs, to read and execute. One that does not exist is skipped.
    pub execute: Vec<OsText>,
    /// Folders and files that are read-only although they lie inside `write`.
    pub read_only: Vec<OsText>,
    /// Files and folders that look empty although they lie inside `read` or `write`.
    pub hidden: Vec<OsText>,
    /// Which network can be reached.
    pub net: Net,
    /// Unix sockets may be created and connected.
    pub unix: bool,
    /// Environment variables that each get the path of an empty private folder, which is removed
    /// after the job.
    pub tmp: Vec<OsText>,
    /// Limits of the whole process tree.
    pub limits: Limits,
    /// The parts without which the job is not started; `None` means all.
    pub require: Option<Vec<Part>>,
}

/// Which network a job can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "lowercase",
    expecting = "confinement.net must be 'none', 'all' or a list of hosts"
)]
pub enum Net {
    /// None.
    #[default]
    None,
    /// Every network that the user can reach.
    All,
    /// These hosts, through a proxy: `api.example.org:443`, `*.example.org:443`, `localhost:80`.
    #[serde(untagged)]
    Hosts(Vec<String>),
}

/// Limits of the whole process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Seconds of processor time.
    pub cpu: Option<u64>,
    /// Number of processes.
    pub processes: Option<u64>,
    /// Bytes of each file that is written.
    pub file_size: Option<u64>,
}

impl Confinement {
    /// The lists of paths with their names.
    pub fn paths(&self) -> [(&'static str, &[OsText]); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("execute", &self.execute),
            ("read_only", &self.read_only),
            ("hidden", &self.hidden),
        ]
    }

    /// True if a profile that was compiled for `other` also fits this request.
    pub fn has_profile_of(&self, other: &Self) -> bool {
        self.paths() == other.paths()
            && (&self.net, self.unix) == (&other.net, other.unix)
            && self.tmp.is_empty() == other.tmp.is_empty()
    }

    /// Checks that every field is valid.
    pub fn check(&self) -> Result<(), Error> {
        for (name, paths) in self.paths() {
            if paths.len() > MAX_PATHS {
                return Err(ConfinementError::TooManyPaths(name, MAX_PATHS).into());
            }
            for (index, path) in paths.iter().enumerate() {
                check_text(format_args!("confinement.{name}[{index}]"), Some(path))?;
                if !path.as_bytes().starts_with(b"/") {
                    let field = format!("confinement.{name}[{index}]");
                    return Err(ConfinementError::RelativePath(field).into());
                }
            }
        }
        self.net.hosts()?;
        for name in &self.tmp {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            if name.as_bytes().is_empty() || !name.as_bytes().iter().all(plain) {
                return Err(ConfinementError::FolderName.into());
            }
        }
        for (part, limit) in self.limits.each() {
            if limit.is_some_and(|limit| limit == 0 || limit > MAX_LIMIT) {
                return Err(ConfinementError::Limit(part).into());
            }
        }
        Ok(())
    }
}

impl Net {
    /// The allowed hosts, if there is a list of them.
    pub fn hosts(&self) -> Result<Option<AllowList>, Error> {
        let Self::Hosts(hosts) = self else { return Ok(None) };
        if hosts.len() > MAX_PATHS {
            return Err(ConfinementError::TooManyHosts(MAX_PATHS).into());
        }
        let list = AllowList::parse(hosts);
        list.map(Some).map_err(|(index, error)| ConfinementError::Host(index, error).into())
    }
}

impl Limits {
    /// The limits by their parts.
    pub fn each(&self) -> [(Part, Option<u64>); 4] {
        [
            (Part::Memory, self.memory),
            (Part::Cpu, self.cpu),
            (Part::Processes, self.processes),
            (Part::FileSize, self.file_size),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        let confinement: Confinement = serde_json::from_str(json).unwrap();
        confinement.check().unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_allowed_by_default() {
        let confinement: Confinement = serde_json::from_str("{}").unwrap();
        assert!(confinement.check().is_ok());
        assert!(confinement.paths().iter().all(|(_, paths)| paths.is_empty()));
        assert_eq!((confinement.net, confinement.unix), (Net::None, false));
    }

    #[test]
    fn bad_values_are_named() {
        assert_eq!(
            refusal(r#"{"write": ["/a", "b"]}"#),
            "confinement.write[1] is not an absolute path"
        );
        assert_eq!(
            refusal(r#"{"read": ["/a\u0000b"]}"#),
            "confinement.read[0] contains a NUL byte; remove it"
        );
        assert_eq!(
            refusal(r#"{"limits": {"memory": 0}}"#),
            "confinement.limits.memory must be at least 1 and less than 2^63"
        );
        assert_eq!(
            refusal(r#"{"tmp": ["A/B"]}"#),
            "confinement.tmp must be names of environment variables of letters, digits and '_'"
        );
        assert_eq!(
            refusal(r#"{"net": ["a.org:443", "b.org"]}"#),
            "confinement.net[1] needs a port from 1 to 65535, as in api.example.org:443"
        );
        assert!(serde_json::from_str::<Confinement>(r#"{"net": "some"}"#).is_err());
        assert!(serde_json::from_str::<Confinement>(r#"{"nets": "none"}"#).is_err());
        assert!(serde_json::from_str::<Confinement>(r#"{"require": ["magic"]}"#).is_err());
    }

    #[test]
    fn limits_do_not_need_another_profile() {
        let parse = |json| serde_json::from_str::<Confinement>(json).unwrap();
        let plain = parse(r#"{"read": ["/usr"]}"#);
        assert!(parse(r#"{"read": ["/usr"], "limits": {"cpu": 1}}"#).has_profile_of(&plain));
        assert!(!parse(r#"{"read": ["/usr"], "net": "all"}"#).has_profile_of(&plain));
        assert!(!parse(r#"{"read": ["/usr"], "net": ["a.org:443"]}"#).has_profile_of(&plain));
        assert!(!parse(r#"{"read": ["/bin"]}"#).has_profile_of(&plain));
        assert!(!parse(r#"{"read": ["/usr"], "tmp": ["TMPDIR"]}"#).has_profile_of(&plain));
    }
}
