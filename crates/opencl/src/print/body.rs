//! Regions, control flow, memory and calls.

use super::{INFALLIBLE, kernel_name, type_name};
use ferrozyme_backend::Error;
use ferrozyme_gpu::{BARRIER, GROUP, ITEM, Kernel, LOCAL};
use ferrozyme_ir::{
    Constant, Function, FunctionId, Module, Op, OpView, Opcode, Region, Scalar, Type, Value,
    ValueDef, float_from_bits, for_each_op,
};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// Where memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    Global,
    Local,
    Constant,
    Private,
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Global => "__global",
            Space::Local => "__local",
            Space::Constant => "__constant",
            Space::Private => "__private",
        }
    }
}

/// A condition that holds for every item, which compilers do not know where they decide what all items of a group do alike. Loops whose number of iterations may differ from item to item stand behind it.
///
/// PoCL (3.1 at least) adds barriers to the inner loops of kernels with barriers if all items seem to get there. An outer loop whose first iteration depends on no condition is no reason for doubt to it, even if its number of
/// iterations differs: all items then run as many as one of them, and results are wrong without a message.
///
/// ```text
/// long c = get_local_id(0) & 255;                          if (get_local_id(0) < get_local_size(0)) {
/// for (; c < 300; c += 256) {                                for (; c < 300; c += 256) {
///   for (long d = 0; d < 5; d += 1) { … }          ─▶          for (long d = 0; d < 5; d += 1) { … }
/// }                                                          }
/// barrier(…);                                              }
/// ```
const OF_ITEM: &str = "get_local_id(0) < get_local_size(0)";

/// The variable of a value.
pub(super) fn variable(value: Value) -> String {
    format!("v{}", value.as_u32())
}

/// The body of a function while it is printed.
pub(super) struct Body<'m> {
    pub(super) module: &'m Module,
    pub(super) function: &'m Function,
    out: String,
    indent: usize,
    /// Where addresses point.
    spaces: FxHashMap<Value, Space>,
    /// Whether loops stand behind [`OF_ITEM`].
    guards_loops: bool,
    /// The operation in hand.
    pub(super) current: Option<Opcode>,
}

impl<'m> Body<'m> {
    pub(super) fn print(
        module: &'m Module,
        function: &'m Function,
        kernel: Option<&Kernel>,
    ) -> Result<String, Error> {
        let mut body = Body {
            module,
            function,
            out: String::new(),
            indent: 1,
            spaces: FxHashMap::default(),
            guards_loops: false,
            current: None,
        };
        // Only kernels with barriers need it. What is no kernel may be called by them.
        body.guards_loops = kernel.is_none() || body.has_barrier(function.body());
        if kernel.is_some() {
            for (number, &argument) in function.arguments().iter().enumerate() {
                let name = variable(argument);
                body.line(&format!("__global uchar *{name} = b{number} + o{number};"));
                body.spaces.insert(argument, Space::Global);
            }
        }
        body.region(function.body(), &[])?;
        Ok(body.out)
    }

    /// The operation in hand cannot be printed.
    pub(super) fn unknown(&self) -> Error {
        let opcode = self.current.map_or("", Opcode::name);
        Error::Compile(format!("`{opcode}` cannot be computed on OpenCL devices"))
    }

    pub(super) fn line(&mut self, text: &str) {
        let indent = 2 * self.indent;
        writeln!(self.out, "{:indent$}{text}", "").expect(INFALLIBLE);
    }

    /// Declares the variable of a value.
    pub(super) fn define(&mut self, value: Value, expression: &str) -> Result<(), Error> {
        let (ty, name) = (type_name(self.function.ty(value))?, variable(value));
        self.line(&format!("const {ty} {name} = {expression};"));
        Ok(())
    }

    /// A value as an expression.
    pub(super) fn get(&self, value: Value) -> Result<String, Error> {
        let data = &self.function.values[value];
        let ValueDef::Constant(constant) = &data.def else {
            return Ok(variable(value));
        };
        let bits = match constant {
            Constant::Bits(bits) => *bits,
            Constant::Undef => 0,
            Constant::Global(global) => {
                let name = kernel_name(&self.module.globals[*global].name);
                return Ok(format!("((const __constant uchar *){name})"));
            }
            _ => return Err(self.unknown()),
        };
        number(data.ty, bits).ok_or_else(|| self.unknown())
    }

    // ---- control

    /// Prints the operations of a region; what it yields is assigned to variables.
    fn region(&mut self, region: Region, targets: &[String]) -> Result<(), Error> {
        for &op in &self.function.regions[region].ops {
            self.current = Some(self.function.ops[op].opcode);
            self.operation(op, targets)?;
        }
        Ok(())
    }

