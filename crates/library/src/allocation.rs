//! What is known of functions that allocate and release memory.

use std::borrow::Cow;

/// What an allocation function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationRole {
    /// Gives new memory, as zeros if `zeroed`.
    Allocate {
        /// Whether the memory starts as zeros.
        zeroed: bool,
    },
    /// Gives memory of another size with the old contents, and releases the old.
    Reallocate,
    /// Releases memory.
    Release,
}

/// A function of an allocator. Arguments are given by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationFunction {
    /// The functions whose memory belongs together with that of this one, as LLVM's attribute `"alloc-family"` names them.
    pub family: Cow<'static, str>,
    /// What it does.
    pub role: AllocationRole,
    /// Which argument is the (new) size, or the size of one element. None for those that release.
    pub size: Option<u32>,
    /// Which argument is the number of elements, as of `calloc`.
    pub count: Option<u32>,
    /// Which argument is the alignment.
    pub alignment: Option<u32>,
    /// Which argument is the memory that is released or resized.
    pub pointer: Option<u32>,
    /// Which argument of one that releases is the size that the memory has. Rust's functions take it after the pointer.
    pub old_size: Option<u32>,
    /// Whether it does what another of its family does, but wants to be told more.
    pub is_variant: bool,
}

impl AllocationFunction {
    const fn new(family: &'static str, role: AllocationRole) -> AllocationFunction {
        AllocationFunction {
            family: Cow::Borrowed(family),
            role,
            size: None,
            count: None,
            alignment: None,
            pointer: None,
            old_size: None,
            is_variant: false,
        }
    }

    /// One that allocates as many bytes as this argument says.
    pub const fn allocates(family: &'static str, size: u32) -> AllocationFunction {
        let mut known = Self::new(family, AllocationRole::Allocate { zeroed: false });
        known.size = Some(size);
        known
    }

    /// What it gives is zeros.
    pub(crate) const fn zeroed(mut self) -> AllocationFunction {
        self.role = AllocationRole::Allocate { zeroed: true };
        self
    }

    /// It takes the number of elements as this argument.
    pub(crate) const fn counted(mut self, count: u32) -> AllocationFunction {
        self.count = Some(count);
        self
    }

    /// One that resizes the memory of its first argument.
    pub(crate) const fn reallocates(family: &'static str, size: u32) -> AllocationFunction {
        let mut known = Self::new(family, AllocationRole::Reallocate);
        known.size = Some(size);
        known.pointer = Some(0);
        known
    }

    /// One that releases its first argument.
    pub const fn releases(family: &'static str) -> AllocationFunction {
        let mut known = Self::new(family, AllocationRole::Release);
        known.pointer = Some(0);
        known
    }

    /// It takes the alignment as this argument.
    pub(crate) const fn aligned(mut self, alignment: u32) -> AllocationFunction {
        self.alignment = Some(alignment);
        self
    }

    /// It is told the size of what it releases by this argument.
    pub(crate) const fn told_size(mut self, size: u32) -> AllocationFunction {
        self.old_size = Some(size);
        self
    }

    /// It does what another does.
    pub(crate) const fn variant(mut self) -> AllocationFunction {
        self.is_variant = true;
        self
    }

    /// Whether it gives memory.
    pub fn gives_memory(&self) -> bool {
        self.role != AllocationRole::Release
    }

    /// How many arguments it takes at least.
    pub fn argument_count(&self) -> u32 {
        let positions = [self.size, self.count, self.alignment, self.pointer];
        let positions = positions.into_iter().chain([self.old_size]).flatten();
        positions.max().map_or(0, |last| last + 1)
    }
}
