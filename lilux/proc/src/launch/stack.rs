//! Memory for the stack of a cloned child.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

const SIZE: usize = 64 * 1024;

/// A stack with a guard page below it: an overflow kills the child with SIGSEGV instead of
/// overwriting memory that it shares with the helper.
pub struct Stack {
    lowest: NonNull<c_void>,
    mapped: usize,
}

impl Stack {
    /// Maps the memory.
    pub fn new() -> io::Result<Self> {
        // SAFETY: asks for a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(SIZE);
        let mapped = SIZE + page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let lowest =
            unsafe { libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        if lowest == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let lowest = NonNull::new(lowest).ok_or(io::ErrorKind::OutOfMemory)?;
        let stack = Self { lowest, mapped };
        // SAFETY: all but the first page of our own mapping.
        let usable = unsafe {
            libc::mprotect(lowest.as_ptr().byte_add(page), SIZE, libc::PROT_READ | libc::PROT_WRITE)
        };
        if usable == 0 { Ok(stack) } else { Err(io::Error::last_os_error()) }
    }

    /// The end of the memory, where a stack begins. Page-aligned.
    pub fn top(&mut self) -> *mut c_void {
        // SAFETY: one past the end of our own mapping.
        unsafe { self.lowest.as_ptr().byte_add(self.mapped) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no child runs on it, because CLONE_VFORK has returned.
        unsafe { libc::munmap(self.lowest.as_ptr(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn overflow(_: *mut c_void) -> libc::c_int {
        fn deeper(depth: u64) -> u64 {
            let frame = std::hint::black_box([depth; 64]);
            if depth == u64::MAX { 0 } else { deeper(depth + 1) + frame[0] }
        }
        libc::c_int::from(deeper(0) == 0)
    }

    #[test]
    fn a_stack_overflow_kills_only_the_child() {
        let mut stack = Stack::new().unwrap();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut status = 0;
        // SAFETY: the child only uses its own stack; the thread waits until the child has ended.
        // Signals are blocked so that the test's own handler of SIGSEGV does not run in the child.
        unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            let pid = libc::clone(overflow, stack.top(), flags, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            assert!(pid > 0);
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        }
        assert!(libc::WIFSIGNALED(status));
        assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
    }
}
