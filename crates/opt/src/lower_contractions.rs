//! Replaces contractions by what computes them: calls of kernels, or plain loops.
//!
//! A kernel multiplies two matrices:
//!
//! ```text
//! func @__ferrozyme_contract_f32(%c, %c_m, %c_n, %a, %a_m, %a_k, %b, %b_k, %b_n, %m, %n, %k, %factor, %add)
//! ```
//!
//! One index of each class becomes `m`, `n` and `k`; loops around the call count the others. [`lower_contractions`] declares the kernels that it calls;
//! [`KERNELS`] are their names, so that whoever compiles the program can define them.
//!
//! [`expand_contractions`] gives the loops that a contraction stands for, for those who want to see loops: the differentiator, of whose output
//! `raise_contractions` makes contractions again.

use crate::with_function::with_function;
use ferrozyme_ir::{
    Alignment, Builder, Contraction, ContractionIndex, Cursor, Function, FunctionId, IndexClass,
    IntPredicate, MemoryEffect, Module, Op, Opcode, Param, ParamFacts, Structure, Type, Value,
    all_ops, sum_type,
};
use smallvec::SmallVec;

/// The kernels for each type of elements.
pub const KERNELS: [(Type, &str); 2] = [
    (Type::F32, "__ferrozyme_contract_f32"),
    (Type::F64, "__ferrozyme_contract_f64"),
];

/// Replaces contractions by calls of kernels, those of elements without a kernel by loops; returns how many.
pub fn lower_contractions(module: &mut Module, id: FunctionId) -> usize {
    replace(module, id, |module, b, contraction| {
        match kernel_for(b.ty(contraction.factor)) {
            Some(name) => call_kernel(module, b, contraction, name),
            None => build_loops(b, contraction),
        }
    })
}

fn kernel_for(element: Type) -> Option<&'static str> {
    let mut kernels = KERNELS.into_iter();
    kernels.find(|&(ty, _)| ty == element).map(|(_, name)| name)
}

/// Replaces contractions by loops; returns how many.
pub fn expand_contractions(module: &mut Module, id: FunctionId) -> usize {
    replace(module, id, |_, b, contraction| {
        build_loops(b, contraction);
    })
}

fn replace(
    module: &mut Module,
    id: FunctionId,
    build: impl Fn(&mut Module, &mut Builder<'_>, &Contraction),
) -> usize {
    with_function(module, id, |module, function| {
        let is_contraction = |op: &Op| function.ops[*op].opcode == Opcode::Contract;
        let found: Vec<Op> = all_ops(function)
            .into_iter()
            .filter(is_contraction)
            .collect();
        for &op in &found {
            // Each replacement changes where the others stand.
            let region = Structure::of(function).region_of(op);
            let at = Cursor::before(function, region.expect("it stands in a region"), op);
            let data = function.ops[op].clone();
            let contraction = data.contraction().expect("it is a contraction");
            at.remove(function);
            let mut b = Builder::at(function, at);
            b.location = data.location;
            build(module, &mut b, &contraction);
        }
        found.len()
    })
}

/// A loop over an index of a contraction.
struct Loop {
    index: ContractionIndex,
    /// How often it runs.
    count: Value,
}

/// Builds what is in the innermost of several loops. It is told where the rest of the contraction begins in the three arrays, and whether an iteration but the first
/// of the loops over sums is running (none without such loops).
type Work<'w> = dyn FnMut(&mut Builder<'_>, [Value; 3], Option<Value>) + 'w;

/// Builds loops, and in the innermost what `work` builds.
fn build_nest(
    b: &mut Builder<'_>,
    loops: &[Loop],
    arrays: [Value; 3],
    later: Option<Value>,
    work: &mut Work<'_>,
) {
    let Some((outermost, inner)) = loops.split_first() else {
        return work(b, arrays, later);
    };
    let (zero, one) = (b.i64(0), b.i64(1));
    let (_, body) = b.for_loop(zero, outermost.count, one, &[]);
    b.inside(body, |b| {
        let counter = b.function.regions[body].args[0];
        let arrays = move_arrays(b, arrays, &outermost.index, counter);
        let later = match outermost.index.class {
            IndexClass::Sum => {
                let own = b.icmp(IntPredicate::Ne, counter, zero);
                Some(match later {
                    Some(outer) => b.binary(Opcode::Or, outer, own),
                    None => own,
                })
            }
            _ => later,
        };
        build_nest(b, inner, arrays, later, work);
        b.yields(&[]);
    });
}

/// Where the arrays begin in an iteration of a loop over an index.
fn move_arrays(
    b: &mut Builder<'_>,
    arrays: [Value; 3],
    index: &ContractionIndex,
    counter: Value,
) -> [Value; 3] {
    let mut moved = arrays;
    for (array, stride) in moved.iter_mut().zip(index.strides) {
        if let Some(stride) = stride {
            let bytes = b.binary(Opcode::Mul, counter, stride);
            *array = b.offset(*array, bytes, 1);
        }
    }
    moved
}

