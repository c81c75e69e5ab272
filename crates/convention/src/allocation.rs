//! Allocators: which LLVM functions allocate and release, and for which family.
//!
//! Import and export agree on this file. A *family* is a set of functions whose memory belongs together: LLVM's attribute `"alloc-family"` names it. The importer turns a
//! call of a function that [`recognise`] knows into `alloc … family "name"` or `free … family "name"`, with the family's name as it stands in the attribute. The exporter finds the
//! functions of that family again in the module ([`Families`]). The family `malloc`, and that with the empty name, which is Ferrozyme's own (tapes, shadows), are C's `malloc`, `calloc`, `aligned_alloc` and `free`, which
//! are declared where they are missing.
//!
//! Rust's allocator has mangled names (`_RNvCs…_7___rustc12___rust_alloc`). A module that allocates may lack the declaration of, say, the zeroing variant; its name is made from
//! that of a sibling, since only the last part differs.

use rustc_hash::FxHashMap;

use ferrozyme_llvm::{Module, Place, Value};

/// What an allocation function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationRole {
    /// Gives new memory, as zeros if `zeroed`.
    Allocate {
        /// Whether the memory starts as zeros.
        zeroed: bool,
    },
    /// Gives memory of another size with the old contents, and releases the old.
    Reallocate,
    /// Releases memory.
    Release,
}

/// A function of an allocator, by what its attributes say. Arguments are given by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationFunction {
    /// The value of `"alloc-family"`.
    pub family: String,
    /// What it does.
    pub role: AllocationRole,
    /// Which argument is the (new) size, or the size of one element. None for those that release.
    pub size: Option<u32>,
    /// Which argument is the number of elements, as of `calloc`.
    pub count: Option<u32>,
    /// Which argument is the alignment.
    pub alignment: Option<u32>,
    /// Which argument is the memory that is released or resized.
    pub pointer: Option<u32>,
    /// Which argument of one that releases is the size that the memory has. Rust's functions take it after the pointer.
    pub old_size: Option<u32>,
}

/// Bits of LLVM's attribute `allockind`.
const ALLOCATE: u64 = 1;
const REALLOCATE: u64 = 2;
const RELEASE: u64 = 4;
const ZEROED: u64 = 16;
const ALIGNED: u64 = 32;

/// What a function does as an allocator, if its attributes say that it is part of one.
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
        family,
        role,
        size,
        count,
        alignment,
        pointer,
        old_size,
    })
}

/// The families of C++'s operators by the function that allocates, and that which releases.
const OPERATORS: &[(&str, &str)] = &[
    ("_Znwm", "_ZdlPv"),
    ("_Znam", "_ZdaPv"),
    ("_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t"),
    ("_ZnamSt11align_val_t", "_ZdaPvSt11align_val_t"),
];

/// The functions of C and C++, whose declarations say nothing of what they do, unless LLVM looked at them.
fn by_name(function: Value<'_>) -> Option<AllocationFunction> {
    let name = function.name();
    let is_sized = name.starts_with("_Zd") && name.contains("Pvm");
    let (role, size, count, family, alignment) = match name.as_str() {
        "malloc" => (ALLOCATES, Some(0), None, "malloc", None),
        "calloc" => (ALLOCATES_ZEROED, Some(1), Some(0), "malloc", None),
        "aligned_alloc" | "memalign" => (ALLOCATES, Some(1), None, "malloc", Some(0)),
        "realloc" => (AllocationRole::Reallocate, Some(1), None, "malloc", None),
        "free" => (AllocationRole::Release, None, None, "malloc", None),
        name => {
            // With or without a size behind the pointer, an alignment, and `std::nothrow`.
            let plain = name.strip_suffix("RKSt9nothrow_t").unwrap_or(name);
            let unsized_name = plain.replacen("Pvm", "Pv", 1);
            let &(family, _) = OPERATORS
                .iter()
                .find(|(new, delete)| *new == plain || *delete == unsized_name)?;
            let aligned = family.ends_with("St11align_val_t");
            match plain == family {
                true => (ALLOCATES, Some(0), None, family, aligned.then_some(1)),
                false => {
                    let behind = 1 + u32::from(is_sized);
                    let alignment = aligned.then_some(behind);
                    (AllocationRole::Release, None, None, family, alignment)
                }
            }
        }
    };
    let pointer = match role {
        AllocationRole::Allocate { .. } => None,
        _ => Some(0),
    };
    let old_size = is_sized.then_some(1);
    let taken = [size, count, alignment, pointer, old_size]
        .into_iter()
        .flatten();
    let wanted = taken.max().map_or(0, |last| last + 1);
    (function.value_type().parameters().len() as u32 >= wanted).then(|| AllocationFunction {
        family: family.to_owned(),
        role,
        size,
        count,
        alignment,
        pointer,
        old_size,
    })
}

