//! The one transformation that adds shadows to a program, for both modes of differentiation.
//!
//! The primal is copied; its values, operations and regions keep their ids, so that what the analyses found out applies to the copy. Each pointer into shadowed memory gets a
//! *companion* that points to the same place in the shadow, for each direction that is differentiated in: parameters, allocations, offsets, loaded pointers, results and carried values of regions.
//! What the program stores besides floats is stored to the shadow as well, so that a shadow structure has the shape of its primal.
//!
//! ```text
//! %p = load ptr %x align 8                         %p  = load ptr %x align 8
//! %r = if %c -> (ptr) {                            %p' = load ptr %x' align 8
//!   yield %p                                 →     %r, %r' = if %c -> (ptr, ptr) {
//! } else { yield %q }                                yield %p, %p'
//!                                                  } else { yield %q, %q' }
//! ```
//!
//! A [`Mode`] says what is done with them: forward mode keeps the tangents of floats beside them, and in their shadows (`forward.rs`); reverse mode notes a step of the reverse sweep for each operation
//! (`augment.rs`), during whose forward sweep floats of shadows are zero.
//!
//! Assumes: the module verifies. Regions that end in `trap` stay as they are: no derivative leaves them.
//!
//! - `shadows/values.rs`: which values have companions, and how these are computed,
//! - `shadows/memory.rs`: loads, allocation, copies and fills as far as both modes do the same,
//! - `shadows/constants.rs`: pointers that may lead to active memory or to memory of a constant argument,
//! - `shadows/calls.rs`: what a call needs of the derivative of its callee,
//! - `shadows/companions.rs`: the map from values to their companions.

mod calls;
mod companions;
mod constants;
mod memory;
mod values;

pub(crate) use calls::{Signature, floats_among};
pub(crate) use companions::{Companions, Lanes};

use crate::activity::Activities;
use crate::error::Error;
use crate::globals::{self, Use};
use crate::objects::{Bytes, Objects, ObjectsCache};
use crate::request::Activity;
use crate::shadowing;
use crate::statics::keeps_pointers_in_globals;
use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, GlobalId, Module, Op, OpData, Opcode, Region, Symbol,
    Value, ValueDef,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Results of analyses of the module, computed on demand and kept for the request.
#[derive(Default)]
pub(crate) struct Findings {
    pub objects: ObjectsCache,
    /// Whether all indirect calls were resolved (`resolved_calls.rs`), so that tables of derivatives serve nobody.
    pub resolved: bool,
    checks_pointers: Option<bool>,
}

impl Findings {
    /// Nothing yet.
    pub(crate) fn new(resolved: bool) -> Findings {
        Findings {
            resolved,
            ..Findings::default()
        }
    }
}

/// The session that makes the derivatives of one request.
pub(crate) trait Derivatives {
    /// The module.
    fn module(&self) -> &Module;

    /// The module, for adding to it, and the results of analyses.
    fn parts(&mut self) -> (&mut Module, &mut Findings);

    /// The table that stands for the derivatives of a function whose address is taken.
    fn function_table(&mut self, function: FunctionId) -> Result<GlobalId, Error>;

    /// What stands in shadows where a function's address is in the primal. Without a table it is the address itself, which stops a program that calls it (`stop_without_table`).
    fn shadow_of_function(&mut self, function: FunctionId) -> Result<Symbol, Error> {
        match self.parts().1.resolved {
            true => Ok(Symbol::Function(function)),
            false => self.function_table(function).map(Symbol::Global),
        }
    }

    /// The suffix of the shadow global's name in one direction, and the use of the shadow. `in_unions` says that the global may hold union words, or is copied to union words.
    fn shadow_in(&self, global: GlobalId, lane: usize, in_unions: bool) -> (String, Use);

    /// The points-to analysis of a function by itself, without the facts of a call site.
    fn own_objects(&mut self, function: FunctionId) -> Arc<Objects> {
        let (module, findings) = self.parts();
        findings.objects.get(module, function)
    }

