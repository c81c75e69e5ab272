//! The types of results: one rule per operation, named in its row.
//!
//! A rule gives the types of the results, or says why operands and payload do not fit, with their types. It assumes that the number of operands, the kind of the payload and the number of regions are those of the row.

use crate::graph::{Graph, OpData, Region};
use crate::opcode::Types;
use crate::payload::{Function, Literal, Payload, Reduction};
use crate::types::{CONDITION, INDEX, Shape, TensorType};
use ferrozyme_ir::{Form, Opcode, Scalar};
use smallvec::smallvec;

type Result<T = Types> = std::result::Result<T, String>;

/// Why a payload cannot be: rows and payloads are checked before rules.
const OTHER_PAYLOAD: &str = "the payload is of another operation";

fn operand<'g>(graph: &'g Graph, data: &OpData, index: usize) -> &'g TensorType {
    graph.ty(data.operands[index])
}

fn one(ty: TensorType) -> Result {
    ty.check()?;
    Ok(smallvec![ty])
}

// ---- sources and sinks

pub(crate) fn parameter(graph: &Graph, data: &OpData) -> Result {
    let Payload::Parameter(parameter) = data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    match graph.parameters.get(parameter) {
        Some(parameter) => one(parameter.ty.clone()),
        None => Err("the graph has no such parameter".into()),
    }
}

pub(crate) fn update(graph: &Graph, data: &OpData) -> Result {
    let (own, new) = (&parameter(graph, data)?[0], operand(graph, data, 0));
    if own != new {
        return Err(format!(
            "a parameter of type {own} cannot become a tensor of type {new}"
        ));
    }
    Ok(smallvec![])
}

pub(crate) fn constant(_: &Graph, data: &OpData) -> Result {
    let Payload::Constant(literal, ty) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    check_literal(literal, ty)?;
    one(ty.clone())
}

/// Whether these can be the elements of a tensor of this type.
pub(crate) fn check_literal(literal: &Literal, ty: &TensorType) -> Result<()> {
    let values = match literal {
        Literal::Splat(value) => std::slice::from_ref(value),
        Literal::Dense(values) if values.len() == ty.shape.count() => values,
        Literal::Dense(values) => {
            return Err(format!("{} numbers do not make a {ty}", values.len()));
        }
    };
    let rounded = |value: f64| crate::interpret::round_to(ty.element, value);
    match values.iter().find(|&&value| {
        rounded(value) != value && !value.is_nan() || value.is_nan() && !ty.is_float()
    }) {
        Some(value) => Err(format!("{value:?} is no {}", ty.element)),
        None => Ok(()),
    }
}

pub(crate) fn iota(_: &Graph, data: &OpData) -> Result {
    let Payload::Iota(axis, ty) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    if ty.element == CONDITION {
        return Err(format!("{ty} cannot count"));
    }
    check_axis(*axis, ty)?;
    one(ty.clone())
}

pub(crate) fn random(graph: &Graph, data: &OpData) -> Result {
    let Payload::Random(_, ty) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let counter = operand(graph, data, 0);
    if *counter != TensorType::scalar(INDEX) {
        return Err(format!("the counter must be i32[], but it is {counter}"));
    }
    if !ty.is_float() {
        return Err(format!("random numbers are floats, not {ty}"));
    }
    one(ty.clone())
}

pub(crate) fn feed(_: &Graph, data: &OpData) -> Result {
    match &data.payload {
        Payload::Feed(_, ty) => one(ty.clone()),
        _ => Err(OTHER_PAYLOAD.into()),
    }
}

pub(crate) fn receive(_: &Graph, _: &OpData) -> Result {
    Ok(smallvec![])
}

// ---- functions of the host

/// Functions that are not known may take anything.
pub(crate) fn call(graph: &Graph, data: &OpData) -> Result {
    let Payload::Call(name, results) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    for ty in results {
        ty.check()?;
        if !matches!(ty.element, Scalar::F32 | Scalar::F64) {
            return Err(format!("results of functions are f32 or f64, not {ty}"));
        }
    }
    if results.is_empty() {
        return Err(format!("\"{name}\" has no results"));
    }
    if let Some(function) = graph.function_named(name) {
        let operands = types_of(graph, &data.operands);
        function.check(&operands.iter().collect::<Vec<_>>(), results)?;
    }
    Ok(results.iter().cloned().collect())
}

