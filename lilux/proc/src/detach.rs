//! `spawn`: a process that outlives its caller.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};

use crate::error::{Error, FileRole};
use crate::files::open_output;
use crate::launch::{Bond, Child, Launcher, Stdio};
use crate::platform::Platform;
use crate::process::{self, portable};
use crate::report::SpawnReport;
use crate::request::Spawn;

/// Starts a program in its own session, with empty stdin and its output in a log file or discarded.
/// If the report has a pid, the program has been executed.
pub fn spawn_detached(launcher: &Launcher, spawn: &Spawn) -> SpawnReport {
    match start(launcher, spawn) {
        Ok(child) => {
            // Read before the child can be reaped, so it belongs to this process.
            let start_time = process::start_time(launcher.platform, child.pid);
            let pid = child.raw_pid();
            reap_in_background(child, launcher.platform);
            SpawnReport { success: true, pid: Some(pid), start_time, error: None }
        }
        Err(error) => SpawnReport { error: Some(error), ..SpawnReport::default() },
    }
}

fn start(launcher: &Launcher, spawn: &Spawn) -> Result<Child, Error> {
    spawn.program.check_command()?;
    let null: OwnedFd = OpenOptions::new().read(true).write(true).open("/dev/null")?.into();
    let log = spawn.log_file.as_ref().map(|path| open_output(FileRole::Log, path)).transpose()?;
    let output = log.as_ref().map_or(null.as_fd(), AsFd::as_fd);
    let stdio = Stdio { stdin: null.as_fd(), stdout: output, stderr: output, channel: None };
    launcher.launch(&spawn.program, stdio, Bond::Detached, None, None).map_err(Error::start)
}

/// The helper is the parent of the process, so it has to reap it.
fn reap_in_background(child: Child, platform: Platform) {
    let pid = child.raw_pid();
    if platform == Platform::Portable {
        portable::note_started(pid);
    }
    child.reap_in_background(move || portable::note_ended(pid));
}
