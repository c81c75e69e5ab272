//! Floating-point arithmetic and functions, as their rows in the table say: an instruction or an intrinsic where LLVM has one, a function of C's library otherwise.
//!
//! C's library knows single and double precision and no vectors: narrower floats go through single precision, vectors lane by lane. The library is linked anyway, by Rust's standard
//! library. A function that not all libraries have is emitted along with the program.

use ferrozyme_ir::formula::{Formula, FormulaWriter, Place, Variable};
use ferrozyme_ir::{self as ir, Form, MathCost, MathFunction, MathValue, OpView, Opcode};
use std::sync::LazyLock;

use super::body::Body;
use super::symbols::MEMORY_NONE;
use super::{ExportError, Exporter};
use ferrozyme_llvm::{
    FloatPredicate, Linkage, Opcode as Llvm, Place as AttributePlace, Type, TypeKind, Value,
};

/// The instruction that computes an operation on two floats.
fn instruction(opcode: Opcode) -> Option<Llvm> {
    Some(match opcode {
        Opcode::Fadd => Llvm::FAdd,
        Opcode::Fsub => Llvm::FSub,
        Opcode::Fmul => Llvm::FMul,
        Opcode::Fdiv => Llvm::FDiv,
        Opcode::Frem => Llvm::FRem,
        _ => return None,
    })
}

/// Functions that loops can be vectorised with, as `__ferrozyme_<operation>_<type>`.
static VECTORISABLE: LazyLock<ir::Module> = LazyLock::new(|| {
    own(concat!(
        include_str!("vectorisable.fz"),
        include_str!("vectorisable/angles.fz"),
        include_str!("vectorisable/erf.fz"),
        include_str!("vectorisable/exponentials.fz"),
        include_str!("vectorisable/logarithms.fz"),
        include_str!("vectorisable/trigonometry.fz"),
    ))
});

/// Functions that no library has, as `__ferrozyme_<operation>`, in double precision.
static OWN: LazyLock<ir::Module> = LazyLock::new(|| own(include_str!("polygamma.fz")));

/// The functions that no library has, as Loop IR in double precision: `__ferrozyme_<operation>`.
pub fn own_functions() -> &'static ir::Module {
    &OWN
}

fn own(text: &str) -> ir::Module {
    ir::parse_module(text).expect("the exporter's own functions are part of it")
}

/// The vectorisable functions that C's library outruns unless vectors have 32 bytes: measured with vectors of 16.
pub const FOR_WIDE_VECTORS: [&str; 6] = [
    "pow_f32",
    "log2_f32",
    "log10_f32",
    "erf_f64",
    "sin_f32",
    "cos_f32",
];

/// The function that computes an operation on a type in vectorised loops, if there is one.
fn vectorisable_name(opcode: Opcode, ty: &str, is_wide: bool) -> Option<String> {
    let known = format!("{opcode}_{ty}");
    let name = format!("__ferrozyme_{known}");
    let pays = is_wide || !FOR_WIDE_VECTORS.contains(&known.as_str());
    (pays && VECTORISABLE.function_named(&name).is_some()).then_some(name)
}

/// Whether an operation is computed for one number at a time, so that the loop around it stays as it is.
pub(super) fn keeps_scalar(function: &ir::Function, data: &ir::OpData, is_wide: bool) -> bool {
    let opcode = data.opcode;
    let slow = |function: &MathFunction| function.cost == MathCost::Call;
    let vectorisable = || {
        let ty = function.ty(*data.results.first()?);
        vectorisable_name(opcode, &ty.to_string(), is_wide)
    };
    opcode.math().is_some_and(slow) && vectorisable().is_none()
}

