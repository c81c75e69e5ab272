//! Operations with their operands by name.
//!
//! [`OpData::view`] returns an operation as an [`OpView`], whose fields are named in the operation's row in `opcode.rs`; [`OpData::view_mut`] returns mutable references
//! instead of values. Where the operation is known, methods return single operands: `data.address()` of a load or a store. They panic for operations that
//! have no such operand, and for operations that do not verify: both are bugs of the compiler.
//!
//! ```
//! use ferrozyme_ir::{OpView, parse_module};
//! let module = parse_module("func @f(%x: f64, %p: ptr) {\n  store f64 %x, %p align 8\n  return\n}").unwrap();
//! let function = module.functions.values().next().unwrap();
//! let store = &function.ops[function.regions[function.body()].ops[0]];
//! let &[x, p] = function.arguments() else { unreachable!() };
//! assert!(matches!(store.view(), OpView::Store { value, address, .. } if value == x && address == p));
//! assert_eq!(store.address(), p);
//! ```

use crate::contraction::IndexClass;
use crate::facts::Alignment;
use crate::function::{Function, Op, OpData, Payload, Region, Value};
use crate::module::FunctionId;
use crate::opcode::{FloatPredicate, Form, IntPredicate, Opcode, with_shapes};
use crate::types::Type;

/// A pattern, or one that always matches where there is none.
macro_rules! any_or {
    () => {
        _
    };
    ($pattern:pat) => {
        $pattern
    };
}

/// Makes views of the rows that have a shape of their own.
macro_rules! views {
    ($($name:ident {
        ($($operand:ident $(,)?)* $(..$list:ident)? $(?$optional:ident)?)
        $($payload:ident
            $(($field:ident: $field_type:ty))?
            $((&$part:ident: $part_type:ty))?
            $({ $($member:ident: $member_type:ty,)+ &$text:ident: $text_type:ty })?
        )?
        $([$($region:ident),+])?
    })*) => {
        /// An operation with its operands by name. `V` is an operand, `L` a list of operands.
        #[allow(missing_docs, reason = "the names are those of the table in `opcode.rs`")]
        #[derive(Clone, Copy, Debug)]
        pub enum OpView<'a, V = Value, L = &'a [Value]> {
            /// An operation on one number, or on the lanes of one vector.
            Unary(Opcode, V),
            /// An operation on two.
            Binary(Opcode, V, V),
            /// An operation on three.
            Ternary(Opcode, V, V, V),
            /// A comparison of integers or addresses.
            Icmp(IntPredicate, V, V),
            /// A comparison of floats.
            Fcmp(FloatPredicate, V, V),
            /// A cast.
            Cast(Opcode, V),
            $(
                #[doc = concat!("See [`Opcode::", stringify!($name), "`].")]
                $name {
                    $($operand: V,)*
                    $($list: L,)?
                    $($optional: Option<V>,)?
                    $(
                        $($field: $field_type,)?
                        $($part: &'a $part_type,)?
                        $($($member: $member_type,)+ $text: &'a $text_type)?
                    )?
                    $($($region: Region,)+)?
                },
            )*
        }

        impl<'a, V, L> OpView<'a, V, L> {
            /// Names each operand; none if there are too few, or payload or regions are not those of the operation.
            #[inline]
            fn name_operands(
                opcode: Opcode,
                mut operands: impl Operands<V, L>,
                payload: &'a Payload,
                regions: &'a [Region],
            ) -> Option<Self> {
                Some(match (opcode, payload, regions) {
                    $((
                        Opcode::$name,
                        any_or!($(Payload::$payload {
                            $(0: $field,)?
                            $(0: $part,)?
                            $($($member,)+ $text,)?
                            ..
                        })?),
                        any_or!($(&[$($region),+])?),
                    ) => OpView::$name {
                        $($operand: operands.first()?,)*
                        $($list: operands.rest(),)?
                        $($optional: operands.first(),)?
                        $($($field: *$field,)? $($part,)? $($($member: *$member,)+ $text)?)?
                        $($($region,)+)?
                    },)*
                    (Opcode::Icmp, &Payload::IntPredicate(predicate), _) => {
                        OpView::Icmp(predicate, operands.first()?, operands.first()?)
                    }
                    (Opcode::Fcmp, &Payload::FloatPredicate(predicate), _) => {
                        OpView::Fcmp(predicate, operands.first()?, operands.first()?)
                    }
                    _ => match opcode.form() {
                        Form::Cast => OpView::Cast(opcode, operands.first()?),
                        Form::IntUnary
                        | Form::FloatUnary
                        | Form::FloatToExponent
                        | Form::FloatSplit
                        | Form::FloatPair => OpView::Unary(opcode, operands.first()?),
                        Form::IntBinary | Form::FloatBinary | Form::FloatAndInt => {
                            OpView::Binary(opcode, operands.first()?, operands.first()?)
                        }
                        Form::FloatTernary => OpView::Ternary(
                            opcode,
                            operands.first()?,
                            operands.first()?,
                            operands.first()?,
                        ),
                        _ => return None,
                    },
                })
            }
        }

        impl Opcode {
            /// The names of the operands of an operation with a shape of its own, without those that it takes any number of, which come behind them.
            pub fn operand_names(self) -> &'static [&'static str] {
                match self {
                    $(Opcode::$name => &[$(stringify!($operand)),*],)*
                    _ => &[],
                }
            }

            /// Whether this payload belongs to the operation.
            pub(crate) fn has_payload(self, payload: &Payload) -> bool {
                match self {
                    Opcode::Trap => matches!(payload, Payload::Message(_) | Payload::Callee(_)),
                    Opcode::Icmp => matches!(payload, Payload::IntPredicate(_)),
                    Opcode::Fcmp => matches!(payload, Payload::FloatPredicate(_)),
                    $($(Opcode::$name => matches!(payload, Payload::$payload { .. }),)?)*
                    _ => *payload == Payload::None,
                }
            }
        }
    };
}

with_shapes!(views!);

/// Operands that get their names one by one.
trait Operands<V, L> {
    /// Takes the first of those that are left.
    fn first(&mut self) -> Option<V>;
    /// All that are left.
    fn rest(self) -> L;
}

impl<'a, V: Copy> Operands<V, &'a [V]> for &'a [V] {
    #[inline]
    fn first(&mut self) -> Option<V> {
        self.split_off_first().copied()
    }

    #[inline]
    fn rest(self) -> &'a [V] {
        self
    }
}

