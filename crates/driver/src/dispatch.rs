//! Resolves indirect calls through pointers of the caller: function pointers and trait objects in arguments.
//!
//! The address of a function in an argument has no shadow, so the derivative has to find the function itself. The whole program is
//! available at link time: every function whose address is taken somewhere and whose type fits may be called, and no other.
//!
//! ```text
//! %y = call double %f(double %x)       →       %y = call double @__ferrozyme_dispatch(ptr %f, double %x)
//!
//! define internal double @__ferrozyme_dispatch(ptr %f, double %x) {
//!   %is = icmp eq ptr %f, @squared             ; the program's function
//!   br i1 %is, label %then, label %next
//! then:
//!   %y = call double @squared.ferrozyme_choice(double %x)     ; calls our copy of it
//!   ret double %y
//! next:
//!   …
//!   call void @__ferrozyme_no_derivative(ptr @text, i64 …)    ; says so and stops
//! }
//! ```
//!
//! A candidate without a derivative stops the program, with its name, where it is called ([`Choice`]); the others work.
//!
//! This is done only for programs that cannot be differentiated without it: most function pointers are known after inlining,
//! and those in objects that the differentiated function makes have shadows.

use crate::constants::{Constants, ModuleConstants};
use crate::frontend::adopt_target;
use crate::gather::{COPY_SUFFIX, Gathered, Wanted, gather_more};
use crate::inputs::{Inputs, Origin};
use crate::opaque::is_opaque;
use crate::pipeline::Choosing;
use crate::report::Diagnostic;
use crate::requests::OWN_PREFIX;
use ferrozyme_convention::stop::call_stop;
use ferrozyme_ir as ir;
use ferrozyme_library::demangle;
use ferrozyme_llvm::{
    Context, IntPredicate, Linkage, Module, Opcode, Place, Type, Value, ValueKind,
};
use ferrozyme_refusal::Refusal;
use std::collections::{BTreeSet, HashSet};

/// What the functions that dispatchers call are called after.
const CHOICE_SUFFIX: &str = ".ferrozyme_choice";

/// What dispatchers are called; LLVM adds numbers.
const DISPATCHER: &str = "__ferrozyme_dispatch";

/// Marks calls of what is none of the choices. An attribute stays with a call wherever LLVM copies or inlines it, which no table could follow.
const OTHERWISE: &str = "ferrozyme-otherwise";

/// A function that a call through a pointer may mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    /// The symbol of the function that dispatchers call for it, and nobody else.
    pub(crate) symbol: String,
    /// The path of the function that it stands for.
    pub(crate) function: String,
}

/// Whether a root reaches calls whose function is not known.
pub(crate) fn has_unknown_calls(module: Module<'_>, root: &str) -> bool {
    !unknown_calls(module, std::iter::once(root)).is_empty()
}

/// How many calls through pointers may become choices, for each derivative that needs them. Each choice brings its functions along, with the calls in them: where the number does not stay small, it multiplies from round to round (thread pools,
/// planners), and nothing comes of it.
const MAX_CALLS: usize = 96;

/// How many functions may be brought in for such calls at once, likewise: so many are not what somebody chooses between, but all that happens to have a common type.
const MAX_CANDIDATES: usize = 192;

/// What came of turning calls through pointers into choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dispatched {
    /// There was nothing to do.
    Nothing,
    /// This many calls became choices; what was brought in for them may call through pointers, too.
    Calls(usize),
    /// There are too many calls, or functions that may be meant.
    TooMany,
}

