//! Memory that the primal releases while the reverse sweep still needs it.
//!
//! Where the same list of operations makes and releases memory, the reverse of the allocation releases it: see
//! [`paired_releases`]. Every other release is put off by noting the address in a list, which is worked off after the reverse
//! sweep. A list is 24 bytes: where its entries are, how many there are, and for how many there is room.

use crate::objects::{Kind, Objects, ObjectsCache};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Module, Op, Opcode, Payload, Type, Value,
    for_each_op, parse_module,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The releases in a list of operations whose memory was made in the same list, and those allocations: each leads to the
/// other. Both happen equally often.
pub(crate) fn paired_releases(function: &Function, ops: &[Op]) -> FxHashMap<Op, Op> {
    let mut made_here = FxHashSet::default();
    let mut pairs = FxHashMap::default();
    for &op in ops {
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Alloc => {
                made_here.insert(op);
            }
            Opcode::Free => {
                if let Some((made, _)) = function.def_op(data.operands[0])
                    && made_here.contains(&made)
                {
                    pairs.insert(made, op);
                    pairs.insert(op, made);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// Which list memory goes to that is to be released later.
///
/// Memory of different allocators and of different layouts is kept apart: a list of pointers to memory of which it cannot be told
/// what it holds could not be differentiated again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ListKey {
    /// The allocator.
    pub family: Box<str>,
    /// The layout, in words.
    layout: Box<str>,
}

impl ListKey {
    /// The one list of a function that is called through a pointer: its caller cannot know which others it would need.
    pub(crate) fn shared() -> ListKey {
        ListKey {
            family: "".into(),
            layout: "anything".into(),
        }
    }

    /// The list for what a pointer leads to, by what the function alone tells of it.
    pub(crate) fn of(
        objects: &Objects,
        function: &Function,
        pointer: Value,
        family: &str,
    ) -> ListKey {
        let mut layout = String::new();
        if let Some((class, _)) = objects.class_of(function, pointer) {
            let _ = write!(layout, "every {}", objects.period(class));
            for field in objects.fields(class) {
                let _ = match field.kind {
                    Kind::Float(scalar) => write!(layout, ", {}: {scalar}", field.offset),
                    Kind::Pointer(_) => write!(layout, ", {}: ptr", field.offset),
                    Kind::Integer => write!(layout, ", {}: integer", field.offset),
                    Kind::Padding | Kind::Unknown | Kind::Conflict(_) => Ok(()),
                };
            }
        }
        ListKey {
            family: family.into(),
            layout: layout.into(),
        }
    }
}

/// The lists that the forward sweep of a function, or of what it calls, puts memory on that is to be released later.
///
/// That is memory that is released without having been made in the same list of operations. Besides, where the reverse sweep is
/// another function (`split`, as it is for all callees), memory of the stack moves to the heap.
pub(crate) fn lists_of(
    module: &Module,
    cache: &mut ObjectsCache,
    function: FunctionId,
    split: bool,
) -> Vec<ListKey> {
    let mut found: BTreeSet<ListKey> = BTreeSet::new();
    let mut seen = FxHashSet::from_iter([(function, split)]);
    let mut pending = vec![(function, split)];
    while let Some((id, split)) = pending.pop() {
        let function = &module.functions[id];
        let Some(body) = function.body else { continue };
        let mut regions = vec![body];
        // Pointers that are put off, and their allocators.
        let mut put_off: Vec<(Value, Box<str>)> = Vec::new();
        for_each_op(function, body, &mut |region, op| {
            let data = &function.ops[op];
            regions.extend(&data.regions);
            match &data.payload {
                Payload::Callee(callee) if seen.insert((*callee, true)) => {
                    pending.push((*callee, true));
                }
                _ => {}
            }
            if data.opcode == Opcode::CallIndirect {
                found.insert(ListKey::shared());
            }
            if data.opcode == Opcode::Stack && split && region != body {
                put_off.push((data.results[0], "".into()));
            }
        });
        for region in regions {
            let ops = &function.regions[region].ops;
            let paired = paired_releases(function, ops);
            for op in ops {
                let data = &function.ops[*op];
                if let (Opcode::Free, Payload::Family(family)) = (data.opcode, &data.payload)
                    && !paired.contains_key(op)
                {
                    put_off.push((data.operands[0], family.clone()));
                }
            }
        }
        if !put_off.is_empty() {
            let objects = cache.get(module, id);
            found.extend(
                put_off
                    .iter()
                    .map(|(pointer, family)| ListKey::of(&objects, function, *pointer, family)),
            );
        }
    }
    found.into_iter().collect()
}

/// How many bytes a list has.
const LIST_BYTES: i64 = 24;

/// An empty list on the stack.
pub(crate) fn new_list(b: &mut Builder<'_>) -> Value {
    let align = Alignment::natural(Type::PTR);
    let bytes = b.i64(LIST_BYTES);
    let list = b.stack(bytes, align);
    let zero = b.zero(Type::I8);
    b.fill(list, zero, bytes, align);
    list
}

/// An empty list on the heap, for a reverse sweep that runs later.
pub(crate) fn new_heap_list(b: &mut Builder<'_>) -> Value {
    let bytes = b.i64(LIST_BYTES);
    b.alloc(bytes, Alignment::natural(Type::PTR), true)
}

/// The function `(list, memory)` that puts off a release.
pub(crate) fn defer_function(module: &mut Module) -> FunctionId {
    runtime_function(
        module,
        "ferrozyme.defer",
        "func @ferrozyme.defer(%list: ptr nocapture, %memory: ptr readonly writeonly nocapture) noinline {
           %len_at = offset %list, 1 * 8
           %room_at = offset %list, 2 * 8
           %entries = load ptr %list align 8
           %len = load i64 %len_at align 8
           %room = load i64 %room_at align 8
           %full = icmp eq i64 %len, %room
           %space = if %full -> (ptr) {
             %twice = mul i64 %room, 2
             %more = smax i64 %twice, 8
             %bytes = mul i64 %more, 8
             %new = alloc %bytes align 8
             %used = mul i64 %len, 8
             copy %new, %entries, %used align 8
             free %entries
             store ptr %new, %list align 8
             store i64 %more, %room_at align 8
             yield %new
           } else {
             yield %entries
           }
           %slot = offset %space, %len * 8
           store ptr %memory, %slot align 8
           %next = add i64 %len, 1
           store i64 %next, %len_at align 8
           return
         }",
    )
}

/// The function `(list)` that releases everything in a list, and the list's entries.
pub(crate) fn release_function(module: &mut Module, family: &str) -> FunctionId {
    let name = if family.is_empty() {
        "ferrozyme.release".to_owned()
    } else {
        format!("ferrozyme.release.{family}")
    };
    let id = runtime_function(
        module,
        &name,
        &format!(
            "func @{name}(%list: ptr nocapture) noinline {{
               %len_at = offset %list, 1 * 8
               %entries = load ptr %list align 8
               %len = load i64 %len_at align 8
               for %i: i64 = 0 to %len step 1 {{
                 %slot = offset %entries, %i * 8
                 %memory = load ptr %slot align 8
                 free %memory
                 yield
               }}
               free %entries
               return
             }}"
        ),
    );
    let function = &mut module.functions[id];
    let frees: Vec<Op> = ferrozyme_ir::all_ops(function)
        .into_iter()
        .filter(|&op| function.ops[op].opcode == Opcode::Free)
        .collect();
    function.ops[frees[0]].payload = Payload::Family(family.into());
    id
}

/// The function of this name, made from its text if the module does not have it yet.
fn runtime_function(module: &mut Module, name: &str, text: &str) -> FunctionId {
    if let Some(id) = module.function_named(name) {
        return id;
    }
    let mut parsed = parse_module(text).expect("the runtime's own text is well-formed");
    let id = parsed
        .function_named(name)
        .expect("the text defines the function");
    let function = std::mem::replace(
        &mut parsed.functions[id],
        Function::declare("", Vec::new(), Vec::new()),
    );
    module.functions.push(function)
}
