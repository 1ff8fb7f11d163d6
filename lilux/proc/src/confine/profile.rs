//! A compiled confinement, which many jobs share.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use libc::sock_filter;

use super::carrier::Carrier;
use super::child::{Inherited, Privileges};
use super::folder::{self, PrivateFolder};
use super::landlock::{self, Access, Rule};
use super::namespaces::{self, Namespaces};
use super::network::Reach;
use super::paths::{self, Identity, KnownFolder, KnownPath};
use super::proxy::{self, Proxy};
use super::rooms::{Room, Rooms};
use super::seccomp;
use super::{Part, Report};
use crate::error::{ConfinementError, Error, os_message};
use crate::request::{Confinement, Net};
use crate::text::OsText;

/// Everything of a confinement that does not depend on the single job.
pub struct Profile {
    request: Confinement,
    known: Vec<KnownPath>,
    known_folders: Vec<KnownFolder>,
    rules: Vec<Rule>,
    /// For jobs without a private folder; otherwise each job gets its own.
    ruleset: Option<OwnedFd>,
    landlock: Option<u32>,
    filter: Option<Vec<sock_filter>>,
    namespaces: Namespaces,
    privileges: Privileges,
    reach: Reach,
    proxy: Option<Proxy>,
    rooms: Option<Arc<Rooms>>,
    report: Report,
    has_jobs: AtomicBool,
    carrier: OnceLock<Option<Carrier>>,
}

impl Profile {
    /// Compiles a request.
    pub fn compile(request: &Confinement) -> Result<Self, Error> {
        let mut known = Vec::new();
        let mut only_read: BTreeMap<PathBuf, Vec<KnownPath>> = BTreeMap::new();
        let mut rules = Vec::new();
        let mut absent = Vec::new();
        for (name, listed) in request.paths() {
            for path in listed {
                let opened = open(name, path)?;
                let identity = opened.as_ref().map(|(_, identity)| *identity);
                let one = KnownPath::new(path, identity);
                match Path::new(path.as_os_str()).parent() {
                    Some(folder) if matches!(name, "read" | "execute") => {
                        only_read.entry(folder.to_owned()).or_default().push(one);
                    }
                    _ => known.push(one),
                }
                match (opened, access(name)) {
                    (Some((fd, identity)), Some(access)) => {
                        rules.push(Rule { fd, is_folder: identity.is_folder(), access });
                    }
                    (None, _) if name == "read_only" => absent.push(path.display()),
                    _ => {}
                }
            }
        }
        let known_folders = only_read
            .into_iter()
            .map(|(folder, paths)| KnownFolder::new(&OsText::from(folder.as_os_str()), paths))
            .collect();
        let folders = if request.tmp.is_empty() { None } else { Some(folder::parent()?) };
        if let Some(parent) = &folders {
            let path = OsText::from(parent.as_os_str());
            known.push(KnownPath::new(&path, open("tmp", &path)?.map(|(_, identity)| identity)));
        }
        let landlock = landlock::version();
        let mut namespaces = namespaces::create(request, folders.as_deref().map(Path::as_os_str));
        let proxy = start_proxy(&request.net, &mut namespaces)?;
        let reach = match (&request.net, &proxy) {
            (Net::None, _) => Reach::Nothing,
            (Net::Hosts(_), Some(_)) => Reach::Proxy(proxy::PORT),
            // Without its namespace, a list of hosts cannot be enforced; the report says so.
            (Net::Hosts(_) | Net::All, _) => Reach::Everything,
        };
        let filter = seccomp::filter(reach, request.unix);
        let privileges = Privileges::of_this_process();
        let mut report = report(request, &landlock, &filter, &namespaces, &absent);
        report.add(
            Part::Privileges,
            match privileges {
                Privileges::Ordinary => Ok("no_new_privs"),
                Privileges::Root | Privileges::Limited => Ok("capabilities"),
                Privileges::Stuck => Err("this root may not give up its capabilities"),
            },
        );
        let mut profile = Self {
            request: request.clone(),
            known,
            known_folders,
            rules,
            ruleset: None,
            landlock: landlock.ok(),
            filter: filter.ok(),
            namespaces,
            privileges,
            reach,
            proxy,
            rooms: folders.map(|parent| Arc::new(Rooms::new(parent))),
            report,
            has_jobs: AtomicBool::new(false),
            carrier: OnceLock::new(),
        };
        if profile.rooms.is_none() {
            profile.ruleset = profile.make_ruleset(None)?;
            // The ruleset refers to the files by itself.
            profile.rules = Vec::new();
        }
        Ok(profile)
    }

    /// True if the profile was compiled for such a request.
    pub fn is_for(&self, request: &Confinement) -> bool {
        request.has_profile_of(&self.request)
    }

    /// True if its paths still name the same files.
    pub fn is_current(&self) -> bool {
        self.known.iter().all(KnownPath::is_unchanged)
            && self.known_folders.iter().all(KnownFolder::is_unchanged)
    }

    /// The ruleset that all jobs share, if they do.
    pub fn shared_ruleset(&self) -> Option<&OwnedFd> {
        self.ruleset.as_ref()
    }

    /// Where the private folders of its jobs are, if they have one.
    pub fn rooms(&self) -> Option<&Arc<Rooms>> {
        self.rooms.as_ref()
    }

