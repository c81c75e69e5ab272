//! Random programs that are always valid to run.
//!
//! [`generate`] makes a module with a function `@main` and helpers from a seed. Whatever the inputs (see
//! [`Inputs`](crate::Inputs)), it terminates within some ten thousand operations, stays within its memory, reads nothing
//! uninitialised, releases what it allocates, and never traps. Facts such as `noalias` are true.
//!
//! ```text
//! func @main(%x: ptr layout [f64], %y: ptr layout [f64], %n: i64 range 0..=6, %s: f64) -> (f64)
//! ```
//!
//! Pointers are to eight doubles each. Functions are applied in their domains and magnitudes are kept in single
//! digits, so that derivatives exist almost everywhere and finite differences can check them.

mod call;
mod control;
mod float;
mod helper;
mod integer;
mod loops;
mod memory;
mod nest;
mod object;
mod owner;
mod recursion;
mod rule;
mod scope;
mod types;
mod writer;

use crate::feature::{Feature, Features};
use crate::profile::Profile;
use crate::random::Random;
use ferrozyme_ir::{
    Alignment, Field, Flags, Function, FunctionId, Global, Layout, Module, OpView, Opcode, Param,
    ParamFacts, Payload, Range, Scalar, Type, Value, all_ops,
};
use scope::{Array, Element, Float, SMALL};
use writer::{Shared, Writer};

/// How many doubles each pointer parameter of `@main` points to.
pub const ARRAY_LENGTH: usize = 8;

/// The largest value of integer parameters of `@main`.
pub const MAX_COUNT: i64 = 6;

/// A random program.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it was made from.
    pub seed: u64,
    /// Its code.
    pub module: Module,
    /// The function to run and differentiate.
    pub main: FunctionId,
    /// What it contains.
    pub features: Features,
}

/// The program of a seed.
pub fn generate(seed: u64, profile: &Profile) -> Program {
    let mut random = Random::new(seed);
    let inexact = random.percent(profile.inexact);
    let kinks = random.percent(profile.kinks);
    let named = random.percent(25);
    let flags = if random.percent(5) {
        random.pick(&[Flags::FAST, Flags::CONTRACT.union(Flags::REASSOC)])
    } else {
        Flags::NONE
    };
    let mut shared = Shared {
        random,
        profile,
        features: Features::default(),
        module: Module::new(),
        helpers: Vec::new(),
        inexact,
        kinks,
        flags,
        named,
        objects: 0,
        indices: Vec::new(),
        tables: Vec::new(),
        scratch: None,
        counter: None,
    };
    if !flags.is_empty() {
        shared.features.note(Feature::FastMath);
    }
    if named {
        shared.module.files.push("random.rs".to_owned());
    }
    write_tables(&mut shared);
    for number in 0..shared.random.below(profile.helpers + 1) {
        helper::write_helper(&mut shared, number);
    }
    let main = write_main(&mut shared);
    if shared.random.percent(20) {
        use_other_allocator(&mut shared);
    }
    Program {
        seed,
        module: shared.module,
        main,
        features: shared.features,
    }
}

/// Takes all memory from another allocator, which is told the size of what it gets back where that is known.
fn use_other_allocator(shared: &mut Shared<'_>) {
    let family = || Box::from("rust");
    for function in shared.module.functions.values_mut() {
        for op in all_ops(function) {
            let data = &function.ops[op];
            let release = match &data.payload {
                Payload::Alloc { align, zeroed, .. } => Payload::Alloc {
                    align: *align,
                    zeroed: *zeroed,
                    family: family(),
                },
                Payload::Free { .. } => match function.definition(data.address()) {
                    Some(OpView::Alloc { size, align, .. }) if function.is_constant(size) => {
                        function.ops[op].operands.push(size);
                        shared.features.note(Feature::SizedRelease);
                        Payload::Free {
                            align,
                            family: family(),
                        }
                    }
                    _ => Payload::Free {
                        align: Alignment::ONE,
                        family: family(),
                    },
                },
                _ => continue,
            };
            function.ops[op].payload = release;
        }
    }
}

/// Constant globals: tables of indices and of floats.
fn write_tables(shared: &mut Shared<'_>) {
    if shared.profile.memory == 0 {
        return;
    }
    if shared.random.percent(60) {
        let length = shared.random.between(3, 8);
        let below = shared.random.between(2, 4);
        let numbers: Vec<i64> = (0..length)
            .map(|_| shared.random.between(0, below - 1))
            .collect();
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        let global = constant_global("indices", bytes.collect(), Scalar::Int(64));
        let global = shared.module.globals.push(global);
        shared.indices.push((global, length, below));
    }
    if shared.random.percent(25) {
        let length = shared.random.between(4, 8);
        let numbers: Vec<f64> = (0..length)
            .map(|_| (shared.random.float(-2.0, 2.0) * 8.0).round() / 8.0)
            .collect();
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        let global = constant_global("coefficients", bytes.collect(), Scalar::F64);
        let global = shared.module.globals.push(global);
        shared.tables.push((global, length));
        shared.features.note(Feature::Table);
    }
    if shared.random.percent(12) {
        let length = shared.random.between(4, 6);
        let numbers: Vec<f64> = (0..length)
            .map(|_| (shared.random.float(-2.0, 2.0) * 8.0).round() / 8.0)
            .collect();
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        let mut global = constant_global("scratch", bytes.collect(), Scalar::F64);
        global.constant = false;
        let global = shared.module.globals.push(global);
        shared.scratch = Some((global, length));
        shared.features.note(Feature::GlobalMemory);
    }
    if shared.random.percent(10) {
        let bytes = 0i64.to_le_bytes().to_vec();
        let mut global = constant_global("counter", bytes, Scalar::Int(64));
        global.constant = false;
        shared.counter = Some(shared.module.globals.push(global));
    }
}

