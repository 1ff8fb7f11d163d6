//! A program in the form that `execve` takes.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::Error;
use crate::request::Program;
use crate::text::OsText;

/// Where a command name is looked up if the process has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Everything that is passed to `execve`, and the working directory.
pub struct Invocation {
    /// Paths to try, in order, until one can be executed.
    pub programs: Vec<CString>,
    /// The command and its arguments.
    pub argv: Vec<CString>,
    /// The environment, as `NAME=VALUE`.
    pub envp: Vec<CString>,
    /// The working directory.
    pub cwd: Option<CString>,
}

impl Invocation {
    /// `env` is the complete environment. No string contains NUL: the request was checked.
    pub fn new(program: &Program, env: Vec<(OsText, OsText)>) -> Self {
        let command = &program.command;
        let path = env.iter().rev().find(|(name, _)| name.as_bytes() == b"PATH");
        let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
        let programs = if command.as_bytes().contains(&b'/') {
            vec![command.to_c_string()]
        } else {
            path.split(|&b| b == b':').map(|dir| join(dir, command)).collect()
        };
        let envp = env
            .into_iter()
            .map(|(name, value)| {
                let mut entry = name.into_bytes();
                entry.push(b'=');
                entry.extend_from_slice(value.as_bytes());
                CString::new(entry).unwrap_or_default()
            })
            .collect();
        Self {
            programs,
            argv: std::iter::once(command).chain(&program.args).map(OsText::to_c_string).collect(),
            envp,
            cwd: program.cwd.as_ref().map(OsText::to_c_string),
        }
    }

    /// The error for a working directory that cannot be entered.
    pub fn cwd_error(&self, error: io::Error) -> Error {
        Error::WorkingDirectory(self.cwd.clone().unwrap_or_default(), error)
    }

    /// The error for a program that cannot be executed. A script that exists but is "not found"
    /// has a missing interpreter.
    pub fn program_error(&self, error: io::Error) -> Error {
        let command = &self.argv[0];
        let relative_to_cwd = self.cwd.is_some() && !command.to_bytes().starts_with(b"/");
        if error.kind() == io::ErrorKind::NotFound && !relative_to_cwd {
            if let Some(script) = self.programs.iter().find(|program| is_file(program)) {
                return Error::Interpreter(script.clone());
            }
        }
        Error::Program(command.clone(), error)
    }
}

fn is_file(path: &CStr) -> bool {
    Path::new(OsStr::from_bytes(path.to_bytes())).is_file()
}

/// In POSIX, an empty part of `PATH` means the working directory.
fn join(dir: &[u8], command: &OsText) -> CString {
    let dir = if dir.is_empty() { b"." } else { dir };
    CString::new([dir, b"/", command.as_bytes()].concat()).unwrap_or_default()
}
