//! A program in the form that `execve` takes.

use std::ffi::{CStr, CString, OsStr, c_char};
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
    /// The environment.
    pub envp: EnvBlock,
    /// The working directory.
    pub cwd: Option<CString>,
}

/// Variables as `NAME=VALUE`, each with a NUL at its end. In one piece of memory: allocating each of
/// them would take longer than everything else before the start of a process.
pub struct EnvBlock {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl EnvBlock {
    fn new(env: &[(OsText, OsText)]) -> Self {
        let length = |text: &OsText| text.as_bytes().len();
        let size = env.iter().map(|(name, value)| length(name) + length(value) + 2).sum();
        let mut block =
            Self { bytes: Vec::with_capacity(size), starts: Vec::with_capacity(env.len()) };
        for (name, value) in env {
            block.starts.push(block.bytes.len());
            for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
                block.bytes.extend_from_slice(part);
            }
        }
        block
    }

    /// Where each variable begins. Valid as long as the block.
    pub fn pointers(&self) -> impl Iterator<Item = *const c_char> {
        self.starts.iter().map(|&start| self.bytes[start..].as_ptr().cast())
    }

    /// The name and the value of each variable.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.starts.iter().filter_map(|&start| {
            let entry = CStr::from_bytes_until_nul(&self.bytes[start..]).ok()?.to_bytes();
            let end = entry.iter().position(|&byte| byte == b'=')?;
            Some((OsStr::from_bytes(&entry[..end]), OsStr::from_bytes(&entry[end + 1..])))
        })
    }
}

impl Invocation {
    /// `env` is the complete environment. No string contains NUL: the request was checked.
    pub fn new(program: &Program, env: &[(OsText, OsText)]) -> Self {
        let command = &program.command;
        let path = env.iter().rev().find(|(name, _)| name.as_bytes() == b"PATH");
        let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
        let programs = if command.as_bytes().contains(&b'/') {
            vec![command.to_c_string()]
        } else {
            path.split(|&b| b == b':').map(|dir| join(dir, command)).collect()
        };
        Self {
            programs,
            argv: std::iter::once(command).chain(&program.args).map(OsText::to_c_string).collect(),
            envp: EnvBlock::new(env),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_keeps_its_order_and_every_byte() {
        let value = OsText::from(OsStr::from_bytes(b"x=\xff y"));
        let env = [("A".into(), "1".into()), ("EMPTY".into(), "".into()), ("B".into(), value)];
        let block = EnvBlock::new(&env);
        let expected = env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        assert!(block.variables().eq(expected));
        // SAFETY: each pointer leads to text that ends with a NUL, and the block lives.
        let texts = block.pointers().map(|text| unsafe { CStr::from_ptr(text) }.to_bytes());
        assert!(texts.eq([&b"A=1"[..], b"EMPTY=", b"B=x=\xff y"]));
    }
}
