//! Builds operations at a cursor: by default at the end of a region.
//!
//! In debug builds the builder checks what is cheap to check; the verifier checks everything. The builder does not simplify:
//! that is the optimiser's task.
//!
//! ```
//! use ferrozyme_ir::{Builder, Function, Opcode, Type};
//! let mut square = Function::define("square", vec![Type::F64.into()], vec![Type::F64]);
//! let x = square.arguments()[0];
//! let mut b = Builder::at_body(&mut square);
//! let y = b.binary(Opcode::Fmul, x, x);
//! b.ret(&[y]);
//! ```

use crate::contraction::Contraction;
use crate::cursor::Cursor;
use crate::facts::{Alignment, Flags};
use crate::function::{Constant, Function, Op, OpData, Payload, Region, Value};
use crate::opcode::{FloatPredicate, Form, IntPredicate, Opcode};
use crate::types::{Scalar, Type};
use crate::{FunctionId, GlobalId, Location};
use smallvec::SmallVec;

/// Creates operations of a function and inserts them.
pub struct Builder<'f> {
    /// The function that is being built.
    pub function: &'f mut Function,
    /// The insertion point.
    pub cursor: Cursor,
    /// The source location of new operations.
    pub location: Option<Location>,
    /// The flags of new floating-point operations.
    pub float_flags: Flags,
}

impl<'f> Builder<'f> {
    /// A builder that appends to this region.
    pub fn new(function: &'f mut Function, region: Region) -> Builder<'f> {
        Builder::at(function, Cursor::at_end(region))
    }

    /// A builder that inserts at a place.
    pub fn at(function: &'f mut Function, cursor: Cursor) -> Builder<'f> {
        Builder {
            function,
            cursor,
            location: None,
            float_flags: Flags::NONE,
        }
    }

    /// A builder that appends to the function's body.
    pub fn at_body(function: &'f mut Function) -> Builder<'f> {
        let region = function.body();
        Builder::new(function, region)
    }

    /// The region of the insertion point.
    pub fn region(&self) -> Region {
        self.cursor.region()
    }

    /// Moves to the end of a region; returns the previous insertion point.
    pub fn go_to_end(&mut self, region: Region) -> Cursor {
        std::mem::replace(&mut self.cursor, Cursor::at_end(region))
    }

    /// Runs `build` with the builder at the end of another region, and moves back.
    pub fn inside<R>(&mut self, region: Region, build: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.go_to_end(region);
        let result = build(self);
        self.cursor = outer;
        result
    }

    /// Inserts an operation that is in no region.
    pub fn insert(&mut self, op: Op) {
        self.cursor.insert(self.function, op);
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.function.ty(value)
    }

    /// Inserts a new operation.
    pub fn op(
        &mut self,
        opcode: Opcode,
        operands: &[Value],
        payload: Payload,
        results: &[Type],
    ) -> Op {
        let float = operands
            .first()
            .is_some_and(|&operand| self.ty(operand).is_float())
            && !matches!(opcode.form(), Form::Cast | Form::Terminator | Form::Special);
        let flags = if float { self.float_flags } else { Flags::NONE };
        let op = self.function.new_op(
            OpData {
                opcode,
                operands: SmallVec::from_slice(operands),
                results: SmallVec::new(),
                regions: SmallVec::new(),
                payload,
                flags,
                location: self.location,
            },
            results,
        );
        self.insert(op);
        op
    }

    /// Inserts a new operation with one result.
    pub fn value(
        &mut self,
        opcode: Opcode,
        operands: &[Value],
        payload: Payload,
        result: Type,
    ) -> Value {
        let op = self.op(opcode, operands, payload, &[result]);
        self.function.result(op)
    }

    // ---- constants

    /// An `i64`.
    pub fn i64(&mut self, value: i64) -> Value {
        self.function.int(Type::I64, i128::from(value))
    }

    /// A float of a given type.
    pub fn float(&mut self, ty: Type, value: f64) -> Value {
        self.function.float(ty, value)
    }

    /// The zero of a type.
    pub fn zero(&mut self, ty: Type) -> Value {
        self.function.zero(ty)
    }

    /// The address of a function.
    pub fn function_address(&mut self, function: FunctionId) -> Value {
        self.function
            .constant(Type::PTR, Constant::Function(function))
    }

    /// The address of a global.
    pub fn global_address(&mut self, global: GlobalId) -> Value {
        self.function.constant(Type::PTR, Constant::Global(global))
    }

    // ---- arithmetic

    /// An operation on one value whose result has its type.
    pub fn unary(&mut self, opcode: Opcode, a: Value) -> Value {
        debug_assert!(matches!(opcode.form(), Form::IntUnary | Form::FloatUnary));
        let ty = self.ty(a);
        self.value(opcode, &[a], Payload::None, ty)
    }

    /// An operation on two values of one type whose result has it too, or on a float and an `i32`.
    pub fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        debug_assert!(matches!(
            opcode.form(),
            Form::IntBinary | Form::FloatBinary | Form::FloatAndInt
        ));
        let ty = self.ty(a);
        self.value(opcode, &[a, b], Payload::None, ty)
    }

    /// `a·b + c`.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Fma, &[a, b, c], Payload::None, ty)
    }

    /// A comparison of integers or addresses.
    pub fn icmp(&mut self, predicate: IntPredicate, a: Value, b: Value) -> Value {
        let ty = self.ty(a).with_scalar(Scalar::Int(1));
        self.value(Opcode::Icmp, &[a, b], Payload::IntPredicate(predicate), ty)
    }

    /// A comparison of floats.
    pub fn fcmp(&mut self, predicate: FloatPredicate, a: Value, b: Value) -> Value {
        let ty = self.ty(a).with_scalar(Scalar::Int(1));
        self.value(
            Opcode::Fcmp,
            &[a, b],
            Payload::FloatPredicate(predicate),
            ty,
        )
    }

    /// `a` where `condition` holds, else `b`.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        self.value(Opcode::Select, &[condition, a, b], Payload::None, ty)
    }