    /// A private folder with a folder for each variable.
    pub fn room(&self, rooms: &Rooms, variables: &[OsText]) -> Result<Room, Error> {
        if let Some(room) = rooms.take(variables) {
            return Ok(room);
        }
        let folder = PrivateFolder::new(rooms.parent(), variables)?;
        let path = OsText::from(folder.path().as_os_str());
        let fail = |error| ConfinementError::Path("tmp", path.clone(), error);
        let (fd, _) = paths::open(&path).map_err(fail)?;
        let rule = Rule { fd, is_folder: true, access: Access::Write };
        Ok(Room { folder, ruleset: self.make_ruleset(Some(&rule))? })
    }

    /// Removes the private folders that no job has.
    pub fn remove_idle_folders(&self) {
        if let Some(rooms) = &self.rooms {
            rooms.remove_idle();
        }
    }

    fn make_ruleset(&self, extra: Option<&Rule>) -> Result<Option<OwnedFd>, Error> {
        let Some(version) = self.landlock else { return Ok(None) };
        let rules = self.rules.iter().chain(extra);
        let ruleset = landlock::ruleset(version, rules, self.reach, self.request.unix);
        ruleset.map(Some).map_err(|error| ConfinementError::Refused(error).into())
    }

    /// The namespaces that each job enters.
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// The seccomp filter.
    pub fn filter(&self) -> Option<&[sock_filter]> {
        self.filter.as_deref()
    }

    /// The thread that starts its jobs, if one can. It is of no use to the first job.
    pub fn carrier(&self) -> Option<&Carrier> {
        if !self.has_jobs.swap(true, Ordering::Relaxed) {
            return None;
        }
        let inherited = || Inherited::new(&self.namespaces, self.filter(), self.privileges);
        self.carrier.get_or_init(|| inherited().and_then(Carrier::start)).as_ref()
    }

    /// The proxy, if the network consists of hosts.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// What each job gives up.
    pub fn privileges(&self) -> Privileges {
        self.privileges
    }

    /// What is enforced, without the limits of the single job.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// Starts the proxy for a list of hosts. If that fails, the jobs do not enter the namespace.
fn start_proxy(net: &Net, namespaces: &mut Namespaces) -> Result<Option<Proxy>, Error> {
    let (Some(list), Some(listener)) = (net.hosts()?, namespaces.listener.take()) else {
        return Ok(None);
    };
    match Proxy::start(listener, list) {
        Ok(proxy) => Ok(Some(proxy)),
        Err(error) => {
            namespaces.net = Err(format!("the proxy cannot be started: {}", os_message(&error)));
            Ok(None)
        }
    }
}

fn access(name: &str) -> Option<Access> {
    match name {
        "read" => Some(Access::Read),
        "write" => Some(Access::Write),
        "execute" => Some(Access::Execute),
        _ => None,
    }
}

/// Opens a path. One that does not exist is `None`, except for `write`: the job could not create it.
fn open(name: &'static str, path: &OsText) -> Result<Option<(OwnedFd, Identity)>, Error> {
    // A job may not replace a read-only path, and so not a link either.
    let opened = if name == "read_only" { paths::open_link(path) } else { paths::open(path) };
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if name != "write" && is_absent(&error) => Ok(None),
        Err(error) => Err(ConfinementError::Path(name, path.clone(), error).into()),
    }
}

/// A path that this user may not even look up is as good as absent.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn report(
    request: &Confinement,
    landlock: &Result<u32, String>,
    filter: &Result<Vec<sock_filter>, String>,
    namespaces: &Namespaces,
    absent: &[String],
) -> Report {
    let mut report = Report::default();
    let landlock = landlock.as_ref().map(|version| (*version, format!("landlock {version}")));
    let with_seccomp = || filter.as_ref().map(|_| "seccomp").map_err(String::as_str);
    let mounts = || namespaces.mount.as_ref().map(|_| "namespace").map_err(String::as_str);
    report.add(Part::Fs, landlock.as_ref().map(|(_, name)| name).map_err(|reason| *reason));
    report.add(
        Part::Signals,
        match &landlock {
            Ok((version, name)) if *version >= landlock::FIRST_WITH_SCOPES => Ok(name.clone()),
            Ok((_, name)) => Err(format!("{name} cannot restrict signals")),
            Err(reason) => Err((*reason).clone()),
        },
    );
    report.add(Part::Syscalls, with_seccomp());
    match (&request.net, &namespaces.net) {
        (Net::None, Ok(_)) => report.add(Part::Net, Ok::<_, &str>("namespace")),
        (Net::Hosts(_), net) => {
            report.add(
                Part::Net,
                net.as_ref().map(|_| "namespace and proxy").map_err(String::as_str),
            );
        }
        _ => report.add(Part::Net, with_seccomp()),
    }
    if !request.unix {
        report.add(Part::Unix, with_seccomp());
    }
    report.add(Part::Attributes, mounts());
    if !request.read_only.is_empty() {
        let outcome = mounts().map_err(str::to_owned);
        report.add(
            Part::ReadOnly,
            match (outcome, absent.first()) {
                (Ok(_), Some(path)) => Err(format!("{path} does not exist")),
                (outcome, _) => outcome,
            },
        );
    }
    if !request.hidden.is_empty() {
        report.add(Part::Hidden, mounts());
    }
    report
}