    fn assign(&mut self, targets: &[String], values: &[Value]) -> Result<(), Error> {
        // A value may be a variable that is assigned to before.
        for (target, &value) in targets.iter().zip(values) {
            let (ty, value) = (type_name(self.function.ty(value))?, self.get(value)?);
            self.line(&format!("const {ty} next_{target} = {value};"));
        }
        for target in targets {
            self.line(&format!("{target} = next_{target};"));
        }
        Ok(())
    }

    /// Declares the variables of results.
    fn declare(&mut self, results: &[Value]) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for &result in results {
            let (ty, name) = (type_name(self.function.ty(result))?, variable(result));
            self.line(&format!("{ty} {name};"));
            names.push(name);
        }
        Ok(names)
    }

    fn operation(&mut self, op: Op, targets: &[String]) -> Result<(), Error> {
        let function = self.function;
        let data = &function.ops[op];
        match function.view(op) {
            OpView::If {
                condition,
                then,
                otherwise,
            } => {
                let names = self.declare(&data.results)?;
                let condition = self.get(condition)?;
                self.line(&format!("if ({condition}) {{"));
                self.inside(then, &names)?;
                if !names.is_empty() || function.regions[otherwise].ops.len() > 1 {
                    self.line("} else {");
                    self.inside(otherwise, &names)?;
                }
                self.line("}");
            }
            OpView::Switch {
                selector, cases, ..
            } => {
                let names = self.declare(&data.results)?;
                let selector = self.get(selector)?;
                for (position, &region) in data.regions.iter().enumerate() {
                    let tests = cases.get(position).map(|values| {
                        let ty = function.ty(data.operands[0]);
                        let number = |&value: &i128| {
                            let mask = ferrozyme_ir::ones(ty.scalar().bits());
                            number(ty, value as u128 & mask).unwrap_or_default()
                        };
                        let tests = values
                            .iter()
                            .map(|v| format!("{selector} == {}", number(v)));
                        tests.collect::<Vec<_>>().join(" || ")
                    });
                    let opening = match (position, tests) {
                        (0, Some(tests)) => format!("if ({tests}) {{"),
                        (_, Some(tests)) => format!("}} else if ({tests}) {{"),
                        (0, None) => "{".to_owned(),
                        (_, None) => "} else {".to_owned(),
                    };
                    self.line(&opening);
                    self.inside(region, &names)?;
                }
                self.line("}");
            }
            OpView::For { body, initial, .. } => self.counted(op, initial, body)?,
            OpView::Loop { initial, body } => self.general(op, initial, body)?,
            OpView::Yield { values } => self.assign(targets, values)?,
            OpView::Again { condition, values } => {
                let condition = self.get(condition)?;
                self.assign(&targets[1..], values)?;
                self.line(&format!("{} = {condition};", targets[0]));
            }
            OpView::Return { values } => match *values {
                [] => {}
                [value, ..] => {
                    let value = self.get(value)?;
                    self.line(&format!("return {value};"));
                }
            },
            OpView::Call { callee, arguments } => self.call(op, callee, arguments)?,
            _ => self.memory(op)?,
        }
        Ok(())
    }

    fn inside(&mut self, region: Region, targets: &[String]) -> Result<(), Error> {
        self.indent += 1;
        self.region(region, targets)?;
        self.indent -= 1;
        Ok(())
    }

    /// Declares variables for what a loop carries, with the first values.
    fn carry(&mut self, op: Op, initial: &[Value]) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for (&result, &first) in self.function.ops[op].results.iter().zip(initial) {
            let (ty, name) = (type_name(self.function.ty(result))?, variable(result));
            let first = self.get(first)?;
            self.line(&format!("{ty} {name} = {first};"));
            names.push(name);
        }
        Ok(names)
    }

    fn counted(&mut self, op: Op, initial: &[Value], body: Region) -> Result<(), Error> {
        let OpView::For { from, to, step, .. } = self.function.view(op) else {
            return Err(self.unknown());
        };
        let names = self.carry(op, initial)?;
        let counter = self.function.counter(op);
        let signed = signed_name(self.function.ty(counter)).ok_or_else(|| self.unknown())?;
        let c = format!("c{}", counter.as_u32());
        let test = match self.function.int_of(step) {
            Some(step) if step > 0 => format!("{c} < ({signed}){}", self.get(to)?),
            Some(_) => format!("{c} > ({signed}){}", self.get(to)?),
            None => {
                let (to, step) = (self.get(to)?, self.get(step)?);
                format!("({signed}){step} > 0 ? {c} < ({signed}){to} : {c} > ({signed}){to}")
            }
        };
        let is_alike = [from, to, step]
            .iter()
            .all(|&bound| self.function.int_of(bound).is_some());
        let (from, step) = (self.get(from)?, self.get(step)?);
        self.of_item(body, is_alike, |b| {
            b.line(&format!(
                "for ({signed} {c} = ({signed}){from}; {test}; {c} += ({signed}){step}) {{"
            ));
            b.indent += 1;
            let ty = type_name(b.function.ty(counter))?;
            b.line(&format!("const {ty} {} = ({ty}){c};", variable(counter)));
            let carried = b.function.carried(op);
            b.begin(carried, &names)?;
            b.region(body, &names)?;
            b.indent -= 1;
            b.line("}");
            Ok(())
        })
    }

    fn general(&mut self, op: Op, initial: &[Value], body: Region) -> Result<(), Error> {
        let names = self.carry(op, initial)?;
        let again = format!("again{}", op.as_u32());
        self.of_item(body, false, |b| {
            b.line(&format!("bool {again};"));
            b.line("do {");
            b.indent += 1;
            let carried = b.function.carried(op);
            b.begin(carried, &names)?;
            let mut targets = vec![again.clone()];
            targets.extend(names);
            b.region(body, &targets)?;
            b.indent -= 1;
            b.line(&format!("}} while ({again});"));
            Ok(())
        })
    }

    /// Prints a loop with this body behind [`OF_ITEM`], unless all items run it alike.
    fn of_item(
        &mut self,
        body: Region,
        is_alike: bool,
        print: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // All items run alike what has a barrier.
        if is_alike || !self.guards_loops || self.has_barrier(body) {
            return print(self);
        }
        self.line(&format!("if ({OF_ITEM}) {{"));
        self.indent += 1;
        print(self)?;
        self.indent -= 1;
        self.line("}");
        Ok(())
    }

    fn has_barrier(&self, region: Region) -> bool {
        let mut found = false;
        for_each_op(self.function, region, &mut |_, op| {
            if let OpView::Call { callee, .. } = self.function.view(op) {
                found |= *self.module.functions[callee].name == *BARRIER;
            }
        });
        found
    }

    /// What a loop carries, as its body sees it.
    fn begin(&mut self, carried: &[Value], names: &[String]) -> Result<(), Error> {
        for (&argument, name) in carried.iter().zip(names) {
            self.define(argument, name)?;
        }
        Ok(())
    }

    fn call(&mut self, op: Op, callee: FunctionId, arguments: &[Value]) -> Result<(), Error> {
        let result = self.function.ops[op].results.first().copied();
        let name = &*self.module.functions[callee].name;
        match (name, result) {
            (GROUP, Some(result)) => self.define(result, "get_group_id(0)"),
            (ITEM, Some(result)) => self.define(result, "get_local_id(0)"),
            (BARRIER, None) => {
                self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
                Ok(())
            }
            (LOCAL, Some(result)) => {
                self.spaces.insert(result, Space::Local);
                let name = variable(result);
                self.line(&format!(
                    "__local uchar *{name} = (__local uchar *)local_memory;"
                ));
                Ok(())
            }
            (_, Some(result)) => {
                let arguments = arguments.iter().map(|&argument| self.get(argument));
                let arguments: Vec<String> = arguments.collect::<Result<_, Error>>()?;
                let call = format!("{}({})", kernel_name(name), arguments.join(", "));
                self.define(result, &call)
            }
            (_, None) => Err(self.unknown()),
        }
    }

    // ---- memory

    pub(super) fn space(&self, address: Value) -> Result<Space, Error> {
        match self.function.constant_of(address) {
            Some(Constant::Global(_)) => Ok(Space::Constant),
            _ => self
                .spaces
                .get(&address)
                .copied()
                .ok_or_else(|| self.unknown()),
        }
    }

    fn memory(&mut self, op: Op) -> Result<(), Error> {
        let function = self.function;
        match function.view(op) {
            OpView::Offset { base, index, scale } => {
                let (result, space) = (function.result(op), self.space(base)?);
                self.spaces.insert(result, space);
                let (base, index) = (self.get(base)?, self.get(index)?);
                let (space, name) = (pointer(space), variable(result));
                let moved = match scale {
                    1 => format!("{base} + (long){index}"),
                    _ => format!("{base} + (long){index} * {scale}"),
                };
                self.line(&format!("{space} uchar *{name} = {moved};"));
                Ok(())
            }
            OpView::Stack { size, .. } => {
                let (result, size) = (function.result(op), function.int_of(size));
                let size = size.ok_or_else(|| self.unknown())?;
                self.spaces.insert(result, Space::Private);
                let name = variable(result);
                let words = (size as usize).div_ceil(8).max(1);
                self.line(&format!("ulong {name}_memory[{words}];"));
                self.line(&format!(
                    "__private uchar *{name} = (__private uchar *){name}_memory;"
                ));
                Ok(())
            }
            OpView::Load { address, .. } => {
                let result = function.result(op);
                let space = pointer(self.space(address)?);
                let at = self.get(address)?;
                let ty = function.ty(result);
                let expression = match ty.scalar() {
                    Scalar::F16 => format!("vload_half(0, (const {space} half *){at})"),
                    Scalar::Bf16 => format!("as_float((uint)*(const {space} ushort *){at} << 16)"),
                    _ => format!("*(const {space} {} *){at}", type_name(ty)?),
                };
                self.define(result, &expression)
            }
            OpView::Store { value, address, .. } => {
                let space = self.space(address)?.name();
                let (at, ty, value) = (self.get(address)?, function.ty(value), self.get(value)?);
                let statement = match ty.scalar() {
                    Scalar::F16 => format!("vstore_half_rte({value}, 0, ({space} half *){at});"),
                    Scalar::Bf16 => {
                        format!("*({space} ushort *){at} = (ushort)(as_uint({value}) >> 16);")
                    }
                    _ => format!("*({space} {} *){at} = {value};", type_name(ty)?),
                };
                self.line(&statement);
                Ok(())
            }
            OpView::AtomicAdd { address, value, .. } => {
                let (at, ty, value) = (self.get(address)?, function.ty(value), self.get(value)?);
                let (name, word) = match ty {
                    Type::F32 => ("atomic_add_f32", "uint"),
                    Type::F64 => ("atomic_add_f64", "ulong"),
                    _ => return Err(self.unknown()),
                };
                self.line(&format!(
                    "{name}((volatile __global {word} *){at}, {value});"
                ));
                Ok(())
            }
            OpView::Copy {
                destination,
                source,
                size,
                ..
            } => {
                let [to, from] = [
                    self.space(destination)?.name(),
                    pointer(self.space(source)?),
                ];
                let (a, b, size) = (self.get(destination)?, self.get(source)?, self.get(size)?);
                self.line(&format!(
                    "for (ulong i = 0; i < {size}; ++i) (({to} uchar *){a})[i] = ((const {from} uchar *){b})[i];"
                ));
                Ok(())
            }
            OpView::Fill {
                destination,
                byte,
                size,
                ..
            } => {
                let to = self.space(destination)?.name();
                let (a, byte, size) = (self.get(destination)?, self.get(byte)?, self.get(size)?);
                self.line(&format!(
                    "for (ulong i = 0; i < {size}; ++i) (({to} uchar *){a})[i] = {byte};"
                ));
                Ok(())
            }
            _ => self.computation(op),
        }
    }
}

