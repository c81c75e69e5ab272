//! Checks of single operations: number and types of operands and results, payload, flags, regions.
//!
//! All indices that occur are known to exist when these run; what a value is and where it is visible is checked elsewhere.

use crate::facts::Flags;
use crate::function::{Function, Op, OpData, Payload, Value, sign_extend};
use crate::module::Module;
use crate::opcode::{Form, Opcode};
use crate::types::{Scalar, Type};
use rustc_hash::FxHashSet;

/// The result of a check: the error, if any.
type Check = Result<(), String>;

/// Checks one operation by itself.
pub(super) fn check_operation(module: &Module, function: &Function, op: Op) -> Check {
    let data = &function.ops[op];
    check_payload(data)?;
    check_flags(data)?;
    let shape = Shape { function, data };
    match data.opcode.form() {
        Form::Special => check_special(module, &shape),
        Form::Structured => check_structured(&shape),
        Form::Terminator => check_terminator(module, &shape),
        form => check_form(&shape, form),
    }?;
    if data.opcode.form() != Form::Structured && !data.regions.is_empty() {
        return Err(format!("{} holds no regions", data.opcode));
    }
    Ok(())
}

/// Checks that values have these types, one by one.
pub(super) fn check_types(
    function: &Function,
    values: &[Value],
    types: &[Type],
    counted: &str,
    called: &str,
) -> Check {
    if values.len() != types.len() {
        return Err(format!(
            "{} {counted} where there should be {}",
            values.len(),
            types.len()
        ));
    }
    for (index, (&value, &wanted)) in values.iter().zip(types).enumerate() {
        let ty = function.ty(value);
        if ty != wanted {
            return Err(format!("{called} {index} has type {ty}, not {wanted}"));
        }
    }
    Ok(())
}

/// An operation and the types of its operands and results.
struct Shape<'a> {
    function: &'a Function,
    data: &'a OpData,
}

impl Shape<'_> {
    /// Checks how many operands and results there are.
    fn counts(&self, operands: usize, results: usize) -> Check {
        let opcode = self.data.opcode;
        let (given, made) = (self.data.operands.len(), self.data.results.len());
        if given != operands {
            return Err(format!("{opcode} takes {operands} operands, not {given}"));
        }
        if made != results {
            return Err(format!("{opcode} gives {results} results, not {made}"));
        }
        Ok(())
    }

    /// Checks that the operands are those that the table names, and the number of results.
    fn named(&self, results: usize) -> Check {
        self.counts(self.data.opcode.operand_names().len(), results)
    }

    /// The type of an operand; its existence was checked.
    fn operand(&self, index: usize) -> Type {
        self.function.ty(self.data.operands[index])
    }

    /// The type of a result; its existence was checked.
    fn result(&self, index: usize) -> Type {
        self.function.ty(self.data.results[index])
    }

    fn operand_is(&self, index: usize, wanted: Type) -> Check {
        let ty = self.operand(index);
        require(ty == wanted, || {
            format!("operand {index} has type {ty}, not {wanted}")
        })
    }

    fn result_is(&self, index: usize, wanted: Type) -> Check {
        let ty = self.result(index);
        require(ty == wanted, || {
            format!("result {index} has type {ty}, not {wanted}")
        })
    }

    /// Checks that all operands have the type of the first.
    fn operands_agree(&self) -> Check {
        (1..self.data.operands.len()).try_for_each(|index| self.operand_is(index, self.operand(0)))
    }

    fn floats(&self) -> Check {
        let ty = self.operand(0);
        require(ty.is_float(), || {
            format!("{} works on floats, not on {ty}", self.data.opcode)
        })
    }

    fn ints(&self) -> Check {
        let ty = self.operand(0);
        require(ty.is_int(), || {
            format!("{} works on integers, not on {ty}", self.data.opcode)
        })
    }
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(message()) }
}

