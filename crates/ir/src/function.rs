//! A function: its values, operations and regions.
//!
//! A region is a list of operations that ends in a terminator; operations may hold regions. A value is visible in the
//! region that defines it, after its definition, and in all regions nested there. Constants are values without a
//! place: they are visible everywhere in their function, and equal constants are one value.

use crate::contraction::IndexClass;
use crate::facts::{Alignment, Flags, FunctionFacts, MemoryEffect, ParamFacts, Range};
use crate::opcode::{FloatPredicate, IntPredicate, Opcode};
use crate::types::{Scalar, Type};
use crate::{FunctionId, GlobalId, Location};
use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A value: the result of an operation, an argument of a region, or a constant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(u32);
entity_impl!(Op, "op");

/// A region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(u32);
entity_impl!(Region, "region");

/// The data of a value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Its definition.
    pub def: ValueDef,
    /// Its name in the text form; values without one are numbered.
    pub name: Option<Box<str>>,
    /// The range of an integer.
    pub range: Option<Range>,
}

/// The definition of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Result `index` of an operation.
    Result {
        /// The operation.
        op: Op,
        /// Which of its results.
        index: u32,
    },
    /// Argument `index` of a region: a parameter, a loop counter, or a carried value.
    Argument {
        /// The region.
        region: Region,
        /// Which of its arguments.
        index: u32,
    },
    /// A constant.
    Constant(Constant),
}

/// A constant, to be read with its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// The bits of a scalar, or of each lane of a vector; bits above the type's width are zero. `null` is the pointer 0.
    Bits(u128),
    /// The bits of each lane of a vector whose lanes differ.
    Lanes(Box<[u128]>),
    /// `undef`: an arbitrary value. Results computed from it are `undef` too; to branch on it or use it as an address is an error.
    Undef,
    /// The address of a global.
    Global(GlobalId),
    /// The address of a function.
    Function(FunctionId),
}

/// The data of an operation.
#[derive(Clone, Debug)]
pub struct OpData {
    /// The kind of operation.
    pub opcode: Opcode,
    /// The operands.
    pub operands: SmallVec<[Value; 4]>,
    /// The results.
    pub results: SmallVec<[Value; 2]>,
    /// The regions it holds.
    pub regions: SmallVec<[Region; 2]>,
    /// The rest of its definition.
    pub payload: Payload,
    /// Promises and permissions.
    pub flags: Flags,
    /// Its source location.
    pub location: Option<Location>,
}

/// The part of an operation that is neither operand nor region.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// `load`, `store`, `copy`, `move`, `fill`, `atomic_add`, `stack`.
    Align(Alignment),
    /// `icmp`.
    IntPredicate(IntPredicate),
    /// `fcmp`.
    FloatPredicate(FloatPredicate),
    /// `offset`: by how many bytes the index counts.
    Scale(i64),
    /// `alloc`.
    Alloc {
        /// Alignment of the memory.
        align: Alignment,
        /// Whether it starts as zeros.
        zeroed: bool,
        /// The allocator; the empty name is Ferrozyme's own.
        family: Box<str>,
    },
    /// `free`.
    Free {
        /// The alignment of the allocation; 1 for unknown.
        align: Alignment,
        /// Which allocator the memory goes back to.
        family: Box<str>,
    },
    /// `contract`.
    Contract {
        /// Alignment of all elements.
        align: Alignment,
        /// Whether the sums are added to the destination.
        add: bool,
        /// The classes of the indices, outermost first.
        indices: Box<[IndexClass]>,
    },
    /// `call`, and `trap` that calls.
    Callee(FunctionId),
    /// `call_indirect`: the types of the results (those of the arguments are the operands').
    Results(Box<[Type]>),
    /// `switch`: for each region but the last (the default), which values lead there.
    Cases(Box<[Box<[i128]>]>),
    /// `shuffle`.
    Lanes(Box<[u16]>),
    /// `trap` that calls nothing.
    Message(Box<str>),
}

/// The data of a region.
#[derive(Clone, Debug, Default)]
pub struct RegionData {
    /// Parameters of the function, counter and carried values of `for`, carried values of `loop`.
    pub args: SmallVec<[Value; 4]>,
    /// The operations; the last is a terminator.
    pub ops: Vec<Op>,
}

/// A parameter as the caller sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its type.
    pub ty: Type,
    /// Its facts.
    pub facts: ParamFacts,
}

impl Param {
    /// Whether it points to memory that is described as integers, without floats and pointers, and that the function does not write.
    pub fn leads_to_constant_numbers(&self) -> bool {
        let is_number = |field: &crate::Field| field.scalar.is_int();
        let layout = self.facts.layout.as_ref();
        self.facts.readonly
            && layout.is_some_and(|layout| {
                !layout.fields.is_empty() && layout.fields.iter().all(is_number)
            })
    }
}