/// Calls the kernel for one index of each class, in loops over the others.
fn call_kernel(module: &mut Module, b: &mut Builder<'_>, contraction: &Contraction, name: &str) {
    let kernel = declare_kernel(module, b.ty(contraction.factor), name);
    let (zero, one) = (b.i64(0), b.i64(1));
    // The last index of each class is the kernel's, since the innermost loops of a nest move by the smallest strides.
    let chosen = [IndexClass::Left, IndexClass::Right, IndexClass::Sum].map(|class| {
        let mut classes = contraction.indices.iter().map(|index| index.class);
        classes.rposition(|other| other == class)
    });
    let extent = |position: Option<usize>| match position.map(|at| contraction.indices[at]) {
        Some(index) => (
            index.count,
            index.strides.map(|stride| stride.unwrap_or(zero)),
        ),
        None => (one, [zero; 3]),
    };
    let [(m, left), (n, right), (mut k, sum)] = chosen.map(extent);
    let mut loops = Vec::new();
    for (position, &index) in contraction.indices.iter().enumerate() {
        if chosen.contains(&Some(position)) {
            continue;
        }
        let mut count = index.count;
        if index.class == IndexClass::Sum && !contraction.add {
            // A sum without terms is zero, which the kernel writes.
            let runs = b.icmp(IntPredicate::Sgt, count, zero);
            count = b.binary(Opcode::Smax, count, one);
            k = b.select(runs, k, zero);
        }
        loops.push(Loop { index, count });
    }
    build_nest(
        b,
        &loops,
        contraction.arrays,
        None,
        &mut |b, arrays, later| {
            let add = match (contraction.add, later) {
                (false, Some(later)) => later,
                (add, _) => b.function.int(Type::I1, i128::from(add)),
            };
            let [c, a, right_array] = arrays;
            let of_arrays = [
                [c, left[0], right[0]],
                [a, left[1], sum[1]],
                [right_array, sum[2], right[2]],
            ];
            let mut arguments: SmallVec<[Value; 14]> = of_arrays.into_iter().flatten().collect();
            arguments.extend([m, n, k, contraction.factor, add]);
            b.call(kernel, &arguments, &[]);
        },
    );
}

/// The kernel of this name for a type of elements, declared if it is not there yet.
fn declare_kernel(module: &mut Module, element: Type, name: &str) -> FunctionId {
    if let Some(known) = module.function_named(name) {
        return known;
    }
    let array = |written: bool| Param {
        ty: Type::PTR,
        facts: ParamFacts {
            nocapture: true,
            readonly: !written,
            noalias: written,
            align: Alignment::natural(element),
            ..ParamFacts::default()
        },
    };
    let number = || Param::from(Type::I64);
    let mut params: SmallVec<[Param; 14]> = SmallVec::new();
    for written in [true, false, false] {
        params.extend([array(written), number(), number()]);
    }
    params.extend([number(), number(), number()]);
    params.extend([Param::from(element), Param::from(Type::I1)]);
    let mut kernel = Function::declare(name, params.into_vec(), Vec::new());
    kernel.facts.memory = MemoryEffect::Args;
    kernel.facts.willreturn = true;
    module.functions.push(kernel)
}

/// Builds the loops that a contraction stands for: those over places outside, those over sums inside.
fn build_loops(b: &mut Builder<'_>, contraction: &Contraction) {
    let element = b.ty(contraction.factor);
    let align = Alignment::natural(element);
    let as_loop = |&index: &ContractionIndex| Loop {
        index,
        count: index.count,
    };
    let (sums, places): (Vec<Loop>, Vec<Loop>) = (contraction.indices.iter().map(as_loop))
        .partition(|one| one.index.class == IndexClass::Sum);
    let wide = sum_type(element);
    build_nest(b, &places, contraction.arrays, None, &mut |b, arrays, _| {
        let start = b.function.zero(wide);
        let sum = build_sum(b, &sums, arrays, element, start);
        let factor = widened(b, contraction.factor);
        let scaled = b.binary(Opcode::Fmul, factor, sum);
        let sum = match contraction.add {
            true => {
                let old = b.load(element, arrays[0], align);
                let old = widened(b, old);
                b.binary(Opcode::Fadd, old, scaled)
            }
            false => scaled,
        };
        let stored = match wide == element {
            true => sum,
            false => b.cast(Opcode::Fptrunc, sum, element),
        };
        b.store(stored, arrays[0], align);
    });
}

/// A number in the type that sums are added up in.
fn widened(b: &mut Builder<'_>, value: Value) -> Value {
    let (ty, wide) = (b.ty(value), sum_type(b.ty(value)));
    match ty == wide {
        true => value,
        false => b.cast(Opcode::Fpext, value, wide),
    }
}

/// Builds the sum of the products over loops, added to what it is so far.
fn build_sum(
    b: &mut Builder<'_>,
    loops: &[Loop],
    arrays: [Value; 3],
    element: Type,
    so_far: Value,
) -> Value {
    let Some((outermost, inner)) = loops.split_first() else {
        let align = Alignment::natural(element);
        let left = b.load(element, arrays[1], align);
        let right = b.load(element, arrays[2], align);
        let [left, right] = [left, right].map(|factor| widened(b, factor));
        let product = b.binary(Opcode::Fmul, left, right);
        return b.binary(Opcode::Fadd, so_far, product);
    };
    let (zero, one) = (b.i64(0), b.i64(1));
    let (op, body) = b.for_loop(zero, outermost.count, one, &[so_far]);
    b.inside(body, |b| {
        let &[counter, so_far] = &b.function.regions[body].args[..] else {
            unreachable!("the loop has a counter and carries the sum");
        };
        let arrays = move_arrays(b, arrays, &outermost.index, counter);
        let next = build_sum(b, inner, arrays, element, so_far);
        b.yields(&[next]);
    });
    b.function.result(op)
}