fn check_payload(data: &OpData) -> Check {
    use Payload as P;
    require(data.opcode.has_payload(&data.payload), || {
        format!(
            "the payload {:?} does not belong to {}",
            data.payload, data.opcode
        )
    })?;
    match data.payload {
        P::Align(align)
        | P::Alloc { align, .. }
        | P::Free { align, .. }
        | P::Contract { align, .. } => check_alignment(align),
        _ => Ok(()),
    }
}

/// LLVM's largest alignment is 2³².
pub(super) fn check_alignment(align: crate::Alignment) -> Check {
    require(align.bytes() <= 1 << 32, || {
        format!("the alignment {} is larger than 2^32", align.bytes())
    })
}

fn check_flags(data: &OpData) -> Check {
    let allowed = match data.opcode {
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Shl | Opcode::TruncInt => {
            Flags::NSW.union(Flags::NUW)
        }
        Opcode::Sdiv | Opcode::Udiv | Opcode::Lshr | Opcode::Ashr => Flags::EXACT,
        Opcode::Offset => Flags::INBOUNDS.union(Flags::NUW),
        Opcode::For | Opcode::Loop => Flags::PARALLEL,
        _ => Flags::NONE,
    };
    // Floating-point flags are permissions: where there is nothing to permit, they say nothing.
    let promises = Flags::NSW
        .union(Flags::NUW)
        .union(Flags::EXACT)
        .union(Flags::INBOUNDS)
        .union(Flags::PARALLEL);
    let given = data.flags.intersection(promises);
    require(allowed.contains(given), || {
        format!("the flags {given} do not belong to {}", data.opcode)
    })
}

fn check_form(shape: &Shape, form: Form) -> Check {
    let (operands, results) = match form {
        Form::IntUnary | Form::FloatUnary | Form::FloatToExponent | Form::Cast => (1, 1),
        Form::FloatSplit | Form::FloatPair => (1, 2),
        Form::FloatTernary => (3, 1),
        _ => (2, 1),
    };
    shape.counts(operands, results)?;
    let ty = shape.operand(0);
    let exponent = ty.with_scalar(Scalar::Int(32));
    let truth = ty.with_scalar(Scalar::Int(1));
    match form {
        Form::IntUnary | Form::IntBinary => {
            shape.ints()?;
            shape.operands_agree()?;
            shape.result_is(0, ty)?;
            let swaps = shape.data.opcode == Opcode::Bswap;
            require(!swaps || ty.scalar().bits().is_multiple_of(16), || {
                format!("bswap works on widths that are multiples of 16, not on {ty}")
            })
        }
        Form::FloatUnary | Form::FloatBinary | Form::FloatTernary => {
            shape.floats()?;
            shape.operands_agree()?;
            shape.result_is(0, ty)
        }
        Form::FloatAndInt => {
            shape.floats()?;
            shape.operand_is(1, exponent)?;
            shape.result_is(0, ty)
        }
        Form::FloatToExponent => {
            shape.floats()?;
            shape.result_is(0, exponent)
        }
        Form::FloatSplit => {
            shape.floats()?;
            shape.result_is(0, ty)?;
            shape.result_is(1, exponent)
        }
        Form::FloatPair => {
            shape.floats()?;
            shape.result_is(0, ty)?;
            shape.result_is(1, ty)
        }
        Form::IntCompare => {
            require(ty.is_int() || ty.is_ptr(), || {
                format!("icmp works on integers and pointers, not on {ty}")
            })?;
            shape.operands_agree()?;
            shape.result_is(0, truth)
        }
        Form::FloatCompare => {
            shape.floats()?;
            shape.operands_agree()?;
            shape.result_is(0, truth)
        }
        Form::Cast => check_cast(shape),
        Form::Special | Form::Structured | Form::Terminator => Ok(()),
    }
}

