//! Which mechanisms this machine offers.

/// The two ways of doing things that are not in POSIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// pidfds, subreapers, the list of children in /proc.
    #[cfg(target_os = "linux")]
    Linux,
    /// Process groups, a thread that waits, `ps`.
    Portable,
}

/// What `--platform` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Choice {
    /// Linux's mechanisms where the kernel has them all.
    #[default]
    Auto,
    /// What any Unix has.
    Portable,
}

impl Platform {
    /// Looks once, at the start.
    pub fn choose(choice: Choice) -> Self {
        #[cfg(target_os = "linux")]
        if choice == Choice::Auto && linux_has_all() {
            return Self::Linux;
        }
        let _ = choice;
        Self::Portable
    }
}

/// Old kernels, and sandboxes that filter system calls, lack some of these.
#[cfg(target_os = "linux")]
fn linux_has_all() -> bool {
    use rustix::process::{PidfdFlags, getpid, pidfd_open};
    pidfd_open(getpid(), PidfdFlags::empty()).is_ok()
        && std::fs::File::open("/proc/thread-self/children").is_ok()
        && rustix::process::child_subreaper().is_ok()
}
