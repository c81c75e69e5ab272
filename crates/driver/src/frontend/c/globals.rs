//! Globals with a declared shadow.
//!
//! ```c
//! double dscale;
//! __attribute__((enzyme_shadow(dscale))) double scale = 2.0;
//! ```
//!
//! They are differentiated as additional arguments. A wrapper takes a copy of each global, with the declared shadow as the shadow of the copy.
//!
//! ```text
//! define double @f.globals(double %x, ptr %copy) {
//!   @scale ← %copy
//!   %r = call double @f(double %x)
//!   %copy ← @scale
//!   ret double %r
//! }
//! ```
//!
//! The first assignment changes no value, and lets derivatives flow from the shadow of the copy to that of the global; the second lets them flow back. The global keeps a shadow of its own, which starts from zero in each derivative, like that of any other global.

use super::arguments::{Argument, ArgumentActivity, Problem, ReadCall, Shadows, SourcePart};
use super::arguments::{memory_type, refuse};
use super::contexts::{Shelf, check_before};
use super::registrations::annotations_of;
use super::thunk::plain_name;
use crate::report::Diagnostic;
use ferrozyme_convention::signature::loop_type;
use ferrozyme_ir::{Field, Layout};
use ferrozyme_llvm::{
    Builder, Context, DataLayout, GepFlags, IntPredicate, Linkage, Module, Opcode, Place, Type,
    TypeKind, Value, ValueKind,
};
use ferrozyme_refusal::{C, Refusal};

/// What the attribute is called.
pub(super) const ATTRIBUTE: &str = "enzyme_shadow";

/// A variable and its shadows.
#[derive(Clone)]
pub(super) struct DeclaredShadow<'c> {
    pub(super) global: Value<'c>,
    /// One for each direction.
    pub(super) shadows: Vec<Value<'c>>,
}

/// The shadows that a module declares.
///
/// # Errors
/// If one is not of the type of its variable.
pub(super) fn declared_shadows<'c>(
    module: Module<'c>,
) -> Result<Vec<DeclaredShadow<'c>>, Vec<Diagnostic>> {
    let mut declared = Vec::new();
    let mut problems = Vec::new();
    for annotation in annotations_of(module) {
        let global = annotation.subject;
        let is_variable = |value: Value<'c>| value.kind() == ValueKind::GlobalVariable;
        if annotation.name != ATTRIBUTE || !is_variable(global) {
            continue;
        }
        match annotation.argument.filter(|shadow| is_variable(*shadow)) {
            Some(shadow) if shadow.value_type() == global.value_type() && shadow != global => {
                let shadows = vec![shadow];
                declared.push(DeclaredShadow { global, shadows });
            }
            _ => {
                let global = plain_name(global);
                let refusal = Refusal::UnfitGlobalShadow { global };
                problems.push(Diagnostic::refused_at(annotation.location, &refusal, &C));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(declared),
        false => Err(problems),
    }
}

/// Gives variables with declared shadows to the function as arguments.
pub(super) fn pass_globals<'c>(
    context: &'c Context,
    module: Module<'c>,
    read: &mut ReadCall<'c>,
    declared: &[DeclaredShadow<'c>],
    shelf: &Shelf<'c>,
) -> Result<(), Problem> {
    let Some(function) = read.call.block().map(|block| block.function()) else {
        return Ok(());
    };
    let builder = context.builder();
    builder.before(read.call);
    let mut passed = declared.to_vec();
    if let Some(given) = read.context {
        check_before(context, module, read.call, given);
        let own = |one: &DeclaredShadow<'c>| {
            let mut declared = declared.iter();
            declared.all(|other| {
                let shadows = &other.shadows;
                other.global != one.global && !shadows.contains(&one.global)
            })
        };
        let shadows = shelf.shadows(context, &builder, given, read.width);
        passed.extend(shadows.into_iter().filter(own));
    }
    if passed.is_empty() {
        return Ok(());
    }
    if read.width != 1 && !declared.is_empty() {
        let refusal = Refusal::GlobalShadowWidth { width: read.width };
        return Err(refuse(context, read.call, &refusal));
    }
    let layout = DataLayout::of(module);
    let kind = match read.context {
        Some(_) => "context",
        None => "globals",
    };
    read.primal = with_globals(context, module, &layout, read.primal, kind, &passed);
    for DeclaredShadow { global, shadows } in passed {
        if let Some(entry) = function.instructions().next() {
            builder.before(entry);
        }
        let copy = builder.alloca(global.value_type());
        builder.before(read.call);
        builder.call_function(copier(context, module, &layout, global), &[copy]);
        read.arguments.push(Argument {
            of: context.pointer(),
            activity: ArgumentActivity::Dup { needed: false },
            primal: Some(copy),
            shadows: Shadows::Each(shadows),
            by_reference: false,
            part: SourcePart::Whole,
            layout: described(&layout, global.value_type()),
        });
    }
    Ok(())
}

/// What the bytes of a variable are, unless it is large or holds a union.
fn described(layout: &DataLayout, of: Type<'_>) -> Option<Layout> {
    const MAX_FIELDS: usize = 256;
    // An array is described by its elements, one of which follows the other.
    let repeated = match of.kind() {
        TypeKind::Array => of.element(),
        _ => of,
    };
    let (mut fields, mut work) = (Vec::new(), vec![(0, repeated)]);
    while let Some((offset, of)) = work.pop() {
        match of.kind() {
            TypeKind::Struct => {
                let name = of.struct_name().unwrap_or_default();
                if name.starts_with("union.") {
                    return None;
                }
                let parts = (0..).zip(of.fields());
                work.extend(
                    parts.map(|(index, part)| (offset + layout.field_offset(of, index), part)),
                );
            }
            TypeKind::Array => {
                let size = layout.size(of.element());
                let count = of.length().min(MAX_FIELDS as u64 + 1);
                work.extend((0..count).map(|index| (offset + index * size, of.element())));
            }
            _ => fields.push(Field {
                offset,
                scalar: loop_type(of).filter(|of| !of.is_vector())?.scalar(),
                pointee: None,
            }),
        }
        if fields.len() + work.len() > MAX_FIELDS {
            return None;
        }
    }
    fields.sort_by_key(|field| field.offset);
    Some(Layout {
        fields,
        stride: layout.size(repeated),
    })
}

