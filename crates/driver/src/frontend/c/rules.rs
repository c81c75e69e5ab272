//! Adapts registrations to the driver: rules with the differentiator's calling convention, functions that behave like another, allocators.
//!
//! A rule in Enzyme's convention returns its saved data, of any type, before the results; a rule of the differentiator returns it after them, as a pointer. So each rule gets an adapter:
//!
//! ```text
//! define { double, ptr } @augmented.rule(double %x, i64 %mask) {
//!   %both = call { ptr, double } @augmented(double %x)
//!   …
//! }
//! ```

use crate::frontend::adopt_target;
use crate::registrations::{Convention, Registration, RegistrationKind, RuleFunction};
use crate::report::{Diagnostic, Location};
use ferrozyme_convention::allocation;
use ferrozyme_convention::signature::{function_type, leaves, llvm_type, put_together, take_apart};
use ferrozyme_ir as ir;
use ferrozyme_llvm::{Builder, Context, DataLayout, GepFlags, Module, Place, Type, Value};
use ferrozyme_refusal::{C, Refusal};

use super::arguments::memory_type;

/// Adapts all that is registered for functions of the module.
pub(crate) fn adapt_registrations<'c>(
    context: &'c Context,
    module: Module<'c>,
    registrations: &mut [Registration],
) -> Result<(), Diagnostic> {
    for registration in registrations {
        let Some(primal) = module.function(&registration.primal) else {
            continue;
        };
        match &mut registration.kind {
            RegistrationKind::Rule {
                forward,
                augment,
                reverse,
            } => {
                let adapter = Adapter {
                    context,
                    module,
                    primal,
                };
                adapter.adapt(forward, augment, reverse)?;
            }
            RegistrationKind::Like(other) => be_like(context, module, primal, other)?,
            RegistrationKind::Allocation { size, release } => {
                let release = release.as_deref().and_then(|name| module.function(name));
                allocation::declare_allocator(context, primal, *size, release);
            }
            RegistrationKind::Inactive | RegistrationKind::InactiveGlobal => {}
        }
    }
    Ok(())
}

fn refused_at<'c>(context: &'c Context, function: Value<'c>, refusal: &Refusal) -> Diagnostic {
    let location = function.function_place(context).map(Location::from);
    Diagnostic::refused_at(location, refusal, &C)
}

/// A function that is to be differentiated like another does what the other does, where derivatives are concerned.
fn be_like<'c>(
    context: &'c Context,
    module: Module<'c>,
    function: Value<'c>,
    other: &str,
) -> Result<(), Diagnostic> {
    let ty = function.value_type();
    // The library has a version of its own for floats.
    let float = context.float();
    let single = ty.result() == float && ty.parameters().iter().all(|of| *of == float);
    let declared = module.function(other).map(|other| other.value_type());
    let other = match single && declared != Some(ty) {
        true => format!("{other}f"),
        false => other.to_owned(),
    };
    let other = module.declare(&other, ty);
    if other.value_type() != ty {
        let refusal = Refusal::UnlikeFunction {
            function: function.name(),
            other: other.name(),
        };
        return Err(refused_at(context, function, &refusal));
    }
    if !function.is_declaration() {
        function.delete_body();
    }
    let builder = context.builder();
    builder.at_end(context.append_block(function, "entry"));
    let result = builder.call(ty, other, &function.parameters());
    match ty.result().is_void() {
        true => builder.return_nothing(),
        false => builder.return_value(result),
    };
    function.set_subprogram(None);
    function.remove_attribute(Place::Function, "noinline");
    Ok(())
}

struct Adapter<'c> {
    context: &'c Context,
    module: Module<'c>,
    primal: Value<'c>,
}

/// What a function of a rule takes.
struct Taken<'c> {
    /// The arguments, pointers (and in forward mode floats) with their shadows.
    arguments: Vec<Type<'c>>,
    floats: Vec<Type<'c>>,
    results: Vec<Type<'c>>,
    /// Which results have derivatives.
    float_results: Vec<Type<'c>>,
    pointer_results: Vec<Type<'c>>,
}

impl<'c> Adapter<'c> {
    fn adapt(
        &self,
        forward: &mut Option<RuleFunction>,
        augment: &mut Option<RuleFunction>,
        reverse: &mut Option<RuleFunction>,
    ) -> Result<(), Diagnostic> {
        if let Some((rule, function)) = self.defined(forward) {
            let name = self.adapt_forward(function)?;
            rule.adapted(name);
        }
        let mut kept = None;
        if let Some((rule, function)) = self.defined(augment) {
            let (name, keeps) = self.adapt_augmented(function)?;
            rule.adapted(name);
            kept = Some(keeps);
        }
        if let Some((rule, function)) = self.defined(reverse) {
            let name = self.adapt_reverse(function, kept)?;
            rule.adapted(name);
        }
        Ok(())
    }

