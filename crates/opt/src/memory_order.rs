//! The memory operations of a function in the order of the text, so that those inside any one operation are a slice.

use crate::alias::{Aliases, Footprint};
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Function, Op, Region};

/// Reads and writes of a function, in the order of the text.
pub(crate) struct MemoryOrder {
    reads: Vec<(Op, Footprint)>,
    writes: Vec<(Op, Footprint)>,
    /// For each operation with regions, the reads and writes in them.
    within: SecondaryMap<Op, Within>,
}

#[derive(Clone, Copy, Default)]
struct Within {
    reads: (u32, u32),
    writes: (u32, u32),
}

impl MemoryOrder {
    /// Collects them.
    pub(crate) fn of(aliases: &Aliases<'_>) -> MemoryOrder {
        let mut order = MemoryOrder {
            reads: Vec::new(),
            writes: Vec::new(),
            within: SecondaryMap::new(),
        };
        let function = aliases.function();
        if let Some(body) = function.body {
            order.visit(aliases, function, body);
        }
        order
    }

    fn visit(&mut self, aliases: &Aliases<'_>, function: &Function, region: Region) {
        for &op in &function.regions[region].ops {
            let read = aliases.reads(op);
            if !read.is_empty() {
                self.reads.push((op, read));
            }
            let written = aliases.writes(op);
            if !written.is_empty() {
                self.writes.push((op, written));
            }
            let regions = &function.ops[op].regions;
            if regions.is_empty() {
                continue;
            }
            let start = (self.reads.len() as u32, self.writes.len() as u32);
            for &inner in regions {
                self.visit(aliases, function, inner);
            }
            self.within[op] = Within {
                reads: (start.0, self.reads.len() as u32),
                writes: (start.1, self.writes.len() as u32),
            };
        }
    }

    /// All operations that read memory, with their footprints.
    pub(crate) fn reads(&self) -> &[(Op, Footprint)] {
        &self.reads
    }

    /// All operations that write or free memory, with their footprints.
    pub(crate) fn writes(&self) -> &[(Op, Footprint)] {
        &self.writes
    }

    /// Those that read within the regions of an operation.
    pub(crate) fn reads_within(&self, op: Op) -> &[(Op, Footprint)] {
        let (start, end) = self.within[op].reads;
        &self.reads[start as usize..end as usize]
    }

    /// Those that write or release memory within the regions of an operation.
    pub(crate) fn writes_within(&self, op: Op) -> &[(Op, Footprint)] {
        let (start, end) = self.within[op].writes;
        &self.writes[start as usize..end as usize]
    }
}
