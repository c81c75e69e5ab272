//! The function that replaces the entry point in one call. It takes the arguments of the call, without the function and the markers.
//!
//! ```text
//! define internal double @__ferrozyme_request(ptr %x, ptr %dx, double %y) alwaysinline {
//!   %r = call double @__ferrozyme_derivative_0123456789abcdef(ptr %x, ptr %dx, double %y, double 1.0)
//!   ret double %r
//! }
//! ```

use super::arguments::{
    Argument, ArgumentActivity, Problem, ReadCall, Shadows, SourcePart, TAPE_SIZE, c_type,
    memory_type, refuse,
};
use super::entries::Entry;
use super::results::{Output, deliver};
use super::{Layouts, Parameter, ValueRequest};
use crate::requests::{FoundRequest, Mode, Part, location_of};
use crate::trace::share_memory;
use ferrozyme_convention::signature::{function_type, leaves, llvm_type, take_apart};
use ferrozyme_diff::Activity;
use ferrozyme_ir as ir;
use ferrozyme_library::demangle;
use ferrozyme_llvm::{
    Builder, Context, DataLayout, GepFlags, Linkage, Module, Opcode, Place, Type, TypeKind, Value,
    ValueKind,
};
use ferrozyme_refusal::{self as refusal, Refusal};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// What the names of functions that are made here start with.
const THUNK_NAME: &str = "__ferrozyme_request_in_place";

/// What a linker shows that looks for a derivative and was not told where derivatives are made.
const ADVICE: &str = ".link_with_ferrozyme_cc";

/// Marks local functions that other modules must be able to name; the name of their module follows. It is in their names since units are compiled long before they are linked.
pub(crate) const LOCAL_MARK: &str = ".ferrozyme.";

/// Replaces a call, and gives what it asks for.
pub(super) fn replace_call<'c>(
    context: &'c Context,
    module: Module<'c>,
    unit: &str,
    read: &ReadCall<'c>,
) -> Result<Option<FoundRequest>, Problem> {
    if read.entry == Entry::TapeSize {
        replace_size(context, module, read);
        return Ok(None);
    }
    let (request, values) = describe(context, unit, read)?;
    let operands = operands_of(read);
    let thunk = add_thunk(context, module, read.call, &operands);
    let builder = context.builder();
    builder.at_end(context.append_block(thunk, "entry"));
    let mut writer = Writer {
        context,
        read,
        layout: DataLayout::of(module),
        builder: &builder,
        parameters: thunk.parameters().into_iter(),
    };
    writer.write(module, &request, &values)?;

    put_call(context, read.call, thunk, &operands);
    Ok(Some(request))
}

/// A function without body that takes what is passed on, and gives what the call wants.
pub(super) fn add_thunk<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
    operands: &[Value<'c>],
) -> Value<'c> {
    let types: Vec<Type<'c>> = operands.iter().map(|operand| operand.ty()).collect();
    let ty = call.ty().function(&types, false);
    let thunk = module.add_function(THUNK_NAME, ty);
    thunk.set_linkage(Linkage::Internal);
    thunk.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    if let Some(caller) = call.block().map(|block| block.function()) {
        thunk.adopt_processor(context, caller);
    }
    thunk
}

/// How large the tape is, is known.
fn replace_size<'c>(context: &'c Context, module: Module<'c>, read: &ReadCall<'c>) {
    let of = read.call.ty();
    let thunk = add_thunk(context, module, read.call, &[]);
    let builder = context.builder();
    builder.at_end(context.append_block(thunk, "entry"));
    match of.integer_width() {
        Some(_) => builder.return_value(of.constant(i128::from(TAPE_SIZE))),
        None if of.is_void() => builder.return_nothing(),
        None => builder.return_value(of.zero()),
    };
    put_call(context, read.call, thunk, &[]);
}

