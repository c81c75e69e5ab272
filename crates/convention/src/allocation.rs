//! Allocators: which LLVM functions allocate and release, and for which family.
//!
//! Import and export agree on this file. A *family* is a set of functions whose memory belongs together: LLVM's attribute `"alloc-family"` names it. The importer turns a
//! call of a function that [`recognise`] knows into `alloc … family "name"` or `free … family "name"`, with the family's name as it stands in the attribute. The exporter finds the
//! functions of that family again in the module ([`Families`]). The family `malloc`, and that with the empty name, which is Ferrozyme's own (tapes, shadows), are C's `malloc`, `calloc`, `aligned_alloc` and `free`, which
//! are declared where they are missing.
//!
//! Rust's allocator has mangled names (`_RNvCs…_7___rustc12___rust_alloc`). A module that allocates may lack the declaration of, say, the zeroing variant; its name is made from
//! that of a sibling, since only the last part differs.

use ferrozyme_library::{AllocationFunction, AllocationRole, Known, find, functions};
use ferrozyme_llvm::{Context, Module, Place, Type, Value};
use rustc_hash::FxHashMap;

/// Bits of LLVM's attribute `allockind`.
const ALLOCATE: u64 = 1;
const REALLOCATE: u64 = 2;
const RELEASE: u64 = 4;
const UNINITIALISED: u64 = 8;
const ZEROED: u64 = 16;
const ALIGNED: u64 = 32;

/// What a function does as an allocator, if the table of library functions or its attributes say that it is part of one.
pub fn recognise(function: Value<'_>) -> Option<AllocationFunction> {
    if !function.is_function() {
        return None;
    }
    if let Some(known) = by_name(function) {
        return Some(known);
    }
    let kind = function.attribute_value(Place::Function, "allockind")?;
    let family = function
        .text_attribute(Place::Function, "alloc-family")
        .unwrap_or_default();
    let parameters = function.value_type().parameters();
    let with_attribute = |name: &str| {
        (0..parameters.len() as u32)
            .find(|&index| function.has_attribute(Place::Parameter(index), name))
    };
    let role = match kind {
        kind if kind & RELEASE != 0 => AllocationRole::Release,
        kind if kind & REALLOCATE != 0 => AllocationRole::Reallocate,
        kind if kind & ALLOCATE != 0 => AllocationRole::Allocate {
            zeroed: kind & ZEROED != 0,
        },
        _ => return None,
    };
    // `allocsize` packs two positions: the size above, the count (all ones if there is none) below.
    let (mut size, mut count) = (None, None);
    if let Some(packed) = function.attribute_value(Place::Function, "allocsize") {
        size = Some((packed >> 32) as u32);
        count = (packed as u32 != u32::MAX).then_some(packed as u32);
    }
    let pointer = if matches!(role, AllocationRole::Allocate { .. }) {
        None
    } else {
        with_attribute("allocptr").or(Some(0))
    };
    let integer_after = |position: u32| {
        parameters
            .get(position as usize + 1)
            .is_some_and(|of| of.integer_width().is_some())
            .then_some(position + 1)
    };
    let old_size = match role {
        AllocationRole::Release => pointer.and_then(integer_after),
        AllocationRole::Reallocate if kind & ALIGNED != 0 => pointer.and_then(integer_after),
        _ => None,
    };
    let mut alignment = with_attribute("allocalign");
    if alignment.is_none() && role == AllocationRole::Release {
        alignment = old_size.and_then(integer_after);
    }
    if alignment.is_none() && role == AllocationRole::Reallocate {
        alignment = old_size
            .and_then(integer_after)
            .filter(|position| Some(*position) != size);
    }
    if matches!(role, AllocationRole::Allocate { .. }) && size.is_none() {
        return None;
    }
    Some(AllocationFunction {
        family: family.into(),
        role,
        size,
        count,
        alignment,
        pointer,
        old_size,
        is_variant: false,
    })
}