const ALLOCATES: AllocationRole = AllocationRole::Allocate { zeroed: false };
const ALLOCATES_ZEROED: AllocationRole = AllocationRole::Allocate { zeroed: true };

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
            if is_variant(&function.name()) {
                continue;
            }
            let family = families.entry(known.family.clone()).or_default();
            let place = match known.role {
                AllocationRole::Allocate { zeroed: false } => &mut family.allocate,
                AllocationRole::Allocate { zeroed: true } => &mut family.allocate_zeroed,
                AllocationRole::Release => &mut family.release,
                AllocationRole::Reallocate => &mut family.reallocate,
            };
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
        for (name, family) in &mut families {
            complete_operators(module, name, family);
        }
        Families { families }
    }

    /// The functions of a family.
    pub fn get(&self, family: &str) -> Option<&Family<'c>> {
        self.families.get(family)
    }
}

/// Whether a function does what another of its family does, but wants to be told more.
fn is_variant(name: &str) -> bool {
    name.starts_with("_Zd") && name.contains("Pvm") || name.ends_with("RKSt9nothrow_t")
}

/// Declares the operators of C++ that the module happens not to mention.
fn complete_operators<'c>(module: Module<'c>, name: &str, family: &mut Family<'c>) {
    let declared = |function: Value<'c>| Some((function, recognise(function)?));
    let Some((new, delete)) = OPERATORS.iter().find(|(new, _)| *new == name) else {
        return;
    };
    let context = module.context();
    let (pointer, word) = (context.pointer(), context.integer(64));
    let aligned = new.ends_with("St11align_val_t");
    let with_alignment = |first| match aligned {
        true => vec![first, word],
        false => vec![first],
    };
    if family.allocate.is_none() {
        let ty = pointer.function(&with_alignment(word), false);
        family.allocate = declared(module.declare(new, ty));
    }
    if family.release.is_none() {
        let ty = context.void().function(&with_alignment(pointer), false);
        family.release = declared(module.declare(delete, ty));
    }
}

/// Parts of the mangled names of Rust's allocation functions.
const RUST_ALLOCATE: &str = "12___rust_alloc";
const RUST_ALLOCATE_ZEROED: &str = "19___rust_alloc_zeroed";
const RUST_REALLOCATE: &str = "14___rust_realloc";
const RUST_RELEASE: &str = "14___rust_dealloc";

