//! Deferred frees: memory that the primal frees while the reverse sweep still needs it.
//!
//! If one region both allocates and frees memory, the reverse of the allocation frees it: see
//! [`paired_releases`]. Every other free is deferred: its address goes into a list, which is processed after the reverse
//! sweep. A list is 24 bytes: the address of its entries, their number, and the capacity. An entry is an address; the
//! size of the allocation, if the allocator needs it; and, in the list that all indirect calls
//! share, which has memory of all allocators, the number of the [`Manner`] in which it is freed.

use crate::given_memory;
use crate::objects::{Kind, Objects, ObjectsCache};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Module, Op, OpData, Opcode, Payload, Structure, Type,
    Value, parse_module, returning_ops,
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
                if let Some((made, _)) = function.def_op(data.address())
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

/// How memory is released.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Manner {
    /// The allocator.
    family: Box<str>,
    /// The alignment that it is told.
    align: Alignment,
    /// Whether it is told the size.
    sized: bool,
}

impl Manner {
    /// How memory of Ferrozyme's own allocator is released.
    pub(crate) fn own() -> Manner {
        Manner {
            family: "".into(),
            align: Alignment::ONE,
            sized: false,
        }
    }

    /// Whether it is C's `free`.
    pub(crate) fn is_of_c(&self) -> bool {
        &*self.family == "malloc"
    }

    /// How a `free` does it.
    pub(crate) fn of(data: &OpData) -> Manner {
        match &data.payload {
            Payload::Free { align, family } => Manner {
                family: family.clone(),
                align: *align,
                sized: data.operands.len() > 1,
            },
            _ => Manner::own(),
        }
    }

    /// All manners that the functions of a module know, and [`Manner::own`].
    pub(crate) fn all_in(module: &Module) -> Vec<Manner> {
        let mut found = BTreeSet::from_iter([Manner::own()]);
        for function in module.functions.values() {
            let frees = function.ops.values();
            found.extend(
                frees
                    .filter(|data| data.opcode == Opcode::Free)
                    .map(Manner::of),
            );
        }
        found.into_iter().collect()
    }

    /// Releases memory; the size is looked at only if the allocator is told.
    pub(crate) fn release(&self, b: &mut Builder<'_>, memory: Value, size: Option<Value>) {
        let payload = Payload::Free {
            align: self.align,
            family: self.family.clone(),
        };
        let size = size.filter(|_| self.sized);
        let operands: Vec<Value> = [Some(memory), size].into_iter().flatten().collect();
        b.op(Opcode::Free, &operands, payload, &[]);
    }
}

/// Which list memory goes to that is to be released later.
///
/// Memory of different allocators and of different layouts is kept apart: a list of pointers to memory of which it cannot be told
/// what it holds could not be differentiated again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ListKey {
    /// Memory of one layout that is released in one manner.
    Alike {
        /// How the memory is released.
        manner: Manner,
        /// The layout, in words.
        layout: Box<str>,
    },
    /// The one list of a function that is called through a pointer, whose caller cannot know which others it would need: each entry says how it is released.
    Shared,
    /// Not a list of memory to be released, but the register of shadows: see `given_memory.rs`.
    Register,
}

impl ListKey {
    /// How the memory on a list is released; none if each entry says so.
    fn manner(&self) -> Option<&Manner> {
        match self {
            ListKey::Alike { manner, .. } => Some(manner),
            ListKey::Shared | ListKey::Register => None,
        }
    }

    /// How many bytes a list has.
    fn bytes(&self) -> i64 {
        match self {
            ListKey::Register => given_memory::REGISTER_BYTES,
            _ => LIST_BYTES,
        }
    }

