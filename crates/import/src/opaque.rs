//! Outlines instructions that the Loop IR lacks into LLVM functions.
//!
//! Fences, atomic accesses, volatile accesses to anything but floats that are computed with, inline assembly, calls with variable arguments and intrinsics of machines become calls
//! of small functions that are declared in the Loop IR and stay what they are in LLVM. They keep their effect. Unless numbers that may
//! carry a derivative go through them, they are declared inactive; otherwise the differentiator refuses them where it matters. What may write to
//! memory behind pointers that it is given is refused if that memory carries derivatives.

use super::Importer;
use super::intrinsic;
use ferrozyme_ir::MemoryEffect;
use ferrozyme_library::{Known, find, is};
use ferrozyme_llvm::{Linkage, Opcode, Ordering, Place, Type, TypeKind, Value, ValueKind};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;

/// An instruction that moved into a function of its own.
pub(super) struct MovedOut {
    /// Why it has no derivative.
    pub(super) refusal: Refusal,
    /// Whether nothing that goes through it carries a derivative.
    inactive: bool,
    /// Whether it may write numbers to memory behind its arguments although it is inactive.
    writes_constants: bool,
    /// Whether it touches memory through its arguments only.
    arguments_only: bool,
}

fn is_input(name: &str) -> bool {
    find(name, |known| matches!(known, Known::Input(_)).then_some(())).is_some()
}