/// The shadow of a function's address is the address.
pub(super) fn replace_table<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
) -> Result<(), Problem> {
    let arguments = call.arguments();
    let ([function], true) = (&arguments[..], call.ty().is_pointer()) else {
        let refusal = Refusal::EntrySignature {
            entry: Entry::Table.name(),
            takes: "takes a function and returns a pointer",
        };
        return Err(refuse(context, call, &refusal));
    };
    let thunk = add_thunk(context, module, call, &[*function]);
    let builder = context.builder();
    builder.at_end(context.append_block(thunk, "entry"));
    builder.return_value(thunk.parameter(0));
    put_call(context, call, thunk, &[*function]);
    Ok(())
}

/// Puts a call of the new function in the place of the old one.
pub(super) fn put_call<'c>(
    context: &'c Context,
    call: Value<'c>,
    thunk: Value<'c>,
    operands: &[Value<'c>],
) {
    let ty = thunk.value_type();
    let builder = context.builder();
    builder.before(call);
    let replacement = if call.is(Opcode::Invoke) {
        builder.invoke(
            ty,
            thunk,
            operands,
            call.normal_destination(),
            call.unwind_destination(),
        )
    } else {
        builder.call(ty, thunk, operands)
    };
    replacement.set_debug_location(call.debug_location(context));
    if call.is_used() {
        call.replace_uses_with(replacement);
    }
    let arguments = call.arguments();
    call.erase();
    drop_markers(&arguments);
}

/// Removes loads of markers that nobody uses any more. Nothing defines markers, and sanitizers look at what is loaded, used or not.
fn drop_markers(arguments: &[Value<'_>]) {
    let mut seen = HashSet::new();
    for &argument in arguments {
        if !seen.insert(argument) {
            continue;
        }
        let is_marker = argument.is_instruction()
            && argument.is(Opcode::Load)
            && argument.operand(0).kind() == ValueKind::GlobalVariable
            && argument.operand(0).name().starts_with("enzyme_");
        if is_marker && !argument.is_used() {
            argument.erase();
        }
    }
}

/// All values that the call passes on.
fn operands_of<'c>(read: &ReadCall<'c>) -> Vec<Value<'c>> {
    let mut operands: Vec<Value<'c>> = read
        .result_memory
        .iter()
        .map(|(memory, _)| *memory)
        .collect();
    for argument in &read.arguments {
        operands.extend(argument.primal);
        match &argument.shadows {
            Shadows::Each(shadows) => operands.extend(shadows),
            Shadows::Strided { first, stride } => operands.extend([*first, *stride]),
        }
    }
    operands.extend(&read.extras);
    operands.extend(read.tape);
    operands
}