/// Turns calls through pointers into choices between functions of the program, and adds these. `done` is how many calls became choices before.
pub(crate) fn dispatch_unknown_calls<'c>(
    context: &'c Context,
    choosing: &Choosing<'_>,
    gathered: &mut Gathered<'c>,
    choices: &mut Vec<Choice>,
    done: usize,
) -> Result<Dispatched, Vec<Diagnostic>> {
    let module = gathered.module;
    let inputs = choosing.program;
    let roots = || choosing.roots.iter().map(String::as_str);
    let slot_of = |call: Value<'c>| (call.called_type(), method_slot(call.called()));
    let calls = unknown_calls(module, roots());
    if calls.is_empty() || inputs.program().is_empty() {
        return Ok(Dispatched::Nothing);
    }
    if done + calls.len() > MAX_CALLS * choosing.roots.len() {
        return Ok(Dispatched::TooMany);
    }
    let slots: Vec<(Type<'c>, Option<u64>)> = calls.iter().copied().map(slot_of).collect();
    let mut found = find_candidates(context, inputs, &slots)?;
    // What is said of a function is said of its name, which choices do not keep.
    found.retain(|candidate| !is_registered(gathered, &candidate.wanted));
    let is_new = |wanted: &Wanted| !gathered.originals.contains(&wanted.symbol());
    let wanted: Vec<Wanted> = found
        .iter()
        .map(|found| found.wanted.clone())
        .filter(is_new)
        .collect();
    if wanted.len() > MAX_CANDIDATES * choosing.roots.len() {
        return Ok(Dispatched::TooMany);
    }
    gather_more(context, inputs, gathered, &wanted)?;
    // What was brought in may have taken the place of functions, and of the calls in them; calls of another kind wait for the next round.
    let (calls, slots): (Vec<Value<'c>>, Vec<(Type<'c>, Option<u64>)>) =
        unknown_calls(module, roots())
            .into_iter()
            .map(|call| (call, slot_of(call)))
            .filter(|(_, slot)| slots.contains(slot))
            .unzip();
    let inside = taken_functions(module, &slots);

    let mut arms: Vec<Arm<'c>> = Vec::new();
    for candidate in &found {
        let symbol = candidate.wanted.symbol();
        let copied = format!("{symbol}{COPY_SUFFIX}");
        let known = gathered.originals.contains(&symbol);
        let found = module.function(if known { &copied } else { &symbol });
        let Some(copy) = found else {
            continue;
        };
        if copy.is_declaration() || !fits_by_value(copy) {
            continue;
        }
        let original = match (known, module.function(&symbol)) {
            (true, Some(original)) => original,
            _ => {
                copy.set_name(&copied);
                // Others that come in later find it by name.
                copy.set_linkage(Linkage::External);
                gathered.originals.insert(symbol.clone());
                module.add_function(&symbol, copy.value_type())
            }
        };
        let function = demangle(&candidate.wanted.name);
        arms.push(Arm::new(
            context,
            module,
            copy,
            Some(original),
            function,
            &candidate.places,
        ));
    }
    for taken in inside {
        // What was gathered for its address may have been here already.
        if !arms.iter().any(|arm| arm.copy == taken.function) {
            let function = demangle(&taken.function.name());
            arms.push(Arm::new(
                context,
                module,
                taken.function,
                None,
                function,
                &taken.places,
            ));
        }
    }
    let mut requests = gathered.requests.iter();
    let may_have_tables = requests.any(|request| request.language().makes_shadows);
    let constants = constant_parameters(gathered);
    let mut dispatched = 0;
    for (&call, (ty, slot)) in calls.iter().zip(&slots) {
        let of_type = || arms.iter().filter(|arm| arm.copy.value_type() == *ty);
        let mut fitting: Vec<&Arm<'c>> = of_type().filter(|arm| arm.places.fit(*slot)).collect();
        if fitting.is_empty() && *slot == Some(DROP) {
            fitting = of_type().filter(|arm| arm.places.drops_others).collect();
        }
        if !fitting.is_empty() {
            let tables = may_have_tables && !constants.contains(&call.called());
            let dispatcher = build_dispatcher(context, module, call, &fitting, tables);
            redirect(context, call, dispatcher);
            dispatched += 1;
        }
    }
    for arm in arms {
        if !choices.contains(&arm.choice) {
            choices.push(arm.choice);
        }
    }
    Ok(match dispatched {
        0 => Dispatched::Nothing,
        calls => Dispatched::Calls(calls),
    })
}

