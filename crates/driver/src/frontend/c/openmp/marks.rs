//! Marks the loops whose iterations OpenMP divides among threads, so that derivatives can run them on several threads ([`crate::marks`]).
//!
//! Marks stand in the block behind the test of the header of a loop, which is between the calls that begin and end its division; in the header itself they would keep LLVM from rotating the loop. Where the schedule has chunks, there is a loop over chunks, and the one over the iterations of a chunk in it; both are marked. (A derivative
//! that is a team of one has one chunk, unless its size is said.)

use super::team::{calls_of, divided_loops, reached};
use super::threads::DIVIDING;
use crate::marks::Marks;
use ferrozyme_llvm::{Block, Context, Module, Value};
use std::collections::HashSet;

/// The schedule of chunks of a size that is said, which are known before the loop runs.
const CHUNKED: i128 = 33;

/// Marks all of them.
pub(super) fn mark_divided_loops<'c>(context: &'c Context, module: Module<'c>) {
    let is_defined = |function: &Value<'c>| !function.is_declaration();
    let functions: Vec<Value<'c>> = module.functions().filter(is_defined).collect();
    for function in functions {
        let starts = calls_of(function, |name| {
            DIVIDING.iter().any(|start| name.starts_with(start))
        });
        if starts.is_empty() {
            continue;
        }
        let dividing = starts.iter().filter_map(|call| call.block()).collect();
        let loops = divided_loops(function, &starts);
        let marks = Marks::declare(context, module);
        for &start in &starts {
            let Some(block) = start.block() else {
                continue;
            };
            let behind = reached(block, &dividing);
            let own = loops.iter().filter(|blocks| !blocks.is_disjoint(&behind));
            let places: Vec<Block<'c>> = own.flat_map(|blocks| places(start, blocks)).collect();
            marks.mark(context, start, &places);
        }
    }
}

/// Where marks go for a loop, and for the one over the iterations of a chunk in it.
fn places<'c>(start: Value<'c>, blocks: &HashSet<Block<'c>>) -> Vec<Block<'c>> {
    let Some(header) = header_of(blocks) else {
        return Vec::new();
    };
    let mut places = vec![behind_test(blocks, header)];
    let is_dynamic = start
        .called_function()
        .is_some_and(|callee| callee.name().starts_with(DIVIDING[1]));
    let schedule = start.arguments().get(2).and_then(|kind| kind.as_signed());
    if is_dynamic || schedule == Some(CHUNKED) {
        let inner = cycles_without(blocks, header);
        if let [inner] = &inner[..] {
            let header = header_of(inner);
            places.extend(header.map(|header| behind_test(inner, header)));
        }
    }
    places
}

/// The block that follows the header of a loop in each iteration, if there is one.
fn behind_test<'c>(blocks: &HashSet<Block<'c>>, header: Block<'c>) -> Block<'c> {
    let next = header.successors().into_iter();
    let next: Vec<Block<'c>> = next.filter(|next| blocks.contains(next)).collect();
    match next[..] {
        [next] if next != header && next.predecessors() == [header] => next,
        _ => header,
    }
}

/// The block by which a loop is entered, if there is one only.
fn header_of<'c>(blocks: &HashSet<Block<'c>>) -> Option<Block<'c>> {
    let is_entered = |block: &&Block<'c>| {
        let mut before = block.predecessors().into_iter();
        before.any(|before| !blocks.contains(&before))
    };
    let mut entries = blocks.iter().filter(is_entered);
    let first = entries.next()?;
    entries.next().is_none().then_some(*first)
}

/// The outermost loops among some blocks when one of these is left out.
fn cycles_without<'c>(blocks: &HashSet<Block<'c>>, header: Block<'c>) -> Vec<HashSet<Block<'c>>> {
    let inside = |from: Block<'c>| -> HashSet<Block<'c>> {
        let mut seen = HashSet::new();
        let mut work = from.successors();
        while let Some(block) = work.pop() {
            if block != header && blocks.contains(&block) && seen.insert(block) {
                work.extend(block.successors());
            }
        }
        seen
    };
    let mut cycles: Vec<HashSet<Block<'c>>> = Vec::new();
    for &block in blocks {
        let behind = inside(block);
        if behind.contains(&block) && !cycles.iter().any(|known| known.contains(&block)) {
            let around = behind.into_iter();
            cycles.push(
                around
                    .filter(|other| inside(*other).contains(&block))
                    .collect(),
            );
        }
    }
    cycles
}
