//! Shadow memory: a second memory of the same shape, for tangents or adjoints.

use super::variable::zero;
use crate::arguments::{Arguments, Target};
use crate::value::size_of;
use ferrozyme_diff::Activity;
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};

/// The second memory beside that of the arguments.
pub(super) struct Shadow {
    /// The shadow of each block; none for blocks of constant arguments.
    blocks: Vec<Option<Pointer>>,
}

impl Shadow {
    /// The place in the shadow that belongs to a place in the arguments' memory.
    pub(super) fn at(&self, target: Target) -> Option<Pointer> {
        Some(self.blocks[target.block]?.offset(target.offset))
    }

    /// The shadow of a pointer argument: the same address for pointers without a shadow (null, functions).
    pub(super) fn of_argument(&self, arguments: &Arguments, index: usize) -> Datum {
        arguments.targets[index]
            .and_then(|target| self.at(target))
            .map_or_else(|| arguments.data[index].clone(), Datum::ptr)
    }
}

/// Memory of the same shape: zero for floats, the shadow's addresses for addresses, the same for the rest.
pub(super) fn place_shadow(
    machine: &mut Machine,
    arguments: &Arguments,
    activities: &[Activity],
) -> Result<Shadow, String> {
    let mut shadow = Shadow { blocks: Vec::new() };
    for (block, shadowed) in arguments
        .blocks
        .iter()
        .zip(find_shadowed(arguments, activities))
    {
        shadow.blocks.push(if shadowed {
            let size = size_of(&block.cells);
            Some(
                machine
                    .try_allocate(size, 16)
                    .map_err(|fault| fault.to_string())?,
            )
        } else {
            None
        });
    }
    for (block, at) in arguments.blocks.iter().zip(&shadow.blocks) {
        let Some(at) = at else { continue };
        for (cell, target) in block.cells.iter().zip(&block.targets) {
            let offset = cell.offset as i64;
            let datum = match target.and_then(|target| shadow.at(target)) {
                Some(pointer) => Datum::ptr(pointer),
                None if cell.ty.is_float() => zero(cell.ty),
                None => match machine.read_datum(block.at.offset(offset), cell.ty) {
                    Ok(datum) => datum,
                    Err(_) => continue,
                },
            };
            machine
                .write_datum(at.offset(offset), &datum)
                .map_err(|fault| fault.to_string())?;
        }
    }
    Ok(shadow)
}

/// Whether each block is reached from a duplicated argument.
pub(super) fn find_shadowed(arguments: &Arguments, activities: &[Activity]) -> Vec<bool> {
    let mut shadowed = vec![false; arguments.blocks.len()];
    let mut work: Vec<usize> = arguments
        .targets
        .iter()
        .zip(activities)
        .filter(|(_, activity)| **activity == Activity::Duplicated)
        .filter_map(|(target, _)| Some((*target)?.block))
        .collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut shadowed[block], true) {
            let targets = arguments.blocks[block].targets.iter().flatten();
            work.extend(targets.map(|target| target.block));
        }
    }
    shadowed
}
