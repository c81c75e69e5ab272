//! Converts the results of a derivative to the form that the call expects: a value, or memory of the caller.
//!
//! A program declares the result type of the entry point: none, a float, or a structure. The platform's ABI decides how a structure is returned (`{ float, float }` as `<2 x float>`), but in memory
//! it has C's layout. So results go through memory, unless they match the parts of the returned value one by one.

use super::arguments::c_type;
use super::thunk::{convert, described};
use crate::trace::{is_looked_at, is_read};
use ferrozyme_convention::signature::{put_together, take_apart};
use ferrozyme_llvm::{Builder, Context, DataLayout, GepFlags, Type, Value};
use ferrozyme_refusal::Refusal;

/// What a derivative gave, and where it is to go.
pub(super) struct Output<'c> {
    pub(super) call: Value<'c>,
    /// Where the caller wants it, and as what.
    pub(super) memory: Option<(Value<'c>, Type<'c>)>,
    pub(super) values: Vec<Value<'c>>,
    /// What the primal and its tangents wrote to memory instead of returning it: the type, and where.
    pub(super) structure: Option<(Type<'c>, Vec<Value<'c>>)>,
}

/// Ends the function with the results; the reason if they do not fit.
pub(super) fn deliver<'c>(
    context: &'c Context,
    layout: &DataLayout,
    builder: &Builder<'c>,
    output: &Output<'c>,
) -> Result<(), Refusal> {
    let returned = output.call.ty();
    let mut parts = output.values.clone();
    if let Some((of, places)) = &output.structure {
        for place in places.iter().rev() {
            parts.insert(0, builder.load(*of, *place));
        }
    }
    if let Some((memory, of)) = output.memory {
        let (offsets, size) = place_parts(layout, &parts);
        if size != layout.size(of) {
            if !is_read(output.call.arguments()[0]) {
                builder.return_nothing();
                return Ok(());
            }
            return Err(mismatch(&parts, of));
        }
        store_parts(context, builder, &parts, &offsets, memory);
        builder.return_nothing();
        return Ok(());
    }
    if returned.is_void() {
        builder.return_nothing();
        return Ok(());
    }
    if parts.is_empty() {
        if is_looked_at(output.call) {
            return Err(Refusal::ResultType {
                given: "nothing, since no argument is 'enzyme_out'".to_owned(),
                wanted: described(returned),
            });
        }
        builder.return_value(returned.zero());
        return Ok(());
    }
    let flat: Vec<Value<'c>> = parts
        .iter()
        .flat_map(|part| take_apart(builder, *part))
        .collect();
    let shape = take_apart(builder, returned.poison());
    if shape.len() == flat.len() {
        let converted = flat
            .iter()
            .zip(&shape)
            .map(
                |(value, like)| match value.ty().is_pointer() == like.ty().is_pointer() {
                    true => convert(builder, layout, *value, like.ty()),
                    false => None,
                },
            )
            .collect::<Option<Vec<_>>>();
        let whole =
            converted.and_then(|values| put_together(builder, returned, &mut values.into_iter()));
        if let Some(whole) = whole {
            builder.return_value(whole);
            return Ok(());
        }
    }
    let (offsets, size) = place_parts(layout, &parts);
    if size > layout.size(returned) {
        if !is_looked_at(output.call) {
            builder.return_value(returned.zero());
            return Ok(());
        }
        // A call that wants one number of several gets the first, as with Enzyme.
        if let Some(&first) = flat.first().filter(|first| first.ty() == returned) {
            builder.return_value(first);
            return Ok(());
        }
        return Err(mismatch(&parts, returned));
    }
    let memory = builder.alloca(returned);
    store_parts(context, builder, &parts, &offsets, memory);
    builder.return_value(builder.load(returned, memory));
    Ok(())
}

fn mismatch(parts: &[Value<'_>], of: Type<'_>) -> Refusal {
    let types: Vec<String> = parts.iter().map(|part| c_type(part.ty())).collect();
    Refusal::ResultType {
        given: format!("'{}'", types.join(", ")),
        wanted: described(of),
    }
}

fn place_parts(layout: &DataLayout, parts: &[Value<'_>]) -> (Vec<u64>, u64) {
    let types: Vec<Type<'_>> = parts.iter().map(|part| part.ty()).collect();
    place_types(layout, &types)
}

/// Where C puts the parts of a structure, and its size.
pub(super) fn place_types(layout: &DataLayout, parts: &[Type<'_>]) -> (Vec<u64>, u64) {
    let (mut offsets, mut end, mut widest) = (Vec::new(), 0_u64, 1);
    for part in parts {
        let alignment = u64::from(layout.alignment(*part)).max(1);
        end = end.next_multiple_of(alignment);
        widest = widest.max(alignment);
        offsets.push(end);
        end += layout.size(*part);
    }
    (offsets, end.next_multiple_of(widest))
}

fn store_parts<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    parts: &[Value<'c>],
    offsets: &[u64],
    memory: Value<'c>,
) {
    for (part, offset) in parts.iter().zip(offsets) {
        let distance = context.integer(64).constant(i128::from(*offset));
        let address = builder.offset(memory, distance, GepFlags::INBOUNDS);
        builder.store(*part, address);
    }
}