impl<'c> Importer<'c, '_> {
    /// Whether nothing that goes through a function without a body carries a derivative.
    pub(super) fn is_inactive(&self, function: Value<'c>) -> bool {
        let name = function.name();
        // A program may have a function of the same name that computes something: its type tells.
        let is_of_library =
            || !function.value_type().result().is_float() || is(&name, &Known::GivesFloat);
        let moved = self.moved.get(&function);
        moved.is_some_and(|moved| moved.inactive)
            || is(&name, &Known::Inactive) && is_of_library()
            || is_input(&name)
    }

    /// Whether a function that is inactive may write numbers that are computed with afterwards.
    pub(super) fn writes_constants(&self, function: Value<'c>) -> bool {
        let moved = self.moved.get(&function);
        moved.is_some_and(|moved| moved.writes_constants) || is_input(&function.name())
    }

    /// Whether a function was made here.
    pub(super) fn is_moved_out(&self, function: Value<'c>) -> bool {
        self.moved.contains_key(&function) || ferrozyme_convention::cleanup::is_cleanup(function)
    }

    /// Moves what the Loop IR cannot say out of a function.
    pub(super) fn move_out_opaque(&mut self, function: Value<'c>) {
        let found: Vec<Value<'c>> = function
            .instructions()
            .filter(|&instruction| is_inexpressible(instruction))
            .collect();
        for instruction in found {
            if reads_allocation_mark(instruction) {
                instruction.replace_uses_with(instruction.ty().zero());
                instruction.erase();
            } else {
                self.move_out(function, instruction);
            }
        }
    }

    /// Replaces an instruction by a call of a new function that consists of it.
    fn move_out(&mut self, function: Value<'c>, instruction: Value<'c>) {
        let operands = instruction.operands();
        let is_local = |value: &Value<'c>| {
            matches!(value.kind(), ValueKind::Instruction | ValueKind::Argument)
        };
        // The address is handed over even if it is that of a global: what the function touches is told by its arguments.
        let address = address_of(instruction);
        let is_taken = |value: &Value<'c>| is_local(value) || Some(*value) == address;
        let taken: Vec<Value<'c>> = operands.iter().copied().filter(is_taken).collect();
        let types: Vec<Type<'c>> = taken.iter().map(|value| value.ty()).collect();
        let ty = instruction.ty().function(&types, false);
        let (kind, refusal) = kind_of(instruction);
        let mut facts = MovedOut {
            refusal,
            inactive: self.calls_inactive(instruction),
            writes_constants: false,
            arguments_only: is_access(instruction),
        };
        if facts.inactive {
            let called = instruction.called_function();
            facts.writes_constants = called.is_some_and(|called| self.writes_constants(called));
        } else if !self.carries_derivatives(instruction) && !runs_user_code(instruction) {
            facts.inactive = true;
            let reaches_memory = taken.iter().any(|value| value.ty().is_pointer());
            facts.writes_constants =
                reaches_memory && !is_access(instruction) && !does_nothing(instruction);
        }
        let moved = self.add_moved_function(function, kind, ty, facts);
        if instruction.is(Opcode::Call) {
            let arguments = instruction.arguments();
            for (place, value) in (0..).zip(&taken) {
                let mut given = (0..).zip(&arguments).filter(|(_, one)| *one == value);
                let only_reads =
                    |at: u32| instruction.call_has_attribute(Place::Parameter(at), "readonly");
                if value.ty().is_pointer() && given.all(|(at, _)| only_reads(at)) {
                    let readonly = self.context.attribute("readonly", 0);
                    moved.add_attribute(Place::Parameter(place), readonly);
                }
            }
        }
        if is_access(instruction) {
            moved.add_attribute(Place::Function, self.context.attribute("nounwind", 0));
            if let Some(position) = taken.iter().position(|value| Some(*value) == address)
                && taken
                    .iter()
                    .filter(|value| Some(**value) == address)
                    .count()
                    == 1
            {
                let place = Place::Parameter(position as u32);
                moved.add_attribute(place, self.context.attribute("captures", 0));
                if instruction.is(Opcode::Load) {
                    moved.add_attribute(place, self.context.attribute("readonly", 0));
                }
            }
        }

        let builder = self.context.builder();
        builder.at_end(self.context.append_block(moved, "entry"));
        let copy = builder.insert(instruction.duplicate_instruction());
        copy.set_debug_location(None);
        let mut next = 0;
        for (index, operand) in operands.iter().enumerate() {
            if is_taken(operand) {
                copy.set_operand(index as u32, moved.parameter(next));
                next += 1;
            }
        }
        if instruction.ty().is_void() {
            builder.return_nothing();
        } else {
            builder.return_value(copy);
        }

        builder.before(instruction);
        let call = builder.call_function(moved, &taken);
        call.set_debug_location(instruction.debug_location(self.context));
        if instruction.is_used() {
            instruction.replace_uses_with(call);
        }
        instruction.erase();
    }

    /// Declares a function for what moves out of another.
    fn add_moved_function(
        &mut self,
        function: Value<'c>,
        kind: &str,
        ty: Type<'c>,
        facts: MovedOut,
    ) -> Value<'c> {
        let name = format!("{}.moved_{kind}", function.name());
        let moved = self.llvm.add_function(&name, ty);
        moved.set_linkage(Linkage::Internal);
        moved.add_attribute(Place::Function, self.context.attribute("noinline", 0));
        moved.adopt_processor(self.context, function);
        self.moved.insert(moved, facts);
        moved
    }

    /// The same for a calculation in `long double`, which may or may not be one with derivatives.
    pub(super) fn add_calculation(
        &mut self,
        function: Value<'c>,
        ty: Type<'c>,
        inactive: bool,
    ) -> Value<'c> {
        let facts = MovedOut {
            refusal: Refusal::LongDouble,
            inactive,
            writes_constants: false,
            arguments_only: false,
        };
        let moved = self.add_moved_function(function, "long_double", ty, facts);
        for fact in ["memory", "nounwind", "willreturn"] {
            moved.add_attribute(Place::Function, self.context.attribute(fact, 0));
        }
        moved
    }

    /// Whether an instruction calls a function that computes nothing with a derivative, such as `printf`.
    fn calls_inactive(&self, instruction: Value<'c>) -> bool {
        instruction.is(Opcode::Call)
            && instruction
                .called_function()
                .is_some_and(|function| self.only_shows(function, MAX_DEPTH))
    }

    /// Whether a function computes nothing with a derivative: it is known not to, or hands what it is given to such functions, and writes to its own variables only.
    fn only_shows(&self, function: Value<'c>, depth: usize) -> bool {
        if self.writes_constants(function) {
            return false;
        }
        if self.is_inactive(function) || (self.options.is_inactive)(&function.name()) {
            return true;
        }
        let result = function.value_type().result();
        if depth == 0
            || function.is_declaration()
            || !(result.is_void() || result.integer_width().is_some_and(|bits| bits <= 32))
        {
            return false;
        }
        function
            .instructions()
            .all(|instruction| match instruction.opcode() {
                Some(Opcode::Store) => instruction.operand(1).is_in_variable(),
                Some(Opcode::Call | Opcode::Invoke) => match instruction.called_intrinsic() {
                    // Lists of arguments are the function's own.
                    Some(name) => name.starts_with("llvm.va_") || intrinsic::is_note(&name),
                    None => instruction
                        .called_function()
                        .is_some_and(|callee| self.only_shows(callee, depth - 1)),
                },
                Some(Opcode::AtomicCmpXchg | Opcode::AtomicRMW) => false,
                _ => true,
            })
    }

    /// What the Loop IR is told of the memory that a function of this kind touches.
    pub(super) fn opaque_memory(&self, function: Value<'c>) -> Option<MemoryEffect> {
        let moved = self.moved.get(&function)?;
        moved.arguments_only.then_some(MemoryEffect::Args)
    }

    fn use_of(&self, value: Value<'c>, user: Value<'c>) -> Use {
        match user.opcode() {
            Some(Opcode::ICmp | Opcode::Br | Opcode::Switch) => Use::Harmless,
            // As a number it has no derivative.
            Some(Opcode::SIToFP | Opcode::UIToFP) => Use::Harmless,
            Some(opcode) if is_integer_step(opcode) => Use::Same,
            Some(Opcode::AtomicRMW | Opcode::AtomicCmpXchg) => Use::Harmless,
            Some(Opcode::GetElementPtr) if user.operand(0) != value => Use::Harmless,
            Some(Opcode::Store) if user.ordering() != Ordering::NotAtomic => Use::Harmless,
            Some(Opcode::Call | Opcode::Invoke) if self.is_moved_out(user.called()) => {
                Use::Harmless
            }
            Some(Opcode::BitCast | Opcode::IntToPtr) => Use::Unknown,
            _ if wide(value) => Use::Unknown,
            _ => Use::Harmless,
        }
    }

    /// Whether something that a derivative follows may go in or out: floats, also as integers with their bits, and pointers other than
    /// the address that is accessed, since they may lead to floats. What only counts or compares does not.
    fn carries_derivatives(&self, instruction: Value<'c>) -> bool {
        let followed = |of: Type<'_>| {
            let is = |of: Type<'_>| of.is_float() || of.is_pointer();
            match of.kind() {
                TypeKind::Struct => of.fields().iter().any(|field| is(*field)),
                TypeKind::Vector | TypeKind::Array => is(of.element()),
                _ => is(of),
            }
        };
        let mut operands = instruction.operands();
        match address_of(instruction) {
            Some(address) => operands.retain(|operand| *operand != address),
            // Nobody but memory accesses is known to keep what a pointer leads to as it is; but most of them only look.
            None => operands.retain(|operand| !operand.ty().is_pointer()),
        }
        if is_only_compared(instruction) {
            return false;
        }
        if followed(instruction.ty()) || operands.iter().any(|operand| followed(operand.ty())) {
            return true;
        }
        // Back to where operands come from, and on to where the result goes: only what is understood all the way may be left alone.
        let mut seen = FxHashSet::default();
        let mut work: Vec<(Value<'c>, bool)> = operands
            .into_iter()
            .map(|operand| (operand, false))
            .collect();
        work.push((instruction, true));
        while let Some((value, forward)) = work.pop() {
            if !seen.insert((value, forward)) {
                continue;
            }
            if forward {
                for user in value.users() {
                    match self.use_of(value, user) {
                        Use::Harmless => {}
                        Use::Same => work.push((user, true)),
                        Use::Unknown => return true,
                    }
                }
            } else if !value.is_constant() {
                match value.opcode() {
                    Some(opcode) if is_integer_step(opcode) => {
                        work.extend(value.operands().into_iter().map(|operand| (operand, false)));
                    }
                    // What another access of this kind gave was looked at there.
                    Some(Opcode::AtomicRMW | Opcode::AtomicCmpXchg) => {}
                    Some(Opcode::ICmp | Opcode::FCmp) => {}
                    Some(Opcode::Load) if value.ordering() != Ordering::NotAtomic => {}
                    Some(Opcode::Call) if self.is_moved_out(value.called()) => {}
                    Some(Opcode::BitCast | Opcode::PtrToInt) => return true,
                    _ if wide(value) => return true,
                    _ => {}
                }
            }
        }
        false
    }
}

