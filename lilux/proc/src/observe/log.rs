//! What a job has tried, of which a bounded number is kept.

use std::collections::HashMap;

use serde::Serialize;

/// The most different accesses that are kept.
const MAX_ACCESSES: usize = 4096;
/// The most bytes of their names.
const MAX_BYTES: usize = 1024 * 1024;

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A file is opened to be read, or a folder to be listed.
    Read,
    /// An existing file is opened to be written, or truncated.
    Write,
    /// A file, folder or link is created.
    Create,
    /// A file or folder is removed or gets another name.
    Remove,
    /// Mode, owner, times or attributes are changed.
    Change,
    /// A program, or the interpreter of a script, is executed.
    Execute,
    /// A socket is created, whatever it is used for.
    Socket,
    /// A socket is connected to an internet address, or data is sent to it.
    Connect,
    /// A socket gets an internet address of its own.
    Bind,
    /// A unix socket is connected to a path, bound to one, or sends to one.
    Unix,
}

/// One access.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// What was tried.
    pub what: What,
    /// A path without symbolic links, an address with its port, or a family of sockets.
    pub target: String,
    /// The path existed, from the view of the helper. Always true for what is not a path.
    pub exists: bool,
}

/// Different accesses of a job.
#[derive(Debug, Default)]
pub struct Log {
    records: Vec<Record>,
    known: HashMap<(What, String), usize>,
    bytes: usize,
    omitted: u64,
    /// Calls of processes whose memory cannot be read.
    pub unreadable: u64,
}

/// An access with the number of times that it was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    what: What,
    target: String,
    /// Before the first of these accesses.
    exists: bool,
    count: u64,
    /// The program that tried it first.
    program: String,
}

/// What a job has tried, in the order of the first attempts.
#[derive(Debug, Default, Serialize)]
pub struct Observation {
    accesses: Vec<Record>,
    /// Attempts that are not in the list, because it is full.
    omitted: u64,
    /// Attempts of processes whose memory cannot be read.
    unreadable: u64,
    /// Why nothing was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

impl Log {
    /// Adds an access. `program` is only asked if the access is new.
    pub fn add(&mut self, access: Access, program: impl FnOnce() -> String) {
        let key = (access.what, access.target);
        if let Some(&at) = self.known.get(&key) {
            self.records[at].count += 1;
            return;
        }
        let bytes = self.bytes + key.1.len();
        if self.records.len() >= MAX_ACCESSES || bytes > MAX_BYTES {
            self.omitted += 1;
            return;
        }
        self.bytes = bytes;
        let (what, target) = (key.0, key.1.clone());
        self.known.insert(key, self.records.len());
        let exists = access.exists;
        self.records.push(Record { what, target, exists, count: 1, program: program() });
    }

    /// The result. `missing` is why the job was not observed.
    pub fn into_observation(self, missing: Option<String>) -> Observation {
        let Self { records, omitted, unreadable, .. } = self;
        Observation { accesses: records, omitted, unreadable, missing }
    }
}

impl Observation {
    /// Of a job that could not be observed.
    pub fn missing(reason: String) -> Self {
        Self { missing: Some(reason), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Access {
        Access { what: What::Read, target: target.into(), exists: true }
    }

    #[test]
    fn the_same_access_is_counted() {
        let mut log = Log::default();
        log.add(read("/a"), || "/bin/sh".into());
        log.add(read("/a"), || panic!("asked again"));
        log.add(Access { what: What::Write, ..read("/a") }, || "/bin/cp".into());
        assert_eq!(
            serde_json::to_string(&log.into_observation(None)).unwrap(),
            r#"{"accesses":[{"what":"read","target":"/a","exists":true,"count":2,"program":"/bin/sh"},{"what":"write","target":"/a","exists":true,"count":1,"program":"/bin/cp"}],"omitted":0,"unreadable":0}"#
        );
    }

    #[test]
    fn a_full_list_counts_the_rest() {
        let mut log = Log::default();
        for index in 0..MAX_ACCESSES + 3 {
            log.add(read(&index.to_string()), String::new);
        }
        log.add(read("0"), String::new);
        assert_eq!((log.records.len(), log.omitted), (MAX_ACCESSES, 3));
        let mut log = Log::default();
        log.add(read(&"a".repeat(MAX_BYTES)), String::new);
        log.add(read("b"), String::new);
        assert_eq!((log.records.len(), log.omitted), (1, 1));
    }
}
