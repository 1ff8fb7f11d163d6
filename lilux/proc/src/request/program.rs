//! What to run: the part that `exec` and `spawn` have in common.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use super::checks::{check_text, check_variable};
use super::fields::Fields;
use crate::error::Error;
use crate::text::OsText;

/// A program with its arguments, working directory and environment.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// A path, or a name that is looked up on the `PATH` of the new process.
    pub command: OsText,
    /// Passed unchanged; no shell is involved.
    pub args: Vec<OsText>,
    /// The working directory.
    pub cwd: Option<OsText>,
    /// Environment variables.
    pub env: EnvMap,
    /// How `env` is combined with the helper's environment.
    pub env_mode: EnvMode,
}

/// Environment variables in order; a later one overrides an earlier one of the same name.
#[derive(Debug, Clone, Default)]
pub struct EnvMap(pub Vec<(OsText, OsText)>);

/// How the given variables are combined with the helper's environment.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq, Default, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EnvMode {
    /// Add the variables to the environment of lilux-proc.
    #[default]
    Merge,
    /// Use only the given variables.
    Exact,
}

impl Program {
    /// Checks that the operating system can take every string.
    pub fn check(&self) -> Result<(), Error> {
        check_text("command", Some(&self.command))?;
        check_text("cwd", self.cwd.as_ref())?;
        for (index, arg) in self.args.iter().enumerate() {
            check_text(format_args!("args[{index}]"), Some(arg))?;
        }
        for (name, value) in &self.env.0 {
            check_variable(name)?;
            if value.has_nul() {
                return Err(Error::NulByte(format!("env[{:?}]", name.display())));
            }
        }
        Ok(())
    }

    /// Checks that there is something to run.
    pub fn check_command(&self) -> Result<(), Error> {
        if self.command.as_bytes().is_empty() { Err(Error::NoCommand) } else { Ok(()) }
    }
}

impl Fields for Program {
    const NAMES: &'static [&'static [&'static str]] =
        &[&["command", "args", "cwd", "env", "env_mode"]];

    fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "command" => self.command = map.next_value()?,
            "args" => self.args = map.next_value()?,
            "cwd" => self.cwd = map.next_value()?,
            "env" => self.env = map.next_value()?,
            "env_mode" => self.env_mode = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'de> Deserialize<'de> for EnvMap {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = EnvMap;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvMap, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(64));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(EnvMap(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