    /// The list for what a pointer leads to, by what the function alone tells of it.
    pub(crate) fn of(
        objects: &Objects,
        function: &Function,
        pointer: Value,
        manner: &Manner,
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
        ListKey::Alike {
            manner: manner.clone(),
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
        // Pointers that are put off.
        let mut put_off: Vec<(Value, Manner)> = Vec::new();
        let structure = Structure::of(function);
        for op in returning_ops(function) {
            let data = &function.ops[op];
            regions.extend(&data.regions);
            match &data.payload {
                Payload::Callee(callee) if seen.insert((*callee, true)) => {
                    pending.push((*callee, true));
                }
                _ => {}
            }
            if data.opcode == Opcode::CallIndirect {
                found.insert(ListKey::Shared);
            }
            let in_body = structure.region_of(op) == Some(body);
            if data.opcode == Opcode::Stack && split && !in_body {
                put_off.push((data.results[0], Manner::own()));
            }
        }
        regions.retain(|&region| !function.ends_in_trap(region));
        for region in regions {
            let ops = &function.regions[region].ops;
            let paired = paired_releases(function, ops);
            for op in ops {
                let data = &function.ops[*op];
                if data.opcode == Opcode::Free && !paired.contains_key(op) {
                    put_off.push((data.address(), Manner::of(data)));
                }
            }
        }
        if !put_off.is_empty() {
            let objects = cache.get(module, id);
            found.extend(
                put_off
                    .iter()
                    .map(|(pointer, manner)| ListKey::of(&objects, function, *pointer, manner)),
            );
        }
    }
    found.into_iter().collect()
}

/// How many bytes a list has.
const LIST_BYTES: i64 = 24;

/// An empty list on the stack.
pub(crate) fn new_list(b: &mut Builder<'_>, key: &ListKey) -> Value {
    let align = Alignment::natural(Type::PTR);
    let bytes = b.i64(key.bytes());
    let list = b.stack(bytes, align);
    let zero = b.zero(Type::I8);
    b.fill(list, zero, bytes, align);
    list
}

/// An empty list on the heap, for a reverse sweep that runs later.
pub(crate) fn new_heap_list(b: &mut Builder<'_>, key: &ListKey) -> Value {
    let bytes = b.i64(key.bytes());
    b.alloc(bytes, Alignment::natural(Type::PTR), true)
}

/// The names and types of what an entry of a list consists of, apart from the address.
fn entry_fields(key: &ListKey) -> &'static [&'static str] {
    match key.manner() {
        None => &["size", "manner"],
        Some(manner) if manner.sized => &["size"],
        Some(_) => &[],
    }
}

/// The function that puts off a release: it takes the list, the memory, and what else an entry consists of.
///
/// It keeps the memory's address, and says so: whoever works off the list releases the memory, and nobody may read it after that.
pub(crate) fn defer_function(module: &mut Module, key: &ListKey) -> FunctionId {
    let fields = entry_fields(key);
    let name = [
        "ferrozyme.defer",
        "ferrozyme.defer.sized",
        "ferrozyme.defer.any",
    ][fields.len()];
    let bytes = 8 * (1 + fields.len());
    let mut parameters = String::new();
    let mut stores = String::new();
    for (index, field) in fields.iter().enumerate() {
        let _ = write!(parameters, ", %{field}: i64");
        let _ = write!(
            stores,
            "%{field}_at = offset %slot, {} * 8
             store i64 %{field}, %{field}_at align 8
            ",
            index + 1
        );
    }
    runtime_function(
        module,
        name,
        &format!(
            "func @{name}(%list: ptr nocapture, %memory: ptr readonly writeonly{parameters}) noinline {{
               %len_at = offset %list, 1 * 8
               %room_at = offset %list, 2 * 8
               %entries = load ptr %list align 8
               %len = load i64 %len_at align 8
               %room = load i64 %room_at align 8
               %full = icmp eq i64 %len, %room
               %space = if %full -> (ptr) {{
                 %twice = mul i64 %room, 2
                 %more = smax i64 %twice, 8
                 %bytes = mul i64 %more, {bytes}
                 %new = alloc %bytes align 8
                 %used = mul i64 %len, {bytes}
                 copy %new, %entries, %used align 8
                 free %entries
                 store ptr %new, %list align 8
                 store i64 %more, %room_at align 8
                 yield %new
               }} else {{
                 yield %entries
               }}
               %slot = offset %space, %len * {bytes}
               store ptr %memory, %slot align 8
               {stores}%next = add i64 %len, 1
               store i64 %next, %len_at align 8
               return
             }}"
        ),
    )
}

