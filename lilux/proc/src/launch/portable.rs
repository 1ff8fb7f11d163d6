//! Starting a process on any Unix: the standard library, and a thread that waits for the end.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, waitid};

use super::Stdio;
use super::child::{Child, ExitNotice};
use super::invocation::Invocation;
use crate::error::Error;
use crate::sync::start_thread;

/// See [`super::Launcher::launch`]. Orphans are not adopted; only the process group is known.
pub fn launch(invocation: &Invocation, stdio: Stdio<'_>, nofile: &Rlimit) -> Result<Child, Error> {
    let mut reason = io::Error::from_raw_os_error(libc::ENOENT);
    for program in &invocation.programs {
        match try_program(invocation, program, stdio, nofile) {
            Ok(child) => return Ok(child),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {}
                io::ErrorKind::PermissionDenied => reason = error,
                _ => return Err(invocation.program_error(error)),
            },
        }
    }
    // The standard library does not say whether chdir or exec failed.
    match invocation.cwd.as_ref().map(|cwd| std::fs::read_dir(os_str(cwd))) {
        Some(Err(error)) => Err(invocation.cwd_error(error)),
        _ => Err(invocation.program_error(reason)),
    }
}

fn try_program(
    invocation: &Invocation,
    program: &CStr,
    stdio: Stdio<'_>,
    nofile: &Rlimit,
) -> io::Result<Child> {
    let args = |from: usize| invocation.argv[from..].iter().map(CString::as_c_str).map(os_str);
    let mut command = Command::new(os_str(program));
    command.arg0(os_str(&invocation.argv[0])).args(args(1));
    command.env_clear().envs(invocation.envp.variables());
    if let Some(cwd) = &invocation.cwd {
        command.current_dir(os_str(cwd));
    }
    command
        .stdin(stdio.stdin.try_clone_to_owned()?)
        .stdout(stdio.stdout.try_clone_to_owned()?)
        .stderr(stdio.stderr.try_clone_to_owned()?);
    let nofile = *nofile;
    let channel = stdio.channel.map(|(fd, _)| fd.as_raw_fd());
    // SAFETY: all calls are async-signal-safe, as code between fork and exec must be.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            let _ = rustix::process::setrlimit(Resource::Nofile, nofile);
            if channel.is_some_and(|fd| libc::fcntl(fd, libc::F_SETFD, 0) < 0) {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut started = command.spawn()?;
    let pid = Pid::from_child(&started);
    match exit_notice(pid) {
        Ok(notice) => Ok(Child::new(pid, ExitNotice::Pipe(notice))),
        Err(error) => {
            // Its end would go unnoticed, so it must not run.
            let _ = started.kill();
            let _ = started.wait();
            Err(error)
        }
    }
}

fn os_str(text: &CStr) -> &OsStr {
    OsStr::from_bytes(text.to_bytes())
}

/// A descriptor that becomes readable when `pid` has ended, without reaping it.
fn exit_notice(pid: Pid) -> io::Result<OwnedFd> {
    let (notice, open_while_running) = pipe_with(PipeFlags::CLOEXEC)?;
    start_thread("waiter", move || {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), ended) {}
        drop(open_while_running);
    })?;
    Ok(notice)
}