fn constant_global(name: &str, bytes: Vec<u8>, scalar: Scalar) -> Global {
    Global {
        name: name.to_owned(),
        size: bytes.len() as u64,
        align: Alignment::natural(Type::F64),
        constant: true,
        bytes: Some(bytes),
        relocations: Vec::new(),
        inactive: false,
        shared: false,
        thread_local: false,
        parts: Vec::new(),
        layout: Some(plain_layout(scalar)),
    }
}

fn plain_layout(scalar: Scalar) -> Layout {
    Layout {
        fields: vec![Field {
            offset: 0,
            scalar,
            pointee: None,
        }],
        stride: scalar.bytes(),
    }
}

impl Writer<'_, '_> {
    /// Brings the globals into scope.
    fn bring_in_tables(&mut self) {
        for (global, length, below) in self.shared.indices.clone() {
            let pointer = self.b().global_address(global);
            let object = Some(self.shared.new_object());
            self.scope.arrays.push(Array {
                pointer,
                length,
                element: Element::Index { below },
                writable: false,
                object,
            });
        }
        for (global, length) in self.shared.tables.clone() {
            let pointer = self.b().global_address(global);
            let object = Some(self.shared.new_object());
            self.scope.arrays.push(Array {
                pointer,
                length,
                element: Element::Double,
                writable: false,
                object,
            });
        }
        if let Some((global, length)) = self.shared.scratch {
            let pointer = self.b().global_address(global);
            // Functions reach it without being passed it, so it never counts as memory of its own.
            self.scope.arrays.push(Array {
                pointer,
                length,
                element: Element::Double,
                writable: !self.reads_only,
                object: None,
            });
        }
    }
}

fn write_main(shared: &mut Shared<'_>) -> FunctionId {
    let memory = shared.profile.memory > 0;
    let noalias = memory && shared.random.percent(50);
    let readonly = memory && shared.random.percent(15);
    let more_floats = shared.random.below(3);
    let results = 1 + usize::from(shared.random.percent(20));
    if noalias {
        shared.features.note(Feature::Noalias);
    }

    let array = |readonly: bool| Param {
        ty: Type::PTR,
        facts: ParamFacts {
            noalias,
            readonly,
            align: Alignment::natural(Type::F64),
            layout: Some(plain_layout(Scalar::F64)),
            ..ParamFacts::default()
        },
    };
    let count = Param {
        ty: Type::I64,
        facts: ParamFacts {
            range: Some(Range {
                min: 0,
                max: i128::from(MAX_COUNT),
            }),
            ..ParamFacts::default()
        },
    };
    let mut params = Vec::new();
    let mut names = Vec::new();
    if memory {
        params.extend([array(false), array(readonly)]);
        names.extend(["x", "y"]);
    }
    params.extend([count, Type::F64.into()]);
    names.extend(["n", "s"]);
    for name in ["t", "u"].into_iter().take(more_floats) {
        params.push(Type::F64.into());
        names.push(name);
    }
    let mut function = Function::define("main", params, vec![Type::F64; results]);
    for (value, name) in function.arguments().to_vec().into_iter().zip(names) {
        function.set_name(value, name);
    }

    let mut writer = Writer::new(shared, function);
    writer.bring_in_tables();
    let arguments = writer.function.arguments().to_vec();
    for (position, value) in arguments.into_iter().enumerate() {
        match writer.function.ty(value) {
            Type::PTR => {
                let object = noalias.then(|| writer.shared.new_object());
                let writable = !writer.function.params[position].facts.readonly;
                writer.scope.arrays.push(Array {
                    pointer: value,
                    length: ARRAY_LENGTH as i64,
                    element: Element::Double,
                    writable,
                    object,
                });
            }
            Type::I64 => {
                writer.add_int(value, 0, MAX_COUNT);
            }
            _ => {
                writer.add_float(value, 2.0);
            }
        }
    }
    let (least, most) = writer.shared.profile.operations;
    let operations = writer.random().between(least, most) as usize;
    writer.limit = operations;
    writer.block(operations);
    let values: Vec<Value> = (0..results).map(|_| writer.output()).collect();
    writer.release_all();
    writer.b().ret(&values);
    let function = writer.function;
    shared.module.functions.push(function)
}

impl Writer<'_, '_> {
    /// A result that depends on the latest values and on memory, so that little of the program is dead.
    fn output(&mut self) -> Value {
        let latest: Vec<Float> = self.scope.floats.iter().rev().take(3).copied().collect();
        let mut sum = self.small(1);
        for float in latest {
            let value = self.squash(float);
            sum = self.b().binary(Opcode::Fadd, sum, value);
        }
        if self.pick_doubles().is_some() {
            let element = self.load_somewhere();
            debug_assert!(element.bound <= SMALL);
            sum = self.b().fma(element.value, element.value, sum);
        }
        sum
    }
}