/// Whether the program says something of a function, or names it where it does.
fn is_registered(gathered: &Gathered<'_>, wanted: &Wanted) -> bool {
    gathered.registrations.iter().any(|registration| {
        let is_there = wanted
            .input
            .is_none_or(|input| input == registration.source);
        is_there && registration.symbols().any(|known| known == wanted.name)
    })
}

/// The parameters of roots that have no shadow.
fn constant_parameters<'c>(gathered: &Gathered<'c>) -> HashSet<Value<'c>> {
    let mut found = HashSet::new();
    for request in &gathered.requests {
        let root = gathered.module.function(&request.root);
        let parameters = root.into_iter().flat_map(|root| root.parameters());
        let constant = parameters.enumerate();
        let constant = constant.filter(|(index, _)| request.interface.is_constant(*index));
        found.extend(constant.map(|(_, parameter)| parameter));
    }
    found
}

/// Ends a region of a function that was imported, before an operation or at its start, by showing a text and stopping the program.
pub(crate) fn stop_with(
    module: &mut ir::Module,
    id: ir::FunctionId,
    region: ir::Region,
    before: Option<ir::Op>,
    text: &str,
) {
    let function = &mut module.functions[id];
    let ops = &mut function.regions[region].ops;
    let position = before.and_then(|op| ops.iter().position(|&other| other == op));
    ops.truncate(position.unwrap_or(0));
    ir::Builder::new(function, region).trap(text);
}

/// A function that may be called through a pointer.
struct Candidate {
    wanted: Wanted,
    places: Places,
}

/// A choice: our copy of a function, and the program's function, whose address is compared.
struct Arm<'c> {
    copy: Value<'c>,
    original: Option<Value<'c>>,
    places: Places,
    /// What calls the copy. It stays a function of its own, so that what has no derivative can be told.
    caller: Value<'c>,
    choice: Choice,
}

impl<'c> Arm<'c> {
    fn new(
        context: &'c Context,
        module: Module<'c>,
        copy: Value<'c>,
        original: Option<Value<'c>>,
        function: String,
        places: &Places,
    ) -> Arm<'c> {
        let symbol = format!("{}{CHOICE_SUFFIX}", copy.name());
        let choice = Choice { symbol, function };
        if let Some(caller) = module.function(&choice.symbol)
            && caller.value_type() == copy.value_type()
        {
            return Arm {
                copy,
                original,
                places: places.clone(),
                caller,
                choice,
            };
        }
        let symbol = &choice.symbol;
        let caller = module.add_function(symbol, copy.value_type());
        // Later rounds call it too, so it must not be made to suit the calls of this one.
        caller.set_linkage(Linkage::External);
        adopt_target(context, caller, copy);
        caller.add_attribute(Place::Function, context.attribute("noinline", 0));
        let builder = context.builder();
        builder.at_end(context.append_block(caller, "entry"));
        let result = builder.call(copy.value_type(), copy, &caller.parameters());
        result.set_call_convention(copy.function_convention());
        match copy.value_type().result().is_void() {
            true => builder.return_nothing(),
            false => builder.return_value(result),
        };
        Arm {
            copy,
            original,
            places: places.clone(),
            choice: Choice {
                // Another one of this name may have lost parameters that it does not look at.
                symbol: caller.name(),
                ..choice
            },
            caller,
        }
    }
}

/// Where the address of a function is taken.
#[derive(Clone, Default)]
struct Places {
    /// In code, or in a constant that is no table of methods.
    anywhere: bool,
    /// The offsets in tables of methods. How values are dropped counts for tables with methods that may be called.
    methods: BTreeSet<u64>,
    /// It is how values are dropped by other tables.
    drops_others: bool,
}

/// Where an address is held.
#[derive(Clone, Copy)]
enum Held {
    /// In code, or in a constant that is no table of methods.
    Anywhere,
    /// At this offset of a table of methods.
    Method(u64),
    /// As how to drop a value, in a table whose methods are not called.
    DropOfOthers,
}

