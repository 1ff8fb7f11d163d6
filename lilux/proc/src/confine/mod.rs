//! Confinement: the kernel holds a job to what its request allows.
//!
//! A request is compiled into a `profile` once. The parts are independent, so that a machine that
//! lacks one still enforces the others, and each job reports what was enforced:
//!
//! - `landlock`: contents and names of files, signals; no privileges needed
//! - `seccomp` (built by `bpf`): sockets, and system calls that reach around the rest
//! - `namespaces` (created by `holder`): no network; read-only and hidden paths
//! - `proxy`: a network of some `hosts`
//! - `limits`: memory, processor time and processes of the tree
//!
//! `child` applies all of it between `clone` and `execve`; what a `carrier` has already, the child
//! inherits.

#[cfg(target_os = "linux")]
pub mod bpf;
#[cfg(target_os = "linux")]
mod carrier;
#[cfg(target_os = "linux")]
mod child;
mod folder;
#[cfg(target_os = "linux")]
pub mod holder;
mod hosts;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
pub mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod profile;
#[cfg(target_os = "linux")]
mod proxy;
mod report;
#[cfg(target_os = "linux")]
mod rooms;
#[cfg(target_os = "linux")]
pub mod seccomp;

#[cfg(target_os = "linux")]
pub use child::ChildSteps;
pub use hosts::{AllowList, HostError};
pub use report::{Missing, Part, Report};

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::sync::{Mutex, OnceLock};

#[cfg(target_os = "linux")]
use self::carrier::Carrier;
use self::folder::PrivateFolder;
#[cfg(target_os = "linux")]
use self::limits::{ProcessLimit, process_limits};
#[cfg(target_os = "linux")]
use self::profile::Profile;
#[cfg(target_os = "linux")]
use self::proxy::{Proxy, Visit};
#[cfg(target_os = "linux")]
use self::rooms::{Room, Rooms};
use crate::error::{ConfinementError, Error, PreparedError};
use crate::platform::Platform;
use crate::request::Confinement;
#[cfg(target_os = "linux")]
use crate::sync::lock;
use crate::text::OsText;

/// At most this many profiles are kept; fewer if descriptors are scarce, because each profile keeps
/// those of its paths and namespaces.
#[cfg(target_os = "linux")]
const MAX_PROFILES: usize = 64;
#[cfg(target_os = "linux")]
const DESCRIPTORS_PER_PROFILE: u64 = 64;

/// Compiles confinements and remembers them.
pub struct Confiner {
    platform: Platform,
    /// The profiles that were used last; the latest is at the end.
    #[cfg(target_os = "linux")]
    profiles: Mutex<Vec<Arc<Profile>>>,
    /// Held while a profile is compiled, so that concurrent jobs do not compile the same one.
    #[cfg(target_os = "linux")]
    compiling: Mutex<()>,
    /// No more jobs come, so nothing is kept for them.
    closed: Arc<AtomicBool>,
}

/// The confinement of one job. Its private folder is removed when it is dropped.
pub struct Confined {
    /// What is enforced.
    pub report: Report,
    /// The environment variables of the private folder and of the proxy.
    pub variables: Vec<(OsText, OsText)>,
    _folder: Option<PrivateFolder>,
    #[cfg(target_os = "linux")]
    applied: Option<Applied>,
}

#[cfg(target_os = "linux")]
struct Applied {
    profile: Arc<Profile>,
    /// The private folder of the job, and where it belongs.
    room: Option<(Room, Arc<Rooms>)>,
    /// For the private folders of the calls of a prepared process, inside its own.
    inner_rooms: OnceLock<Arc<Rooms>>,
    /// The prepared process that this is a call of, which is confined at least as long.
    prepared: Option<Arc<Confined>>,
    limits: Vec<ProcessLimit>,
    /// A carrier may start the process.
    may_be_carried: bool,
    /// Dropped with the job, which ends its connections.
    visit: Option<Visit>,
    closed: Arc<AtomicBool>,
}

#[cfg(target_os = "linux")]
impl Applied {
    /// Occupies a private folder in `rooms`.
    fn new(
        profile: Arc<Profile>,
        rooms: Option<Arc<Rooms>>,
        tmp: &[OsText],
        closed: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let room = match rooms {
            Some(rooms) => Some((profile.room(&rooms, tmp)?, rooms)),
            None => None,
        };
        let visit = profile.proxy().map(Proxy::visit);
        let (inner_rooms, prepared, limits) = (OnceLock::new(), None, Vec::new());
        let may_be_carried = true;
        Ok(Self { profile, room, inner_rooms, prepared, limits, may_be_carried, visit, closed })
    }