fn check_cast(shape: &Shape) -> Check {
    let opcode = shape.data.opcode;
    let (from, to) = (shape.operand(0), shape.result(0));
    let (narrower, wider) = (
        to.scalar().bits() < from.scalar().bits(),
        to.scalar().bits() > from.scalar().bits(),
    );
    let total = |ty: Type| ty.scalar().bits() * u32::from(ty.lanes());
    let same_shape = from.with_scalar(to.scalar()) == to;
    let allowed = match opcode {
        Opcode::TruncInt => same_shape && from.is_int() && to.is_int() && narrower,
        Opcode::Zext | Opcode::Sext => same_shape && from.is_int() && to.is_int() && wider,
        Opcode::Fptrunc => same_shape && from.is_float() && to.is_float() && narrower,
        Opcode::Fpext => same_shape && from.is_float() && to.is_float() && wider,
        Opcode::Fptosi | Opcode::Fptoui | Opcode::FptosiSat | Opcode::FptouiSat => {
            same_shape && from.is_float() && to.is_int()
        }
        Opcode::Sitofp | Opcode::Uitofp => same_shape && from.is_int() && to.is_float(),
        Opcode::Ptrtoint => same_shape && from.is_ptr() && to.is_int(),
        Opcode::Inttoptr => same_shape && from.is_int() && to.is_ptr(),
        // Between addresses and other things the casts above say what happens.
        _ => total(from) == total(to) && from.is_ptr() == to.is_ptr(),
    };
    require(allowed, || {
        format!("{opcode} does not go from {from} to {to}")
    })
}

fn check_special(module: &Module, shape: &Shape) -> Check {
    let data = shape.data;
    match data.opcode {
        Opcode::Select => {
            shape.named(1)?;
            let ty = shape.operand(1);
            let condition = shape.operand(0);
            let lanewise = ty.is_vector() && condition == ty.with_scalar(Scalar::Int(1));
            require(condition == Type::I1 || lanewise, || {
                format!("the condition has type {condition}, not i1")
            })?;
            shape.operand_is(2, ty)?;
            shape.result_is(0, ty)
        }
        Opcode::Splat => {
            shape.named(1)?;
            vector(shape.result(0))?;
            shape.operand_is(0, shape.result(0).lane_type())
        }
        Opcode::Extract => {
            shape.named(1)?;
            vector(shape.operand(0))?;
            shape.operand_is(1, Type::I64)?;
            shape.result_is(0, shape.operand(0).lane_type())
        }
        Opcode::Insert => {
            shape.named(1)?;
            let ty = shape.operand(0);
            vector(ty)?;
            shape.operand_is(1, ty.lane_type())?;
            shape.operand_is(2, Type::I64)?;
            shape.result_is(0, ty)
        }
        Opcode::Shuffle => check_shuffle(shape),
        Opcode::ReduceFadd => {
            shape.named(1)?;
            vector(shape.operand(0))?;
            shape.floats()?;
            shape.result_is(0, shape.operand(0).lane_type())
        }
        Opcode::Load => {
            shape.named(1)?;
            shape.operand_is(0, Type::PTR)
        }
        Opcode::Store => {
            shape.named(0)?;
            shape.operand_is(1, Type::PTR)
        }
        Opcode::Offset => {
            shape.named(1)?;
            shape.operand_is(0, Type::PTR)?;
            shape.operand_is(1, Type::I64)?;
            shape.result_is(0, Type::PTR)
        }
        Opcode::Exclusive => {
            shape.named(1)?;
            shape.operand_is(0, Type::PTR)?;
            shape.operand_is(1, Type::I64)?;
            shape.result_is(0, Type::PTR)
        }
        Opcode::Stack | Opcode::Alloc => {
            shape.named(1)?;
            shape.operand_is(0, Type::I64)?;
            shape.result_is(0, Type::PTR)
        }
        Opcode::Free => {
            let sized = data.operands.len() == 2;
            shape.counts(if sized { 2 } else { 1 }, 0)?;
            shape.operand_is(0, Type::PTR)?;
            if sized {
                shape.operand_is(1, Type::I64)?;
            }
            Ok(())
        }
        Opcode::Copy | Opcode::Move | Opcode::Fill => {
            shape.named(0)?;
            let second = if data.opcode == Opcode::Fill {
                Type::I8
            } else {
                Type::PTR
            };
            shape.operand_is(0, Type::PTR)?;
            shape.operand_is(1, second)?;
            shape.operand_is(2, Type::I64)
        }
        Opcode::AtomicAdd => {
            shape.named(1)?;
            shape.operand_is(0, Type::PTR)?;
            let ty = shape.operand(1);
            require(!ty.is_vector() && !ty.is_ptr(), || {
                format!("atomic_add works on single integers and floats, not on {ty}")
            })?;
            shape.result_is(0, ty)
        }
        Opcode::Contract => check_contract(shape),
        Opcode::Call => check_call(module, shape),
        Opcode::CallIndirect => {
            require(!data.operands.is_empty(), || {
                "call_indirect takes the address of a function".to_owned()
            })?;
            shape.operand_is(0, Type::PTR)?;
            let Payload::Results(types) = &data.payload else {
                return Ok(());
            };
            check_types(shape.function, &data.results, types, "results", "result")
        }
        _ => Ok(()),
    }
}