impl Places {
    fn add(&mut self, held: Held) {
        match held {
            Held::Anywhere => self.anywhere = true,
            Held::DropOfOthers => self.drops_others = true,
            Held::Method(offset) => {
                self.methods.insert(offset);
            }
        }
    }

    fn is_empty(&self) -> bool {
        !self.anywhere && self.methods.is_empty() && !self.drops_others
    }

    /// Whether a call that takes its function from an offset of a table can mean this function.
    fn fit(&self, slot: Option<u64>) -> bool {
        match slot {
            Some(offset) => self.anywhere || self.methods.contains(&offset),
            None => self.anywhere || !self.methods.is_empty(),
        }
    }
}

/// The calls of what is no function, in the code that roots reach.
fn unknown_calls<'c, 'n>(
    module: Module<'c>,
    roots: impl Iterator<Item = &'n str>,
) -> Vec<Value<'c>> {
    let mut work: Vec<Value<'c>> = roots.filter_map(|root| module.function(root)).collect();
    let mut seen: HashSet<Value<'c>> = work.iter().copied().collect();
    let mut found = Vec::new();
    while let Some(function) = work.pop() {
        if function.is_declaration() || is_opaque(&function.name(), function) {
            continue;
        }
        for instruction in function.instructions() {
            if instruction.is_call() && is_unknown_call(instruction) {
                found.push(instruction);
            }
            let mentioned = instruction.operands().into_iter();
            let functions = mentioned.filter(|value| value.kind() == ValueKind::Function);
            work.extend(functions.filter(|&value| seen.insert(value)));
        }
    }
    found
}

fn is_unknown_call(call: Value<'_>) -> bool {
    let called = call.called();
    !called.is_constant()
        && !called.is_inline_assembly()
        && !call.is_must_tail()
        && !call.called_type().is_variadic()
        && call.operand_bundles().is_empty()
        && call.text_attribute(Place::Function, OTHERWISE).is_none()
}

/// The offset in a table of methods that a called address is loaded from.
fn method_slot(called: Value<'_>) -> Option<u64> {
    if !called.is(Opcode::Load) {
        return None;
    }
    let address = called.operand(0);
    if !address.is(Opcode::GetElementPtr) {
        return Some(DROP);
    }
    if address.operand_count() != 2 {
        return None;
    }
    let bytes = address.gep_source_type().integer_width()? / 8;
    let offset = address.operand(1).as_unsigned()? * u64::from(bytes);
    (offset >= FIRST_METHOD).then_some(offset)
}

/// Where a table of methods says how to drop the value.
const DROP: u64 = 0;

/// A table of methods starts with how to drop the value, its size and its alignment.
const FIRST_METHOD: u64 = 24;

/// The functions of the program outside the standard library whose address is taken and whose type is one of these.
fn find_candidates<'c>(
    context: &'c Context,
    inputs: &dyn Inputs,
    slots: &[(Type<'c>, Option<u64>)],
) -> Result<Vec<Candidate>, Diagnostic> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for index in inputs.program() {
        let input = inputs.get(index).map_err(Diagnostic::error)?;
        if matches!(input.origin, Origin::Std { .. }) {
            continue;
        }
        let Ok(module) = context.parse_bitcode_lazily(&input.name, &input.bitcode) else {
            continue;
        };
        let fits = |function: Value<'c>| slots.iter().any(|(ty, _)| function.value_type() == *ty);
        let any = module.functions().any(fits);
        module.dispose();
        if !any {
            continue;
        }
        let Ok(module) = context.parse_bitcode(&input.name, &input.bitcode) else {
            continue;
        };
        for taken in taken_functions(module, slots) {
            let name = taken.function.name();
            let local = matches!(
                taken.function.linkage(),
                Linkage::Internal | Linkage::Private
            );
            let wanted = Wanted {
                name,
                input: local.then_some(index),
            };
            match candidates.iter_mut().find(|known| known.wanted == wanted) {
                Some(known) => {
                    known.places.anywhere |= taken.places.anywhere;
                    known.places.drops_others |= taken.places.drops_others;
                    known.places.methods.extend(taken.places.methods);
                }
                None => candidates.push(Candidate {
                    wanted,
                    places: taken.places,
                }),
            }
        }
        module.dispose();
    }
    Ok(candidates)
}

