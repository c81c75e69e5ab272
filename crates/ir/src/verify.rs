//! Checks that a module is well-formed.
//!
//! Everything else may rely on what is checked here: passes, differentiation and the interpreter assume a module that
//! verifies, and every pass leaves one. The checks take time linear in the size of the module.
//!
//! The invariants of the IR:
//!
//! Structure
//! - Every index (value, operation, region, function, global, location, file) exists.
//! - Each operation that the body reaches stands in exactly one region, once; each region is held by exactly one
//!   operation, once, or is the body.
//! - Regions nest at most [`MAX_NESTING`] deep.
//! - Every region has operations. The last one, and no other, is a terminator: `return` in the body, `yield` in the regions of
//!   `if`, `switch` and `for`, `again` in the region of `loop`, or `trap` in any of them.
//! - `if` holds two regions, `for` and `loop` one, `switch` one for each case and one more; other operations hold none.
//!
//! Values
//! - A value is where its definition says: result `index` of `op`, or argument `index` of `region`.
//! - An operand is a constant, or defined before: by an earlier operation of the same region, as an argument of the region, or
//!   by the same two in a region around it (where the operation that holds the inner region counts as later).
//! - Integers have 1 to 128 bits.
//! - Constants fit their type: no bits above the width, as many lanes as the type has, addresses are of type `ptr`.
//! - A range is one of integers, not empty, and within the limits of the type.
//!
//! Operations
//! - Operands, results and payload are those that the operation's [`Form`] or, for special ones, its row in the table
//!   of [`Opcode`] asks for.
//! - `nsw` and `nuw` stand on `add`, `sub`, `mul`, `shl` and `trunc_int`, `exact` on divisions and right shifts, `inbounds` and `nuw` on `offset`.
//! - What a region yields, what it carries, its arguments, and the results of the operation that holds it agree in number and type.
//! - `for`: start, end, step and counter have one integer type; a constant step is not zero.
//! - `switch`: each case has at least one value, the values fit the type, read as signed, and none occurs twice.
//! - Calls have the arguments and results of their callee, a trap that calls has its arguments. Returned values have the types of the function's results.
//! - A call between functions of different levels of the processor passes no vectors of `i1` or of more than 16 bytes, for which the calling convention differs.
//!
//! Modules
//! - Functions and globals have names, no two the same.
//! - The arguments of a body have the types of the parameters. Facts about pointers stand on pointers.
//! - The fields of a layout are sorted, do not overlap and lie within the stride; only pointers have pointees.
//! - A global holds no more bytes than its size; its relocations are sorted, do not overlap and lie within it.
//! - Rules have the signatures that [`Rule`](crate::Rule) describes.
//! - A location was inlined to one that comes before it in the table.

mod module;
mod operation;

use crate::Range;
use crate::function::{Constant, Function, Op, OpData, Region, Value, ValueDef, ones, sign_extend};
use crate::module::{FunctionId, Module};
use crate::opcode::{Form, Opcode};
use crate::print::print_op;
use crate::types::{Scalar, Type};
use cranelift_entity::{EntitySet, SecondaryMap};
use std::fmt;

/// How deep regions may nest: the depth to which passes may recurse.
pub const MAX_NESTING: usize = 1000;

