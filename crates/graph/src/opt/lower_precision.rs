//! Products of matrices in half precision: their factors are rounded, their sums are not.
//!
//! ```text
//! %h = tanh %a                    %h  = tanh %a
//! %p = contract %h, %w …   ─▶     %h' = cast %h : bf16[…];  %w' = cast %w : bf16[…]
//!                                 %q  = contract %h', %w' … : bf16[…];  %p = cast %q : f32[…]
//! ```
//! Everything else, and with it parameters and their updates, stays in single precision. Tensor cores multiply such factors many times faster, and they take half of the memory:
//!
//! - A factor that is seen through views is rounded before the views.
//! - A factor that an elementwise operation computes, but for sums, is rounded for all who read it, so that it is kept once. What is summed up from layer to layer stays as it is.
//!
//! This changes results, so it is not among the passes that [`optimise`](super::optimise) runs: programs ask for it.

use super::rewrite::rewrite;
use crate::graph::{Graph, OpData, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Function, Payload};
use cranelift_entity::EntitySet;
use ferrozyme_ir::{Opcode as Loop, Scalar};
use rustc_hash::FxHashMap;

/// Rounds the factors of products of `f32` to `bf16`.
pub fn lower_precision(graph: &mut Graph) -> usize {
    lower_precision_to(graph, Scalar::Bf16)
}

/// Rounds the factors of products of `f32` to a type of fewer bits.
pub fn lower_precision_to(graph: &mut Graph, element: Scalar) -> usize {
    let rounded = rounded_for_all(graph);
    rewrite(graph, &mut |graph, op| {
        let data = graph.ops[op].clone();
        let result = *data.results.first()?;
        let ty = graph.ty(result).clone();
        if is_product(graph, &data) {
            let [left, right] = [0, 1].map(|position| data.operands[position]);
            let operands = [left, right].map(|factor| rounded_factor(graph, factor, element));
            let product = graph.must(Opcode::Contract, &operands, data.payload.clone());
            let product = graph.ops[product].results[0];
            return Some(vec![graph.cast(product, ty.element)]);
        }
        if !rounded.contains(result) {
            return None;
        }
        let exact = graph.must(data.opcode, &data.operands, data.payload.clone());
        let exact = graph.ops[exact].results[0];
        let short = graph.cast(exact, element);
        Some(vec![graph.cast(short, ty.element)])
    })
}

/// Whether an operation sums up products of `f32`.
fn is_product(graph: &Graph, data: &OpData) -> bool {
    let Payload::Contract(indices) = &data.payload else {
        return false;
    };
    indices.result.len() < usize::from(indices.count())
        && graph.ty(data.results[0]).element == Scalar::F32
}

/// The factors that are rounded for all who read them.
fn rounded_for_all(graph: &Graph) -> EntitySet<Tensor> {
    let mut rounded = EntitySet::new();
    graph.for_each_op(graph.body(), &mut |_, op| {
        let data = &graph.ops[op];
        if !is_product(graph, data) {
            return;
        }
        for &factor in &data.operands {
            let source = behind_views(graph, factor);
            let elementwise = graph.def_op(source).map(|op| &graph.ops[op].payload);
            if let Some(Payload::Function(function)) = elementwise
                && !matches!(function, Function::Of(Loop::Fadd | Loop::Fsub))
            {
                rounded.insert(source);
            }
        }
    });
    rounded
}

/// The tensor that views of one operand show.
fn behind_views(graph: &Graph, mut tensor: Tensor) -> Tensor {
    while let Some(op) = graph.def_op(tensor)
        && is_view(graph.ops[op].opcode)
        && let &[source] = &graph.ops[op].operands[..]
    {
        tensor = source;
    }
    tensor
}

/// Operations whose elements are elements of their operands, or zero.
fn is_view(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Reshape
            | Opcode::Permute
            | Opcode::Broadcast
            | Opcode::Slice
            | Opcode::Pad
            | Opcode::Concat
    )
}

/// Whether views, not too many, show nothing but numbers that have been of a type of fewer bits.
pub(super) fn shows_rounded(graph: &Graph, tensor: Tensor, element: Scalar) -> bool {
    const VIEWS: usize = 64;
    let mut seen = vec![tensor];
    let mut next = 0;
    while let Some(&tensor) = seen.get(next) {
        next += 1;
        let Some(op) = graph.def_op(tensor).filter(|_| next <= VIEWS) else {
            return false;
        };
        let data = &graph.ops[op];
        match data.opcode {
            Opcode::Cast => {
                let wide = graph.ty(tensor).element;
                let floats = element.is_float() && wide.is_float() && element.bits() < wide.bits();
                if !floats || graph.ty(data.operands[0]).element != element {
                    return false;
                }
            }
            opcode if is_view(opcode) => {
                for &source in &data.operands {
                    if !seen.contains(&source) {
                        seen.push(source);
                    }
                }
            }
            _ => return false,
        }
    }
    true
}

/// The tensor in another type, which is rounded as early as views allow.
pub(super) fn rounded_factor(graph: &mut Graph, tensor: Tensor, element: Scalar) -> Tensor {
    rounded_with(graph, tensor, element, &mut FxHashMap::default())
}

/// As [`rounded_factor`], with what is rounded already.
fn rounded_with(
    graph: &mut Graph,
    tensor: Tensor,
    element: Scalar,
    known: &mut FxHashMap<Tensor, Tensor>,
) -> Tensor {
    if let Some(&rounded) = known.get(&tensor) {
        return rounded;
    }
    let rounded = round(graph, tensor, element, known);
    known.insert(tensor, rounded);
    rounded
}

fn round(
    graph: &mut Graph,
    tensor: Tensor,
    element: Scalar,
    known: &mut FxHashMap<Tensor, Tensor>,
) -> Tensor {
    let ty = graph.ty(tensor).clone();
    let Some(op) = graph.def_op(tensor).filter(|_| ty.element != element) else {
        return match ty.element == element {
            true => tensor,
            false => graph.cast(tensor, element),
        };
    };
    let data = graph.ops[op].clone();
    match data.opcode {
        Opcode::Cast if graph.ty(data.operands[0]).element == element => data.operands[0],
        opcode if is_view(opcode) => {
            let sources = data.operands.iter();
            let sources: Vec<Tensor> = sources
                .map(|&source| rounded_with(graph, source, element, known))
                .collect();
            if opcode == Opcode::Reshape {
                return graph.reshape(sources[0], ty.shape);
            }
            let view = graph.must(opcode, &sources, data.payload);
            graph.ops[view].results[0]
        }
        _ => graph.cast(tensor, element),
    }
}
