//! Contexts: sets of shadows of a unit's globals, which programs create, access and pass to derivatives.
//!
//! ```c
//! void *context = __enzyme_context(1);                                for so many directions
//! double *dscale = __enzyme_shadow(context, &scale, 0);               the shadow of a variable, for one of them
//! double dx = __enzyme_autodiff(f, enzyme_context, context, x);       gradients are added there, tangents taken from there
//! __enzyme_zero_shadows(context);
//! ```
//!
//! A context is memory with the shadows of all globals in a row, for one direction after the other. Floats start as zeros; addresses of globals become those of their shadows, and all other words are as in the global. Globals
//! to which the program stores addresses at run time have no shadow in a context: the shadows of their targets are not known.
//!
//! A context belongs to the unit that makes it: another unit has other globals. A derivative that gets a context of another unit stops the program.

use super::arguments::{Problem, refuse};
use super::entries::Entry;
use super::globals::{DeclaredShadow, repeat};
use super::thunk::{add_thunk, convert, plain_name, put_call};
use crate::trace::{start, trace};
use ferrozyme_convention::stop::show;
use ferrozyme_llvm::{
    Block, Builder, Context, DataLayout, GepFlags, IntPredicate, Linkage, Module, Opcode, Type,
    TypeKind, Value, ValueKind,
};
use ferrozyme_refusal::Refusal;

/// What stands before the shadows: whose context it is, and for how many directions.
const HEAD: u64 = 16;

/// What a unit's contexts are marked with.
const MARK: &str = "__ferrozyme_contexts";

/// Where the shadows of a unit's variables lie in a context.
pub(super) struct Shelf<'c> {
    places: Vec<(Value<'c>, u64)>,
    /// The distance from one direction to the next.
    stride: u64,
}

impl<'c> Shelf<'c> {
    /// Places for all variables of a unit that can have shadows.
    pub(super) fn of(module: Module<'c>) -> Shelf<'c> {
        let layout = DataLayout::of(module);
        let (mut places, mut end) = (Vec::new(), 0u64);
        for global in module.globals() {
            if !can_have_shadow(global) {
                continue;
            }
            let of = global.value_type();
            let alignment = u64::from(layout.alignment(of)).max(16);
            end = end.next_multiple_of(alignment);
            places.push((global, end));
            end += layout.size(of);
        }
        Shelf {
            places,
            stride: end.next_multiple_of(64),
        }
    }

    fn place_of(&self, global: Value<'c>) -> Option<u64> {
        let place = self.places.iter().find(|(other, _)| *other == global);
        place.map(|(_, at)| *at)
    }

    /// The variables with their shadows in a context, for all directions.
    pub(super) fn shadows(
        &self,
        context: &'c Context,
        builder: &Builder<'c>,
        given: Value<'c>,
        width: u32,
    ) -> Vec<DeclaredShadow<'c>> {
        let places = self.places.iter();
        places
            .map(|(global, at)| DeclaredShadow {
                global: *global,
                shadows: (0..width)
                    .map(|lane| {
                        let offset = HEAD + u64::from(lane) * self.stride + at;
                        at_offset(context, builder, given, offset)
                    })
                    .collect(),
            })
            .collect()
    }
}

/// A variable that floats or addresses of others are in, and no address that only the run puts there.
fn can_have_shadow(global: Value<'_>) -> bool {
    let hidden = [
        "llvm.",
        "enzyme_",
        "__enzyme_",
        "__ferrozyme",
        "_ZTV",
        "_ZTI",
        "_ZGV",
    ];
    let name = global.name();
    !global.is_declaration()
        && !global.is_global_constant()
        && !global.is_thread_local()
        && !hidden.iter().any(|start| name.starts_with(start))
        && (holds_floats(global.value_type()) || holds_addresses(global.value_type()))
        && global
            .initialiser()
            .is_some_and(|initial| has_addresses(initial, global.value_type()))
}

