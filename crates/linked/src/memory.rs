//! Memory for parameters and the arena.

/// A line of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory that begins with a line of the cache.
pub(crate) struct Memory {
    lines: Vec<Line>,
}

impl Memory {
    pub(crate) fn zeroed(bytes: usize) -> Memory {
        Memory {
            lines: vec![Line([0; 64]); bytes.div_ceil(64).max(1)],
        }
    }

    pub(crate) fn holding(bytes: &[u8]) -> Memory {
        let mut memory = Memory::zeroed(bytes.len());
        for (line, chunk) in memory.lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..chunk.len()].copy_from_slice(chunk);
        }
        memory
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| line.0).collect()
    }

    pub(crate) fn address(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}