fn vector(ty: Type) -> Check {
    require(ty.is_vector(), || format!("{ty} is not a vector"))
}

fn check_shuffle(shape: &Shape) -> Check {
    shape.named(1)?;
    let ty = shape.operand(0);
    vector(ty)?;
    shape.operands_agree()?;
    let Payload::Lanes(lanes) = &shape.data.payload else {
        return Ok(());
    };
    let count = u16::try_from(lanes.len()).unwrap_or(0);
    require(count > 0, || {
        format!("a shuffle of {} lanes gives no vector", lanes.len())
    })?;
    let available = 2 * u32::from(ty.lanes());
    if let Some(lane) = lanes.iter().find(|&&lane| u32::from(lane) >= available) {
        return Err(format!("there is no lane {lane} in two vectors {ty}"));
    }
    shape.result_is(0, Type::vector_of(ty.scalar(), count))
}

fn check_contract(shape: &Shape) -> Check {
    let Payload::Contract { indices, .. } = &shape.data.payload else {
        return Ok(());
    };
    let extents: usize = indices.iter().map(|class| 1 + class.strides()).sum();
    shape.counts(4 + extents, 0)?;
    for array in 0..3 {
        shape.operand_is(array, Type::PTR)?;
    }
    let element = shape.operand(3);
    let is_float = !element.is_vector() && element.is_float();
    require(is_float, || {
        format!("contract works on floats, not on {element}")
    })?;
    (4..4 + extents).try_for_each(|extent| shape.operand_is(extent, Type::I64))
}

fn check_call(module: &Module, shape: &Shape) -> Check {
    let (callee, data) = match check_arguments(module, shape)? {
        Some(callee) => (callee, shape.data),
        None => return Ok(()),
    };
    check_types(
        shape.function,
        &data.results,
        &callee.results,
        "results",
        "result",
    )
    .map_err(|what| format!("call of @{}: {what}", callee.name))
}

/// Checks the operands against the callee's parameters.
fn check_arguments<'m>(module: &'m Module, shape: &Shape) -> Result<Option<&'m Function>, String> {
    let Payload::Callee(id) = shape.data.payload else {
        return Ok(None);
    };
    let Some(callee) = module.functions.get(id) else {
        return Err(format!("there is no function {id}"));
    };
    let params: Vec<Type> = callee.params.iter().map(|param| param.ty).collect();
    let operands = &shape.data.operands;
    check_types(shape.function, operands, &params, "arguments", "argument")
        .map_err(|what| format!("call of @{}: {what}", callee.name))?;
    check_levels(shape, callee)?;
    Ok(Some(callee))
}

/// Wide vectors travel in registers that only higher levels have.
fn check_levels(shape: &Shape, callee: &Function) -> Check {
    if shape.function.facts.level == callee.facts.level {
        return Ok(());
    }
    match callee.type_passed_by_level() {
        None => Ok(()),
        Some(ty) => Err(format!(
            "call of @{}: {ty} is passed in another way to a function of another level",
            callee.name
        )),
    }
}