/// What kind of instruction this is, for the name of the function that it moves into, and why it has no derivative.
fn kind_of(instruction: Value<'_>) -> (&'static str, Refusal) {
    match instruction.opcode() {
        Some(Opcode::VAArg) => ("variadic", Refusal::Variadic),
        Some(Opcode::Load | Opcode::Store) if instruction.ordering() == Ordering::NotAtomic => {
            ("volatile", Refusal::Volatile)
        }
        Some(Opcode::Call) if instruction.called().is_inline_assembly() => {
            ("assembly", Refusal::Assembly)
        }
        Some(Opcode::Call) if instruction.called_type().is_variadic() => {
            ("variadic", Refusal::Variadic)
        }
        Some(Opcode::Call) => ("machine", Refusal::MachineInstruction),
        _ => ("atomic", Refusal::Atomic),
    }
}

/// How deep calls are followed in search of what a function does.
const MAX_DEPTH: usize = 3;

/// Whether an instruction calls a function of the program, which may do anything.
fn runs_user_code(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::Call)
        && !instruction.called().is_inline_assembly()
        && instruction
            .called_function()
            .is_none_or(|function| !function.is_declaration())
}

/// Assembly without a word of it, which keeps optimisers from looking through.
fn does_nothing(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::Call)
        && instruction
            .called()
            .inline_assembly()
            .is_some_and(|(template, _)| template.trim().is_empty())
}