fn holds(of: Type<'_>, is_meant: &dyn Fn(Type<'_>) -> bool) -> bool {
    match of.kind() {
        TypeKind::Struct => of.fields().into_iter().any(|field| holds(field, is_meant)),
        TypeKind::Array => of.length() > 0 && holds(of.element(), is_meant),
        _ => is_meant(of),
    }
}

fn holds_floats(of: Type<'_>) -> bool {
    holds(of, &|part| part.is_float())
}

fn holds_addresses(of: Type<'_>) -> bool {
    holds(of, &|part| part.is_pointer())
}

/// Whether all addresses in a variable are there from the start.
fn has_addresses(initial: Value<'_>, of: Type<'_>) -> bool {
    if !holds_addresses(of) {
        return true;
    }
    let parts = match of.kind() {
        TypeKind::Struct => of.fields(),
        TypeKind::Array => vec![of.element(); of.length() as usize],
        _ => return start(initial).kind() == ValueKind::GlobalVariable,
    };
    let parts = (0..).zip(parts);
    parts
        .into_iter()
        .all(|(index, part)| match initial.element(index) {
            Some(element) => has_addresses(element, part),
            None => !holds_addresses(part),
        })
}

fn at_offset<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    start: Value<'c>,
    offset: u64,
) -> Value<'c> {
    let offset = context.integer(64).constant(i128::from(offset));
    builder.offset(start, offset, GepFlags::default())
}

/// Replaces a call that makes a context, or looks into one.
pub(super) fn replace_call<'c>(
    context: &'c Context,
    module: Module<'c>,
    shelf: &Shelf<'c>,
    entry: Entry,
    call: Value<'c>,
) -> Result<(), Problem> {
    let problem = |refusal: Refusal| refuse(context, call, &refusal);
    let given = call.arguments();
    let signature = |takes: &'static str| {
        let entry = entry.name();
        problem(Refusal::EntrySignature { entry, takes })
    };
    let takes = |count: usize, takes: &'static str| match given.len() == count {
        true => Ok(()),
        false => Err(signature(takes)),
    };
    let gives_pointer = call.ty().is_pointer();
    match entry {
        Entry::Context => takes(1, "takes a number of directions")?,
        Entry::Shadow => takes(
            3,
            "takes a context, the address of a global variable, and a number",
        )?,
        _ => takes(1, "takes a context")?,
    }
    if entry != Entry::ZeroShadows && !gives_pointer {
        return Err(signature("returns a pointer"));
    }
    let variable = (entry == Entry::Shadow).then(|| start(trace(given[1])));
    let place = variable.map(|variable| {
        shelf.place_of(variable).ok_or_else(|| {
            let is_known = variable.kind() == ValueKind::GlobalVariable;
            let variable = is_known.then(|| plain_name(variable));
            problem(Refusal::ContextVariable { variable })
        })
    });
    let place = place.transpose()?;
    let thunk = add_thunk(context, module, call, &given);
    let builder = context.builder();
    builder.at_end(context.append_block(thunk, "entry"));
    let layout = DataLayout::of(module);
    let writer = Writer {
        context,
        module,
        layout: &layout,
        builder: &builder,
        function: thunk,
        shelf,
    };
    let parameters = thunk.parameters();
    let number = context.integer(64);
    let as_number = |value: Value<'c>| convert(&builder, &layout, value, number);
    let unfit = || signature("takes a number");
    match (entry, variable, place) {
        (Entry::Context, ..) => {
            let width = as_number(parameters[0]).ok_or_else(unfit)?;
            builder.return_value(writer.make(width));
        }
        (Entry::Shadow, Some(variable), Some(place)) => {
            writer.check(parameters[0]);
            let lane = as_number(parameters[2]).ok_or_else(unfit)?;
            let base = writer.lane(parameters[0], lane);
            let shadow = writer.beside(base, place, variable, parameters[1]);
            builder.return_value(shadow);
        }
        _ => {
            writer.check(parameters[0]);
            writer.clear(parameters[0]);
            match call.ty().is_void() {
                true => builder.return_nothing(),
                false => builder.return_value(call.ty().zero()),
            };
        }
    }
    put_call(context, call, thunk, &given);
    Ok(())
}