/// The functions of C and C++, whose declarations say nothing of what they do, unless LLVM looked at them.
fn by_name(function: Value<'_>) -> Option<AllocationFunction> {
    let known = allocator_named(&function.name())?;
    (function.parameter_count() >= known.argument_count()).then(|| known.clone())
}

/// What is known of the allocation function of this name.
pub fn allocator_named(name: &str) -> Option<&'static AllocationFunction> {
    find(name, |known| match known {
        Known::Allocator(known) => Some(known),
        _ => None,
    })
}

/// The functions of one family.
#[derive(Clone, Default, Debug)]
pub struct Family<'c> {
    /// Gives memory with any contents.
    pub allocate: Option<(Value<'c>, AllocationFunction)>,
    /// Gives memory of zeros.
    pub allocate_zeroed: Option<(Value<'c>, AllocationFunction)>,
    /// Gives more memory, or less, for what was given before.
    pub reallocate: Option<(Value<'c>, AllocationFunction)>,
    /// Releases.
    pub release: Option<(Value<'c>, AllocationFunction)>,
}

impl<'c> Family<'c> {
    fn place(&mut self, role: AllocationRole) -> &mut Option<(Value<'c>, AllocationFunction)> {
        match role {
            AllocationRole::Allocate { zeroed: false } => &mut self.allocate,
            AllocationRole::Allocate { zeroed: true } => &mut self.allocate_zeroed,
            AllocationRole::Release => &mut self.release,
            AllocationRole::Reallocate => &mut self.reallocate,
        }
    }
}

/// All families of a module.
#[derive(Default, Debug)]
pub struct Families<'c> {
    families: FxHashMap<String, Family<'c>>,
}

impl<'c> Families<'c> {
    /// Looks through the functions of a module.
    pub fn of(module: Module<'c>) -> Families<'c> {
        let mut families: FxHashMap<String, Family<'c>> = FxHashMap::default();
        for function in module.functions() {
            let Some(known) = recognise(function) else {
                continue;
            };
            if known.is_variant {
                continue;
            }
            let family = families.entry(known.family.to_string()).or_default();
            let place = family.place(known.role);
            // Of several (C's `malloc` and `aligned_alloc` are one family) the one that takes an alignment can do more.
            if place
                .as_ref()
                .is_none_or(|(_, before)| before.alignment.is_none() && known.alignment.is_some())
            {
                *place = Some((function, known));
            }
        }
        for family in families.values_mut() {
            complete(module, family);
        }
        Families { families }
    }

    /// The functions of a family.
    pub fn get(&self, family: &str) -> Option<&Family<'c>> {
        self.families.get(family)
    }
}

/// Declares the functions of Rust's allocator, or the operators of C++, that the module happens not to mention.
fn complete<'c>(module: Module<'c>, family: &mut Family<'c>) {
    let context = module.context();
    // Names of Rust's functions have the same beginning, which is not known before.
    let beginning = |(function, known): &(Value<'c>, AllocationFunction)| {
        let name = function.name();
        let beginning = |pattern: &str| match pattern.strip_prefix('*') {
            Some(end) => name.strip_suffix(end).map(str::to_owned),
            None => (pattern == name && name.starts_with("_Z")).then(String::new),
        };
        let start = members(&known.family).find_map(|(pattern, _)| beginning(pattern))?;
        Some((start, known.family.clone()))
    };
    let [zeroed, resized] = [&family.allocate_zeroed, &family.reallocate];
    let mentioned = [&family.allocate, zeroed, resized, &family.release];
    let Some((start, of)) = mentioned.into_iter().flatten().find_map(beginning) else {
        return;
    };
    for (pattern, known) in members(&of) {
        let place = family.place(known.role);
        if place.is_some() || known.is_variant || known.role == AllocationRole::Reallocate {
            continue;
        }
        let name = pattern.replacen('*', &start, 1);
        let function = module.declare(&name, function_type(context, known));
        if pattern != name && function.is_function() {
            add_attributes(context, function, known);
        }
        *place = recognise(function).map(|known| (function, known));
    }
}

/// All functions of a family, by the names and patterns of the table.
fn members(family: &str) -> impl Iterator<Item = (&'static str, &'static AllocationFunction)> {
    functions(move |known| match known {
        Known::Allocator(known) if known.family == family => Some(known),
        _ => None,
    })
}

fn function_type<'c>(context: &'c Context, known: &AllocationFunction) -> Type<'c> {
    let type_of = |position| match known.pointer == Some(position) {
        true => context.pointer(),
        false => context.integer(64),
    };
    let parameters: Vec<Type<'c>> = (0..known.argument_count()).map(type_of).collect();
    let result = match known.gives_memory() {
        true => context.pointer(),
        false => context.void(),
    };
    result.function(&parameters, false)
}