impl From<Type> for Param {
    fn from(ty: Type) -> Param {
        Param {
            ty,
            facts: ParamFacts::default(),
        }
    }
}

/// A function, with a body or declared only.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, without `@`.
    pub name: String,
    /// Its parameters. The body's arguments correspond to them one by one.
    pub params: Vec<Param>,
    /// The types of its results.
    pub results: Vec<Type>,
    /// Its facts.
    pub facts: FunctionFacts,
    /// The outermost region, if the function is defined here.
    pub body: Option<Region>,
    /// All values.
    pub values: PrimaryMap<Value, ValueData>,
    /// All operations, including removed ones.
    pub ops: PrimaryMap<Op, OpData>,
    /// All regions, including removed ones.
    pub regions: PrimaryMap<Region, RegionData>,
    constants: FxHashMap<(Type, Constant), Value>,
}

impl Function {
    /// A function that is declared but has no body.
    pub fn declare(name: impl Into<String>, params: Vec<Param>, results: Vec<Type>) -> Function {
        Function {
            name: name.into(),
            params,
            results,
            facts: FunctionFacts::default(),
            body: None,
            values: PrimaryMap::new(),
            ops: PrimaryMap::new(),
            regions: PrimaryMap::new(),
            constants: FxHashMap::default(),
        }
    }

    /// A function with an empty body, whose arguments are the parameters.
    pub fn define(name: impl Into<String>, params: Vec<Param>, results: Vec<Type>) -> Function {
        let mut function = Function::declare(name, params, results);
        let types: Vec<Type> = function.params.iter().map(|param| param.ty).collect();
        function.body = Some(function.new_region(&types));
        function
    }

    /// The outermost region.
    ///
    /// # Panics
    /// If the function is only declared; check `body` first where that can be.
    pub fn body(&self) -> Region {
        self.body.expect("the function has a body")
    }

    /// Whether a call may write memory that its caller can see.
    pub fn may_write(&self) -> bool {
        let written = |param: &Param| param.ty.is_ptr() && !param.facts.readonly;
        match self.facts.memory {
            MemoryEffect::None | MemoryEffect::Read => false,
            MemoryEffect::Args => self.params.iter().any(written),
            MemoryEffect::Any => true,
        }
    }