/// A function whose address is taken.
struct Taken<'c> {
    function: Value<'c>,
    places: Places,
}

/// The functions of a module whose address is taken, of these types and where such calls can find them.
fn taken_functions<'c>(module: Module<'c>, slots: &[(Type<'c>, Option<u64>)]) -> Vec<Taken<'c>> {
    let constants = ModuleConstants::new(module);
    let mut tables: Vec<(Value<'c>, Held)> = Vec::new();
    let mut read: HashSet<Value<'c>> = HashSet::new();
    for global in module.globals() {
        if global.is_declaration() {
            continue;
        }
        if global.name().starts_with("llvm.") {
            read.insert(global);
            continue;
        }
        let Some(blob) = constants.of().blob(global) else {
            continue;
        };
        read.insert(global);
        let functions = blob.addresses.iter().filter(|(_, (symbol, distance))| {
            *distance == 0 && symbol.kind() == ValueKind::Function
        });
        let is_table = blob.bytes.len() as u64 > FIRST_METHOD
            && match blob.addresses.iter().next() {
                Some((0, (symbol, _))) => symbol.kind() == ValueKind::Function,
                Some((&first, _)) => first >= FIRST_METHOD && has_no_drop(&blob.bytes),
                None => false,
            }
            && has_size_and_alignment(&blob.bytes);
        let functions: Vec<(u64, Value<'c>)> = functions
            .map(|(&offset, &(function, _))| (offset, function))
            .collect();
        let may_be_called = |(offset, function): &(u64, Value<'c>)| {
            slots.iter().any(|(ty, slot)| {
                *slot == Some(*offset) && *offset >= FIRST_METHOD && function.value_type() == *ty
            })
        };
        let plausible = functions.iter().any(may_be_called);
        for (offset, function) in functions {
            tables.push((
                function,
                match (is_table, offset) {
                    (false, _) => Held::Anywhere,
                    (true, DROP) if !plausible => Held::DropOfOthers,
                    (true, offset) => Held::Method(offset),
                },
            ));
        }
    }
    let mut found = Vec::new();
    for function in module.functions() {
        let name = function.name();
        if !slots.iter().any(|(ty, _)| function.value_type() == *ty)
            || function.is_declaration() && name.starts_with("llvm.")
            || name.starts_with(OWN_PREFIX)
            || is_opaque(&name, function)
        {
            continue;
        }
        let mut places = Places::default();
        for (_, held) in tables.iter().filter(|(held, _)| *held == function) {
            places.add(*held);
        }
        if is_taken(function, &read) {
            places.add(Held::Anywhere);
        }
        let wanted = slots.iter().any(|(ty, slot)| {
            let drops = *slot == Some(DROP) && places.drops_others;
            function.value_type() == *ty && (drops || places.fit(*slot))
        });
        if !places.is_empty() && wanted {
            found.push(Taken { function, places });
        }
    }
    found
}

/// The first word of a table of methods of values that need not be dropped.
fn has_no_drop(bytes: &[u8]) -> bool {
    bytes.iter().take(8).all(|&byte| byte == 0)
}

/// The second and third word of a table of methods: any size, and an alignment.
fn has_size_and_alignment(bytes: &[u8]) -> bool {
    let word = |from: usize| {
        let bytes: [u8; 8] = bytes.get(from..from + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    matches!((word(8), word(16)), (Some(size), Some(align))
        if align.is_power_of_two() && align <= 4096 && size % align == 0)
}

/// Whether an instruction uses a function other than by calling it, or a global holds it that is none of these. Uses in constants that instructions use
/// count as well. An address that is only compared, as dispatchers do, reaches no call.
fn is_taken<'c>(function: Value<'c>, other_than: &HashSet<Value<'c>>) -> bool {
    let mut work = vec![function];
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        for user in value.users() {
            if user.is_instruction() {
                let called = value == function && user.is_call() && user.called() == function;
                let compared = user.is(Opcode::ICmp);
                if !compared && (!called || user.arguments().contains(&value)) {
                    return true;
                }
            } else if user.kind() == ValueKind::GlobalVariable {
                if !other_than.contains(&user) {
                    return true;
                }
            } else if seen.insert(user) {
                work.push(user);
            }
        }
    }
    false
}

/// Arguments that a function takes as copies in memory would have to be described again at each call.
fn fits_by_value(function: Value<'_>) -> bool {
    (0..function.parameter_count())
        .all(|index| !function.has_attribute(Place::Parameter(index), "byval"))
}

/// The function that chooses by the address and calls. What is none of the choices is called as it is if its shadow may lead to derivatives.
fn build_dispatcher<'c>(
    context: &'c Context,
    module: Module<'c>,
    call: Value<'c>,
    arms: &[&Arm<'c>],
    may_have_tables: bool,
) -> Value<'c> {
    let ty = call.called_type();
    let mut parameters = vec![context.pointer()];
    parameters.extend(ty.parameters());
    let dispatcher = module.add_function(DISPATCHER, ty.result().function(&parameters, false));
    dispatcher.set_linkage(Linkage::Internal);
    // What is known of a root's arguments is known of what its calls may mean.
    dispatcher.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    if let Some(caller) = call.block().map(|block| block.function()) {
        adopt_target(context, dispatcher, caller);
    }
    let arguments = dispatcher.parameters();
    let (address, arguments) = arguments
        .split_first()
        .expect("the dispatcher's first parameter is the address");
    let builder = context.builder();
    builder.at_end(context.append_block(dispatcher, "entry"));
    for arm in arms {
        let mut is = builder.compare_integers(IntPredicate::Eq, *address, arm.copy);
        if let Some(original) = arm.original {
            let program = builder.compare_integers(IntPredicate::Eq, *address, original);
            is = builder.binary(Opcode::Or, is, program);
        }
        let then = context.append_block(dispatcher, "then");
        let next = context.append_block(dispatcher, "next");
        builder.branch_if(is, then, next);
        builder.at_end(then);
        let result = builder.call(ty, arm.caller, arguments);
        result.set_call_convention(arm.caller.function_convention());
        match ty.result().is_void() {
            true => builder.return_nothing(),
            false => builder.return_value(result),
        };
        builder.at_end(next);
    }
    if may_have_tables {
        let result = builder.call(ty, *address, arguments);
        result.set_call_convention(call.call_convention());
        result.add_attribute(Place::Function, context.text_attribute(OTHERWISE, ""));
        match ty.result().is_void() {
            true => builder.return_nothing(),
            false => builder.return_value(result),
        };
    } else {
        let text = format!("{}\n", Refusal::UnknownTarget.stop_text());
        call_stop(context, module, &builder, &text);
        builder.unreachable();
    }
    dispatcher
}

/// Calls the dispatcher in the place of what a call calls.
fn redirect<'c>(context: &'c Context, call: Value<'c>, dispatcher: Value<'c>) {
    let mut arguments = vec![call.called()];
    arguments.extend(call.arguments());
    let builder = context.builder();
    builder.before(call);
    let new = match call.is(Opcode::Invoke) {
        true => builder.invoke(
            dispatcher.value_type(),
            dispatcher,
            &arguments,
            call.normal_destination(),
            call.unwind_destination(),
        ),
        false => builder.call_function(dispatcher, &arguments),
    };
    if !call.ty().is_void() {
        call.replace_uses_with(new);
    }
    call.erase();
}