fn check_structured(shape: &Shape) -> Check {
    let data = shape.data;
    let regions = match &data.payload {
        Payload::Cases(cases) => cases.len() + 1,
        _ if data.opcode == Opcode::If => 2,
        _ => 1,
    };
    require(data.regions.len() == regions, || {
        format!(
            "{} holds {} regions where there should be {regions}",
            data.opcode,
            data.regions.len()
        )
    })?;
    match data.opcode {
        Opcode::If => {
            shape.named(data.results.len())?;
            shape.operand_is(0, Type::I1)?;
            no_arguments(shape)
        }
        Opcode::Switch => {
            shape.named(data.results.len())?;
            check_cases(shape)?;
            no_arguments(shape)
        }
        Opcode::For => {
            require(data.operands.len() >= 3, || {
                "for takes a start, an end and a step".to_owned()
            })?;
            let counter = shape.operand(0);
            require(counter.is_int() && !counter.is_vector(), || {
                format!("the counter has type {counter}, which is no integer")
            })?;
            shape.operand_is(1, counter)?;
            shape.operand_is(2, counter)?;
            require(shape.function.int_of(data.step()) != Some(0), || {
                "the step is zero".to_owned()
            })?;
            check_carried(shape, data.initial(), Some(counter))
        }
        Opcode::Loop => check_carried(shape, &data.operands, None),
        _ => Ok(()),
    }
}

fn no_arguments(shape: &Shape) -> Check {
    let regions = &shape.data.regions;
    let bare = |index: &usize| {
        let region = &shape.function.regions[regions[*index]];
        !region.args.is_empty()
    };
    match (0..regions.len()).find(bare) {
        Some(index) => Err(format!(
            "region {index} has arguments, but {} gives it none",
            shape.data.opcode
        )),
        None => Ok(()),
    }
}

/// Checks that initial values, arguments of the region and results agree; the operands of `yield` are checked there.
fn check_carried(shape: &Shape, initial: &[Value], counter: Option<Type>) -> Check {
    let (function, data) = (shape.function, shape.data);
    let carried = || initial.iter().map(|&value| function.ty(value));
    let arguments: Vec<Type> = counter.into_iter().chain(carried()).collect();
    let results: Vec<Type> = carried().collect();
    let region = &function.regions[data.regions[0]];
    check_types(
        function,
        &region.args,
        &arguments,
        "arguments of the region",
        "argument of the region, number",
    )?;
    check_types(function, &data.results, &results, "results", "result")
}

fn check_cases(shape: &Shape) -> Check {
    let ty = shape.operand(0);
    shape.ints()?;
    require(!ty.is_vector(), || {
        format!("switch works on scalars, not on {ty}")
    })?;
    let Payload::Cases(cases) = &shape.data.payload else {
        return Ok(());
    };
    let bits = ty.scalar().bits();
    let mut seen = FxHashSet::default();
    for (index, case) in cases.iter().enumerate() {
        require(!case.is_empty(), || format!("case {index} has no values"))?;
        for &value in case {
            require(sign_extend(value as u128, bits) == value, || {
                format!("the value {value} of a case does not fit into {ty}")
            })?;
            require(seen.insert(value), || {
                format!("two cases have the value {value}")
            })?;
        }
    }
    Ok(())
}

/// Checks a terminator by itself; whether it fits its region is checked there.
fn check_terminator(module: &Module, shape: &Shape) -> Check {
    let data = shape.data;
    require(data.results.is_empty(), || {
        format!("{} gives no results", data.opcode)
    })?;
    match data.opcode {
        Opcode::Again => {
            require(!data.operands.is_empty(), || {
                "again takes a condition".to_owned()
            })?;
            shape.operand_is(0, Type::I1)
        }
        Opcode::Trap => match data.payload {
            // The results of the function do not matter: it does not return.
            Payload::Callee(_) => check_arguments(module, shape).map(|_| ()),
            _ => shape.counts(0, 0),
        },
        _ => Ok(()),
    }
}