    /// Whether a loaded pointer may lack a shadow although its target needs one: see `statics.rs`.
    fn checks_pointers(&mut self) -> bool {
        let (module, findings) = self.parts();
        let objects = &mut findings.objects;
        *findings
            .checks_pointers
            .get_or_insert_with(|| keeps_pointers_in_globals(module, objects))
    }

    /// The shadow of a global in one direction.
    fn shadow_of_global(
        &mut self,
        global: GlobalId,
        lane: usize,
        in_unions: bool,
    ) -> Result<Constant, Error> {
        let (suffix, purpose) = self.shadow_in(global, lane, in_unions);
        let module = self.parts().0;
        let (shadow, slots) = globals::add_shadow_global(module, global, &suffix, purpose)?;
        for slot in slots {
            let shadow = self.shadow_of_function(slot.function)?;
            globals::fill_slot(self.parts().0, slot, shadow);
        }
        Ok(Constant::Global(shadow))
    }
}

/// A mode of differentiation: what is done with shadows.
pub(crate) trait Mode: CallMode {
    /// Whether floats have companions, their tangents. If not, floats of shadows are zero, and an integer that may be a union word has a companion that tells whether it is a float: see `unions.rs`.
    const TANGENTS: bool;

    fn session(&self) -> &dyn Derivatives;
    fn session_mut(&mut self) -> &mut dyn Derivatives;

    /// The companion of an integer that has none and holds no address. `parts` says what its bytes are at its destination.
    fn companion_of_number(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        number: Value,
        parts: &[Bytes],
    ) -> Result<Value, Error>;