/// What the call asks for, in terms of the root.
fn describe<'c>(
    context: &'c Context,
    unit: &str,
    read: &ReadCall<'c>,
) -> Result<(FoundRequest, Rc<ValueRequest>), Problem> {
    let name = plain_name(read.primal);
    let problem = |refusal: Refusal| refuse(context, read.call, &refusal);
    let reverse = read.entry.is_reverse();
    let split = read.entry.is_split();
    let accelerated = read.entry == Entry::Accelerate;
    if (split || accelerated) && memory_type(read.primal, 0, "sret").is_some() {
        return Err(problem(Refusal::ResultInMemory {
            entry: read.entry.name(),
            function: name,
        }));
    }
    if reverse && read.width != 1 {
        return Err(problem(Refusal::MisplacedMarker {
            problem: "'enzyme_width' is for '__enzyme_fwddiff': reverse mode takes one shadow at a time",
        }));
    }
    let (parameters, layouts) = describe_parameters(context, read)?;
    let is_active = |one: &Parameter| one.activity != Activity::Const;
    if accelerated && (read.width != 1 || parameters.iter().any(is_active)) {
        return Err(problem(Refusal::MisplacedMarker {
            problem: "'__enzyme_accelerate' takes the arguments of the function, without shadows",
        }));
    }
    let result = read.primal.value_type().result();
    let all = leaves_of(result).ok_or_else(|| {
        problem(Refusal::UndifferentiableType {
            argument: refusal::Argument::Result {
                function: name.clone(),
            },
            ty: described(result),
        })
    })?;
    let results = all.into_iter().map(|leaf| match leaf {
        _ if accelerated || read.active_result == Some(false) => Activity::Const,
        leaf if leaf.is_float() => Activity::Active,
        leaf if leaf == ir::Type::PTR && (split || !reverse) => Activity::Duplicated,
        _ => Activity::Const,
    });
    let results: Vec<Activity> = results.collect();

    let primal = name_for_others(read.primal, unit);
    let values = Rc::new(ValueRequest {
        parameters,
        results,
        with_primal: read.with_primal,
        layouts,
    });
    let (part, suffix) = match read.entry {
        Entry::Augmented => (Part::Augmented, ".augmented"),
        Entry::SplitReverse => match read.keep_tape {
            false => (Part::Reverse { keep_tape: false }, ".reverse"),
            true => (Part::Reverse { keep_tape: true }, ".repeatable"),
        },
        _ => (Part::Whole, ""),
    };
    let mut hasher = DefaultHasher::new();
    (&primal, reverse, split, read.width, &values.parameters).hash(&mut hasher);
    // Both halves are of one derivative.
    (&values.results, values.with_primal && !split).hash(&mut hasher);
    accelerated.hash(&mut hasher);
    let (symbol, root) = FoundRequest::symbols(hasher.finish());
    let request = FoundRequest {
        symbol: format!("{symbol}{ADVICE}{suffix}"),
        root,
        primal,
        mode: match reverse {
            true => Mode::Reverse,
            false if accelerated => Mode::Primal,
            false => Mode::Forward,
        },
        width: read.width,
        part,
        primal_name: demangle(&name),
        derivative_name: read.entry.name().to_owned(),
        written_at: location_of(context, read.call),
        interface: values.clone(),
        given: None,
    };
    Ok((request, values))
}

/// What a call says of each scalar that the function takes, and what the layouts of their memory are.
fn describe_parameters<'c>(
    context: &'c Context,
    read: &ReadCall<'c>,
) -> Result<(Vec<Parameter>, Layouts), Problem> {
    let problem = |refusal: Refusal| refuse(context, read.call, &refusal);
    let reverse = read.entry.is_reverse();
    let split = read.entry.is_split();
    let mut parameters = Vec::new();
    let mut layouts = Vec::new();
    for (index, argument) in read.arguments.iter().enumerate() {
        layouts.extend(argument.layout.clone().map(|of| (parameters.len(), of)));
        let all = leaves_of(argument.of).ok_or_else(|| {
            problem(Refusal::UndifferentiableType {
                argument: named(read, index),
                ty: described(argument.of),
            })
        })?;
        let mut shadowed = false;
        for leaf in all {
            let activity = match argument.activity {
                ArgumentActivity::Const => Activity::Const,
                ArgumentActivity::Out if leaf.is_float() && reverse => Activity::Active,
                ArgumentActivity::Out => Activity::Const,
                ArgumentActivity::Result => Activity::Duplicated,
                ArgumentActivity::Dup { .. } if leaf == ir::Type::PTR => Activity::Duplicated,
                ArgumentActivity::Dup { .. } if leaf.is_float() && !reverse => Activity::Active,
                ArgumentActivity::Dup { .. } => Activity::Const,
            };
            shadowed |= activity != Activity::Const;
            let discarded = activity == Activity::Duplicated
                && read.entry == Entry::Reverse
                && match argument.activity {
                    ArgumentActivity::Dup { needed } => !needed,
                    ArgumentActivity::Result => !read.with_primal,
                    _ => false,
                };
            parameters.push(Parameter {
                activity,
                discarded,
                // The two halves of a derivative must agree, so that none may depend on what its call shows.
                meets: !split && activity == Activity::Duplicated && meets_another(read, index),
                number: read.number_of(index),
            });
        }
        // A number beside a pointer in a structure needs no shadow.
        let beside = argument.part != SourcePart::Whole && !argument.of.is_float();
        match argument.activity {
            _ if beside => {}
            ArgumentActivity::Out if !shadowed => {
                return Err(problem(Refusal::MarkerOnType {
                    argument: named(read, index),
                    ty: described(argument.of),
                    marker: "enzyme_out",
                    instead: match reverse {
                        true => "use 'enzyme_out' for floats only",
                        false => "in forward mode, use 'enzyme_dup' with a tangent",
                    },
                }));
            }
            ArgumentActivity::Dup { .. } if !shadowed => {
                return Err(problem(Refusal::MarkerOnType {
                    argument: named(read, index),
                    ty: described(argument.of),
                    marker: "enzyme_dup",
                    instead: match reverse {
                        true => "use 'enzyme_out' for floats, 'enzyme_const' for integers",
                        false => "use 'enzyme_const'",
                    },
                }));
            }
            _ => {}
        }
    }
    Ok((parameters, layouts))
}

