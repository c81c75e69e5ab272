//! Drops sources that a load seems to be, but is not: memory that this function makes, and that no unseen code writes to, holds no pointers but those that were put there.
//!
//! ```text
//! %node = alloc 16 align 8                     class0: alloc %node, loaded as %next
//! %link = offset %node, 8                      ==>
//! %next = load ptr %link align 8               class0: alloc %node
//! store ptr %node, %link align 8
//! ```
//!
//! A load gives its result memory of its own if nothing is known to be there yet, and that is merged with what is stored there, before or after. The first pointer from
//! elsewhere in such a class would have to be loaded from memory of such a class, where it would have been before: there is none.

use super::{Class, Shape, Source, Trace};
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Function, FunctionId, Op, OpView, Value};

/// What a function's values are.
pub(super) struct Traced<'a> {
    pub(super) id: FunctionId,
    pub(super) function: &'a Function,
    pub(super) values: &'a SecondaryMap<Value, Trace>,
}

/// Removes loads from the sources of memory that is made here.
pub(super) fn drop_inner_loads(shape: &mut Shape, bodies: &[Traced<'_>]) {
    let mut own: SecondaryMap<Class, bool> = SecondaryMap::new();
    for (id, class) in shape.classes.iter() {
        let known = !class.escapes && !class.repointed && !class.unknown_origin;
        let mut sources = class.sources.iter().map(|(_, source)| source);
        own[id] = known
            && sources.clone().any(|source| source.is_made_here())
            && sources.all(|source| source.is_made_here() || matches!(source, Source::Loaded(_)));
    }
    loop {
        let foreign: Vec<Class> = shape
            .classes
            .iter()
            .filter(|&(id, class)| {
                let is_inner = |&(id, source): &(FunctionId, Source)| match source {
                    Source::Loaded(op) => {
                        loaded_from(bodies, id, op).is_some_and(|class| own[class])
                    }
                    _ => true,
                };
                own[id] && !class.sources.iter().all(is_inner)
            })
            .map(|(id, _)| id)
            .collect();
        if foreign.is_empty() {
            break;
        }
        for class in foreign {
            own[class] = false;
        }
    }
    for (id, class) in shape.classes.iter_mut() {
        if own[id] {
            class.sources.retain(|(_, source)| source.is_made_here());
        }
    }
}

/// The memory that a load reads.
fn loaded_from(bodies: &[Traced<'_>], id: FunctionId, op: Op) -> Option<Class> {
    let body = bodies.iter().find(|body| body.id == id)?;
    let OpView::Load { address, .. } = body.function.ops[op].view() else {
        return None;
    };
    match body.values[address] {
        Trace::Pointer(place) => Some(place.class),
        Trace::Cell(_) | Trace::Nothing => None,
    }
}