/// The results are of the types of the operands that are floats, those of the adjoints excepted, which come last.
pub(crate) fn call_vjp(graph: &Graph, data: &OpData) -> Result {
    let Payload::Call(name, results) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let operands = types_of(graph, &data.operands);
    let floats = operands.iter().filter(|ty| ty.is_float());
    let count = floats.clone().count();
    if count <= results.len() || !floats.take(results.len()).eq(results.iter()) {
        return Err(format!(
            "the adjoints {results:?} are not those of the first operands of {operands:?}"
        ));
    }
    if let Some(function) = graph.function_named(name) {
        let (inputs, adjoints) = operands.split_at(function.inputs().len().min(operands.len()));
        function.check(&inputs.iter().collect::<Vec<_>>(), adjoints)?;
        if inputs.iter().filter(|ty| ty.is_float()).count() != results.len() {
            return Err(format!("\"{name}\" has other adjoints than {results:?}"));
        }
    }
    Ok(results.iter().cloned().collect())
}

// ---- views

pub(crate) fn reshape(graph: &Graph, data: &OpData) -> Result {
    let Payload::Type(to) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    to.check()?;
    if from.element != to.element || from.shape.count() != to.shape.count() {
        return Err(format!(
            "a tensor of type {from} cannot be reshaped to {to}"
        ));
    }
    one(to.clone())
}

pub(crate) fn permute(graph: &Graph, data: &OpData) -> Result {
    let Payload::Permutation(axes) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    let named = |axis: usize| axes.contains(&axis);
    if axes.len() != from.shape.len() || !(0..axes.len()).all(named) {
        return Err(format!("{axes:?} is no order of the axes of {from}"));
    }
    one(from.with_shape(axes.iter().map(|&axis| from.shape[axis]).collect::<Shape>()))
}

pub(crate) fn broadcast(graph: &Graph, data: &OpData) -> Result {
    let Payload::Broadcast(axes) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    let mut sizes: Vec<usize> = from.shape.to_vec();
    let mut next = 0;
    for &(axis, size) in axes {
        if axis < next || axis > sizes.len() {
            return Err(format!(
                "axis {axis} cannot be added to {from}: new axes are ascending, without gaps at the end"
            ));
        }
        sizes.insert(axis, size);
        next = axis + 1;
    }
    one(from.with_shape(&sizes[..]))
}

pub(crate) fn slice(graph: &Graph, data: &OpData) -> Result {
    let Payload::Slice(stretches) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    check_each_axis(stretches.len(), from)?;
    for (stretch, &size) in stretches.iter().zip(from.shape.iter()) {
        if stretch.step == 0 || stretch.start >= stretch.end || stretch.end > size {
            return Err(format!(
                "{}:{}:{} is no part of an axis of size {size} of {from}",
                stretch.start, stretch.end, stretch.step
            ));
        }
    }
    let sizes: Shape = stretches.iter().map(|stretch| stretch.count()).collect();
    one(from.with_shape(sizes))
}

pub(crate) fn pad(graph: &Graph, data: &OpData) -> Result {
    let Payload::Pad(paddings) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    check_each_axis(paddings.len(), from)?;
    let most = paddings.iter().flat_map(|p| [p.low, p.high, p.between]);
    if most.max() > Some(u32::MAX as usize) {
        return Err(format!("{from} is padded by too much"));
    }
    let sizes = paddings.iter().zip(from.shape.iter());
    let sizes: Shape = sizes.map(|(padding, &size)| padding.size(size)).collect();
    one(from.with_shape(sizes))
}

pub(crate) fn concat(graph: &Graph, data: &OpData) -> Result {
    let Payload::Axis(axis) = data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let first = operand(graph, data, 0);
    let parts = data.operands.iter().skip(1).map(|&part| graph.ty(part));
    check_axis(axis, first)?;
    let mut sizes = first.shape.to_vec();
    for part in parts {
        let fits = part.element == first.element
            && part.shape.len() == first.shape.len()
            && part.shape.without(&[axis]) == first.shape.without(&[axis]);
        if !fits {
            return Err(format!(
                "{first} and {part} cannot be concatenated along axis {axis}"
            ));
        }
        sizes[axis] += part.shape[axis];
    }
    one(first.with_shape(&sizes[..]))
}

