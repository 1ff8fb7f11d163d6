//! Starting a process on any Unix: the standard library, and a thread that waits for its end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions};

use super::{Child, Recipe, Stdio};

/// See [`super::Launcher::launch`]. Orphans are not adopted here: only the group is known.
pub fn launch(recipe: &Recipe, stdio: Stdio<'_>, nofile: &Rlimit) -> Result<Child, String> {
    let mut refusal = io::Error::from(io::ErrorKind::NotFound);
    for program in &recipe.programs {
        match try_program(recipe, program, stdio, nofile) {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refusal = error,
            Err(error) => return Err(recipe.explain(false, &error)),
        }
    }
    let cwd = recipe.cwd.as_ref().map(|cwd| std::ffi::OsStr::from_bytes(cwd.to_bytes()));
    match cwd.map(std::fs::read_dir) {
        Some(Err(error)) => Err(recipe.explain(true, &error)),
        _ => Err(recipe.explain(false, &os_error(refusal))),
    }
}

/// A plain kind has no words of the system's; its errno does.
fn os_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::ENOENT),
        _ => error,
    }
}

fn try_program(
    recipe: &Recipe,
    program: &std::ffi::CStr,
    stdio: Stdio<'_>,
    nofile: &Rlimit,
) -> io::Result<Child> {
    let as_os = |text: &std::ffi::CString| std::ffi::OsStr::from_bytes(text.to_bytes()).to_owned();
    let mut command = Command::new(std::ffi::OsStr::from_bytes(program.to_bytes()));
    command.arg0(as_os(&recipe.argv[0])).args(recipe.argv[1..].iter().map(as_os)).env_clear();
    for entry in &recipe.envp {
        let bytes = entry.to_bytes();
        let split = bytes.iter().position(|&b| b == b'=').unwrap_or(bytes.len());
        let (name, value) = bytes.split_at(split);
        command.env(
            std::ffi::OsStr::from_bytes(name),
            std::ffi::OsStr::from_bytes(value.get(1..).unwrap_or_default()),
        );
    }
    if let Some(cwd) = &recipe.cwd {
        command.current_dir(as_os(cwd));
    }
    command
        .stdin(stdio.stdin.try_clone_to_owned()?)
        .stdout(stdio.stdout.try_clone_to_owned()?)
        .stderr(stdio.stderr.try_clone_to_owned()?);
    let nofile = *nofile;
    // SAFETY: both calls are async-signal-safe, as code between fork and exec must be.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            let _ = rustix::process::setrlimit(Resource::Nofile, nofile);
            Ok(())
        });
    }
    let mut started = command.spawn()?;
    let pid = Pid::from_child(&started);
    match exit_notice(pid) {
        Ok(exit) => Ok(Child { pid, exit, exit_is_pidfd: false }),
        Err(error) => {
            // Nobody would notice its end, so it is not to run.
            let _ = started.kill();
            let _ = started.wait();
            Err(io::Error::other(error.to_string()))
        }
    }
}

/// A descriptor that becomes readable when `pid` has ended, without reaping it.
fn exit_notice(pid: Pid) -> io::Result<OwnedFd> {
    let (notice, held) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    std::thread::Builder::new().name("waiter".into()).stack_size(64 * 1024).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options)
        {
        }
        drop(held);
    })?;
    Ok(notice)
}