/// Whether the Loop IR has no word for an instruction.
fn is_inexpressible(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        Some(Opcode::Fence | Opcode::AtomicCmpXchg | Opcode::AtomicRMW | Opcode::VAArg) => true,
        Some(Opcode::Load | Opcode::Store) => {
            let is_plain = !instruction.is_volatile() || moves_float(instruction);
            !is_plain || instruction.ordering() != Ordering::NotAtomic
        }
        Some(Opcode::Call) => {
            let callee = instruction.called();
            callee.is_inline_assembly()
                || (instruction.called_type().is_variadic() && !instruction.is_must_tail())
                || instruction
                    .called_intrinsic()
                    .is_some_and(|name| !intrinsic::is_known(&name) && !takes_metadata(instruction))
        }
        _ => false,
    }
}

/// Whether a load or store is of a float that is computed with: nobody expects to see each access of a derivative even if it is volatile. Floats that are only compared are not computed with, but waited for.
fn moves_float(access: Value<'_>) -> bool {
    if is_only_compared(access) {
        return false;
    }
    let of = match access.is(Opcode::Load) {
        true => access.ty(),
        false => access.operand(0).ty(),
    };
    match of.kind() {
        TypeKind::Vector => of.element().is_float(),
        _ => of.is_float(),
    }
}

/// Whether an instruction loads a float that nobody looks at but comparisons.
fn is_only_compared(load: Value<'_>) -> bool {
    let users = || load.users().into_iter();
    load.is(Opcode::Load) && users().all(|user| user.opcode() == Some(Opcode::FCmp))
}

fn takes_metadata(call: Value<'_>) -> bool {
    let types = call.called_type().parameters();
    types
        .iter()
        .any(|of| matches!(of.kind(), TypeKind::Metadata | TypeKind::Token))
}

/// Whether an instruction does nothing but access memory at an address.
fn is_access(instruction: Value<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Some(Opcode::AtomicCmpXchg | Opcode::AtomicRMW | Opcode::Load | Opcode::Store)
    )
}

fn address_of(instruction: Value<'_>) -> Option<Value<'_>> {
    match instruction.opcode()? {
        Opcode::Store => Some(instruction.operand(1)),
        Opcode::AtomicCmpXchg | Opcode::AtomicRMW | Opcode::Load => Some(instruction.operand(0)),
        _ => None,
    }
}

/// The variable that Rust's allocator is marked with is read so that it is linked, and for nothing else.
fn reads_allocation_mark(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::Load)
        && instruction.operand(0).is_global()
        && is(&instruction.operand(0).name(), &Known::Note)
}

/// What becomes of an integer.
enum Use {
    /// It steers or counts.
    Harmless,
    /// The result is an integer made of it.
    Same,
    /// Its bits may be those of a float, or an address.
    Unknown,
}

/// Integer arithmetic, and what hands integers on.
fn is_integer_step(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Phi
            | Opcode::Select
            | Opcode::Freeze
            | Opcode::ExtractValue
            | Opcode::Add
            | Opcode::Sub
            | Opcode::Mul
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Shl
            | Opcode::LShr
            | Opcode::AShr
            | Opcode::Trunc
            | Opcode::ZExt
            | Opcode::SExt
    )
}

/// Whether an integer has room for a float that is computed with, or for an address. The 32 bits of locks and counters go through calls and memory,
/// and have to be left alone where no float has as few.
fn wide(value: Value<'_>) -> bool {
    let bits = value.ty().integer_width();
    if bits.is_none_or(|bits| bits >= 64) {
        return true;
    }
    let uses_short_floats = |function: Value<'_>| {
        let is_short = |of: Type<'_>| matches!(of.kind(), TypeKind::Float | TypeKind::Half);
        function.instructions().any(|instruction| {
            let mut operands = instruction.operands().into_iter();
            is_short(instruction.ty()) || operands.any(|operand| is_short(operand.ty()))
        })
    };
    let function = match value.kind() {
        ValueKind::Instruction => value.block().map(|block| block.function()),
        _ => None,
    };
    function.is_none_or(uses_short_floats)
}