pub(crate) fn gather(graph: &Graph, data: &OpData) -> Result {
    let Payload::Axis(axis) = data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let (from, indices) = (operand(graph, data, 0), operand(graph, data, 1));
    check_axis(axis, from)?;
    if indices.element != INDEX {
        return Err(format!("indices are i32, but these are {indices}"));
    }
    let mut sizes = from.shape.to_vec();
    sizes.splice(axis..=axis, indices.shape.iter().copied());
    one(from.with_shape(&sizes[..]))
}

pub(crate) fn scatter_add(graph: &Graph, data: &OpData) -> Result {
    let (into, values) = (operand(graph, data, 0), operand(graph, data, 2));
    let gathered = &gather(graph, data)?[0];
    if !into.is_float() {
        return Err(format!("values are added to floats, not to {into}"));
    }
    if gathered != values {
        let indices = operand(graph, data, 1);
        return Err(format!(
            "to add to {into} at {indices} takes {gathered}, but the values are {values}"
        ));
    }
    one(into.clone())
}

// ---- arithmetic

pub(crate) fn elementwise(graph: &Graph, data: &OpData) -> Result {
    let Payload::Function(function) = data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let types: Vec<&TensorType> = data
        .operands
        .iter()
        .map(|&operand| graph.ty(operand))
        .collect();
    let (kinds, result) = signature(function, &types);
    let fits = |(ty, kind): (&&TensorType, &Kind)| kind.holds(ty.element);
    let same_shape = types.iter().all(|ty| ty.shape == types[0].shape);
    let same_element = kinds.iter().zip(&types).all(|(kind, ty)| match kind {
        Kind::Same(first) => ty.element == types[*first].element,
        _ => true,
    });
    let fits = types.len() == kinds.len() && same_element && types.iter().zip(kinds).all(fits);
    if !fits || !same_shape {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        return Err(format!("`{function}` does not take ({})", types.join(", ")));
    }
    one(types[0].with_element(result))
}

/// What an operand of an elementwise function may be.
#[derive(Clone, Copy)]
enum Kind {
    Float,
    /// `i32` or `i1`.
    Bits,
    /// `i32`.
    Integer,
    /// `i1`.
    Condition,
    Any,
    /// As the operand of this number.
    Same(usize),
}

impl Kind {
    fn holds(self, element: Scalar) -> bool {
        match self {
            Kind::Float => element.is_float(),
            Kind::Bits => element == INDEX || element == CONDITION,
            Kind::Integer => element == INDEX,
            Kind::Condition => element == CONDITION,
            Kind::Any | Kind::Same(_) => true,
        }
    }
}

/// What a function takes, and the element of its result, given the types of its operands.
fn signature(function: Function, types: &[&TensorType]) -> (&'static [Kind], Scalar) {
    use Kind::{Any, Bits, Condition, Float, Integer, Same};
    let element = |index: usize| types.get(index).map_or(CONDITION, |ty| ty.element);
    let opcode = function.opcode();
    match opcode.form() {
        Form::FloatUnary => (&[Float], element(0)),
        Form::FloatTernary => (&[Float, Same(0), Same(0)], element(0)),
        Form::FloatAndInt => (&[Float, Integer], element(0)),
        Form::FloatToExponent => (&[Float], INDEX),
        Form::FloatCompare => (&[Float, Same(0)], CONDITION),
        Form::IntCompare => (&[Bits, Same(0)], CONDITION),
        Form::IntBinary => match opcode {
            Opcode::And | Opcode::Or | Opcode::Xor => (&[Bits, Same(0)], element(0)),
            _ => (&[Integer, Same(0)], element(0)),
        },
        Form::Special => (&[Condition, Any, Same(1)], element(1)),
        // `FloatBinary`: `Function` has no other forms.
        _ => (&[Float, Same(0)], element(0)),
    }
}

pub(crate) fn detach(graph: &Graph, data: &OpData) -> Result {
    one(operand(graph, data, 0).clone())
}

pub(crate) fn cast(graph: &Graph, data: &OpData) -> Result {
    let Payload::Type(to) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    if from.shape != to.shape {
        return Err(format!("a cast from {from} to {to} would change the shape"));
    }
    one(to.clone())
}

pub(crate) fn reduce(graph: &Graph, data: &OpData) -> Result {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let from = operand(graph, data, 0);
    let ascending = axes.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || axes.last().is_some_and(|&last| last >= from.shape.len()) {
        return Err(format!("{axes:?} are no axes of {from} in ascending order"));
    }
    if from.element == CONDITION {
        return Err(format!("there is no {} of {from}", reduction.name()));
    }
    let reduced = from.with_shape(from.shape.without(axes));
    match reduction {
        Reduction::Argmax if axes.len() != 1 => {
            Err(format!("argmax goes over one axis, not {axes:?}"))
        }
        Reduction::Argmax => one(reduced.with_element(INDEX)),
        Reduction::Sum | Reduction::Max | Reduction::Min => one(reduced),
    }
}