/// Declares the functions of Rust's allocator that the module happens not to mention.
fn complete<'c>(module: Module<'c>, family: &mut Family<'c>) {
    let known = [
        (&family.allocate, RUST_ALLOCATE),
        (&family.allocate_zeroed, RUST_ALLOCATE_ZEROED),
        (&family.reallocate, RUST_REALLOCATE),
        (&family.release, RUST_RELEASE),
    ];
    let Some(prefix) = known
        .iter()
        .find_map(|(place, part)| Some(place.as_ref()?.0.name().strip_suffix(part)?.to_owned()))
    else {
        return;
    };
    let context = module.context();
    let (pointer, word) = (context.pointer(), context.integer(64));
    let family_name = known
        .iter()
        .find_map(|(place, _)| Some(place.as_ref()?.1.family.clone()))
        .unwrap_or_default();
    let allocate = |part: &str, kind: u64| {
        let function = module.declare(
            &format!("{prefix}{part}"),
            pointer.function(&[word, word], false),
        );
        if function.is_function() {
            function.add_attribute(
                Place::Function,
                context.attribute("allockind", kind | ALLOCATE | ALIGNED),
            );
            function.add_attribute(
                Place::Function,
                context.attribute("allocsize", u64::from(u32::MAX)),
            );
            function.add_attribute(
                Place::Function,
                context.text_attribute("alloc-family", &family_name),
            );
            function.add_attribute(Place::Function, context.attribute("nounwind", 0));
            function.add_attribute(Place::Parameter(1), context.attribute("allocalign", 0));
            function.add_attribute(Place::Result, context.attribute("noalias", 0));
        }
        Some((function, recognise(function)?))
    };
    if family.allocate.is_none() {
        family.allocate = allocate(RUST_ALLOCATE, UNINITIALISED);
    }
    if family.allocate_zeroed.is_none() {
        family.allocate_zeroed = allocate(RUST_ALLOCATE_ZEROED, ZEROED);
    }
    if family.release.is_none() {
        let function = module.declare(
            &format!("{prefix}{RUST_RELEASE}"),
            context.void().function(&[pointer, word, word], false),
        );
        if function.is_function() {
            function.add_attribute(Place::Function, context.attribute("allockind", RELEASE));
            function.add_attribute(
                Place::Function,
                context.text_attribute("alloc-family", &family_name),
            );
            function.add_attribute(Place::Function, context.attribute("nounwind", 0));
            function.add_attribute(Place::Parameter(0), context.attribute("allocptr", 0));
        }
        family.release = recognise(function).map(|known| (function, known));
    }
}

const UNINITIALISED: u64 = 8;

/// Says of a function that it allocates as many bytes as this argument says, in a family of its own, and of another that it releases them.
pub fn declare_allocator<'c>(
    context: &'c ferrozyme_llvm::Context,
    function: Value<'c>,
    size: u32,
    release: Option<Value<'c>>,
) {
    let family = function.name();
    let add = |function: Value<'c>, kind: u64| {
        function.add_attribute(Place::Function, context.attribute("allockind", kind));
        function.add_attribute(
            Place::Function,
            context.text_attribute("alloc-family", &family),
        );
    };
    add(function, ALLOCATE | UNINITIALISED);
    let packed = u64::from(size) << 32 | u64::from(u32::MAX);
    function.add_attribute(Place::Function, context.attribute("allocsize", packed));
    function.add_attribute(Place::Function, context.attribute("noinline", 0));
    if let Some(release) = release {
        add(release, RELEASE);
        release.add_attribute(Place::Parameter(0), context.attribute("allocptr", 0));
        release.add_attribute(Place::Function, context.attribute("noinline", 0));
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
    let context = module.context();
    let (pointer, word) = (context.pointer(), context.integer(64));
    let (parameters, kind, size): (&[_], u64, u64) = match name {
        "malloc" => (&[word], ALLOCATE | UNINITIALISED, u64::from(u32::MAX)),
        "calloc" => (&[word, word], ALLOCATE | ZEROED, 1),
        "aligned_alloc" => (
            &[word, word],
            ALLOCATE | UNINITIALISED | ALIGNED,
            1 << 32 | u64::from(u32::MAX),
        ),
        _ => (&[pointer], RELEASE, 0),
    };
    if let Some(known) = module.symbol(name) {
        return known;
    }
    let result = if name == "free" {
        context.void()
    } else {
        pointer
    };
    let function = module.add_function(name, result.function(parameters, false));
    function.add_attribute(Place::Function, context.attribute("allockind", kind));
    function.add_attribute(
        Place::Function,
        context.text_attribute("alloc-family", "malloc"),
    );
    function.add_attribute(Place::Function, context.attribute("nounwind", 0));
    function.add_attribute(Place::Function, context.attribute("willreturn", 0));
    match name {
        "free" => {
            function.add_attribute(Place::Parameter(0), context.attribute("allocptr", 0));
        }
        _ => {
            function.add_attribute(Place::Function, context.attribute("allocsize", size));
            function.add_attribute(Place::Result, context.attribute("noalias", 0));
        }
    }
    if name == "aligned_alloc" {
        function.add_attribute(Place::Parameter(0), context.attribute("allocalign", 0));
    }
    function
}