/// Stops the program before a call if a context is not the unit's own.
pub(super) fn check_before<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
    given: Value<'c>,
) {
    const NAME: &str = "__ferrozyme_check_context";
    let builder = context.builder();
    let check = module.function(NAME).unwrap_or_else(|| {
        let ty = context.void().function(&[context.pointer()], false);
        let check = module.add_function(NAME, ty);
        check.set_linkage(Linkage::Internal);
        let builder = context.builder();
        builder.at_end(context.append_block(check, "entry"));
        let writer = Writer {
            context,
            module,
            layout: &DataLayout::of(module),
            builder: &builder,
            function: check,
            shelf: &Shelf {
                places: Vec::new(),
                stride: 0,
            },
        };
        writer.check(check.parameter(0));
        builder.return_nothing();
        check
    });
    builder.before(call);
    builder.call_function(check, &[given]);
}

/// Writes the body of a function that has to do with contexts.
struct Writer<'a, 'c> {
    context: &'c Context,
    module: Module<'c>,
    layout: &'a DataLayout,
    builder: &'a Builder<'c>,
    function: Value<'c>,
    shelf: &'a Shelf<'c>,
}

impl<'c> Writer<'_, 'c> {
    fn block(&self, name: &str) -> Block<'c> {
        self.context.append_block(self.function, name)
    }

    /// A variable whose address is that of nothing in another unit.
    fn mark(&self) -> Value<'c> {
        self.module
            .globals()
            .find(|global| global.name() == MARK)
            .unwrap_or_else(|| {
                let number = self.context.integer(64);
                let mark = self.module.add_global(MARK, number);
                mark.set_initialiser(Some(number.constant(0)));
                mark.set_linkage(Linkage::Internal);
                mark
            })
    }

    fn check(&self, given: Value<'c>) {
        let whose = self.builder.load(self.context.pointer(), given);
        let own = self
            .builder
            .compare_integers(IntPredicate::Eq, whose, self.mark());
        let (on, end) = (self.block("own"), self.block("foreign"));
        self.builder.branch_if(own, on, end);
        self.builder.at_end(end);
        let text = Refusal::ForeignContext.stop_text();
        show(self.context, self.module, self.builder, &text);
        let abort = self
            .module
            .declare("abort", self.context.void().function(&[], false));
        self.builder.call_function(abort, &[]);
        self.builder.unreachable();
        self.builder.at_end(on);
    }

    /// The shadows of a direction.
    fn lane(&self, given: Value<'c>, lane: Value<'c>) -> Value<'c> {
        let number = self.context.integer(64);
        let stride = number.constant(i128::from(self.shelf.stride));
        let distance = self.builder.binary(Opcode::Mul, lane, stride);
        let first = at_offset(self.context, self.builder, given, HEAD);
        self.builder.offset(first, distance, GepFlags::default())
    }

    /// What is in the shadow where an address is in the variable.
    fn beside(
        &self,
        base: Value<'c>,
        place: u64,
        variable: Value<'c>,
        address: Value<'c>,
    ) -> Value<'c> {
        let number = self.context.integer(64);
        let [start, inside] =
            [variable, address].map(|it| self.builder.cast(Opcode::PtrToInt, it, number));
        let distance = self.builder.binary(Opcode::Sub, inside, start);
        let shadow = at_offset(self.context, self.builder, base, place);
        self.builder.offset(shadow, distance, GepFlags::default())
    }

    fn make(&self, width: Value<'c>) -> Value<'c> {
        let (number, builder) = (self.context.integer(64), self.builder);
        let ty = self.context.pointer().function(&[number, number], false);
        let allocate = self.module.declare("calloc", ty);
        let stride = number.constant(i128::from(self.shelf.stride));
        let size = builder.binary(Opcode::Mul, width, stride);
        let size = builder.binary(Opcode::Add, size, number.constant(i128::from(HEAD)));
        let made = builder.call_function(allocate, &[number.constant(1), size]);
        builder.store(self.mark(), made);
        builder.store(width, at_offset(self.context, builder, made, 8));
        repeat(self.context, builder, self.function, width, &|lane| {
            let base = self.lane(made, lane);
            for (global, place) in &self.shelf.places {
                let to = at_offset(self.context, builder, base, *place);
                let initial = global.initialiser();
                self.fill(base, to, *global, global.value_type(), initial);
            }
        });
        made
    }

    /// What a shadow starts with.
    fn fill(
        &self,
        base: Value<'c>,
        to: Value<'c>,
        from: Value<'c>,
        of: Type<'c>,
        initial: Option<Value<'c>>,
    ) {
        let at = |start, offset| at_offset(self.context, self.builder, start, offset);
        match of.kind() {
            TypeKind::Struct => {
                for (index, field) in (0..).zip(of.fields()) {
                    let offset = self.layout.field_offset(of, index);
                    let initial = initial.and_then(|initial| initial.element(index));
                    self.fill(base, at(to, offset), at(from, offset), field, initial);
                }
            }
            TypeKind::Array if holds_addresses(of) => {
                for index in 0..of.length() {
                    let offset = index * self.layout.size(of.element());
                    let initial = initial.and_then(|initial| initial.element(index as u32));
                    self.fill(
                        base,
                        at(to, offset),
                        at(from, offset),
                        of.element(),
                        initial,
                    );
                }
            }
            TypeKind::Array if holds(of, &|part| !part.is_float()) => {
                self.for_each_element(of, &|offset| {
                    let [to, from] = [to, from]
                        .map(|start| self.builder.offset(start, offset, GepFlags::default()));
                    self.fill(base, to, from, of.element(), None);
                });
            }
            TypeKind::Array => {}
            _ if of.is_float() => {}
            TypeKind::Pointer => {
                let Some(address) = initial else {
                    return;
                };
                let variable = start(address);
                let shadow = match self.shelf.place_of(variable) {
                    Some(place) => self.beside(base, place, variable, address),
                    // What has no derivative is its own shadow.
                    None => address,
                };
                self.builder.store(shadow, to);
            }
            _ => {
                let value = self.builder.load(of, from);
                self.builder.store(value, to);
            }
        }
    }

    /// Makes all floats zeros.
    fn clear(&self, given: Value<'c>) {
        let number = self.context.integer(64);
        let width = at_offset(self.context, self.builder, given, 8);
        let width = self.builder.load(number, width);
        repeat(self.context, self.builder, self.function, width, &|lane| {
            let base = self.lane(given, lane);
            for (global, place) in &self.shelf.places {
                let to = at_offset(self.context, self.builder, base, *place);
                self.clear_floats(to, global.value_type());
            }
        });
    }

    /// Does something for each element of an array, told where it stands in bytes.
    fn for_each_element(&self, array: Type<'c>, visit: &dyn Fn(Value<'c>)) {
        let number = self.context.integer(64);
        let (length, size) = (array.length(), self.layout.size(array.element()));
        let [length, size] = [length, size].map(|it| number.constant(i128::from(it)));
        repeat(
            self.context,
            self.builder,
            self.function,
            length,
            &|index| visit(self.builder.binary(Opcode::Mul, index, size)),
        );
    }

    fn clear_floats(&self, to: Value<'c>, of: Type<'c>) {
        if !holds_floats(of) {
            return;
        }
        match of.kind() {
            TypeKind::Struct => {
                for (index, field) in (0..).zip(of.fields()) {
                    let offset = self.layout.field_offset(of, index);
                    self.clear_floats(at_offset(self.context, self.builder, to, offset), field);
                }
            }
            TypeKind::Array => {
                self.for_each_element(of, &|offset| {
                    let to = self.builder.offset(to, offset, GepFlags::default());
                    self.clear_floats(to, of.element());
                });
            }
            _ => drop(self.builder.store(of.zero(), to)),
        }
    }
}