    /// A cast.
    pub fn cast(&mut self, opcode: Opcode, a: Value, to: Type) -> Value {
        debug_assert_eq!(opcode.form(), Form::Cast);
        self.value(opcode, &[a], Payload::None, to)
    }

    // ---- memory

    /// Reads memory.
    pub fn load(&mut self, ty: Type, address: Value, align: Alignment) -> Value {
        self.value(Opcode::Load, &[address], Payload::Align(align), ty)
    }

    /// Writes memory.
    pub fn store(&mut self, value: Value, address: Value, align: Alignment) -> Op {
        self.op(Opcode::Store, &[value, address], Payload::Align(align), &[])
    }

    /// The address `base + scale·index`.
    pub fn offset(&mut self, base: Value, index: Value, scale: i64) -> Value {
        self.value(
            Opcode::Offset,
            &[base, index],
            Payload::Scale(scale),
            Type::PTR,
        )
    }

    /// The address `base + bytes`.
    pub fn offset_bytes(&mut self, base: Value, bytes: i64) -> Value {
        let index = self.i64(bytes);
        self.offset(base, index, 1)
    }

    /// The address `pointer`, apart from all others that are exclusive because of the same test.
    pub fn exclusive(&mut self, pointer: Value, tested: Value) -> Value {
        self.value(
            Opcode::Exclusive,
            &[pointer, tested],
            Payload::None,
            Type::PTR,
        )
    }

    /// Memory on the stack.
    pub fn stack(&mut self, bytes: Value, align: Alignment) -> Value {
        self.value(Opcode::Stack, &[bytes], Payload::Align(align), Type::PTR)
    }

    /// Heap memory, from Ferrozyme's own allocator.
    pub fn alloc(&mut self, bytes: Value, align: Alignment, zeroed: bool) -> Value {
        let payload = Payload::Alloc {
            align,
            zeroed,
            family: "".into(),
        };
        self.value(Opcode::Alloc, &[bytes], payload, Type::PTR)
    }

