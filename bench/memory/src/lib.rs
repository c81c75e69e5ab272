//! Counts the memory in use, so that tests can limit the memory of derivatives.
//!
//! Derivatives allocate by the C library's allocator, not by Rust's: its functions are replaced here by ones that count and pass everything on.
//! That is known to work with glibc; elsewhere nothing is counted. A program that depends on this crate has its memory counted from its first moment on.

/// The peak of additional bytes in use while some work was done, by all threads; none where memory is not counted.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, Option<usize>) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use counting::{IN_USE, PEAK};
        use std::sync::atomic::Ordering::Relaxed;
        let before = IN_USE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let result = work();
        (result, Some(PEAK.load(Relaxed).saturating_sub(before)))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        (work(), None)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "the functions of the C library cannot be replaced without it"
)]
mod counting {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicUsize, Ordering};

    pub(super) static IN_USE: AtomicUsize = AtomicUsize::new(0);
    pub(super) static PEAK: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
        fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
        fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
        fn __libc_free(pointer: *mut c_void);
        fn malloc_usable_size(pointer: *mut c_void) -> usize;
    }

    fn noted(pointer: *mut c_void) -> *mut c_void {
        // SAFETY: null, or a pointer that the allocator has just returned.
        let size = unsafe { malloc_usable_size(pointer) };
        let now = IN_USE.fetch_add(size, Ordering::Relaxed) + size;
        PEAK.fetch_max(now, Ordering::Relaxed);
        pointer
    }

    fn forget(pointer: *mut c_void) {
        // SAFETY: null, or a live pointer of the allocator.
        let size = unsafe { malloc_usable_size(pointer) };
        IN_USE.fetch_sub(size, Ordering::Relaxed);
    }

    // SAFETY of all: they take the places of the C library's functions and pass everything on.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        noted(unsafe { __libc_malloc(size) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        noted(unsafe { __libc_calloc(count, size) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: null, or a live pointer of the allocator.
        let before = unsafe { malloc_usable_size(pointer) };
        let again = unsafe { __libc_realloc(pointer, size) };
        // If there is no more memory, the old memory stays valid.
        if !again.is_null() || size == 0 {
            IN_USE.fetch_sub(before, Ordering::Relaxed);
        }
        noted(again)
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
        noted(unsafe { __libc_memalign(align, size) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn posix_memalign(
        result: *mut *mut c_void,
        align: usize,
        size: usize,
    ) -> i32 {
        let pointer = noted(unsafe { __libc_memalign(align, size) });
        unsafe { *result = pointer };
        if pointer.is_null() { 12 } else { 0 }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn free(pointer: *mut c_void) {
        forget(pointer);
        unsafe { __libc_free(pointer) };
    }
}