/// Whether a shadow of an argument is in the same memory as one of another.
fn meets_another(read: &ReadCall<'_>, index: usize) -> bool {
    let Some(shadow) = first_shadow(&read.arguments[index]) else {
        return false;
    };
    let others = read.arguments.iter().enumerate();
    others
        .filter(|(other, _)| *other != index)
        .filter_map(|(_, argument)| first_shadow(argument))
        .any(|other| share_memory(shadow, other))
}

fn first_shadow<'c>(argument: &Argument<'c>) -> Option<Value<'c>> {
    let shadow = match &argument.shadows {
        Shadows::Each(shadows) => *shadows.first()?,
        Shadows::Strided { first, .. } => *first,
    };
    shadow.ty().is_pointer().then_some(shadow)
}

fn leaves_of(of: Type<'_>) -> Option<Vec<ir::Type>> {
    leaves(of)
}

/// An argument of a call, as refusals name it.
fn named(read: &ReadCall<'_>, index: usize) -> refusal::Argument {
    refusal::Argument::Number {
        number: read.number_of(index),
        function: plain_name(read.primal),
    }
}

/// A type as it stands in a sentence.
pub(super) fn described(of: Type<'_>) -> String {
    let name = c_type(of);
    match name.starts_with("a ") || name.starts_with("an ") {
        true => name,
        false => format!("of type '{name}'"),
    }
}

/// The name that a function has in the program.
pub(super) fn plain_name(function: Value<'_>) -> String {
    let name = function.name();
    match name.find(LOCAL_MARK) {
        Some(end) => name[..end].to_owned(),
        None => name,
    }
}

/// The name of a function; one that other modules do not know gets a name that is its own.
fn name_for_others(function: Value<'_>, unit: &str) -> String {
    let name = function.name();
    let local = matches!(function.linkage(), Linkage::Internal | Linkage::Private);
    if local && !name.contains(LOCAL_MARK) {
        function.set_name(&format!("{name}{LOCAL_MARK}{unit}"));
    }
    function.name()
}

/// Writes the body.
struct Writer<'a, 'c> {
    context: &'c Context,
    read: &'a ReadCall<'c>,
    layout: DataLayout,
    builder: &'a Builder<'c>,
    parameters: std::vec::IntoIter<Value<'c>>,
}

