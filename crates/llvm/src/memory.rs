//! Memory that LLVM has freed.

/// Has the C library give back to the system what it keeps of freed memory. LLVM takes hundreds of megabytes for a large module and frees them in small pieces; glibc would keep those for the process, which may have no use for them.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
