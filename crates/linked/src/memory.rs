//! Memory for parameters and the arena.

/// A line of the cache.
const LINE: usize = 64;

/// Memory that begins with a line of the cache. It is zero, and takes no room before it is written to: the system gives pages of zeros when they are touched.
pub(crate) struct Memory {
    bytes: Vec<u8>,
    /// Where the first whole line begins.
    start: usize,
    size: usize,
}

impl Memory {
    pub(crate) fn zeroed(size: usize) -> Memory {
        // Vectors of zeros come from the allocator as such, and nothing moves them.
        let bytes = vec![0; size.max(1) + LINE - 1];
        let start = bytes.as_ptr().addr().wrapping_neg() % LINE;
        Memory { bytes, start, size }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..][..self.size]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.size]
    }

    pub(crate) fn address(&mut self) -> *mut u8 {
        self.bytes_mut().as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_begins_with_a_line() {
        for size in [0, 1, 63, 64, 1000, 1 << 20] {
            let mut memory = Memory::zeroed(size);
            assert_eq!(memory.address().addr() % LINE, 0);
            assert_eq!(memory.bytes().len(), size);
            assert!(memory.bytes().iter().all(|&byte| byte == 0));
        }
    }
}