impl<'c> Writer<'_, 'c> {
    fn write(
        &mut self,
        module: Module<'c>,
        request: &FoundRequest,
        values: &ValueRequest,
    ) -> Result<(), Problem> {
        let symbol = &request.symbol;
        let reverse = request.mode == Mode::Reverse;
        let width = request.width as usize;
        let memory = self.read.result_memory.map(|(_, of)| (self.next(), of));
        let mut output = Output {
            call: self.read.call,
            memory,
            values: Vec::new(),
            structure: None,
        };
        let mut arguments: Vec<Value<'c>> = Vec::new();
        let (mut tys, mut gradients) = (Vec::new(), Vec::new());
        let mut activities = values.parameters.iter();
        for (index, argument) in self.read.arguments.iter().enumerate() {
            let (primal, shadows) = match argument.activity {
                ArgumentActivity::Result => self.result_memory(&mut output, reverse),
                _ => self.argument(index, argument)?,
            };
            let shadows: Vec<Vec<Value<'c>>> = shadows
                .into_iter()
                .map(|shadow| take_apart(self.builder, shadow))
                .collect();
            for (leaf, value) in take_apart(self.builder, primal).into_iter().enumerate() {
                let Some(&Parameter { activity, .. }) = activities.next() else {
                    break;
                };
                arguments.push(value);
                match activity {
                    Activity::Active if reverse => gradients.push(value.ty()),
                    Activity::Active | Activity::Duplicated => {
                        arguments.extend(shadows.iter().map(|shadow| shadow[leaf]));
                    }
                    Activity::Const => {}
                }
            }
        }
        let returned = leaves_of(self.read.primal.value_type().result()).unwrap_or_default();
        if request.part != Part::Whole {
            return self.write_half(module, request, values, &output, arguments, &gradients);
        }
        if values.with_primal {
            tys.extend(returned.iter().copied());
        }
        for (&leaf, &activity) in returned.iter().zip(&values.results) {
            if activity == Activity::Const {
                continue;
            }
            if reverse {
                arguments.push(one(llvm_type(self.context, leaf), self.context));
            } else {
                tys.extend(std::iter::repeat_n(leaf, width));
            }
        }
        for gradient in gradients {
            tys.extend(leaves_of(gradient).unwrap_or_default());
        }
        let mut results = self.call_derivative(module, symbol, &arguments, &tys);
        let primal_count = if values.with_primal {
            returned.len()
        } else {
            0
        };
        if !reverse {
            // Directions come one after the other, each with all of its parts.
            let tangents = results.split_off(primal_count);
            for lane in 0..width {
                results.extend(tangents.iter().skip(lane).step_by(width));
            }
        }
        output.values = results;
        deliver(self.context, &self.layout, self.builder, &output)
            .map_err(|refusal| self.problem(&refusal))
    }

    fn call_derivative(
        &self,
        module: Module<'c>,
        symbol: &str,
        arguments: &[Value<'c>],
        results: &[ir::Type],
    ) -> Vec<Value<'c>> {
        let params: Vec<ir::Type> = arguments
            .iter()
            .filter_map(|argument| ferrozyme_convention::signature::loop_type(argument.ty()))
            .collect();
        let callee = module.declare(symbol, function_type(self.context, &params, results));
        let call = self.builder.call_function(callee, arguments);
        take_apart(self.builder, call)
    }

    /// One sweep of reverse mode: the forward sweep gives results, shadows of pointers among them, and a tape; the reverse sweep takes seeds and the tape behind the arguments.
    fn write_half(
        &mut self,
        module: Module<'c>,
        request: &FoundRequest,
        values: &ValueRequest,
        output: &Output<'c>,
        mut arguments: Vec<Value<'c>>,
        gradients: &[Type<'c>],
    ) -> Result<(), Problem> {
        let returned = leaves_of(self.read.primal.value_type().result()).unwrap_or_default();
        let of = |activity: Activity| {
            let pairs = returned.iter().zip(&values.results);
            pairs
                .filter(move |(_, other)| **other == activity)
                .map(|(leaf, _)| *leaf)
                .collect::<Vec<ir::Type>>()
        };
        let mut output = Output {
            values: Vec::new(),
            structure: None,
            ..*output
        };
        let extras: Vec<Value<'c>> = self.read.extras.iter().map(|_| self.next()).collect();
        let memory = self.read.tape.map(|_| self.next());
        let symbol = &request.symbol;
        if request.part == Part::Augmented {
            let mut tys = returned.clone();
            tys.extend(of(Activity::Duplicated));
            tys.push(ir::Type::PTR);
            let mut results = self.call_derivative(module, symbol, &arguments, &tys);
            let tape = results.pop();
            if !values.with_primal {
                results.drain(..returned.len());
            }
            match (memory, tape) {
                (Some(memory), Some(tape)) => drop(self.builder.store(tape, memory)),
                // Whoever declares that a pointer comes back wants nothing but the tape.
                (None, Some(tape)) if self.read.call.ty().is_pointer() => results = vec![tape],
                (None, Some(tape)) => results.insert(0, tape),
                (_, None) => {}
            }
            output.values = results;
        } else {
            let seeds = of(Activity::Active);
            let behind = usize::from(memory.is_none());
            let has_tape = || extras.last().is_some_and(|tape| tape.ty().is_pointer());
            let fits =
                extras.len() >= behind && [0, seeds.len()].contains(&(extras.len() - behind));
            if !fits || behind == 1 && !has_tape() {
                return Err(self.problem(&Refusal::MissingTape {
                    function: plain_name(self.read.primal),
                    what: match (seeds.is_empty(), behind) {
                        (true, 0) => "nothing",
                        (true, _) => "the tape",
                        (false, 0) => "the seed of its result",
                        (false, _) => "the seed of its result and the tape",
                    },
                }));
            }
            for (index, seed) in seeds.iter().enumerate() {
                let ty = llvm_type(self.context, *seed);
                arguments.push(match extras.len() - behind {
                    0 => one(ty, self.context),
                    _ => {
                        convert(self.builder, &self.layout, extras[index], ty).ok_or_else(|| {
                            self.problem(&Refusal::ArgumentType {
                                argument: refusal::Argument::Result {
                                    function: plain_name(self.read.primal),
                                },
                                wanted: described(ty),
                                given: described(extras[index].ty()),
                            })
                        })?
                    }
                });
            }
            let pointer = self.context.pointer();
            let tape = match (memory, extras.last()) {
                (Some(memory), _) => self.builder.load(pointer, memory),
                (None, Some(tape)) => {
                    convert(self.builder, &self.layout, *tape, pointer).unwrap_or(pointer.zero())
                }
                (None, None) => pointer.zero(),
            };
            arguments.push(tape);
            let tys: Vec<ir::Type> = gradients
                .iter()
                .flat_map(|gradient| leaves_of(*gradient).unwrap_or_default())
                .collect();
            output.values = self.call_derivative(module, symbol, &arguments, &tys);
        }
        deliver(self.context, &self.layout, self.builder, &output)
            .map_err(|refusal| self.problem(&refusal))
    }

    fn next(&mut self) -> Value<'c> {
        self.parameters
            .next()
            .expect("there is a parameter for each operand")
    }

    fn problem(&self, refusal: &Refusal) -> Problem {
        refuse(self.context, self.read.call, refusal)
    }

    /// An argument and its shadows, with the types that the primal wants.
    fn argument(
        &mut self,
        index: usize,
        argument: &Argument<'c>,
    ) -> Result<(Value<'c>, Vec<Value<'c>>), Problem> {
        let mut value = self.next();
        if argument.by_reference && value.ty().is_pointer() {
            value = self.builder.load(argument.of, value);
        }
        let primal = self.converted(index, value, argument.of)?;
        let shadows = match &argument.shadows {
            Shadows::Each(shadows) => {
                let mut values = Vec::new();
                for _ in shadows {
                    let mut shadow = self.next();
                    if argument.by_reference && shadow.ty().is_pointer() {
                        shadow = self.builder.load(argument.of, shadow);
                    }
                    values.push(self.converted(index, shadow, argument.of)?);
                }
                values
            }
            Shadows::Strided { .. } => {
                let (first, stride) = (self.next(), self.next());
                let stride = self.converted(index, stride, self.context.integer(64))?;
                if !first.ty().is_pointer() {
                    return Err(self.problem(&Refusal::ArgumentType {
                        argument: named(self.read, index),
                        wanted: "a pointer to consecutive shadows".to_owned(),
                        given: described(first.ty()),
                    }));
                }
                let mut values = Vec::new();
                for lane in 0..self.read.width {
                    let lane = self.context.integer(64).constant(i128::from(lane));
                    let distance = self.builder.binary(Opcode::Mul, stride, lane);
                    let address = self.builder.offset(first, distance, GepFlags::default());
                    values.push(match argument.of.is_pointer() {
                        true => address,
                        false => self.builder.load(argument.of, address),
                    });
                }
                values
            }
        };
        Ok((primal, shadows))
    }

    /// Memory for the result of the primal, and its shadows, which are the result of forward mode.
    fn result_memory(
        &mut self,
        output: &mut Output<'c>,
        reverse: bool,
    ) -> (Value<'c>, Vec<Value<'c>>) {
        let of = memory_type(self.read.primal, 0, "sret").expect("that is what it is called for");
        let primal = self.builder.alloca(of);
        let mut shadows = Vec::new();
        for _ in 0..self.read.width {
            let shadow = self.builder.alloca(of);
            self.builder.store(of.zero(), shadow);
            if reverse && self.read.active_result != Some(false) {
                self.store_ones(of, shadow, 0);
            }
            shadows.push(shadow);
        }
        let mut parts = Vec::new();
        if self.read.with_primal {
            parts.push(primal);
        }
        if !reverse {
            parts.extend(&shadows);
        }
        if !parts.is_empty() {
            output.structure = Some((of, parts));
        }
        (primal, shadows)
    }

    /// The seed of a result in memory.
    fn store_ones(&self, of: Type<'c>, memory: Value<'c>, at: u64) {
        match of.kind() {
            TypeKind::Struct => {
                for (index, field) in of.fields().into_iter().enumerate() {
                    let offset = self.layout.field_offset(of, index as u32);
                    self.store_ones(field, memory, at + offset);
                }
            }
            TypeKind::Array => {
                for index in 0..of.length() {
                    let offset = index * self.layout.size(of.element());
                    self.store_ones(of.element(), memory, at + offset);
                }
            }
            _ if of.is_float() => {
                let distance = self.context.integer(64).constant(i128::from(at));
                let address = self.builder.offset(memory, distance, GepFlags::INBOUNDS);
                self.builder.store(of.float_constant(1.0), address);
            }
            _ => {}
        }
    }

    /// An argument with the type of the parameter: calls with variable arguments widen floats and integers.
    fn converted(
        &self,
        index: usize,
        value: Value<'c>,
        to: Type<'c>,
    ) -> Result<Value<'c>, Problem> {
        convert(self.builder, &self.layout, value, to).ok_or_else(|| {
            self.problem(&Refusal::ArgumentType {
                argument: named(self.read, index),
                wanted: described(to),
                given: described(value.ty()),
            })
        })
    }
}

