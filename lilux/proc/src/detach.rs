//! `spawn`: a process that outlives its caller.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};

use crate::files::open_output;
use crate::launch::{Bond, Child, Launcher, Recipe, Stdio, os_message};
use crate::platform::Platform;
use crate::process::{self, portable};
use crate::report::SpawnReport;
use crate::request::Spawn;

/// Starts it in a session of its own, with nothing on stdin and its output in a log or nowhere.
/// It is running when this returns with a pid.
pub fn spawn_detached(launcher: &Launcher, spawn: &Spawn) -> SpawnReport {
    match try_spawn(launcher, spawn) {
        Ok(child) => {
            let pid = child.pid.as_raw_nonzero().get();
            // Read before anyone can reap it, so it belongs to this process and no other.
            let start_time = process::start_time(launcher.platform, child.pid);
            reap_in_background(child, launcher.platform);
            SpawnReport { success: true, pid: Some(pid), start_time, error: None }
        }
        Err(error) => SpawnReport { error: Some(error), ..SpawnReport::default() },
    }
}

fn try_spawn(launcher: &Launcher, spawn: &Spawn) -> Result<Child, String> {
    if spawn.command.as_bytes().is_empty() {
        return Err("No command specified".into());
    }
    let nothing: OwnedFd = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| os_message(&error))?
        .into();
    let log = match &spawn.log_file {
        None => None,
        Some(path) => Some(open_output("log file", path, true)?),
    };
    let output = log.as_ref().map_or(nothing.as_fd(), AsFd::as_fd);
    let recipe = Recipe::new(
        &spawn.command,
        &spawn.args,
        spawn.cwd.as_ref(),
        launcher.environment(&spawn.env, spawn.env_mode),
    );
    let stdio = Stdio { stdin: nothing.as_fd(), stdout: output, stderr: output };
    launcher
        .launch(&recipe, stdio, Bond::Detached)
        .map_err(|error| format!("Failed to spawn: {error}"))
}

/// As long as this helper lives it is the parent, and a parent leaves no zombies.
fn reap_in_background(child: Child, platform: Platform) {
    let pid = child.pid.as_raw_nonzero().get();
    if platform == Platform::Portable {
        portable::note_started(pid);
    }
    child.reap_in_background(move || portable::note_ended(pid));
}
