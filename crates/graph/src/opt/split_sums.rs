//! Sums down long columns become sums of parts, so that there are enough sums for a device to work on at the same time.
//!
//! ```text
//!                                        %p = reshape %x : f32[256, 128, 768]
//! %s = reduce sum %x [0] : f32[768]  ─▶  %q = reduce sum %p [1] : f32[256, 768]
//! (%x: f32[32768, 768])                  %s = reduce sum %q [0] : f32[768]
//! ```
//! The number of parts follows from the column alone, so that results do not depend on the device. A processor goes through rows anyway.

use super::rewrite::rewrite;
use crate::graph::{Graph, OpData};
use crate::lower::arithmetic::sums_columns;
use crate::opcode::Opcode;
use crate::payload::{Payload, Reduction};
use crate::types::Shape;

/// How many elements of a column a sum goes through at least.
const PART: usize = 128;
/// Fewer parts are not worth another kernel.
const FEWEST: usize = 16;

/// See the file's head. Returns how many sums it split.
pub fn split_sums(graph: &mut Graph) -> usize {
    rewrite(graph, &mut |graph, op| {
        let data = graph.ops[op].clone();
        let (rows, parts) = parts_of(graph, &data)?;
        let tensor = data.operands[0];
        let result = graph.ty(data.results[0]).shape.clone();
        let split: Shape = [parts, rows / parts]
            .iter()
            .chain(result.iter())
            .copied()
            .collect();
        let split = graph.reshape(tensor, split);
        let partial = graph.sum(split, &[1]);
        Some(vec![graph.sum(partial, &[0])])
    })
}

/// How many rows a sum of columns goes through, and the number of parts that they are split into, if they are.
fn parts_of(graph: &Graph, data: &OpData) -> Option<(usize, usize)> {
    let Payload::Reduce(Reduction::Sum, axes) = &data.payload else {
        return None;
    };
    // The first axes go away, the others stay.
    let leads = axes.iter().enumerate().all(|(at, &axis)| at == axis);
    if !leads || data.opcode != Opcode::Reduce || !sums_columns(graph, data) {
        return None;
    }
    let shape = &graph.ty(data.operands[0]).shape;
    let rows: usize = shape[..axes.len()].iter().product();
    let parts = (FEWEST..=rows / PART)
        .rev()
        .find(|&parts| rows.is_multiple_of(parts))?;
    Some((rows, parts))
}