/// The function that copies a variable.
fn copier<'c>(
    context: &'c Context,
    module: Module<'c>,
    layout: &DataLayout,
    global: Value<'c>,
) -> Value<'c> {
    let name = format!("__ferrozyme_copy_of.{}", global.name());
    if let Some(there) = module.function(&name) {
        return there;
    }
    let ty = context.void().function(&[context.pointer()], false);
    let copier = module.add_function(&name, ty);
    copier.set_linkage(Linkage::Internal);
    let builder = context.builder();
    builder.at_end(context.append_block(copier, "entry"));
    let assignment = Assignment {
        context,
        layout,
        builder: &builder,
        function: copier,
    };
    assignment.write(copier.parameter(0), global, global.value_type());
    builder.return_nothing();
    copier
}

/// The function around a primal.
fn with_globals<'c>(
    context: &'c Context,
    module: Module<'c>,
    layout: &DataLayout,
    primal: Value<'c>,
    kind: &str,
    declared: &[DeclaredShadow<'c>],
) -> Value<'c> {
    let name = format!("{}.{kind}", plain_name(primal));
    if let Some(there) = module.functions().find(|one| plain_name(*one) == name) {
        return there;
    }
    let of = primal.value_type();
    let own = of.parameters();
    let mut types = own.clone();
    types.extend(declared.iter().map(|_| context.pointer()));
    let around = module.add_function(&name, of.result().function(&types, false));
    around.set_linkage(Linkage::Internal);
    around.adopt_processor(context, primal);
    let builder = context.builder();
    builder.at_end(context.append_block(around, "entry"));
    let parameters = around.parameters();
    let (given, copies) = parameters.split_at(own.len());
    let assignment = Assignment {
        context,
        layout,
        builder: &builder,
        function: around,
    };
    let globals = || declared.iter().map(|one| one.global).zip(copies);
    for (global, copy) in globals() {
        assignment.write(global, *copy, global.value_type());
    }
    let call = builder.call_function(primal, given);
    for index in 0..primal.parameter_count() {
        let place = Place::Parameter(index);
        for name in ["byval", "sret"] {
            if let Some(of) = memory_type(primal, index, name) {
                for one in [around, call] {
                    one.add_attribute(place, context.type_attribute(name, of));
                }
            }
        }
        // `restrict`
        if primal.has_attribute(place, "noalias") {
            around.add_attribute(place, context.attribute("noalias", 0));
        }
    }
    for (global, copy) in globals() {
        assignment.write(*copy, global, global.value_type());
    }
    match of.result().is_void() {
        true => builder.return_nothing(),
        false => builder.return_value(call),
    };
    around
}

/// Copies the parts of a variable one by one, which says what its bytes are.
struct Assignment<'a, 'c> {
    context: &'c Context,
    layout: &'a DataLayout,
    builder: &'a Builder<'c>,
    /// The function in whose last block it is written.
    function: Value<'c>,
}

impl<'c> Assignment<'_, 'c> {
    fn write(&self, to: Value<'c>, from: Value<'c>, of: Type<'c>) {
        let number = self.context.integer(64);
        let at = |start: Value<'c>, offset: u64| {
            let offset = number.constant(i128::from(offset));
            self.builder.offset(start, offset, GepFlags::INBOUNDS)
        };
        match of.kind() {
            TypeKind::Struct => {
                for (index, field) in of.fields().into_iter().enumerate() {
                    let offset = self.layout.field_offset(of, index as u32);
                    self.write(at(to, offset), at(from, offset), field);
                }
            }
            TypeKind::Array => self.write_elements(to, from, of),
            _ => {
                let value = self.builder.load(of, from);
                self.builder.store(value, to);
            }
        }
    }

    fn write_elements(&self, to: Value<'c>, from: Value<'c>, of: Type<'c>) {
        let number = self.context.integer(64);
        let stride = number.constant(i128::from(self.layout.size(of.element())));
        let length = number.constant(i128::from(of.length()));
        repeat(
            self.context,
            self.builder,
            self.function,
            length,
            &|index| {
                let offset = self.builder.binary(Opcode::Mul, index, stride);
                let [to, from] =
                    [to, from].map(|start| self.builder.offset(start, offset, GepFlags::INBOUNDS));
                self.write(to, from, of.element());
            },
        );
    }
}

/// Writes a loop at the end of a function: `body` for each number below a count.
pub(super) fn repeat<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    function: Value<'c>,
    count: Value<'c>,
    body: &dyn Fn(Value<'c>),
) {
    let number = context.integer(64);
    let before = builder.block();
    let [head, inside, behind] =
        ["head", "body", "behind"].map(|name| context.append_block(function, name));
    builder.branch(head);
    builder.at_end(head);
    let index = builder.phi(number);
    index.add_incoming(number.constant(0), before);
    let more = builder.compare_integers(IntPredicate::Ult, index, count);
    builder.branch_if(more, inside, behind);
    builder.at_end(inside);
    body(index);
    let next = builder.binary(Opcode::Add, index, number.constant(1));
    index.add_incoming(next, builder.block());
    builder.branch(head);
    builder.at_end(behind);
}
