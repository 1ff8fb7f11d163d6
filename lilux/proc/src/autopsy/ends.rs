//! Which processes of a job hold the other end of a pipe or of a FIFO, or a lock.

use std::collections::HashMap;
use std::fs;

use super::procfs::descriptors;

/// The processes that can read and write each pipe and FIFO.
#[derive(Default)]
pub struct Ends {
    readers: HashMap<String, Vec<i32>>,
    writers: HashMap<String, Vec<i32>>,
}

impl Ends {
    /// Adds the descriptors of a process.
    pub fn add(&mut self, pid: i32) {
        for descriptor in descriptors(pid) {
            let name = descriptor.target;
            if !name.starts_with("pipe:") && !name.starts_with('/') {
                continue;
            }
            for (ends, open) in
                [(&mut self.readers, descriptor.reads), (&mut self.writers, descriptor.writes)]
            {
                let pids = ends.entry(name.clone()).or_default();
                if open && pids.last() != Some(&pid) {
                    pids.push(pid);
                }
            }
        }
    }

    /// The processes that can write to it.
    pub fn writers(&self, target: &str) -> &[i32] {
        self.writers.get(target).map_or(&[], Vec::as_slice)
    }

    /// The processes that can read from it.
    pub fn readers(&self, target: &str) -> &[i32] {
        self.readers.get(target).map_or(&[], Vec::as_slice)
    }
}

/// The process that holds the lock that this one waits for.
pub fn lock_holder(pid: i32) -> Option<i32> {
    holder_in(&fs::read_to_string("/proc/locks").ok()?, pid)
}

fn holder_in(table: &str, pid: i32) -> Option<i32> {
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
    let waits = |line: &&Vec<&str>| {
        line.get(1) == Some(&"->") && line.get(5).and_then(|text| text.parse().ok()) == Some(pid)
    };
    let number = *lines.iter().find(waits)?.first()?;
    let holds = |line: &&Vec<&str>| line.first() == Some(&number) && line.get(1) != Some(&"->");
    lines.iter().find(holds)?.get(4)?.parse().ok().filter(|&holder| holder > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let table = "1: POSIX  ADVISORY  WRITE 10 08:01:5 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 20 08:01:6 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 30 08:01:6 0 EOF\n";
        assert_eq!(holder_in(table, 30), Some(20));
        assert_eq!(holder_in(table, 20), None);
    }
}