    fn variables(&self) -> Vec<(OsText, OsText)> {
        let folders = self.room.iter().flat_map(|(room, _)| room.folder.variables());
        let proxy = self.visit.iter().flat_map(|_| proxy::variables());
        folders.chain(proxy).collect()
    }

    /// The ruleset that allows the private folder.
    fn own_ruleset(&self) -> Option<&OwnedFd> {
        self.room.as_ref().and_then(|(room, _)| room.ruleset.as_ref())
    }

    /// For the private folders of calls, inside that of the prepared process.
    fn inner_rooms(&self) -> Option<Arc<Rooms>> {
        let (room, _) = self.room.as_ref()?;
        let rooms = || Arc::new(Rooms::new(room.folder.path().to_owned()));
        Some(Arc::clone(self.inner_rooms.get_or_init(rooms)))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Applied {
    fn drop(&mut self) {
        if let Some(inner) = self.inner_rooms.get() {
            inner.remove_idle();
        }
        if let Some((room, rooms)) = self.room.take() {
            rooms.vacate(room);
        }
        if self.closed.load(Ordering::SeqCst) {
            self.profile.remove_idle_folders();
        }
    }
}

impl Confiner {
    /// Compiles nothing yet.
    pub fn new(platform: Platform) -> Self {
        Self {
            platform,
            #[cfg(target_os = "linux")]
            profiles: Mutex::default(),
            #[cfg(target_os = "linux")]
            compiling: Mutex::default(),
            closed: Arc::default(),
        }
    }

    /// Prepares the confinement of one job. Fails if a required part cannot be enforced.
    pub fn confine(&self, request: &Confinement) -> Result<Confined, Error> {
        let confined = match self.platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => self.on_linux(request)?,
            Platform::Portable => unconfined(request)?,
        };
        let unmet = confined.report.unmet(request.require.as_deref());
        if unmet.is_empty() {
            Ok(confined)
        } else {
            Err(ConfinementError::NotEnforced(unmet).into())
        }
    }

    /// Removes what is kept for later jobs.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        #[cfg(target_os = "linux")]
        for profile in lock(&self.profiles).iter() {
            profile.remove_idle_folders();
        }
    }

    /// What this machine can enforce.
    pub fn probe(&self) -> Result<Report, Error> {
        let request = Confinement {
            read_only: vec!["/".into()],
            hidden: vec!["/dev/zero".into()],
            limits: crate::request::Limits {
                memory: Some(u64::MAX),
                cpu: Some(u64::MAX),
                processes: Some(u64::MAX),
                file_size: Some(u64::MAX),
            },
            require: Some(Vec::new()),
            ..Confinement::default()
        };
        Ok(self.confine(&request)?.report)
    }

    #[cfg(target_os = "linux")]
    fn on_linux(&self, request: &Confinement) -> Result<Confined, Error> {
        let profile = self.profile(request)?;
        let mut report = profile.report().clone();
        for (part, limit) in request.limits.each() {
            if limit.is_some() {
                let mechanism = if part == Part::FileSize { "rlimit" } else { "watched" };
                report.add(part, Ok::<_, &str>(mechanism));
            }
        }
        let rooms = profile.rooms().cloned();
        let mut applied = Applied::new(profile, rooms, &request.tmp, Arc::clone(&self.closed))?;
        applied.limits = process_limits(&request.limits);
        Ok(Confined {
            report,
            variables: applied.variables(),
            _folder: None,
            applied: Some(applied),
        })
    }

    #[cfg(target_os = "linux")]
    fn profile(&self, request: &Confinement) -> Result<Arc<Profile>, Error> {
        if let Some(profile) = self.known(request) {
            return Ok(profile);
        }
        let _one_at_a_time = lock(&self.compiling);
        if let Some(profile) = self.known(request) {
            return Ok(profile);
        }
        let profile = Arc::new(Profile::compile(request)?);
        let mut profiles = lock(&self.profiles);
        if profiles.len() >= max_profiles() {
            profiles.remove(0);
        }
        profiles.push(Arc::clone(&profile));
        Ok(profile)
    }