/// What stands before the type that a pointer points to.
fn pointer(space: Space) -> &'static str {
    match space {
        Space::Constant => "const __constant",
        _ => space.name(),
    }
}

/// The signed type of the size of an integer.
pub(super) fn signed_name(ty: Type) -> Option<&'static str> {
    Some(match ty.scalar() {
        Scalar::Int(8) => "char",
        Scalar::Int(16) => "short",
        Scalar::Int(32) => "int",
        Scalar::Int(64) => "long",
        _ => return None,
    })
}

/// A constant as a literal.
fn number(ty: Type, bits: u128) -> Option<String> {
    if ty.is_vector() {
        return None;
    }
    let scalar = ty.scalar();
    Some(match scalar {
        Scalar::Int(1) => ["false", "true"][usize::from(bits != 0)].to_owned(),
        Scalar::Int(8 | 16) => format!("{bits}u"),
        Scalar::Int(32) => format!("{bits}u"),
        Scalar::Int(64) => format!("{bits}ul"),
        Scalar::Ptr | Scalar::Int(_) => return None,
        Scalar::F64 => {
            let value = float_from_bits(scalar, bits)?;
            match value.is_finite() {
                true => format!("{value:e}"),
                false => format!("as_double({:#x}ul)", value.to_bits()),
            }
        }
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 => {
            let value = float_from_bits(scalar, bits)? as f32;
            match value.is_finite() {
                true => float_literal(value),
                false => format!("as_float({:#x}u)", value.to_bits()),
            }
        }
    })
}

/// The shortest text that is read back as the number, which must have a point or an exponent before the suffix.
fn float_literal(value: f32) -> String {
    format!("{value:e}f")
}