impl<'a> Operands<&'a mut Value, &'a mut [Value]> for &'a mut [Value] {
    #[inline]
    fn first(&mut self) -> Option<&'a mut Value> {
        self.split_off_first_mut()
    }

    #[inline]
    fn rest(self) -> &'a mut [Value] {
        self
    }
}

/// An operation with the places of its operands by name.
pub type OpViewMut<'a> = OpView<'a, &'a mut Value, &'a mut [Value]>;

/// Makes a method for an operand, and one to write it, of all operations that have an operand of this name.
macro_rules! operands {
    ($($(#[doc = $doc:literal])+ $name:ident $name_mut:ident: $type:ty, $type_mut:ty { $($op:ident)+ })+) => {
        $(
            $(#[doc = $doc])+
            pub fn $name(&self) -> $type {
                match self.view() {
                    $(OpView::$op { $name, .. })|+ => $name,
                    _ => has_none(self.opcode, stringify!($name)),
                }
            }

            #[doc = concat!("The place of [`", stringify!($name), "`](Self::", stringify!($name), ").")]
            pub fn $name_mut(&mut self) -> $type_mut {
                let opcode = self.opcode;
                match self.view_mut() {
                    $(OpView::$op { $name, .. })|+ => $name,
                    _ => has_none(opcode, stringify!($name)),
                }
            }
        )+
    };
}

#[cold]
fn has_none(opcode: Opcode, name: &str) -> ! {
    panic!("bug: {opcode} has no operand that is called {name}")
}

impl Function {
    /// An operation with its operands by name.
    pub fn view(&self, op: Op) -> OpView<'_> {
        self.ops[op].view()
    }

    /// The operation that a value is a result of, if any, with its operands by name.
    pub fn definition(&self, value: Value) -> Option<OpView<'_>> {
        self.def_op(value).map(|(op, _)| self.view(op))
    }

    /// The arguments of a loop's body that hold the carried values: all but the counter of a `for`.
    pub fn carried(&self, op: Op) -> &[Value] {
        match self.view(op) {
            OpView::For { body, .. } => &self.regions[body].args[1..],
            OpView::Loop { body, .. } => &self.regions[body].args,
            _ => panic!("bug: {} carries nothing", self.ops[op].opcode),
        }
    }

    /// The counter of a `for`: the first argument of its body.
    pub fn counter(&self, op: Op) -> Value {
        match self.view(op) {
            OpView::For { body, .. } => self.regions[body].args[0],
            _ => panic!("bug: {} has no counter", self.ops[op].opcode),
        }
    }
}

impl OpData {
    /// The operation with its operands by name.
    ///
    /// # Panics
    /// If it has too few operands, or payload or regions of another operation, which is a bug in the code that made it.
    pub fn view(&self) -> OpView<'_> {
        self.view_with(&self.operands)
    }

    /// The operation with what stands for its operands by name: `values` correspond to the operands one by one.
    ///
    /// # Panics
    /// As [`view`](Self::view).
    #[inline]
    pub fn view_with<'a, V: Copy>(&'a self, values: &'a [V]) -> OpView<'a, V, &'a [V]> {
        OpView::name_operands(self.opcode, values, &self.payload, &self.regions)
            .unwrap_or_else(|| self.is_malformed())
    }

    /// The operation with the places of its operands by name, to write them.
    ///
    /// # Panics
    /// As [`view`](Self::view).
    pub fn view_mut(&mut self) -> OpViewMut<'_> {
        let opcode = self.opcode;
        OpView::name_operands(opcode, &mut self.operands[..], &self.payload, &self.regions)
            .unwrap_or_else(|| panic!("bug: {opcode} is malformed"))
    }

    #[cold]
    #[inline(never)]
    fn is_malformed(&self) -> ! {
        panic!("bug: {} is malformed: {self:?}", self.opcode)
    }

    operands! {
        /// The address that memory is read, written or released at.
        address address_mut: Value, &mut Value { Load Store AtomicAdd Free }
        /// The value that is stored or added to memory.
        value value_mut: Value, &mut Value { Store AtomicAdd }
        /// The base of an `offset`.
        base base_mut: Value, &mut Value { Offset }
        /// What an `offset` multiplies with its scale.
        index index_mut: Value, &mut Value { Offset }
        /// How many bytes are made, copied or filled.
        size size_mut: Value, &mut Value { Stack Alloc Copy Move Fill }
        /// Where bytes go.
        destination destination_mut: Value, &mut Value { Copy Move Fill Contract }
        /// The source of a copy.
        source source_mut: Value, &mut Value { Copy Move }
        /// The condition of a `select`, an `if`, or a loop.
        condition condition_mut: Value, &mut Value { Select If Again }
        /// The address of the function that `call_indirect` calls.
        target target_mut: Value, &mut Value { CallIndirect }
        /// The arguments of a call.
        arguments arguments_mut: &[Value], &mut [Value] { Call CallIndirect Trap }
        /// Where the counter of a `for` starts.
        from from_mut: Value, &mut Value { For }
        /// The bound of a `for`'s counter, exclusive.
        to to_mut: Value, &mut Value { For }
        /// The step of a `for`'s counter.
        step step_mut: Value, &mut Value { For }
        /// The initial values of carried values.
        initial initial_mut: &[Value], &mut [Value] { For Loop }
        /// The operands of a `yield` or `return`, and the carried values of an `again`.
        values values_mut: &[Value], &mut [Value] { Yield Again Return }
    }

    /// The start, bound and step of a `for`'s counter.
    pub fn bounds(&self) -> [Value; 3] {
        match self.view() {
            OpView::For { from, to, step, .. } => [from, to, step],
            _ => has_none(self.opcode, "bounds"),
        }
    }

    /// The region of a loop.
    pub fn body(&self) -> Region {
        match self.view() {
            OpView::For { body, .. } | OpView::Loop { body, .. } => body,
            _ => panic!("bug: {} has no body", self.opcode),
        }
    }

    /// The operand of an operation on one number or vector.
    pub fn operand(&self) -> Value {
        match self.view() {
            OpView::Unary(_, operand) | OpView::Cast(_, operand) => operand,
            _ => has_none(self.opcode, "operand"),
        }
    }

    /// The operands of an operation on two numbers or vectors, or of a comparison.
    pub fn both(&self) -> [Value; 2] {
        match self.view() {
            OpView::Binary(_, a, b) | OpView::Icmp(_, a, b) | OpView::Fcmp(_, a, b) => [a, b],
            _ => has_none(self.opcode, "both"),
        }
    }
}

#[cfg(test)]
mod tests;