/// An error in a module, and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// The message.
    pub message: String,
    /// In which function, without `@`; none for what concerns the module as a whole.
    pub function: Option<String>,
    /// With which operation.
    pub op: Option<Op>,
    /// That operation, as the text form has it.
    pub operation: Option<String>,
    /// Its source location.
    pub location: Option<String>,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "@{function}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(operation) = &self.operation {
            write!(f, "\n  in: {operation}")?;
        }
        if let Some(location) = &self.location {
            write!(f, "\n  at {location}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyError {}

/// Checks a module: everything in the list above. The first error of each function and of each other part is reported.
pub fn verify_module(module: &Module) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    module::check_module(module, &mut errors);
    for id in module.functions.keys() {
        errors.extend(verify_function(module, id).err());
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Checks one function, assuming that the signatures of the others are right. Returns the first error.
pub fn verify_function(module: &Module, id: FunctionId) -> Result<(), VerifyError> {
    let Some(function) = module.functions.get(id) else {
        return Err(VerifyError {
            message: format!("there is no function {id}"),
            function: None,
            op: None,
            operation: None,
            location: None,
        });
    };
    let result = module::check_signature(function)
        .map_err(Problem::plain)
        .and_then(|()| match function.body {
            Some(body) => Walk::new(module, function).walk(body),
            None => Ok(()),
        });
    result.map_err(|problem| {
        let op = problem.op.filter(|&op| function.ops.is_valid(op));
        let location = op
            .and_then(|op| function.ops[op].location)
            .filter(|&location| module.locations.is_valid(location));
        VerifyError {
            message: problem.message,
            function: Some(function.name.clone()),
            op,
            operation: op.map(|op| print_op(module, function, op)),
            location: location.map(|location| module.describe_location(location)),
        }
    })
}

/// An error before it is dressed up for people.
struct Problem {
    op: Option<Op>,
    message: String,
}

impl Problem {
    fn plain(message: String) -> Problem {
        Problem { op: None, message }
    }

    fn at(op: Op, message: impl Into<String>) -> Problem {
        Problem {
            op: Some(op),
            message: message.into(),
        }
    }
}

/// A walk through the body in the order of the text, which tracks the visible values.
struct Walk<'a> {
    module: &'a Module,
    function: &'a Function,
    levels: Vec<Level>,
    /// The values that can be seen at this point, constants aside.
    visible: SecondaryMap<Value, bool>,
    /// The same values in the order in which they became visible.
    defined: Vec<Value>,
    checked_constants: EntitySet<Value>,
    seen_ops: EntitySet<Op>,
    seen_regions: EntitySet<Region>,
}

/// An open region at this point.
struct Level {
    region: Region,
    /// The operation that holds it, and which of its regions it is.
    holder: Option<(Op, usize)>,
    next: usize,
    /// How many values were visible before.
    outer: usize,
}

impl<'a> Walk<'a> {
    fn new(module: &'a Module, function: &'a Function) -> Walk<'a> {
        Walk {
            module,
            function,
            levels: Vec::new(),
            visible: SecondaryMap::with_capacity(function.values.len()),
            defined: Vec::new(),
            checked_constants: EntitySet::with_capacity(function.values.len()),
            seen_ops: EntitySet::with_capacity(function.ops.len()),
            seen_regions: EntitySet::with_capacity(function.regions.len()),
        }
    }

    fn walk(mut self, body: Region) -> Result<(), Problem> {
        self.enter(body, None)?;
        let args = &self.function.regions[body].args;
        let params = self.function.params.iter().map(|param| param.ty);
        if !params.eq(args.iter().map(|&value| self.function.ty(value))) {
            return Err(Problem::plain(
                "the arguments of the body do not have the types of the parameters".to_owned(),
            ));
        }
        while let Some(level) = self.levels.last_mut() {
            let ops = &self.function.regions[level.region].ops;
            if let Some(&op) = ops.get(level.next) {
                level.next += 1;
                let last = level.next == ops.len();
                self.visit(op, last)?;
            } else {
                self.leave()?;
            }
        }
        Ok(())
    }

    fn enter(&mut self, region: Region, holder: Option<(Op, usize)>) -> Result<(), Problem> {
        let op = holder.map(|(op, _)| op);
        let problem = |message: String| Err(Problem { op, message });
        let Some(data) = self.function.regions.get(region) else {
            return problem(format!("there is no region {region}"));
        };
        if !self.seen_regions.insert(region) {
            return problem(format!("{region} is held more than once"));
        }
        if data.ops.is_empty() {
            return problem(match holder {
                Some((_, index)) => format!("region {index} of the operation is empty"),
                None => "the body is empty".to_owned(),
            });
        }
        if self.levels.len() >= MAX_NESTING {
            return problem(format!("regions nest more than {MAX_NESTING} deep"));
        }
        self.levels.push(Level {
            region,
            holder,
            next: 0,
            outer: self.defined.len(),
        });
        for (index, &argument) in data.args.iter().enumerate() {
            let def = ValueDef::Argument {
                region,
                index: index as u32,
            };
            self.define(argument, &def)
                .map_err(|message| Problem { op, message })?;
        }
        Ok(())
    }

    /// Continues after a region: with the next region of the same operation, or after the operation.
    fn leave(&mut self) -> Result<(), Problem> {
        let Some(level) = self.levels.pop() else {
            return Ok(());
        };
        for value in self.defined.drain(level.outer..) {
            self.visible[value] = false;
        }
        let Some((op, index)) = level.holder else {
            return Ok(());
        };
        match self.function.ops[op].regions.get(index + 1) {
            Some(&region) => self.enter(region, Some((op, index + 1))),
            None => self.define_results(op),
        }
    }

    fn visit(&mut self, op: Op, last: bool) -> Result<(), Problem> {
        let Some(data) = self.function.ops.get(op) else {
            return Err(Problem::plain(format!("there is no operation {op}")));
        };
        if !self.seen_ops.insert(op) {
            return Err(Problem::at(
                op,
                "the operation stands in more than one place",
            ));
        }
        self.check(op, data, last)
            .map_err(|message| Problem::at(op, message))?;
        match data.regions.first() {
            Some(&region) => self.enter(region, Some((op, 0))),
            None => self.define_results(op),
        }
    }

    /// Checks an operation except for its regions.
    fn check(&mut self, op: Op, data: &OpData, last: bool) -> Result<(), String> {
        if let Some(location) = data.location
            && !self.module.locations.is_valid(location)
        {
            return Err(format!("there is no location {location}"));
        }
        for (index, &operand) in data.operands.iter().enumerate() {
            self.check_operand(operand)
                .map_err(|what| format!("operand {index}: {what}"))?;
        }
        for &result in &data.results {
            if !self.function.values.is_valid(result) {
                return Err(format!("there is no value {result}"));
            }
        }
        for &region in &data.regions {
            if !self.function.regions.is_valid(region) {
                return Err(format!("there is no region {region}"));
            }
            for &argument in &self.function.regions[region].args {
                if !self.function.values.is_valid(argument) {
                    return Err(format!("there is no value {argument}"));
                }
            }
        }
        operation::check_operation(self.module, self.function, op)?;
        let terminates = data.opcode.form() == Form::Terminator;
        match (terminates, last) {
            (true, true) => self.check_terminator(data),
            (true, false) => Err("a terminator stands before the end of its region".to_owned()),
            (false, true) => {
                Err("a region ends in an operation that is not a terminator".to_owned())
            }
            (false, false) => Ok(()),
        }
    }

    fn check_operand(&mut self, value: Value) -> Result<(), String> {
        let Some(data) = self.function.values.get(value) else {
            return Err(format!("there is no value {value}"));
        };
        match &data.def {
            ValueDef::Constant(constant) => {
                if self.checked_constants.insert(value) {
                    check_type(data.ty)?;
                    check_constant(self.module, data.ty, constant)?;
                }
                Ok(())
            }
            _ if self.visible[value] => Ok(()),
            ValueDef::Result { op, .. } if !self.seen_ops.contains(*op) => Err(
                "the value is used before it is defined, or its operation was removed".to_owned(),
            ),
            ValueDef::Result { op, .. }
                if self
                    .levels
                    .iter()
                    .any(|level| level.holder.is_some_and(|(holder, _)| holder == *op)) =>
            {
                Err("the value is a result of the operation around this one".to_owned())
            }
            _ => Err("the value is defined in a region that does not enclose this one".to_owned()),
        }
    }

    /// Checks that the end of a region fits the operation that holds it.
    fn check_terminator(&self, data: &OpData) -> Result<(), String> {
        if data.opcode == Opcode::Trap {
            return Ok(());
        }
        let holder = self.levels.last().and_then(|level| level.holder);
        let (wanted, types): (Opcode, Vec<Type>) = match holder {
            None => (Opcode::Return, self.function.results.clone()),
            Some((op, _)) => {
                let holder = &self.function.ops[op];
                let wanted = match holder.opcode {
                    Opcode::Loop => Opcode::Again,
                    _ => Opcode::Yield,
                };
                let types = holder.results.iter().map(|&value| self.function.ty(value));
                (wanted, types.collect())
            }
        };
        if data.opcode != wanted {
            let place = holder.map_or("the body", |(op, _)| self.function.ops[op].opcode.name());
            return Err(format!(
                "a region of {place} ends in {wanted} or trap, not in {}",
                data.opcode
            ));
        }
        operation::check_types(
            self.function,
            data.values(),
            &types,
            "values are handed on",
            "operand",
        )
    }

    fn define_results(&mut self, op: Op) -> Result<(), Problem> {
        for (index, &result) in self.function.ops[op].results.iter().enumerate() {
            let def = ValueDef::Result {
                op,
                index: index as u32,
            };
            self.define(result, &def)
                .map_err(|message| Problem::at(op, message))?;
        }
        Ok(())
    }

    fn define(&mut self, value: Value, def: &ValueDef) -> Result<(), String> {
        let Some(data) = self.function.values.get(value) else {
            return Err(format!("there is no value {value}"));
        };
        if data.def != *def {
            return Err(format!(
                "{value} is defined here as {def:?}, but says of itself {:?}",
                data.def
            ));
        }
        check_type(data.ty)?;
        if let Some(range) = &data.range {
            check_range(data.ty, range)?;
        }
        self.visible[value] = true;
        self.defined.push(value);
        Ok(())
    }
}

fn check_type(ty: Type) -> Result<(), String> {
    match ty.scalar() {
        Scalar::Int(bits) if !(1..=128).contains(&bits) => {
            Err(format!("{ty} is not a type: integers have 1 to 128 bits"))
        }
        _ => Ok(()),
    }
}

fn check_constant(module: &Module, ty: Type, constant: &Constant) -> Result<(), String> {
    let fits = |raw: u128| {
        if raw & !ones(ty.scalar().bits()) == 0 {
            Ok(())
        } else {
            Err(format!(
                "the constant {raw:#x} does not fit into {}",
                ty.lane_type()
            ))
        }
    };
    match constant {
        Constant::Bits(raw) => fits(*raw),
        Constant::Lanes(lanes) => {
            if !ty.is_vector() || lanes.len() != usize::from(ty.lanes()) {
                return Err(format!(
                    "a constant of {} lanes does not fit {ty}",
                    lanes.len()
                ));
            }
            lanes.iter().try_for_each(|&lane| fits(lane))
        }
        Constant::Undef => Ok(()),
        Constant::Global(_) | Constant::Function(_) if ty != Type::PTR => {
            Err(format!("an address does not have type {ty}"))
        }
        Constant::Global(global) if !module.globals.is_valid(*global) => {
            Err(format!("there is no global {global}"))
        }
        Constant::Function(function) if !module.functions.is_valid(*function) => {
            Err(format!("there is no function {function}"))
        }
        Constant::Global(_) | Constant::Function(_) => Ok(()),
    }
}

fn check_range(ty: Type, range: &Range) -> Result<(), String> {
    let Scalar::Int(bits) = ty.scalar() else {
        return Err(format!("a range stands on a value of type {ty}"));
    };
    let fits = |value: i128| sign_extend(value as u128, u32::from(bits)) == value;
    if range.min > range.max {
        return Err(format!("the range {range} is empty"));
    }
    if !fits(range.min) || !fits(range.max) {
        return Err(format!("the range {range} leaves the limits of {ty}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
