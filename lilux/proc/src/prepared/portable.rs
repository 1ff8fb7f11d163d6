//! Without the mechanisms of Linux there are no prepared processes.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::confine::Confined;
use crate::error::{Error, PreparedError};
use crate::job::{Control, Watch};
use crate::launch::{Child, Stdio};
use crate::request::{Confinement, Exec};
use crate::text::OsText;

/// None.
#[derive(Default)]
pub struct PreparedProcesses;

/// Does not exist.
pub enum PreparedCall {}

/// Never used.
pub struct Waiting<'a>(std::marker::PhantomData<&'a ()>);

impl<'a> Waiting<'a> {
    /// Never used.
    pub fn new(_: &'a Control, _: &'a mut dyn Watch) -> Self {
        Self(std::marker::PhantomData)
    }
}

/// Refuses.
pub fn control_socket() -> Result<(OwnedFd, OwnedFd), Error> {
    Err(PreparedError::Unsupported.into())
}

impl PreparedProcesses {
    /// Never called.
    pub fn add(&self, _: u64, _: &Child, _: OwnedFd, _: Option<(Confinement, Arc<Confined>)>) {}

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
        _: Waiting<'_>,
    ) -> Result<Child, Error> {
        match *self {}
    }
}
