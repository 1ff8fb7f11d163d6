//! The limits of a confined job while it runs.

use std::sync::Arc;
use std::time::Instant;

#[cfg(target_os = "linux")]
use crate::confine::limits::Watcher;
use crate::confine::{Confined, Part, Report};
use crate::error::Error;
use crate::launch::{Child, Ended, Launcher};
use crate::prepared::PreparedCall;
#[cfg(target_os = "linux")]
use crate::request::Start;
use crate::request::{Exec, Limits};

/// The confinement of a running job. Its private folder is removed when it is dropped.
pub struct Confinement {
    confined: Arc<Confined>,
    limits: Limits,
    #[cfg(target_os = "linux")]
    watcher: Option<Watcher>,
}

impl Confinement {
    /// Prepares the confinement of a job, if it has one.
    pub fn prepare(exec: &Exec, launcher: &Launcher) -> Result<Option<Self>, Error> {
        let Some(request) = &exec.confinement else { return Ok(None) };
        #[cfg_attr(not(target_os = "linux"), allow(unused_mut, reason = "changed on Linux alone"))]
        let mut confined = launcher.confiner.confine(request)?;
        #[cfg(target_os = "linux")]
        if exec.start == Start::Prepare {
            confined.forbid_carrier();
        }
        let mut own = Self::new(confined, request.limits);
        #[cfg(target_os = "linux")]
        if exec.start == Start::Prepare {
            // Once it is prepared, it only waits.
            own.watcher.iter_mut().for_each(Watcher::relax);
        }
        Ok(Some(own))
    }

    /// The confinement of a call of a prepared process.
    pub fn of_call(exec: &Exec, call: &PreparedCall) -> Result<Option<Self>, Error> {
        let limits = exec.confinement.as_ref().map(|request| request.limits).unwrap_or_default();
        let confined = call.confine(exec.confinement.as_deref())?;
        Ok(confined.map(|confined| Self::new(confined, limits)))
    }

    fn new(confined: Confined, limits: Limits) -> Self {
        #[cfg(target_os = "linux")]
        let watcher = confined.is_watched().then(|| Watcher::new(limits)).flatten();
        Self {
            confined: Arc::new(confined),
            limits,
            #[cfg(target_os = "linux")]
            watcher,
        }
    }

    /// For the calls of a prepared process.
    pub fn shared(&self) -> Arc<Confined> {
        Arc::clone(&self.confined)
    }

    /// For the launch.
    pub fn confined(&self) -> &Confined {
        &self.confined
    }

    /// When [`Self::exceeded`] has to be called next.
    pub fn next_check(&self) -> Option<Instant> {
        #[cfg(target_os = "linux")]
        return self.watcher.as_ref().map(Watcher::next);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The limit that the tree of the job exceeds now.
    pub fn exceeded(&mut self, child: &Child) -> Option<Part> {
        #[cfg(target_os = "linux")]
        return self.watcher.as_mut()?.check(child.pid);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = child;
            None
        }
    }

    /// The limit of the kernel that ended the job's own process.
    pub fn ended_by(&self, ended: Option<Ended>) -> Option<Part> {
        match ended {
            Some(Ended::Signal(libc::SIGXFSZ)) if self.limits.file_size.is_some() => {
                Some(Part::FileSize)
            }
            Some(Ended::Signal(libc::SIGXCPU)) if self.limits.cpu.is_some() => Some(Part::Cpu),
            _ => None,
        }
    }

    /// The message for a limit that was exceeded.
    pub fn message(&self, part: Part) -> Error {
        let limits = self.limits.each();
        let limit = limits.iter().find(|(name, _)| *name == part).and_then(|(_, limit)| *limit);
        Error::LimitExceeded(part, limit.unwrap_or_default())
    }

    /// What was enforced. Removes the private folder.
    pub fn finish(self) -> Report {
        self.confined.report.clone()
    }
}