/// The function `(list)` that releases everything in a list, and the list's entries. `manners` are those that entries of a list for
/// anything name by their position.
pub(crate) fn release_function(
    module: &mut Module,
    key: &ListKey,
    manners: &[Manner],
) -> FunctionId {
    let fields = entry_fields(key);
    let name = match key.manner() {
        None => module.fresh_name("ferrozyme.release.any"),
        Some(manner) => {
            let mut name = "ferrozyme.release".to_owned();
            if manner.sized || manner.align != Alignment::ONE {
                let _ = write!(name, ".sized.{}", manner.align.bytes());
            }
            if !manner.family.is_empty() {
                let _ = write!(name, ".{}", manner.family);
            }
            name
        }
    };
    if let Some(id) = module.function_named(&name) {
        return id;
    }
    let mut function = Function::define(name, vec![Type::PTR.into()], Vec::new());
    function.params[0].facts.nocapture = true;
    function.facts.noinline = true;
    let list = function.arguments()[0];
    function.set_name(list, "list");
    let word = Alignment::natural(Type::PTR);
    let mut b = Builder::at_body(&mut function);
    let entries = b.load(Type::PTR, list, word);
    let length_at = b.offset_bytes(list, 8);
    let length = b.load(Type::I64, length_at, word);
    let (zero, one) = (b.i64(0), b.i64(1));
    let (_, region) = b.for_loop(zero, length, one, &[]);
    b.inside(region, |b| {
        let index = b.function.regions[region].args[0];
        let entry = b.offset(entries, index, 8 * (1 + fields.len() as i64));
        let memory = b.load(Type::PTR, entry, word);
        let words: Vec<Value> = (0..fields.len())
            .map(|index| {
                let at = b.offset_bytes(entry, 8 * (1 + index as i64));
                b.load(Type::I64, at, word)
            })
            .collect();
        match (key.manner(), &words[..]) {
            (Some(manner), _) => manner.release(b, memory, words.first().copied()),
            (None, &[size, number]) => release_in_any_manner(b, memory, size, number, manners),
            (None, _) => unreachable!("entries of a list for anything have two words more"),
        }
        b.yields(&[]);
    });
    b.free(entries);
    b.ret(&[]);
    module.functions.push(function)
}

/// Releases memory in the manner of this number.
fn release_in_any_manner(
    b: &mut Builder<'_>,
    memory: Value,
    size: Value,
    number: Value,
    manners: &[Manner],
) {
    let cases: Vec<Box<[i128]>> = (0..manners.len() as i128)
        .map(|number| Box::from([number]))
        .collect();
    let payload = Payload::Cases(cases.into());
    let choice = b.op(Opcode::Switch, &[number], payload, &[]);
    for manner in manners {
        let region = b.function.new_region(&[]);
        b.function.ops[choice].regions.push(region);
        b.inside(region, |b| {
            manner.release(b, memory, Some(size));
            b.yields(&[]);
        });
    }
    let region = b.function.new_region(&[]);
    b.function.ops[choice].regions.push(region);
    b.inside(region, |b| {
        b.trap("memory is to be released in a manner that does not exist");
    });
}

/// The function of this name, made from its text if the module does not have it yet.
fn runtime_function(module: &mut Module, name: &str, text: &str) -> FunctionId {
    if let Some(id) = module.function_named(name) {
        return id;
    }
    runtime_functions(module, text)
        .into_iter()
        .next()
        .expect("the text defines the function")
}

/// Adds functions of our own, which call none but each other.
pub(crate) fn runtime_functions(module: &mut Module, text: &str) -> Vec<FunctionId> {
    let parsed = parse_module(text).expect("the runtime's own text is well-formed");
    // They stand in the same order, behind those that are there.
    let before = module.functions.len() as u32;
    let mut added = Vec::new();
    for (_, mut function) in parsed.functions {
        for data in function.ops.values_mut() {
            if let Payload::Callee(callee) = &mut data.payload {
                *callee = FunctionId::from_u32(before + callee.as_u32());
            }
        }
        added.push(module.functions.push(function));
    }
    added
}