pub(crate) fn contract(graph: &Graph, data: &OpData) -> Result {
    let Payload::Contract(indices) = &data.payload else {
        return Err(OTHER_PAYLOAD.into());
    };
    let (left, right) = (operand(graph, data, 0), operand(graph, data, 1));
    let ranks_fit =
        indices.left.len() == left.shape.len() && indices.right.len() == right.shape.len();
    if !ranks_fit || left.element != right.element || !left.is_float() {
        return Err(format!(
            "{left} and {right} cannot be contracted by {indices}"
        ));
    }
    let size = |index: &u8| {
        let axis = |axes: &[u8]| axes.iter().position(|other| other == index);
        let in_left = axis(&indices.left).map(|axis| left.shape[axis]);
        (in_left, axis(&indices.right).map(|axis| right.shape[axis]))
    };
    for index in 0..indices.count() {
        if let (Some(in_left), Some(in_right)) = size(&index)
            && in_left != in_right
        {
            return Err(format!(
                "{left} and {right} cannot be contracted by {indices}: an index has {in_left} and {in_right} values"
            ));
        }
    }
    let sizes: Option<Shape> = indices
        .result
        .iter()
        .map(|index| {
            let (in_left, in_right) = size(index);
            in_left.or(in_right)
        })
        .collect::<Option<Vec<usize>>>()
        .map(|sizes| Shape::from(&sizes[..]));
    match sizes {
        Some(sizes) => one(left.with_shape(sizes)),
        None => Err(format!("{indices} has an index in its result only")),
    }
}

// ---- control

pub(crate) fn for_(graph: &Graph, data: &OpData) -> Result {
    let count = operand(graph, data, 0);
    if *count != TensorType::scalar(INDEX) {
        return Err(format!("the trip count must be i32[], but it is {count}"));
    }
    let carried: Types = types_of(graph, &data.operands[1..]);
    let mut arguments: Types = smallvec![TensorType::scalar(INDEX)];
    arguments.extend(carried.iter().cloned());
    check_region(graph, data.regions[0], &arguments, &carried)?;
    Ok(carried)
}

pub(crate) fn while_(graph: &Graph, data: &OpData) -> Result {
    let carried: Types = types_of(graph, &data.operands);
    let condition = [TensorType::scalar(CONDITION)];
    check_region(graph, data.regions[0], &carried, &condition)?;
    check_region(graph, data.regions[1], &carried, &carried)?;
    Ok(carried)
}

pub(crate) fn if_(graph: &Graph, data: &OpData) -> Result {
    let condition = operand(graph, data, 0);
    if *condition != TensorType::scalar(CONDITION) {
        return Err(format!("the condition must be i1[], but it is {condition}"));
    }
    let results = types_of(graph, &graph.regions[data.regions[0]].results);
    for &region in &data.regions {
        check_region(graph, region, &[], &results)?;
    }
    Ok(results)
}

fn types_of(graph: &Graph, tensors: &[crate::Tensor]) -> Types {
    tensors
        .iter()
        .map(|&tensor| graph.ty(tensor).clone())
        .collect()
}

fn check_region(
    graph: &Graph,
    region: Region,
    arguments: &[TensorType],
    results: &[TensorType],
) -> Result<()> {
    let region = &graph.regions[region];
    let (has, yields) = (
        types_of(graph, &region.arguments),
        types_of(graph, &region.results),
    );
    if has[..] != *arguments {
        return Err(format!(
            "the region must have arguments of the types {arguments:?}, but they are {has:?}"
        ));
    }
    if yields[..] != *results {
        return Err(format!(
            "the region must yield tensors of the types {results:?}, but they are {yields:?}"
        ));
    }
    Ok(())
}

fn check_axis(axis: usize, ty: &TensorType) -> Result<()> {
    if axis < ty.shape.len() {
        Ok(())
    } else {
        Err(format!("{ty} has no axis {axis}"))
    }
}

fn check_each_axis(given: usize, ty: &TensorType) -> Result<()> {
    if given == ty.shape.len() {
        Ok(())
    } else {
        Err(format!("{given} parts do not describe the axes of {ty}"))
    }
}