    /// Frees memory of Ferrozyme's own allocator.
    pub fn free(&mut self, address: Value) -> Op {
        let payload = Payload::Free {
            align: Alignment::ONE,
            family: "".into(),
        };
        self.op(Opcode::Free, &[address], payload, &[])
    }

    /// Copies bytes between two places that do not overlap.
    pub fn copy(&mut self, to: Value, from: Value, bytes: Value, align: Alignment) -> Op {
        self.op(Opcode::Copy, &[to, from, bytes], Payload::Align(align), &[])
    }

    /// Sets bytes.
    pub fn fill(&mut self, to: Value, byte: Value, bytes: Value, align: Alignment) -> Op {
        self.op(Opcode::Fill, &[to, byte, bytes], Payload::Align(align), &[])
    }

    /// A contraction whose elements have the type of its factor, and that alignment.
    pub fn contract(&mut self, contraction: &Contraction) -> Op {
        let payload = Payload::Contract {
            align: Alignment::natural(self.ty(contraction.factor)),
            add: contraction.add,
            indices: contraction.classes(),
        };
        self.op(Opcode::Contract, &contraction.operands(), payload, &[])
    }

    // ---- calls

    /// A call, given the types of the callee's results.
    pub fn call(&mut self, callee: FunctionId, args: &[Value], results: &[Type]) -> Op {
        self.op(Opcode::Call, args, Payload::Callee(callee), results)
    }

    // ---- control

    /// An `if` with two empty regions and these results.
    pub fn if_else(&mut self, condition: Value, results: &[Type]) -> (Op, Region, Region) {
        let op = self.op(Opcode::If, &[condition], Payload::None, results);
        let then_region = self.function.new_region(&[]);
        let else_region = self.function.new_region(&[]);
        self.function.ops[op].regions.push(then_region);
        self.function.ops[op].regions.push(else_region);
        (op, then_region, else_region)
    }

    /// A counted loop with an empty body, whose first argument is the counter.
    pub fn for_loop(
        &mut self,
        from: Value,
        to: Value,
        step: Value,
        initial: &[Value],
    ) -> (Op, Region) {
        let mut operands: SmallVec<[Value; 8]> = SmallVec::from_slice(&[from, to, step]);
        operands.extend_from_slice(initial);
        let carried: SmallVec<[Type; 8]> = initial.iter().map(|&value| self.ty(value)).collect();
        let counter = self.ty(from);
        let op = self.op(Opcode::For, &operands, Payload::None, &carried);
        let region = self.function.new_region(&[counter]);
        for &ty in &carried {
            self.function.add_argument(region, ty);
        }
        self.function.ops[op].regions.push(region);
        (op, region)
    }

    /// A general loop with an empty body.
    pub fn loop_while(&mut self, initial: &[Value]) -> (Op, Region) {
        let carried: SmallVec<[Type; 8]> = initial.iter().map(|&value| self.ty(value)).collect();
        let op = self.op(Opcode::Loop, initial, Payload::None, &carried);
        let region = self.function.new_region(&carried);
        self.function.ops[op].regions.push(region);
        (op, region)
    }

    /// Ends a region of `if`, `switch` or `for`.
    pub fn yields(&mut self, values: &[Value]) -> Op {
        self.op(Opcode::Yield, values, Payload::None, &[])
    }

    /// Ends the region of a `loop`.
    pub fn again(&mut self, condition: Value, values: &[Value]) -> Op {
        let mut operands: SmallVec<[Value; 8]> = SmallVec::from_slice(&[condition]);
        operands.extend_from_slice(values);
        self.op(Opcode::Again, &operands, Payload::None, &[])
    }

    /// Ends the function's body.
    pub fn ret(&mut self, values: &[Value]) -> Op {
        self.op(Opcode::Return, values, Payload::None, &[])
    }

    /// Stops the program.
    pub fn trap(&mut self, message: &str) -> Op {
        self.op(Opcode::Trap, &[], Payload::Message(message.into()), &[])
    }

    /// Stops the program by a call that does not return.
    pub fn trap_call(&mut self, callee: FunctionId, args: &[Value]) -> Op {
        self.op(Opcode::Trap, args, Payload::Callee(callee), &[])
    }
}
