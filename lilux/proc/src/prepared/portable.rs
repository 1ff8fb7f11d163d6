//! Without the mechanisms of Linux there are no prepared processes.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::confine::Confined;
use crate::error::{Error, PreparedError};
use crate::job::Control;
use crate::launch::{Child, Stdio};
use crate::request::{Confinement, Exec};
use crate::text::OsText;

/// None.
#[derive(Default)]
pub struct PreparedProcesses;

/// Does not exist.
pub enum PreparedCall {}

/// Refuses.
pub fn control_socket() -> Result<(OwnedFd, OwnedFd), Error> {
    Err(PreparedError::Unsupported.into())
}

impl PreparedProcesses {
    /// Never called.
    pub fn add(&self, _: u64, _: OwnedFd, _: Option<(Confinement, Arc<Confined>)>) {}

    /// Refuses.
    pub fn call(&self, _: u64) -> Result<PreparedCall, Error> {
        Err(PreparedError::Unsupported.into())
    }

    /// Does nothing.
    pub fn end(&self, _: u64) {}
}

impl PreparedCall {
    /// Never called.
    pub fn confine(&self, _: Option<&Confinement>) -> Result<Option<Confined>, Error> {
        match *self {}
    }

    /// Never called.
    pub fn launch(
        &self,
        _: &Exec,
        _: &[(OsText, OsText)],
        _: Stdio<'_>,
        _: Option<&Confined>,
        _: &Control,
    ) -> Result<Child, Error> {
        match *self {}
    }
}
