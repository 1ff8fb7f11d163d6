//! Landlock: which files can be read, written and executed, by rules that the kernel checks.
//!
//! The `landlock` crate negotiates the version by itself and does not report it, and its last step
//! allocates memory, which the child must not do. The three system calls are all we need.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use super::network::Reach;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

/// The rights that apply to a file; the others are refused by the kernel for a rule of a file.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const ALL_TCP: u64 = 0b11;
const CONNECT_TCP: u64 = 0b10;
const SCOPE_ABSTRACT_UNIX: u64 = 1;
const SCOPE_SIGNAL: u64 = 1 << 1;

/// The first version that restricts truncation. Without it, every file could be emptied.
const FIRST_COMPLETE: u32 = 3;
const FIRST_WITH_IOCTL: u32 = 5;
const FIRST_WITH_NET: u32 = 4;
/// The first version that restricts signals and abstract unix sockets.
pub const FIRST_WITH_SCOPES: u32 = 6;

/// What a path may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing. A program that was written cannot be executed.
    Write,
    /// Reading and executing.
    Execute,
}

/// One allowed path.
pub struct Rule {
    /// The path, opened with `O_PATH`.
    pub fd: OwnedFd,
    /// It is a folder; the rule applies to everything below it.
    pub is_folder: bool,
    /// What it may be used for.
    pub access: Access,
}

#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

const RULE_PATH_BENEATH: u32 = 1;
const RULE_NET_PORT: u32 = 2;

#[repr(C)]
struct NetPortAttr {
    allowed_access: u64,
    port: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// The version of Landlock, if the kernel has one that restricts everything that we need.
pub fn version() -> Result<u32, String> {
    static VERSION: OnceLock<Result<u32, String>> = OnceLock::new();
    VERSION
        .get_or_init(|| {
            const CREATE_RULESET_VERSION: u32 = 1;
            // SAFETY: asks for the version and creates nothing.
            let version = unsafe {
                libc::syscall(
                    libc::SYS_landlock_create_ruleset,
                    std::ptr::null::<RulesetAttr>(),
                    0_usize,
                    CREATE_RULESET_VERSION,
                )
            };
            match u32::try_from(version) {
                Ok(version) if version >= FIRST_COMPLETE => Ok(version),
                Ok(version) => Err(format!("landlock {version} cannot restrict truncation")),
                Err(_) => Err("this kernel has no landlock".into()),
            }
        })
        .clone()
}

/// The rights of this version. A right that is handled is denied where no rule allows it.
fn handled(version: u32) -> u64 {
    let all = (TRUNCATE << 1) - 1;
    if version >= FIRST_WITH_IOCTL { all | IOCTL_DEV } else { all }
}

fn rights(rule: &Rule, version: u32) -> u64 {
    let rights = match rule.access {
        Access::Read => READ_FILE | READ_DIR,
        Access::Execute => READ_FILE | READ_DIR | EXECUTE,
        // No devices: MAKE_CHAR and MAKE_BLOCK are handled but never granted.
        Access::Write => {
            READ_FILE
                | READ_DIR
                | WRITE_FILE
                | TRUNCATE
                | REMOVE_DIR
                | REMOVE_FILE
                | MAKE_DIR
                | MAKE_REG
                | MAKE_SOCK
                | MAKE_FIFO
                | MAKE_SYM
                | REFER
                | IOCTL_DEV
        }
    };
    rights & handled(version) & if rule.is_folder { u64::MAX } else { OF_FILES }
}

/// Creates a ruleset. The caller has checked that the kernel has Landlock of this version.
pub fn ruleset<'a>(
    version: u32,
    rules: impl Iterator<Item = &'a Rule>,
    reach: Reach,
    unix: bool,
) -> io::Result<OwnedFd> {
    let restricts_tcp = reach != Reach::Everything && version >= FIRST_WITH_NET;
    let tcp = if restricts_tcp { ALL_TCP } else { 0 };
    let scoped = match version >= FIRST_WITH_SCOPES {
        true if unix => SCOPE_SIGNAL,
        true => SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX,
        false => 0,
    };
    let attr = RulesetAttr { handled_access_fs: handled(version), handled_access_net: tcp, scoped };
    // An older kernel accepts the larger structure if the fields that it does not know are zero.
    // SAFETY: the structure lives during the call, and its size is given.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attr,
            size_of::<RulesetAttr>(),
            0_u32,
        )
    };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: a new descriptor without another owner. The kernel opens it close-on-exec.
    let ruleset = unsafe { OwnedFd::from_raw_fd(fd) };
    for rule in rules {
        let (allowed_access, parent_fd) = (rights(rule, version), rule.fd.as_raw_fd());
        add(&ruleset, RULE_PATH_BENEATH, &PathBeneathAttr { allowed_access, parent_fd })?;
    }
    if let (Reach::Proxy(port), true) = (reach, restricts_tcp) {
        let attr = NetPortAttr { allowed_access: CONNECT_TCP, port: port.into() };
        add(&ruleset, RULE_NET_PORT, &attr)?;
    }
    Ok(ruleset)
}

/// Adds a rule of this kind, which the structure describes.
fn add<T>(ruleset: &OwnedFd, kind: u32, attr: &T) -> io::Result<()> {
    let (ruleset, attr) = (ruleset.as_raw_fd(), std::ptr::from_ref(attr));
    // SAFETY: the structure and the descriptors live during the call.
    let added = unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, kind, attr, 0_u32) };
    if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str, access: Access) -> Rule {
        let fd = std::fs::File::open(path).unwrap().into();
        Rule { fd, is_folder: std::path::Path::new(path).is_dir(), access }
    }

    #[test]
    fn writing_does_not_include_executing_or_devices() {
        let write = rights(&rule("/tmp", Access::Write), 7);
        assert_eq!(write & (EXECUTE | 1 << 6 | 1 << 11), 0);
        assert_eq!(write & (WRITE_FILE | REFER | TRUNCATE), WRITE_FILE | REFER | TRUNCATE);
    }

    #[test]
    fn a_rule_of_a_file_has_only_rights_of_files() {
        assert_eq!(rights(&rule("/dev/null", Access::Read), 7), READ_FILE);
        assert_eq!(rights(&rule("/dev/null", Access::Write), 4) & IOCTL_DEV, 0);
    }

    #[test]
    fn a_ruleset_is_created_for_files_and_folders() {
        let Ok(version) = version() else { return };
        let rules = [rule("/dev/null", Access::Write), rule("/usr", Access::Execute)];
        ruleset(version, rules.iter(), Reach::Nothing, false).unwrap();
        ruleset(version, rules.iter(), Reach::Proxy(3128), false).unwrap();
        ruleset(FIRST_COMPLETE, rules.iter(), Reach::Everything, true).unwrap();
    }
}
