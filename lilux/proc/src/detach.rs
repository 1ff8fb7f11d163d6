//! `spawn`: a process that outlives its caller.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

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
    let open = |path: &std::ffi::OsStr, options: &OpenOptions| -> Result<OwnedFd, String> {
        let file = options.open(path);
        let file =
            file.map_err(|e| format!("log file {}: {}", path.to_string_lossy(), os_message(&e)))?;
        Ok(file.into())
    };
    let nothing = open("/dev/null".as_ref(), OpenOptions::new().read(true).write(true))?;
    let log = match &spawn.log_file {
        None => None,
        // A log may hold secrets, so a new one is for its owner only.
        Some(path) => {
            Some(open(path.as_os_str(), OpenOptions::new().create(true).append(true).mode(0o600))?)
        }
    };
    let output = log.as_ref().unwrap_or(&nothing).as_fd();
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
    let reaper = std::thread::Builder::new().name("reaper".into()).stack_size(64 * 1024);
    let _ = reaper.spawn(move || {
        let _ = child.reap();
        portable::note_ended(pid);
    });
}
