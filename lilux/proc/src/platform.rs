//! Which mechanisms this machine has.

/// The two implementations of what POSIX does not define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// pidfds, subreapers, and the list of children in /proc.
    #[cfg(target_os = "linux")]
    Linux,
    /// Process groups, a waiting thread, and `ps`.
    Portable,
}

/// The values of `--platform`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Choice {
    /// The mechanisms of Linux if the kernel has all of them, else the portable ones.
    #[default]
    Auto,
    /// The mechanisms of any Unix.
    Portable,
}

impl Platform {
    /// Selects the platform once, at the start.
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