    fn defined<'r>(
        &self,
        rule: &'r mut Option<RuleFunction>,
    ) -> Option<(&'r mut RuleFunction, Value<'c>)> {
        let rule = rule.as_mut()?;
        let function = self.module.function(&rule.symbol)?;
        let wanted = rule.convention == Convention::Enzyme && !function.is_declaration();
        wanted.then_some((rule, function))
    }

    fn problem(&self, function: Value<'c>, problem: &'static str) -> Diagnostic {
        let refusal = Refusal::RuleSignature {
            rule: function.name(),
            function: self.primal.name(),
            problem,
        };
        refused_at(self.context, function, &refusal)
    }

    fn taken(&self, tangents: bool) -> Result<Taken<'c>, Diagnostic> {
        let of = self.primal.value_type();
        let unknown = || self.problem(self.primal, "has a type that cannot be differentiated");
        let parameters: Option<Vec<_>> = of.parameters().into_iter().map(leaves).collect();
        let parameters = parameters.ok_or_else(unknown)?.concat();
        let results = leaves(of.result()).ok_or_else(unknown)?;
        let llvm = |of: &ir::Type| llvm_type(self.context, *of);
        let mut arguments = Vec::new();
        for parameter in &parameters {
            let shadowed = *parameter == ir::Type::PTR || (tangents && parameter.is_float());
            arguments.extend(std::iter::repeat_n(
                llvm(parameter),
                1 + usize::from(shadowed),
            ));
        }
        let only = |keep: &dyn Fn(&&ir::Type) -> bool, all: &[ir::Type]| {
            all.iter().filter(keep).map(llvm).collect::<Vec<_>>()
        };
        Ok(Taken {
            arguments,
            floats: only(&|of| of.is_float(), &parameters),
            float_results: only(&|of| of.is_float(), &results),
            pointer_results: only(&|of| **of == ir::Type::PTR, &results),
            results: results.iter().map(llvm).collect(),
        })
    }

    /// Starts a function of a rule; the mask is its last parameter.
    fn start(
        &self,
        around: Value<'c>,
        mut parameters: Vec<Type<'c>>,
        results: &[Type<'c>],
    ) -> (Value<'c>, Builder<'c>) {
        parameters.push(self.context.integer(64));
        let loop_types = |of: &[Type<'c>]| -> Vec<ir::Type> {
            of.iter()
                .filter_map(|of| ferrozyme_convention::signature::loop_type(*of))
                .collect()
        };
        let ty = function_type(self.context, &loop_types(&parameters), &loop_types(results));
        let name = format!("{}.rule", around.name());
        let function = self.module.add_function(&name, ty);
        adopt_target(self.context, function, around);
        let builder = self.context.builder();
        builder.at_end(self.context.append_block(function, "entry"));
        (function, builder)
    }

    /// Calls a function of the program; gives what it returns as scalars of these types, or none if that does not fit.
    fn call(
        &self,
        builder: &Builder<'c>,
        function: Value<'c>,
        arguments: &[Value<'c>],
        shapes: &[Vec<Type<'c>>],
    ) -> Option<Vec<Value<'c>>> {
        let layout = DataLayout::of(self.module);
        let memory = memory_type(function, 0, "sret").map(|of| (builder.alloca(of), of));
        let mut all: Vec<Value<'c>> = memory.iter().map(|(memory, _)| *memory).collect();
        let mut given = arguments.iter().copied();
        let types = function.value_type().parameters();
        for of in types.iter().skip(all.len()) {
            all.push(put_together(builder, *of, &mut given)?);
        }
        if given.next().is_some() {
            return None;
        }
        let call = builder.call_function(function, &all);
        call.add_attribute(Place::Function, self.context.attribute("alwaysinline", 0));
        let value = match memory {
            Some((memory, of)) => {
                let index = Place::Parameter(0);
                call.add_attribute(index, self.context.type_attribute("sret", of));
                builder.load(of, memory)
            }
            None => call,
        };
        let parts = take_apart(builder, value);
        let shape = shapes.iter().find(|shape| {
            shape.len() == parts.len()
                && shape.iter().zip(&parts).all(|(of, part)| *of == part.ty())
        });
        if shape.is_some() {
            return Some(parts);
        }
        // How structures are returned is the platform's business; in memory they are what C says.
        let returned = value.ty();
        if returned.is_void() {
            return None;
        }
        let (shape, offsets) = shapes.iter().find_map(|shape| {
            let (offsets, size) = super::results::place_types(&layout, shape);
            (size == layout.size(returned)).then_some((shape, offsets))
        })?;
        let memory = builder.alloca(returned);
        builder.store(value, memory);
        let parts = shape.iter().zip(offsets).map(|(of, offset)| {
            let distance = self.context.integer(64).constant(i128::from(offset));
            let address = builder.offset(memory, distance, GepFlags::INBOUNDS);
            builder.load(*of, address)
        });
        Some(parts.collect())
    }

    fn finish(&self, builder: &Builder<'c>, function: Value<'c>, values: Vec<Value<'c>>) -> String {
        let of = function.value_type().result();
        match put_together(builder, of, &mut values.into_iter()) {
            Some(value) if !of.is_void() => builder.return_value(value),
            _ => builder.return_nothing(),
        };
        function.name()
    }

    /// (each argument, followed by its tangent; mask) → (results, tangents)
    fn adapt_forward(&self, given: Value<'c>) -> Result<String, Diagnostic> {
        let taken = self.taken(true)?;
        let tangents: Vec<Type<'c>> = taken
            .results
            .iter()
            .copied()
            .filter(|of| of.is_float() || of.is_pointer())
            .collect();
        let both = [taken.results.clone(), tangents.clone()].concat();
        let (function, builder) = self.start(given, taken.arguments.clone(), &both);
        let arguments = &function.parameters()[..taken.arguments.len()];
        let shapes = [both.clone(), tangents.clone()];
        let returned = self.call(&builder, given, arguments, &shapes).ok_or_else(|| {
            self.problem(given, "must take each argument followed by its tangent, and return the tangent of the result")
        })?;
        if returned.len() == both.len() {
            return Ok(self.finish(&builder, function, returned));
        }
        // Only the tangent is returned, so the function itself gives the result.
        let mut primal = Vec::new();
        let mut index = 0;
        for of in self.primal.value_type().parameters() {
            for leaf in leaves(of).unwrap_or_default() {
                primal.push(arguments[index]);
                index += 1 + usize::from(leaf == ir::Type::PTR || leaf.is_float());
            }
        }
        let results = self
            .call(
                &builder,
                self.primal,
                &primal,
                std::slice::from_ref(&taken.results),
            )
            .ok_or_else(|| self.problem(self.primal, "cannot be called"))?;
        Ok(self.finish(&builder, function, [results, returned].concat()))
    }

    /// (each argument, pointers followed by their shadow; mask) → (results, shadows of pointers, what is kept). Gives also the types of what is kept.
    fn adapt_augmented(&self, given: Value<'c>) -> Result<(String, Vec<Type<'c>>), Diagnostic> {
        let taken = self.taken(false)?;
        let pointer = self.context.pointer();
        let wanted = [taken.results.clone(), taken.pointer_results.clone()].concat();
        let all = [wanted.clone(), vec![pointer]].concat();
        let (function, builder) = self.start(given, taken.arguments.clone(), &all);
        let arguments = &function.parameters()[..taken.arguments.len()];
        // What is kept stands first, and is a pointer as a rule.
        let first = match memory_type(given, 0, "sret") {
            Some(of) => of,
            None => given.value_type().result(),
        };
        let parts: Vec<Type<'c>> = leaves(first)
            .unwrap_or_default()
            .into_iter()
            .map(|of| llvm_type(self.context, of))
            .collect();
        let kept = parts
            .len()
            .checked_sub(wanted.len())
            .map(|count| parts[..count].to_vec());
        let own = kept.clone().map(|kept| [kept, wanted.clone()].concat());
        let usual = [vec![pointer], wanted.clone()].concat();
        // Where all goes through values, the function itself gives the result if the rule does not.
        let is_by_value = !arguments.iter().any(|argument| argument.ty() == pointer);
        if is_by_value && !wanted.is_empty() && !wanted.contains(&pointer) {
            let kept = match given.value_type().result() {
                of if of.is_void() => Some(Vec::new()),
                of if of == pointer => Some(vec![pointer]),
                _ => None,
            };
            if let Some(kept) = kept {
                return self.augment_by_itself(given, (function, builder), kept);
            }
        }
        let shapes: Vec<Vec<Type<'c>>> = own.into_iter().chain([usual, wanted.clone()]).collect();
        let returned = self.call(&builder, given, arguments, &shapes).ok_or_else(|| {
            self.problem(given, "must take each argument, pointers followed by their shadow, and return what is kept for the reverse sweep and the result")
        })?;
        let count = returned.len() - wanted.len();
        let kept: Vec<Type<'c>> = returned[..count].iter().map(|value| value.ty()).collect();
        let pointer_kept = match returned[..count] {
            [] => pointer.zero(),
            [one] if one.ty() == pointer => one,
            ref several => {
                let memory = self.allocate(&builder, &kept);
                self.store_all(&builder, several, memory);
                memory
            }
        };
        let values = [returned[count..].to_vec(), vec![pointer_kept]].concat();
        Ok((self.finish(&builder, function, values), kept))
    }

    /// The forward sweep of a function that takes and gives values only, by a rule that gives what is kept, or nothing.
    fn augment_by_itself(
        &self,
        given: Value<'c>,
        (function, builder): (Value<'c>, Builder<'c>),
        kept: Vec<Type<'c>>,
    ) -> Result<(String, Vec<Type<'c>>), Diagnostic> {
        let taken = self.taken(false)?;
        let arguments = &function.parameters()[..taken.arguments.len()];
        let call = |callee, shape: &Vec<Type<'c>>| {
            self.call(&builder, callee, arguments, std::slice::from_ref(shape))
        };
        let mut values = call(self.primal, &taken.results)
            .ok_or_else(|| self.problem(self.primal, "cannot be called"))?;
        let returned = call(given, &kept).ok_or_else(|| {
            self.problem(given, "must take each argument, and return what is kept for the reverse sweep, or nothing, or that and the result")
        })?;
        let nothing = self.context.pointer().zero();
        values.push(returned.first().copied().unwrap_or(nothing));
        Ok((self.finish(&builder, function, values), kept))
    }

    /// (each argument, pointers followed by their shadow; adjoints of float results; what is kept; mask) → (adjoints of float arguments)
    fn adapt_reverse(
        &self,
        given: Value<'c>,
        kept: Option<Vec<Type<'c>>>,
    ) -> Result<String, Diagnostic> {
        let taken = self.taken(false)?;
        let pointer = self.context.pointer();
        let mut parameters = [taken.arguments.clone(), taken.float_results.clone()].concat();
        let plain = parameters.len();
        if kept.is_some() {
            parameters.push(pointer);
        }
        let (function, builder) = self.start(given, parameters, &taken.floats);
        let mut arguments = function.parameters()[..plain].to_vec();
        let memory = function.parameters()[plain];
        match kept.as_deref() {
            None | Some([]) => {}
            Some([one]) if *one == pointer => arguments.push(memory),
            Some(several) => {
                arguments.extend(self.load_all(&builder, several, memory));
                let release = allocation::declare_release(self.module);
                builder.call_function(release, &[memory]);
            }
        }
        let hidden = usize::from(memory_type(given, 0, "sret").is_some());
        let takes: usize = given
            .value_type()
            .parameters()
            .into_iter()
            .skip(hidden)
            .map(|of| leaves(of).unwrap_or_default().len())
            .sum();
        // One that needs nothing kept need not take it.
        if takes < arguments.len() && takes >= plain {
            arguments.truncate(takes);
        }
        let shapes = std::slice::from_ref(&taken.floats);
        let returned = self.call(&builder, given, &arguments, shapes);
        let returned = match (returned, taken.floats.is_empty()) {
            (Some(returned), _) => returned,
            (None, true) if given.value_type().result().is_void() => Vec::new(),
            _ => {
                return Err(self.problem(given, "must take each argument, pointers followed by their shadow, the adjoint of the result and what was kept, and return the adjoints of all floats"));
            }
        };
        Ok(self.finish(&builder, function, returned))
    }

    fn allocate(&self, builder: &Builder<'c>, of: &[Type<'c>]) -> Value<'c> {
        let (_, size) = super::results::place_types(&DataLayout::of(self.module), of);
        let allocate = allocation::declare_allocate(self.module);
        let size = self.context.integer(64).constant(i128::from(size));
        builder.call_function(allocate, &[size])
    }

    fn store_all(&self, builder: &Builder<'c>, values: &[Value<'c>], memory: Value<'c>) {
        let types: Vec<Type<'c>> = values.iter().map(|value| value.ty()).collect();
        let (offsets, _) = super::results::place_types(&DataLayout::of(self.module), &types);
        for (value, offset) in values.iter().zip(offsets) {
            let distance = self.context.integer(64).constant(i128::from(offset));
            builder.store(*value, builder.offset(memory, distance, GepFlags::INBOUNDS));
        }
    }

    fn load_all(
        &self,
        builder: &Builder<'c>,
        of: &[Type<'c>],
        memory: Value<'c>,
    ) -> Vec<Value<'c>> {
        let (offsets, _) = super::results::place_types(&DataLayout::of(self.module), of);
        of.iter()
            .zip(offsets)
            .map(|(of, offset)| {
                let distance = self.context.integer(64).constant(i128::from(offset));
                builder.load(*of, builder.offset(memory, distance, GepFlags::INBOUNDS))
            })
            .collect()
    }
}
