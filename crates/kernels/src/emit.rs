//! Builds functions: loops, branches and address arithmetic as closures over the IR's [`Builder`].
//!
//! Sizes and strides are `i64`. Strides are in bytes, and addresses are always computed as `base + bytes`, so that nothing here depends on the type of elements.

use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, IntPredicate, Module, Opcode, Param, Payload,
    ProcessorLevel, Scalar, Type, Value,
};
use std::ops::{Deref, DerefMut};

/// The body of a function while it is being built.
pub(crate) struct Code<'f> {
    builder: Builder<'f>,
}

impl<'f> Deref for Code<'f> {
    type Target = Builder<'f>;

    fn deref(&self) -> &Builder<'f> {
        &self.builder
    }
}

impl<'f> DerefMut for Code<'f> {
    fn deref_mut(&mut self) -> &mut Builder<'f> {
        &mut self.builder
    }
}

/// What a function is defined with besides its parameters.
pub(crate) struct Head {
    pub(crate) name: String,
    /// The type of elements.
    pub(crate) element: Scalar,
    /// What the processor has that runs it.
    pub(crate) level: Option<ProcessorLevel>,
}

/// A type with the parameters of a function, by name: what it is defined with and called with.
///
/// Types are `pointer`, `size` (an `i64`), `element` and `condition`.
macro_rules! parameters {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ident,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            $($(#[doc = $field_doc])* pub(crate) $field: ferrozyme_ir::Value,)+
        }

        impl $name {
            /// Adds a function without results to a module, unless it has one of this name.
            pub(crate) fn define(
                module: &mut ferrozyme_ir::Module,
                head: $crate::emit::Head,
                build: impl FnOnce(&mut $crate::emit::Code<'_>, &$name),
            ) -> ferrozyme_ir::FunctionId {
                let params = [$((stringify!($field), $crate::emit::$ty(head.element))),+];
                $crate::emit::define(module, head, &params, |code, arguments| {
                    let [$($field),+] = *arguments else {
                        unreachable!("a function has as many arguments as parameters");
                    };
                    build(code, &$name { $($field),+ });
                })
            }

            /// Values that are made one after the other, from their types.
            #[allow(dead_code, reason = "not all operands are made this way")]
            pub(crate) fn each(
                element: ferrozyme_ir::Scalar,
                mut make: impl FnMut(ferrozyme_ir::Type) -> ferrozyme_ir::Value,
            ) -> $name {
                $(let $field = make($crate::emit::$ty(element));)+
                $name { $($field),+ }
            }

            /// The arguments of a call, in order.
            pub(crate) fn arguments(&self) -> Vec<ferrozyme_ir::Value> {
                vec![$(self.$field),+]
            }
        }
    };
}
pub(crate) use parameters;

/// The types of parameters, by the names that [`parameters`] has for them.
pub(crate) fn pointer(_: Scalar) -> Type {
    Type::PTR
}

pub(crate) fn size(_: Scalar) -> Type {
    Type::I64
}

pub(crate) fn element(of: Scalar) -> Type {
    Type::scalar_of(of)
}

pub(crate) fn condition(_: Scalar) -> Type {
    Type::I1
}

/// Adds a function without results to a module, unless it has one of this name; `build` gets its parameters in order.
pub(crate) fn define(
    module: &mut Module,
    head: Head,
    params: &[(&str, Type)],
    build: impl FnOnce(&mut Code<'_>, &[Value]),
) -> FunctionId {
    if let Some(known) = module.function_named(&head.name) {
        return known;
    }
    let types = params.iter().map(|(_, ty)| Param::from(*ty)).collect();
    let mut function = Function::define(head.name, types, Vec::new());
    function.facts.level = head.level;
    // Each is large, or called from many places.
    function.facts.noinline = true;
    let arguments = function.arguments().to_vec();
    for (&argument, (name, _)) in arguments.iter().zip(params) {
        function.set_name(argument, *name);
    }
    let mut code = Code {
        builder: Builder::at_body(&mut function),
    };
    build(&mut code, &arguments);
    code.ret(&[]);
    module.functions.push(function)
}

impl Code<'_> {
    // ---- integers

    pub(crate) fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Sub, a, b)
    }

    pub(crate) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Mul, a, b)
    }

    pub(crate) fn mul_by(&mut self, a: Value, factor: u64) -> Value {
        let factor = self.i64(factor as i64);
        self.mul(a, factor)
    }

    /// The quotient of a number that is not negative.
    pub(crate) fn div(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Udiv, a, b)
    }

    pub(crate) fn div_by(&mut self, a: Value, divisor: u64) -> Value {
        let divisor = self.i64(divisor as i64);
        self.div(a, divisor)
    }

    /// The quotient of numbers that are not negative, rounded up.
    pub(crate) fn div_up(&mut self, a: Value, b: Value) -> Value {
        let one = self.i64(1);
        let last = self.sub(b, one);
        let above = self.add(a, last);
        self.div(above, b)
    }

    pub(crate) fn min(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Smin, a, b)
    }

    pub(crate) fn compare(&mut self, predicate: IntPredicate, a: Value, b: i64) -> Value {
        let b = self.i64(b);
        self.icmp(predicate, a, b)
    }

    pub(crate) fn and(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::And, a, b)
    }

    pub(crate) fn or(&mut self, a: Value, b: Value) -> Value {
        self.binary(Opcode::Or, a, b)
    }

    // ---- memory

    /// The address `base + bytes`.
    pub(crate) fn at(&mut self, base: Value, bytes: Value) -> Value {
        self.offset(base, bytes, 1)
    }

    /// The address `base + index·stride`.
    pub(crate) fn element(&mut self, base: Value, index: Value, stride: Value) -> Value {
        let bytes = self.mul(index, stride);
        self.at(base, bytes)
    }

    /// Loads a scalar or vector that is aligned as its elements are.
    pub(crate) fn read(&mut self, ty: Type, address: Value) -> Value {
        self.load(ty, address, Alignment::natural(ty))
    }

    /// Stores a scalar or vector that is aligned as its elements are.
    pub(crate) fn write(&mut self, value: Value, address: Value) {
        let align = Alignment::natural(self.ty(value));
        self.store(value, address, align);
    }

    // ---- vectors

    /// A vector of equal lanes; a scalar type is its own vector.
    pub(crate) fn splat(&mut self, ty: Type, scalar: Value) -> Value {
        match ty.is_vector() {
            true => self.value(Opcode::Splat, &[scalar], Payload::None, ty),
            false => scalar,
        }
    }

    /// Lanes of two vectors, counted through.
    pub(crate) fn shuffle(&mut self, a: Value, b: Value, lanes: Vec<u16>) -> Value {
        let ty = Type::vector_of(self.ty(a).scalar(), lanes.len() as u16);
        self.value(Opcode::Shuffle, &[a, b], Payload::Lanes(lanes.into()), ty)
    }

    // ---- control

    /// Counts from 0 to `count`; the body gets the counter and the carried values, and gives their next ones.
    pub(crate) fn repeat<const N: usize>(
        &mut self,
        count: Value,
        initial: [Value; N],
        body: impl FnOnce(&mut Code<'_>, Value, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let next = |code: &mut Code<'_>, counter: Value, carried: &[Value]| {
            let carried = std::array::from_fn(|index| carried[index]);
            body(code, counter, carried).to_vec()
        };
        let results = self.repeat_with(count, &initial, next);
        std::array::from_fn(|index| results[index])
    }

    /// As [`repeat`](Code::repeat), with any number of carried values.
    pub(crate) fn repeat_with(
        &mut self,
        count: Value,
        initial: &[Value],
        body: impl FnOnce(&mut Code<'_>, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (zero, one) = (self.i64(0), self.i64(1));
        let (op, region) = self.for_loop(zero, count, one, initial);
        let arguments = self.function.regions[region].args.to_vec();
        let outer = self.go_to_end(region);
        let next = body(self, arguments[0], &arguments[1..]);
        self.yields(&next);
        self.cursor = outer;
        self.function.ops[op].results.to_vec()
    }

    /// Runs one of two bodies, which give as many values.
    pub(crate) fn choose<const N: usize>(
        &mut self,
        condition: Value,
        types: [Type; N],
        then: impl FnOnce(&mut Code<'_>) -> [Value; N],
        otherwise: impl FnOnce(&mut Code<'_>) -> [Value; N],
    ) -> [Value; N] {
        let (op, then_region, else_region) = self.if_else(condition, &types);
        let outer = self.go_to_end(then_region);
        let values = then(self);
        self.yields(&values);
        self.go_to_end(else_region);
        let values = otherwise(self);
        self.yields(&values);
        self.cursor = outer;
        std::array::from_fn(|index| self.function.ops[op].results[index])
    }

    /// Runs a body if a condition holds.
    pub(crate) fn when(&mut self, condition: Value, then: impl FnOnce(&mut Code<'_>)) {
        let then = |code: &mut Code<'_>| {
            then(code);
            []
        };
        self.choose(condition, [], then, |_| []);
    }

    /// Runs one of two bodies.
    pub(crate) fn either(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Code<'_>),
        otherwise: impl FnOnce(&mut Code<'_>),
    ) {
        let then = |code: &mut Code<'_>| {
            then(code);
            []
        };
        let otherwise = |code: &mut Code<'_>| {
            otherwise(code);
            []
        };
        self.choose(condition, [], then, otherwise);
    }

    /// A call of a function without results.
    pub(crate) fn run(&mut self, callee: FunctionId, arguments: &[Value]) {
        self.call(callee, arguments, &[]);
    }
}

/// The type of `lanes` elements: a vector, or the element itself for one lane.
pub(crate) fn lanes_of(element: Scalar, lanes: u16) -> Type {
    match lanes {
        1 => Type::scalar_of(element),
        _ => Type::vector_of(element, lanes),
    }
}