/// A value as another type, if it can be one.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    layout: &DataLayout,
    value: Value<'c>,
    to: Type<'c>,
) -> Option<Value<'c>> {
    let from = value.ty();
    if from == to {
        return Some(value);
    }
    let cast = |opcode| Some(builder.cast(opcode, value, to));
    match (from.integer_width(), to.integer_width()) {
        (Some(from), Some(to)) if from > to => return cast(Opcode::Trunc),
        (Some(_), Some(_)) => return cast(Opcode::SExt),
        (Some(_), None) if to.is_pointer() => return cast(Opcode::IntToPtr),
        (None, Some(_)) if from.is_pointer() => return cast(Opcode::PtrToInt),
        _ => {}
    }
    if from.is_float() && to.is_float() {
        return match layout.bits(from) > layout.bits(to) {
            true => cast(Opcode::FPTrunc),
            false => cast(Opcode::FPExt),
        };
    }
    // By reference.
    (from.is_pointer() && to.is_sized()).then(|| builder.load(to, value))
}

/// The seed of a returned float.
fn one<'c>(of: Type<'c>, context: &'c Context) -> Value<'c> {
    match of.kind() {
        TypeKind::Vector => context.vector_constant(&vec![
            of.element().float_constant(1.0);
            of.length() as usize
        ]),
        _ => of.float_constant(1.0),
    }
}