    /// The values of the parameters.
    pub fn arguments(&self) -> &[Value] {
        &self.regions[self.body()].args
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The operation that a value is a result of, if any, and which one of its results.
    pub fn def_op(&self, value: Value) -> Option<(Op, usize)> {
        match self.values[value].def {
            ValueDef::Result { op, index } => Some((op, index as usize)),
            _ => None,
        }
    }

    /// The constant that a value is, if it is one.
    pub fn constant_of(&self, value: Value) -> Option<&Constant> {
        match &self.values[value].def {
            ValueDef::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// Whether a value is a constant.
    pub fn is_constant(&self, value: Value) -> bool {
        self.constant_of(value).is_some()
    }

    /// The integer that a value is, read as signed, if it is a scalar integer constant.
    pub fn int_of(&self, value: Value) -> Option<i128> {
        let ValueData { ty, def, .. } = &self.values[value];
        match (ty.is_vector(), ty.scalar(), def) {
            (false, Scalar::Int(bits), ValueDef::Constant(Constant::Bits(raw))) => {
                Some(sign_extend(*raw, u32::from(bits)))
            }
            _ => None,
        }
    }

    /// The float that a value is, if it is a float constant (the same in all lanes).
    pub fn float_of(&self, value: Value) -> Option<f64> {
        let ValueData { ty, def, .. } = &self.values[value];
        match def {
            ValueDef::Constant(Constant::Bits(raw)) => float_from_bits(ty.scalar(), *raw),
            _ => None,
        }
    }

    /// The value of a constant.
    pub fn constant(&mut self, ty: Type, constant: Constant) -> Value {
        let constant = match constant {
            Constant::Lanes(lanes) if lanes.iter().all(|lane| *lane == lanes[0]) => {
                Constant::Bits(lanes[0])
            }
            other => other,
        };
        if let Some(&value) = self.constants.get(&(ty, constant.clone())) {
            return value;
        }
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Constant(constant.clone()),
            name: None,
            range: None,
        });
        self.constants.insert((ty, constant), value);
        value
    }

    /// An integer constant, the same in all lanes; taken modulo the width.
    pub fn int(&mut self, ty: Type, value: i128) -> Value {
        let mask = ones(ty.scalar().bits());
        self.constant(ty, Constant::Bits(value as u128 & mask))
    }

    /// A float constant, rounded to the type, the same in all lanes.
    pub fn float(&mut self, ty: Type, value: f64) -> Value {
        self.constant(ty, Constant::Bits(float_to_bits(ty.scalar(), value)))
    }

    /// The constant 0, 0.0 or `null` of a type.
    pub fn zero(&mut self, ty: Type) -> Value {
        self.constant(ty, Constant::Bits(0))
    }

    /// The value that is none in particular.
    pub fn undef(&mut self, ty: Type) -> Value {
        self.constant(ty, Constant::Undef)
    }

    /// A new region with arguments of these types.
    pub fn new_region(&mut self, args: &[Type]) -> Region {
        let region = self.regions.push(RegionData::default());
        for &ty in args {
            self.add_argument(region, ty);
        }
        region
    }

    /// One more argument of a region.
    pub fn add_argument(&mut self, region: Region, ty: Type) -> Value {
        let index = self.regions[region].args.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Argument { region, index },
            name: None,
            range: None,
        });
        self.regions[region].args.push(value);
        value
    }

    /// A new operation, not yet in any region, with results of these types.
    pub fn new_op(&mut self, data: OpData, results: &[Type]) -> Op {
        debug_assert!(data.results.is_empty());
        let op = self.ops.push(data);
        for &ty in results {
            self.add_result(op, ty);
        }
        op
    }

    /// One more result of an operation.
    pub fn add_result(&mut self, op: Op, ty: Type) -> Value {
        let index = self.ops[op].results.len() as u32;
        let value = self.values.push(ValueData {
            ty,
            def: ValueDef::Result { op, index },
            name: None,
            range: None,
        });
        self.ops[op].results.push(value);
        value
    }

    /// The first result of an operation.
    pub fn result(&self, op: Op) -> Value {
        self.ops[op].results[0]
    }

    /// The last operation of a region.
    ///
    /// # Panics
    /// If the region is empty, which no verified function has.
    pub fn terminator(&self, region: Region) -> Op {
        *self.regions[region]
            .ops
            .last()
            .expect("a region ends in a terminator")
    }

    /// Whether control never reaches the end of this region.
    pub fn ends_in_trap(&self, region: Region) -> bool {
        self.ops[self.terminator(region)].opcode == Opcode::Trap
    }

    /// Names a value for the text form.
    pub fn set_name(&mut self, value: Value, name: impl Into<Box<str>>) {
        self.values[value].name = Some(name.into());
    }

    /// The position of a `switch`'s region, or of its default, for a value.
    pub fn case_of(cases: &[Box<[i128]>], value: i128) -> usize {
        cases
            .iter()
            .position(|case| case.contains(&value))
            .unwrap_or(cases.len())
    }

    /// Replaces every operand that `replacement` maps to something else, in all operations, following chains.
    pub fn replace_operands(&mut self, replacement: &FxHashMap<Value, Value>) {
        if replacement.is_empty() {
            return;
        }
        for data in self.ops.values_mut() {
            for operand in &mut data.operands {
                while let Some(&other) = replacement.get(operand) {
                    *operand = other;
                }
            }
        }
    }
}

/// All ones in the low `bits` bits.
pub fn ones(bits: u32) -> u128 {
    if bits >= 128 {
        u128::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Reads the low `bits` bits as a signed number.
pub fn sign_extend(raw: u128, bits: u32) -> i128 {
    let shift = 128 - bits;
    ((raw << shift) as i128) >> shift
}

/// The bits of a float of this type, rounded from a double to nearest, ties to even.
pub fn float_to_bits(scalar: Scalar, value: f64) -> u128 {
    match scalar {
        // Once to odd and then to nearest is the same as once to nearest, twice to nearest is not.
        Scalar::F16 => u128::from(half::f16::from_f32(round_to_odd(value)).to_bits()),
        Scalar::Bf16 => u128::from(half::bf16::from_f32(round_to_odd(value)).to_bits()),
        Scalar::F32 => u128::from((value as f32).to_bits()),
        Scalar::F64 => u128::from(value.to_bits()),
        Scalar::Int(_) | Scalar::Ptr => panic!("{scalar} is not a floating-point type"),
    }
}

/// The float of this type with these bits, as a double; none for other types.
pub fn float_from_bits(scalar: Scalar, raw: u128) -> Option<f64> {
    match scalar {
        Scalar::F16 => Some(half::f16::from_bits(raw as u16).to_f64()),
        Scalar::Bf16 => Some(half::bf16::from_bits(raw as u16).to_f64()),
        Scalar::F32 => Some(f64::from(f32::from_bits(raw as u32))),
        Scalar::F64 => Some(f64::from_bits(raw as u64)),
        Scalar::Int(_) | Scalar::Ptr => None,
    }
}

/// Rounds to single precision: exactly, or to the odd neighbour.
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let towards_zero = if f64::from(nearest).abs() > value.abs() {
        nearest.to_bits() - 1
    } else {
        nearest.to_bits()
    };
    f32::from_bits(towards_zero | 1)
}