    /// A profile that was compiled before and still fits.
    #[cfg(target_os = "linux")]
    fn known(&self, request: &Confinement) -> Option<Arc<Profile>> {
        let profile = {
            let mut profiles = lock(&self.profiles);
            let at = profiles.iter().rposition(|profile| profile.is_for(request))?;
            let profile = profiles.remove(at);
            profiles.push(Arc::clone(&profile));
            profile
        };
        // Without the lock: a file system that does not answer must only block this job.
        if profile.is_current() {
            return Some(profile);
        }
        lock(&self.profiles).retain(|kept| !Arc::ptr_eq(kept, &profile));
        None
    }
}

impl Confined {
    /// True if limits are enforced, which includes watching the tree.
    #[cfg(target_os = "linux")]
    pub fn is_watched(&self) -> bool {
        self.applied.is_some()
    }

    /// The confinement of a call of a prepared process, which has this one. The copy inherits all of
    /// it, and gives up the private folder of the prepared process for its own.
    #[cfg(target_os = "linux")]
    pub fn for_call(self: &Arc<Self>, tmp: &[OsText]) -> Result<Self, Error> {
        let Some(own) = &self.applied else { return Err(PreparedError::Unsupported.into()) };
        if !own.profile.is_current() {
            return Err(PreparedError::PathsChanged.into());
        }
        let (profile, closed) = (Arc::clone(&own.profile), Arc::clone(&own.closed));
        let mut applied = Applied::new(profile, own.inner_rooms(), tmp, closed)
            .map_err(|error| PreparedError::Confinement(error.to_string()))?;
        applied.prepared = Some(Arc::clone(self));
        Ok(Self {
            report: self.report.clone(),
            variables: applied.variables(),
            _folder: None,
            applied: Some(applied),
        })
    }

    /// Lets the calling thread start the process itself, and not a carrier. Copies of a prepared
    /// process become children of the thread that started it, which reaps them.
    #[cfg(target_os = "linux")]
    pub fn forbid_carrier(&mut self) {
        self.applied.iter_mut().for_each(|applied| applied.may_be_carried = false);
    }

    /// The ruleset that a copy has to apply to itself.
    #[cfg(target_os = "linux")]
    pub fn own_ruleset(&self) -> Option<BorrowedFd<'_>> {
        self.applied.as_ref().and_then(Applied::own_ruleset).map(AsFd::as_fd)
    }

    /// The steps for the child.
    #[cfg(target_os = "linux")]
    pub fn steps(&self) -> Option<ChildSteps<'_>> {
        let applied = self.applied.as_ref()?;
        let profile = &applied.profile;
        let ruleset = applied.own_ruleset().or(profile.shared_ruleset());
        let (filter, privileges) = (profile.filter(), profile.privileges());
        let carrier = if applied.may_be_carried { profile.carrier() } else { None };
        let (limits, carrier) = (&applied.limits, carrier.and_then(Carrier::turn));
        let namespaces = profile.namespaces();
        Some(ChildSteps::new(namespaces, limits, ruleset, filter, privileges, carrier))
    }
}

#[cfg(target_os = "linux")]
fn max_profiles() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let affordable = limit.map_or(u64::MAX, |limit| limit / DESCRIPTORS_PER_PROFILE);
    usize::try_from(affordable).unwrap_or(MAX_PROFILES).clamp(1, MAX_PROFILES)
}

/// The answer of a platform that enforces nothing: everything that was asked for is missing.
fn unconfined(request: &Confinement) -> Result<Confined, Error> {
    let mut report = Report::default();
    let mut missing = |part| {
        report.add(part, Err::<&str, _>("lilux-proc does not confine processes on this platform"));
    };
    let asked = [
        (Part::Fs, true),
        (Part::Signals, true),
        (Part::Privileges, true),
        (Part::Syscalls, true),
        (Part::Net, true),
        (Part::Unix, !request.unix),
        (Part::Attributes, true),
        (Part::ReadOnly, !request.read_only.is_empty()),
        (Part::Hidden, !request.hidden.is_empty()),
    ];
    let limits = request.limits.each().map(|(part, limit)| (part, limit.is_some()));
    for (part, _) in asked.into_iter().chain(limits).filter(|(_, asked)| *asked) {
        missing(part);
    }
    let parent = if request.tmp.is_empty() { None } else { Some(folder::parent()?) };
    let folder = parent.map(|parent| PrivateFolder::new(&parent, &request.tmp)).transpose()?;
    Ok(Confined {
        report,
        variables: folder.as_ref().map(PrivateFolder::variables).unwrap_or_default(),
        _folder: folder,
        #[cfg(target_os = "linux")]
        applied: None,
    })
}