impl<'c> Body<'_, '_, 'c> {
    /// An operation on floats with one result.
    pub(super) fn math(
        &mut self,
        data: &ir::OpData,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, ExportError> {
        let flags = self.fast_math(data.flags);
        let builder = &self.exporter.builder;
        let fast = |value: Value<'c>| value.set_fast_math(flags);
        match data.view_with(operands) {
            OpView::Unary(Opcode::Fneg, a) => return Ok(fast(builder.negate_float(a))),
            OpView::Binary(Opcode::Fdim, a, b) => {
                // Where the comparison fails for NaN, the difference is NaN.
                let not_above = fast(builder.compare_floats(FloatPredicate::Ole, a, b));
                let difference = fast(builder.binary(Llvm::FSub, a, b));
                return Ok(fast(builder.select(not_above, a.ty().zero(), difference)));
            }
            OpView::Binary(Opcode::Nextafter, a, _) if is_narrow(a.ty()) => {
                return Err(self.problem("`nextafter` is known for f32 and f64 only"));
            }
            _ => {}
        }
        if self.in_innermost
            && let Some(function) =
                vectorisable(self.exporter, data.opcode, operands[0].ty(), self.is_wide)?
        {
            return Ok(self.exporter.builder.call_function(function, operands));
        }
        if self.exporter.options.no_library {
            return self.without_library(data, operands, flags);
        }
        if let OpView::Binary(opcode, a, b) = data.view_with(operands)
            && let Some(opcode) = instruction(opcode)
        {
            return Ok(fast(builder.binary(opcode, a, b)));
        }
        let Some(function) = data.opcode.math() else {
            return Err(self.problem(format!(
                "the exporter does not know the operation {} (a bug in Ferrozyme)",
                data.opcode
            )));
        };
        if let Some(name) = function.llvm.first() {
            let name = format!("llvm.{name}");
            return match function.cost {
                MathCost::Call => self.function(&name, operands, data, flags),
                // There is code for every float type.
                _ => Ok(fast(self.call_intrinsic(&name, operands)?)),
            };
        }
        let names = [function.c, function.not_reserved].concat();
        match (function.value.formula(), names.first()) {
            // Not all libraries have it.
            (Some(formula), _) => {
                let wide = self.widened(operands[0].ty());
                self.composite(operands, data, &formula, wide)
            }
            (None, Some(name)) => self.library(name, operands, data, flags),
            (None, None) => self.own(data, operands),
        }
    }

    /// An operation on floats with one result, where there is no C library: an instruction, an intrinsic that is not a call, or one of the exporter's own functions.
    fn without_library(
        &mut self,
        data: &ir::OpData,
        operands: &[Value<'c>],
        flags: ferrozyme_llvm::FastMath,
    ) -> Result<Value<'c>, ExportError> {
        if let OpView::Binary(opcode, a, b) = data.view_with(operands)
            && let Some(opcode) = instruction(opcode)
        {
            let result = self.exporter.builder.binary(opcode, a, b);
            return Ok(result.set_fast_math(flags));
        }
        let row = data.opcode.math();
        if let Some(function) = row
            && function.cost != MathCost::Call
            && let Some(name) = function.llvm.first()
        {
            let result = self.call_intrinsic(&format!("llvm.{name}"), operands)?;
            return Ok(result.set_fast_math(flags));
        }
        let wide = self.widened(operands[0].ty());
        if let Some(function) = vectorisable(self.exporter, data.opcode, wide, true)? {
            return self.lane_by_lane(operands, wide, |body, lanes| {
                Ok(body.exporter.builder.call_function(function, lanes))
            });
        }
        if let Some(formula) = row.and_then(|function| function.value.formula()) {
            return self.composite(operands, data, &formula, wide);
        }
        if let Some(formula) = super::without_library::formula(data.opcode) {
            let double = self.exporter.context.double();
            return self.composite(operands, data, &formula, double);
        }
        if OWN
            .function_named(&format!("__ferrozyme_{}", data.opcode))
            .is_some()
        {
            return self.own(data, operands);
        }
        let opcode = data.opcode;
        Err(self.problem(format!(
            "`{opcode}` needs C's library, which is not there on this target"
        )))
    }

    /// A function that no library has, in double precision.
    fn own(&mut self, data: &ir::OpData, operands: &[Value<'c>]) -> Result<Value<'c>, ExportError> {
        let name = format!("__ferrozyme_{}", data.opcode);
        let function = own_function(self.exporter, &OWN, &name, ir::Flags::NONE)?;
        let double = self.exporter.context.double();
        self.lane_by_lane(operands, double, |body, lanes| {
            Ok(body.exporter.builder.call_function(function, lanes))
        })
    }

    /// An intrinsic that may end in a call of C's library.
    fn function(
        &mut self,
        name: &str,
        operands: &[Value<'c>],
        data: &ir::OpData,
        flags: ferrozyme_llvm::FastMath,
    ) -> Result<Value<'c>, ExportError> {
        let of = operands[0].ty();
        // Intrinsics with an integer are overloaded by its type, too; that of `powi` is one number for all lanes.
        let integer = operands
            .get(1)
            .map(|operand| operand.ty())
            .filter(|other| *other != of);
        if is_narrow(of) || (data.opcode == Opcode::Powi && of.kind() == TypeKind::Vector) {
            let wide = self.widened(of);
            return self.lane_by_lane(operands, wide, |body, lanes| {
                let integer = integer.map(|_| body.exporter.context.integer(32));
                let types: Vec<Type<'c>> = std::iter::once(wide).chain(integer).collect();
                let intrinsic = body.intrinsic(name, &types)?;
                let result = body.exporter.builder.call_function(intrinsic, lanes);
                Ok(result.set_fast_math(flags))
            });
        }
        let types: Vec<Type<'c>> = std::iter::once(of).chain(integer).collect();
        let intrinsic = self.intrinsic(name, &types)?;
        let result = self.exporter.builder.call_function(intrinsic, operands);
        Ok(result.set_fast_math(flags))
    }

    /// A function that is a formula in others, as a function of its own on floats of a type.
    fn composite(
        &mut self,
        operands: &[Value<'c>],
        data: &ir::OpData,
        formula: &Formula,
        wide: Type<'c>,
    ) -> Result<Value<'c>, ExportError> {
        let ty = match wide.kind() {
            TypeKind::Float => ir::Type::F32,
            _ => ir::Type::F64,
        };
        let types = operands
            .iter()
            .map(|operand| match scalar_of(operand.ty()).is_float() {
                true => ty,
                false => ir::Type::I32,
            });
        let name = format!("__ferrozyme_{}_{ty}", data.opcode);
        let params = types.map(ir::Param::from).collect();
        let mut function = ir::Function::define(name.clone(), params, vec![ty]);
        let arguments = function.arguments().to_vec();
        let mut builder = ir::Builder::at_body(&mut function);
        let mut variable = |_: &mut ir::Builder<'_>, variable: Variable| match variable.place() {
            Place::Operand(position) | Place::Result(position) => arguments[position],
        };
        let result = FormulaWriter::new(ty).emit(&mut builder, &mut variable, formula);
        builder.ret(&[result]);
        let mut module = ir::Module::new();
        module.functions.push(function);
        let function = own_function(self.exporter, &module, &name, ir::Flags::NONE)?;
        self.lane_by_lane(operands, wide, |body, lanes| {
            Ok(body.exporter.builder.call_function(function, lanes))
        })
    }

    /// The type in which C's library computes.
    fn widened(&self, of: Type<'c>) -> Type<'c> {
        match is_narrow(of) {
            true => self.exporter.context.float(),
            false => scalar_of(of),
        }
    }

    /// A function of C's library, by its name in double precision.
    fn library(
        &mut self,
        name: &str,
        operands: &[Value<'c>],
        data: &ir::OpData,
        flags: ferrozyme_llvm::FastMath,
    ) -> Result<Value<'c>, ExportError> {
        let wide = self.widened(operands[0].ty());
        let value = data.opcode.math().map(|function| function.value);
        let integer_first = matches!(value, Some(MathValue::IntAndFloat(_)));
        let integer_result = matches!(value, Some(MathValue::FloatToExponent(_)));
        self.lane_by_lane(operands, wide, |body, lanes| {
            let mut lanes = lanes.to_vec();
            if integer_first {
                lanes.reverse();
            }
            let types: Vec<Type<'c>> = lanes.iter().map(|lane| lane.ty()).collect();
            let result = if integer_result {
                body.exporter.context.integer(32)
            } else {
                wide
            };
            let function = library_function(body.exporter, name, result, &types, wide);
            Ok(body
                .exporter
                .builder
                .call(result.function(&types, false), function, &lanes)
                .set_fast_math(flags))
        })
    }

    /// Computes each lane by itself, floats converted to `wide` and back. Vectors of the operands have the same number of lanes.
    fn lane_by_lane(
        &mut self,
        operands: &[Value<'c>],
        wide: Type<'c>,
        compute: impl Fn(&mut Self, &[Value<'c>]) -> Result<Value<'c>, ExportError>,
    ) -> Result<Value<'c>, ExportError> {
        let of = operands[0].ty();
        let scalar = scalar_of(of);
        if of.kind() != TypeKind::Vector {
            let wide_operands: Vec<Value<'c>> = operands
                .iter()
                .map(|operand| self.convert_float(*operand, wide))
                .collect();
            let result = compute(self, &wide_operands)?;
            return Ok(if result.ty().is_float() {
                self.convert_float(result, scalar)
            } else {
                result
            });
        }
        let word = self.exporter.context.integer(64);
        let mut whole = None;
        for lane in 0..of.length() {
            let position = word.constant(i128::from(lane));
            let lanes: Vec<Value<'c>> = operands
                .iter()
                .map(|operand| self.exporter.builder.extract_element(*operand, position))
                .collect();
            let lanes: Vec<Value<'c>> = lanes
                .into_iter()
                .map(|operand| self.convert_float(operand, wide))
                .collect();
            let result = compute(self, &lanes)?;
            let result = if result.ty().is_float() {
                self.convert_float(result, scalar)
            } else {
                result
            };
            let before = whole.unwrap_or_else(|| result.ty().vector(of.length() as u32).poison());
            whole = Some(
                self.exporter
                    .builder
                    .insert_element(before, result, position),
            );
        }
        whole.ok_or_else(|| self.problem("a vector has no lanes (a bug in Ferrozyme)"))
    }

    fn convert_float(&self, value: Value<'c>, to: Type<'c>) -> Value<'c> {
        let rank = |of: Type<'c>| match of.kind() {
            TypeKind::Half | TypeKind::BFloat => 0,
            TypeKind::Float => 1,
            _ => 2,
        };
        let from = value.ty();
        if !from.is_float() || from == to {
            return value;
        }
        self.exporter.builder.cast(
            if rank(from) < rank(to) {
                Llvm::FPExt
            } else {
                Llvm::FPTrunc
            },
            value,
            to,
        )
    }

    /// `sincos`, `modf` and `frexp`: two results, which LLVM returns as a structure.
    pub(super) fn pair(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let operand = self.get(data.operand())?;
        let flags = self.fast_math(data.flags);
        let name = format!("llvm.{}", data.opcode);
        let exponent = self.exporter.context.integer(32);
        let second = (data.opcode.form() == Form::FloatSplit).then_some(exponent);
        let wide = self.widened(operand.ty());
        let mut halves = Vec::new();
        for half in 0..2 {
            halves.push(self.lane_by_lane(&[operand], wide, |body, lanes| {
                let types: Vec<Type<'c>> = std::iter::once(wide).chain(second).collect();
                let intrinsic = body.intrinsic(&name, &types)?;
                let both = body
                    .exporter
                    .builder
                    .call_function(intrinsic, lanes)
                    .set_fast_math(flags);
                let value = body.exporter.builder.extract_value(both, half);
                // LLVM leaves the exponent of infinity and NaN open; zero it is.
                if data.opcode == Opcode::Frexp && half == 1 {
                    return body.finite_or_zero(lanes[0], value);
                }
                Ok(value)
            })?);
        }
        self.set(data.results[0], halves[0]);
        self.set(data.results[1], halves[1]);
        Ok(())
    }

    fn finite_or_zero(&self, of: Value<'c>, exponent: Value<'c>) -> Result<Value<'c>, ExportError> {
        let magnitude = self.call_intrinsic("llvm.fabs", &[of])?;
        let builder = &self.exporter.builder;
        let finite = builder.compare_floats(
            FloatPredicate::Olt,
            magnitude,
            of.ty().float_constant(f64::INFINITY),
        );
        Ok(builder.select(finite, exponent, exponent.ty().zero()))
    }
}

fn scalar_of(of: Type<'_>) -> Type<'_> {
    if of.kind() == TypeKind::Vector {
        of.element()
    } else {
        of
    }
}

/// Half precision of either kind, or vectors of it.
fn is_narrow(of: Type<'_>) -> bool {
    matches!(scalar_of(of).kind(), TypeKind::Half | TypeKind::BFloat)
}

/// A function of C's library. These compute and do nothing else, if one forgets about `errno`, as the Loop IR does.
fn library_function<'c>(
    exporter: &Exporter<'_, 'c>,
    name: &str,
    result: Type<'c>,
    parameters: &[Type<'c>],
    wide: Type<'c>,
) -> Value<'c> {
    let name = if wide.kind() == TypeKind::Float {
        format!("{name}f")
    } else {
        name.to_owned()
    };
    if let Some(known) = exporter.into.symbol(&name) {
        return known;
    }
    let context = exporter.context;
    let function = exporter
        .into
        .add_function(&name, result.function(parameters, false));
    for attribute in ["nounwind", "willreturn", "nofree", "nosync", "nocallback"] {
        function.add_attribute(AttributePlace::Function, context.attribute(attribute, 0));
    }
    function.add_attribute(
        AttributePlace::Function,
        context.attribute("memory", MEMORY_NONE),
    )
}

/// A function that computes an operation without keeping the loop around it from being vectorised, if there is one.
fn vectorisable<'c>(
    exporter: &Exporter<'_, 'c>,
    opcode: Opcode,
    of: Type<'c>,
    is_wide: bool,
) -> Result<Option<Value<'c>>, ExportError> {
    let ty = match of.kind() {
        TypeKind::Float => "f32",
        TypeKind::Double => "f64",
        _ => return Ok(None),
    };
    let Some(name) = vectorisable_name(opcode, ty, is_wide) else {
        return Ok(None);
    };
    let function = own_function(exporter, &VECTORISABLE, &name, ir::Flags::CONTRACT)?;
    Ok(Some(function.add_attribute(
        AttributePlace::Function,
        exporter.context.attribute("alwaysinline", 0),
    )))
}

/// A function that comes along as Loop IR, private to the module. The names start with underscores to be apart from what users write.
fn own_function<'c>(
    exporter: &Exporter<'_, 'c>,
    from: &ir::Module,
    name: &str,
    relaxed: ir::Flags,
) -> Result<Value<'c>, ExportError> {
    if let Some(known) = exporter.into.function(name) {
        return Ok(known);
    }
    let Some(main) = from.function_named(name) else {
        return Err(ExportError {
            function: name.to_owned(),
            place: None,
            problem: "it has no body (a bug in Ferrozyme)".to_owned(),
        });
    };
    let options = super::ExportOptions {
        relaxed,
        strict: true,
        ..exporter.options
    };
    let functions = super::export(from, &[main], exporter.into, &options)?;
    Ok(functions[0].set_linkage(Linkage::Internal))
}