    /// Stops the program if a word that is an operand of integer arithmetic is an active float.
    fn check_number(b: &mut Builder<'_>, word: Value, companion: Value);

    /// Called before the operations of a region.
    fn enter(_: &mut Sweep<'_, Self>) {}

    /// Called after an operation that was repeated on companions.
    fn moved(_: &mut Sweep<'_, Self>, _: Op) {}

    /// Called after the regions of an operation.
    fn leave(_: &mut Sweep<'_, Self>, _: Op) {}

    /// Called at the end of the function.
    fn end(sweep: &mut Sweep<'_, Self>, terminator: Op) -> Result<(), Error>;

    /// Transforms an access to memory, or an operation that does more than move values.
    fn visit(sweep: &mut Sweep<'_, Self>, op: Op) -> Result<(), Error>;
}

/// The part of a mode that transforms calls.
pub(crate) trait CallMode: Sized {
    /// The function of a custom rule that replaces a call in this mode.
    fn rule(rule: &ferrozyme_ir::Rule) -> Option<FunctionId>;

    /// Transforms a call of a function with such a rule.
    fn visit_call_with_rule(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        callee: FunctionId,
        rule: FunctionId,
    ) -> Result<(), Error>;

    /// Transforms a call of a function with a body.
    fn visit_call_with_body(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        signature: Signature,
    ) -> Result<(), Error>;

    /// Transforms an indirect call, given the table of derivatives and the arguments with their companions.
    fn visit_call_of_table(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        table: Value,
        operands: SmallVec<[Value; 4]>,
    ) -> Result<(), Error>;
}

/// The transformation of one function, in progress.
pub(crate) struct Sweep<'a, M> {
    pub mode: M,
    /// The points-to analysis of the primal.
    pub objects: &'a Objects,
    /// The activity analysis of the primal.
    pub activities: &'a Activities,
    /// The activities of the arguments.
    pub args: &'a [Activity],
    /// The activities of the results.
    pub results: &'a [Activity],
    /// The arguments of the primal.
    pub arguments: Vec<Value>,
    /// The copy of the primal to which shadows are added.
    pub function: Function,
    pub companions: Companions,
    /// The insertion point.
    pub region: Region,
    /// Pointers that may be floats, and lack a shadow then.
    doubtful: FxHashSet<Value>,
    /// Pointers from other functions that become floats.
    disguised: FxHashSet<Value>,
    /// Where it was checked that a pointer is no float.
    checked: FxHashSet<(Region, Value)>,
    /// Whether the derivative may trap where the primal does not.
    pub may_stop: bool,
    /// Whether the derivative inspects addresses as integers where the primal does not.
    pub looks_at_addresses: bool,
}

impl<'a, M: Mode> Sweep<'a, M> {
    pub(crate) fn new(
        mode: M,
        function: Function,
        (objects, activities): (&'a Objects, &'a Activities),
        call: &'a Signature,
        directions: usize,
    ) -> Sweep<'a, M> {
        Sweep {
            mode,
            objects,
            activities,
            args: &call.args,
            results: &call.results,
            arguments: function.arguments().to_vec(),
            companions: Companions::new(directions),
            region: function.body(),
            function,
            doubtful: FxHashSet::default(),
            disguised: FxHashSet::default(),
            checked: FxHashSet::default(),
            may_stop: false,
            looks_at_addresses: false,
        }
    }

    /// Transforms the body. The parameters already have their companions.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        self.doubtful = self.find_doubtful();
        self.disguised = self.find_disguised();
        self.visit(self.function.body(), |sweep, terminator| {
            M::end(sweep, terminator)
        })
    }

    pub(crate) fn module(&self) -> &Module {
        self.mode.session().module()
    }

    pub(crate) fn module_mut(&mut self) -> &mut Module {
        self.mode.session_mut().parts().0
    }

    /// The number of directions.
    pub(crate) fn width(&self) -> usize {
        self.companions.width()
    }

    /// A builder at the insertion point, with the source location of `op`.
    pub(crate) fn builder(&mut self, op: Op) -> Builder<'_> {
        let location = self.function.ops[op].location;
        let mut builder = Builder::new(&mut self.function, self.region);
        builder.location = location;
        builder
    }

    /// Appends an operation of the primal.
    pub(crate) fn keep(&mut self, op: Op) {
        self.function.append(self.region, op);
    }

    pub(crate) fn error(&self, op: Op, refusal: Refusal) -> Error {
        let module = self.module();
        // By its own name, not by that of its derivative.
        Error::at(
            module,
            &module.functions[self.objects.function()],
            op,
            refusal,
        )
    }

    pub(crate) fn lost_shadow(&self, op: Op) -> Error {
        self.error(op, Refusal::LostShadow)
    }

    /// Adds companions after each parameter that `has_companions`, and returns the new parameters.
    pub(crate) fn add_companion_parameters(&mut self, has_companions: impl Fn(Activity) -> bool) {
        let body = self.function.body();
        let arguments = std::mem::take(&mut self.function.regions[body].args);
        for (argument, &activity) in arguments.into_iter().zip(self.args) {
            let index = self.function.regions[body].args.len() as u32;
            self.function.values[argument].def = ValueDef::Argument {
                region: body,
                index,
            };
            self.function.regions[body].args.push(argument);
            if has_companions(activity) {
                self.add_companion_arguments(body, argument);
            }
        }
    }

    fn add_companion_arguments(&mut self, region: Region, argument: Value) {
        let ty = self.function.ty(argument);
        let lanes: Lanes = (0..self.width())
            .map(|_| self.function.add_argument(region, ty))
            .collect();
        self.set_companions(argument, &lanes);
    }

    /// One new result of an operation for each direction, as companions of a value of the same type.
    pub(crate) fn add_companion_results(&mut self, op: Op, value: Value) {
        let ty = self.function.ty(value);
        let lanes: Lanes = (0..self.width())
            .map(|_| self.function.add_result(op, ty))
            .collect();
        self.set_companions(value, &lanes);
    }

    /// Transforms the operations of a region, and passes companions on at its terminator.
    fn visit(
        &mut self,
        region: Region,
        end: impl FnOnce(&mut Self, Op) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.function.ends_in_trap(region) {
            return Ok(());
        }
        let outside = std::mem::replace(&mut self.region, region);
        let mut ops = self.function.take_ops(region);
        let terminator = ops.pop().expect("a region ends in a terminator");
        M::enter(self);
        for op in ops {
            self.visit_op(op)?;
        }
        self.check_followed(terminator);
        self.check_passed(terminator);
        end(self, terminator)?;
        self.keep(terminator);
        self.region = outside;
        Ok(())
    }

    fn visit_op(&mut self, op: Op) -> Result<(), Error> {
        if self.activities.needs_numbers(op) {
            for word in self.function.ops[op].operands.clone() {
                self.check_number(op, word);
            }
        }
        self.check_moved(op);
        self.check_followed(op);
        self.check_passed(op);
        self.check_disguised(op);
        match self.function.ops[op].opcode {
            Opcode::Call => self.visit_call(op),
            Opcode::CallIndirect => self.visit_indirect_call(op),
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => self.visit_structured(op),
            _ => match self.moved_operands(op) {
                Some(moved) => self.visit_move(op, moved),
                None => M::visit(self, op),
            },
        }
    }

    /// For an operation that only moves values: the operands whose companions determine that of the result.
    fn moved_operands(&self, op: Op) -> Option<Range<usize>> {
        let OpData {
            opcode,
            operands,
            results,
            ..
        } = &self.function.ops[op];
        let &result = results.first()?;
        // Sums and the like of floats have rules.
        let moves = || self.has_companions(result) && !self.function.ty(result).is_float();
        match opcode {
            // The difference of two addresses is an integer, although it may be computed from union words.
            Opcode::Offset if self.has_shadow(result) => {
                match self.has_shadow(self.function.ops[op].base()) {
                    true => Some(0..1),
                    false => Some(0..operands.len()),
                }
            }
            Opcode::Bitcast | Opcode::Exclusive if self.has_companions(result) => Some(0..1),
            Opcode::Ptrtoint | Opcode::Inttoptr | Opcode::Splat | Opcode::Extract if moves() => {
                Some(0..1)
            }
            Opcode::Insert | Opcode::Shuffle if moves() => Some(0..2),
            Opcode::Select if moves() => Some(1..3),
            // Integers that hold addresses are computed with as addresses.
            Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or | Opcode::TruncInt => {
                let moves = self.has_shadow(result)
                    || self.is_part(result)
                    || self.transports_shadow(result);
                let is_shape = !M::TANGENTS && self.is_union(result);
                (moves || is_shape).then_some(0..operands.len())
            }
            _ => None,
        }
    }

    /// Repeats an operation on the companions of its operands `moved`, which yields those of its result.
    fn visit_move(&mut self, op: Op, moved: Range<usize>) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let result = data.results[0];
        let ty = self.function.ty(result);
        let from = &data.operands[moved.clone()];
        let carries = |&operand: &Value| {
            let ty = self.function.ty(operand);
            let is_shape = !M::TANGENTS && ty.is_float();
            ty.is_ptr() || is_shape || self.has_companions_now(operand)
        };
        let is_hidden =
            self.objects.may_be_hidden(result) && self.companions.get(from[0]).is_none();
        // Where no operand has companions, the result has none.
        if is_hidden || !from.iter().any(carries) {
            return Ok(());
        }
        let mut columns: SmallVec<[Lanes; 2]> = SmallVec::new();
        for &operand in from {
            if shadowing::is_moved_part(&self.function, op, operand)
                && let Some(lanes) = self.companions_of_part(op, operand)
            {
                columns.push(lanes);
                continue;
            }
            let alike = match self.function.ty(operand) == ty {
                true => result,
                false => operand,
            };
            let parts = self.objects.parts_of_value(alike);
            let lanes = self.companions_of(op, operand, &parts)?;
            let calculates = matches!(
                data.opcode,
                Opcode::Offset | Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or
            );
            columns.push(match calculates {
                true => self.without_marks(op, operand, lanes),
                false => lanes,
            });
        }
        let mut lanes = Lanes::new();
        for lane in 0..self.width() {
            if data.opcode == Opcode::Exclusive {
                // What was tested of the memory need not hold of its shadow.
                lanes.push(columns[0][lane]);
                continue;
            }
            let mut operands = data.operands.clone();
            for (operand, column) in operands[moved.clone()].iter_mut().zip(&columns) {
                *operand = column[lane];
            }
            lanes.push(self.repeat(op, &operands));
        }
        self.set_companions(result, &lanes);
        M::moved(self, op);
        Ok(())
    }

    /// The same operation on other operands.
    fn repeat(&mut self, op: Op, operands: &[Value]) -> Value {
        let data = self.function.ops[op].clone();
        let ty = self.function.ty(data.results[0]);
        let copy = self
            .builder(op)
            .op(data.opcode, operands, data.payload, &[ty]);
        self.function.ops[copy].flags = data.flags;
        self.function.result(copy)
    }

    /// Whether a value has companions, or is computed from a part of a word with companions.
    fn has_companions_now(&self, value: Value) -> bool {
        let moved = self
            .function
            .def_op(value)
            .map(|(op, _)| &self.function.ops[op]);
        let moved = moved.filter(|data| shadowing::moves_parts(data.opcode));
        self.companions.get(value).is_some()
            || moved.is_some_and(|data| self.has_companions_now(data.operands[0]))
    }

    /// The companions of an extension or shift of a part of a word: the same operations on the companions of the part.
    fn companions_of_part(&mut self, op: Op, value: Value) -> Option<Lanes> {
        if let Some(lanes) = self.companions.get(value) {
            return Some(Lanes::from_slice(lanes));
        }
        let (source, _) = self.function.def_op(value)?;
        let data = self.function.ops[source].clone();
        if !shadowing::moves_parts(data.opcode) {
            return None;
        }
        let parts = self.companions_of_part(op, data.operands[0])?;
        let ty = self.function.ty(value);
        let mut b = self.builder(op);
        let moved = parts.iter().map(|&part| {
            let mut operands = data.operands.clone();
            operands[0] = part;
            b.value(data.opcode, &operands, data.payload.clone(), ty)
        });
        Some(moved.collect())
    }

    /// Adds the companions of values that flow into and out of regions.
    fn visit_structured(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        let carried: SmallVec<[Value; 8]> = match is_loop {
            true => SmallVec::from_slice(self.function.carried(op)),
            false => SmallVec::new(),
        };
        // An integer may hold an address on entry to the loop, and none on exit.
        let positions: SmallVec<[usize; 8]> = (0..data.results.len())
            .filter(|&position| {
                let carried = carried.get(position);
                self.has_companions(data.results[position])
                    || carried.is_some_and(|&carried| self.has_companions(carried))
            })
            .collect();
        if is_loop {
            // The body must know the companions of carried values before it is visited.
            for &position in &positions {
                let parts = self.objects.parts_of_value(carried[position]);
                let lanes = self.companions_of(op, data.initial()[position], &parts)?;
                self.function.ops[op].operands.extend(lanes);
                self.add_companion_arguments(data.regions[0], carried[position]);
            }
        }
        for &inner in &data.regions {
            self.visit(inner, |sweep, terminator| {
                let values = sweep.function.ops[terminator].values().to_vec();
                for &position in &positions {
                    let value = values[position];
                    let parts = sweep.objects.parts_of_value(data.results[position]);
                    let lanes = sweep.companions_of(terminator, value, &parts)?;
                    sweep.function.ops[terminator].operands.extend(lanes);
                }
                Ok(())
            })?;
        }
        for &position in &positions {
            self.add_companion_results(op, data.results[position]);
        }
        M::leave(self, op);
        self.keep(op);
        Ok(())
    }
}