/// Says of a function by attributes what it does as an allocator.
fn describe<'c>(context: &'c Context, function: Value<'c>, known: &AllocationFunction) {
    let aligned = if known.alignment.is_some() {
        ALIGNED
    } else {
        0
    };
    let kind = match known.role {
        AllocationRole::Allocate { zeroed: true } => ALLOCATE | ZEROED | aligned,
        AllocationRole::Allocate { zeroed: false } => ALLOCATE | UNINITIALISED | aligned,
        AllocationRole::Reallocate => REALLOCATE | aligned,
        AllocationRole::Release => RELEASE,
    };
    let add = |place, attribute| {
        function.add_attribute(place, attribute);
    };
    add(Place::Function, context.attribute("allockind", kind));
    let family = context.text_attribute("alloc-family", &known.family);
    add(Place::Function, family);
    if let Some(size) = known.size {
        let packed = u64::from(size) << 32 | u64::from(known.count.unwrap_or(u32::MAX));
        add(Place::Function, context.attribute("allocsize", packed));
    }
    if let Some(pointer) = known.pointer {
        let released = context.attribute("allocptr", 0);
        add(Place::Parameter(pointer), released);
    }
    if let Some(alignment) = known.alignment.filter(|_| known.gives_memory()) {
        add(
            Place::Parameter(alignment),
            context.attribute("allocalign", 0),
        );
    }
}

/// The same for a function of a library, which does nothing else.
fn add_attributes<'c>(context: &'c Context, function: Value<'c>, known: &AllocationFunction) {
    describe(context, function, known);
    function.add_attribute(Place::Function, context.attribute("nounwind", 0));
    if known.gives_memory() {
        function.add_attribute(Place::Result, context.attribute("noalias", 0));
    }
}

/// Says of a function that it allocates as many bytes as this argument says, in a family of its own, and of another that it releases them.
pub fn declare_allocator<'c>(
    context: &'c Context,
    function: Value<'c>,
    size: u32,
    release: Option<Value<'c>>,
) {
    let family = function.name();
    let add = |function: Value<'c>, known: AllocationFunction| {
        let family = family.clone().into();
        describe(context, function, &AllocationFunction { family, ..known });
        function.add_attribute(Place::Function, context.attribute("noinline", 0));
    };
    add(function, AllocationFunction::allocates("", size));
    if let Some(release) = release {
        add(release, AllocationFunction::releases(""));
    }
}

/// C's `malloc`.
pub fn declare_allocate(module: Module<'_>) -> Value<'_> {
    c_function(module, "malloc")
}

/// C's `free`.
pub fn declare_release(module: Module<'_>) -> Value<'_> {
    c_function(module, "free")
}

/// C's allocator, declared with what LLVM should know of it: Ferrozyme's own family and the family `malloc`.
pub fn c_function<'c>(module: Module<'c>, name: &str) -> Value<'c> {
    if let Some(known) = module.symbol(name) {
        return known;
    }
    let context = module.context();
    let known = allocator_named(name).expect("C's allocator is in the table");
    let function = module.add_function(name, function_type(context, known));
    add_attributes(context, function, known);
    function.add_attribute(Place::Function, context.attribute("willreturn", 0))
}
