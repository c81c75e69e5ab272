//! Functions besides `@main`.
//!
//! A function tells what its callers must give it: arrays of a certain length, floats of at most [`SMALL`], integers in a
//! range. The facts on its parameters (`noalias`, `readonly`, ranges) are true because calls respect them.

use super::memory::eight;
use super::owner::{Shape, write_dropper, write_linker, write_maker, write_replacer};
use super::plain_layout;
use super::recursion::write_recursive;
use super::rule::write_function_with_rule;
use super::scope::{Array, Element, Int, Owner, POINTEE, SMALL};
use super::writer::{Shared, Writer};
use crate::feature::Feature;
use ferrozyme_ir::{
    Function, FunctionId, MemoryEffect, Param, ParamFacts, Range, Scalar, Type, Value,
};

/// A function that can be called.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    pub(crate) id: FunctionId,
    pub(crate) params: Vec<Parameter>,
    pub(crate) results: Vec<Outcome>,
    /// About how many operations a call runs at most.
    pub(crate) cost: u64,
    /// Another function that asks for and gives the same: one of the two is called through a pointer.
    pub(crate) twin: Option<FunctionId>,
    /// Whether it promises to write nothing that its caller sees.
    pub(crate) reads_only: bool,
    /// What it is good for.
    pub(crate) role: Role,
}

/// What a function is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Anything: it can be called anywhere.
    General,
    /// It gives an owner of this shape its contents.
    Maker(Shape),
    /// It releases the contents of an owner of this shape.
    Dropper(Shape),
    /// It lets a structure point to memory that it is given.
    Linker,
}

impl Helper {
    pub(crate) fn new(
        id: FunctionId,
        params: Vec<Parameter>,
        results: Vec<Outcome>,
        cost: u64,
    ) -> Helper {
        Helper {
            id,
            params,
            results,
            cost,
            twin: None,
            reads_only: false,
            role: Role::General,
        }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parameter {
    /// A double of at most [`SMALL`].
    Float,
    /// An `i64` from 0 to `max`.
    Int { max: i64 },
    /// At least so many doubles.
    Array {
        length: i64,
        writable: bool,
        noalias: bool,
    },
    /// An array of pointers or structures.
    Object { element: Element, length: i64 },
    /// An owner.
    Owner { shape: Shape },
    /// The place of an owner that has no contents yet, or loses them.
    Slot,
    /// At least [`POINTEE`] doubles, to which a pointer is kept.
    Kept,
}

/// What a function gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// A double of at most [`SMALL`].
    Float,
    /// A pointer into one of the arrays it took, to so many doubles.
    Window { length: i64, writable: bool },
    /// New heap memory for so many doubles, which the caller releases.
    Fresh { length: i64 },
}

/// Writes a function of some kind and lists it among those that may be called.
pub(crate) fn write_helper(shared: &mut Shared<'_>, number: usize) {
    let kinds: &[u32] = if shared.profile.memory == 0 {
        &[6, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0]
    } else {
        &[4, 6, 10, 4, 4, 6, 2, 3, 10, 4, 2, 3]
    };
    match shared
        .random
        .weighted(kinds.iter().copied())
        .expect("some kind has a weight")
    {
        0 => write_scalar_function(shared, number),
        1 => write_reader(shared, number),
        2 => write_mutator(shared, number),
        3 => write_pointer_function(shared, number),
        4 => write_allocator(shared, number),
        5 => write_recursive(shared, number),
        6 => write_function_with_rule(shared, number),
        7 => write_twins(shared, number),
        8 => write_maker(shared, number),
        9 => write_replacer(shared, number),
        10 => write_dropper(shared, number),
        _ => write_linker(shared, number),
    }
}

fn write_scalar_function(shared: &mut Shared<'_>, number: usize) {
    let mut params = vec![Parameter::Float; 1 + shared.random.below(3)];
    if shared.random.percent(40) {
        params.push(Parameter::Int { max: 5 });
    }
    let results = vec![Outcome::Float; 1 + shared.random.below(2)];
    write_plain(shared, &format!("scalar{number}"), params, results, true);
}

fn write_reader(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::Reader);
    let params = array_params(shared, false);
    let results = vec![Outcome::Float; 1 + shared.random.below(2)];
    write_plain(shared, &format!("read{number}"), params, results, true);
}

fn write_mutator(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::Mutator);
    let params = array_params(shared, true);
    let mut params = params;
    if shared.random.percent(25) {
        shared.features.note(Feature::ObjectArgument);
        // What the object points to may be what the other arguments point to.
        for param in &mut params {
            if let Parameter::Array { noalias, .. } = param {
                *noalias = false;
            }
        }
        let element = shared.random.pick(&[Element::Pointer, Element::Record]);
        let length = match element {
            Element::Pointer => 2,
            _ => 1,
        };
        params.push(Parameter::Object { element, length });
    } else if shared.random.percent(15) {
        params.push(Parameter::Owner {
            shape: Shape::Record,
        });
    }
    let results = vec![Outcome::Float; shared.random.below(3)];
    write_plain(shared, &format!("write{number}"), params, results, false);
}

/// One or two arrays, perhaps a count, perhaps a float.
pub(crate) fn array_params(shared: &mut Shared<'_>, writable: bool) -> Vec<Parameter> {
    let length = shared.random.between(POINTEE, 6);
    let noalias = shared.random.percent(30);
    if noalias {
        shared.features.note(Feature::Noalias);
    }
    let mut params = vec![Parameter::Array {
        length,
        writable,
        noalias,
    }];
    if shared.random.percent(60) {
        let also_writable = writable && shared.random.percent(50);
        params.push(Parameter::Array {
            length,
            writable: also_writable,
            noalias,
        });
    }
    if shared.random.percent(50) {
        params.push(Parameter::Int { max: length });
    }
    if shared.random.percent(60) {
        params.push(Parameter::Float);
    }
    params
}

/// A function of statements that returns floats.
fn write_plain(
    shared: &mut Shared<'_>,
    name: &str,
    params: Vec<Parameter>,
    results: Vec<Outcome>,
    reads_only: bool,
) {
    let types = vec![Type::F64; results.len()];
    let mut function = define(shared, name, &params, types);
    if reads_only && shared.random.percent(60) {
        function.facts.memory = MemoryEffect::Read;
    }
    let mut writer = start(shared, function, &params);
    let operations = writer.random().between(3, 14) as usize;
    writer.limit = operations;
    writer.block(operations);
    let values: Vec<Value> = results.iter().map(|_| writer.small(2)).collect();
    finish(writer, params, results, &values, Role::General);
}

/// Two functions of the same signature, one of which is called through a pointer.
fn write_twins(shared: &mut Shared<'_>, number: usize) {
    let mut params = vec![Parameter::Float; 1 + shared.random.below(2)];
    if shared.profile.memory > 0 && shared.random.percent(60) {
        params.push(Parameter::Array {
            length: POINTEE,
            writable: shared.random.percent(60),
            noalias: false,
        });
    }
    let results = vec![Outcome::Float; 1 + shared.random.below(2)];
    for twin in ["left", "right"] {
        let name = format!("{twin}{number}");
        write_plain(shared, &name, params.clone(), results.clone(), false);
    }
    let right = shared.helpers.pop().expect("it was just written");
    // No caller can be seen that would tell what the pointers of such functions point to.
    let left = shared.helpers.last().expect("it was written before").id;
    for id in [left, right.id] {
        for param in &mut shared.module.functions[id].params {
            if param.ty.is_ptr() {
                param.facts.layout = Some(plain_layout(Scalar::F64));
            }
        }
    }
    if let Some(left) = shared.helpers.last_mut() {
        left.twin = Some(right.id);
        left.cost = left.cost.max(right.cost);
    }
}

/// Gives one of its arrays back, or a part of one.
fn write_pointer_function(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::PointerResult);
    let writable = shared.random.percent(70);
    let length = shared.random.between(POINTEE, 6);
    let array = Parameter::Array {
        length,
        writable,
        noalias: false,
    };
    let params = vec![array, array, Parameter::Float, Parameter::Int { max: 5 }];
    let result = Outcome::Window {
        length: POINTEE,
        writable,
    };
    let function = define(shared, &format!("choose{number}"), &params, vec![Type::PTR]);
    let mut writer = start(shared, function, &params);
    writer.limit = 4;
    if writer.random().percent(50) {
        writer.block(4);
    }
    let condition = writer.condition();
    let arguments = writer.function.arguments().to_vec();
    let first = writer.index(length - POINTEE + 1);
    let part = writer.b().offset(arguments[1], first, 8);
    let pointer = if writer.random().percent(50) {
        writer.b().select(condition, arguments[0], part)
    } else {
        let (op, then_region, else_region) = writer.b().if_else(condition, &[Type::PTR]);
        for (region, pointer) in [(then_region, arguments[0]), (else_region, part)] {
            let (outer, mark) = writer.enter(region);
            writer.release(mark);
            writer.b().yields(&[pointer]);
            writer.leave(outer);
        }
        writer.function.result(op)
    };
    finish(writer, params, vec![result], &[pointer], Role::General);
}

/// Gives new memory, filled from its arguments.
fn write_allocator(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::Allocator);
    shared.features.note(Feature::Heap);
    let params = vec![
        Parameter::Array {
            length: POINTEE,
            writable: false,
            noalias: false,
        },
        Parameter::Float,
    ];
    let length = shared.random.between(POINTEE, 6);
    let count = 1 + usize::from(shared.random.percent(30));
    let mut results = vec![Outcome::Fresh { length }; count];
    let mut types = vec![Type::PTR; count];
    let gives = shared.random.percent(30);
    if gives {
        results.push(Outcome::Float);
        types.push(Type::F64);
    }
    let function = define(shared, &format!("make{number}"), &params, types);
    let mut writer = start(shared, function, &params);
    let mut values = Vec::new();
    for _ in 0..count {
        let size = writer.int(8 * length);
        let pointer = writer.b().alloc(size, eight(), false);
        let object = Some(writer.shared.new_object());
        let array = Array {
            pointer,
            length,
            element: Element::Double,
            writable: true,
            object,
        };
        writer.initialise(array);
        writer.scope.arrays.push(array);
        values.push(pointer);
    }
    writer.limit = writer.function.ops.len() + 5;
    writer.block(5);
    if gives {
        values.push(writer.small(2));
    }
    finish(writer, params, results, &values, Role::General);
}

/// A function with these parameters, whose facts say what calls respect.
pub(crate) fn define(
    shared: &mut Shared<'_>,
    name: &str,
    params: &[Parameter],
    results: Vec<Type>,
) -> Function {
    let pointers_escape = results.contains(&Type::PTR);
    let told = shared.random.percent(70);
    let params = params
        .iter()
        .map(|param| match *param {
            Parameter::Float => Type::F64.into(),
            Parameter::Object { .. } | Parameter::Owner { .. } | Parameter::Kept => {
                Type::PTR.into()
            }
            Parameter::Slot => Param {
                ty: Type::PTR,
                facts: ParamFacts {
                    nocapture: told,
                    ..ParamFacts::default()
                },
            },
            Parameter::Int { max } => Param {
                ty: Type::I64,
                facts: ParamFacts {
                    range: told.then_some(Range {
                        min: 0,
                        max: i128::from(max),
                    }),
                    ..ParamFacts::default()
                },
            },
            Parameter::Array {
                writable, noalias, ..
            } => Param {
                ty: Type::PTR,
                facts: ParamFacts {
                    noalias,
                    readonly: told && !writable,
                    nocapture: told && !pointers_escape,
                    align: if told {
                        eight()
                    } else {
                        ferrozyme_ir::Alignment::ONE
                    },
                    ..ParamFacts::default()
                },
            },
        })
        .collect();
    let mut function = Function::define(name, params, results);
    function.facts.noinline = shared.random.percent(30);
    function.facts.willreturn = shared.random.percent(50);
    function
}

/// A writer in the body of a function, with its parameters in scope.
pub(crate) fn start<'s, 'p>(
    shared: &'s mut Shared<'p>,
    function: Function,
    params: &[Parameter],
) -> Writer<'s, 'p> {
    let mut writer = Writer::new(shared, function);
    let arguments = writer.function.arguments().to_vec();
    writer.bring_in_tables();
    for (param, value) in params.iter().zip(arguments) {
        match *param {
            Parameter::Float => {
                writer.name(value, "a");
                writer.add_float(value, SMALL);
            }
            Parameter::Int { max } => {
                writer.name(value, "k");
                writer.scope.ints.push(Int { value, min: 0, max });
            }
            Parameter::Object { element, length } => {
                writer.name(value, "o");
                // Pointers within may change places. New ones must not come in: they might not live long enough.
                writer.scope.arrays.push(Array {
                    pointer: value,
                    length,
                    element,
                    writable: element == Element::Pointer,
                    object: None,
                });
            }
            Parameter::Owner { shape } => {
                writer.name(value, "o");
                writer.scope.owners.push(Owner { slot: value, shape });
            }
            Parameter::Slot => writer.name(value, "out"),
            Parameter::Kept => {
                writer.name(value, "p");
                writer.scope.arrays.push(Array {
                    pointer: value,
                    length: POINTEE,
                    element: Element::Double,
                    writable: true,
                    object: None,
                });
            }
            Parameter::Array {
                length,
                writable,
                noalias,
            } => {
                writer.name(value, "p");
                let object = noalias.then(|| writer.shared.new_object());
                writer.scope.arrays.push(Array {
                    pointer: value,
                    length,
                    element: Element::Double,
                    writable,
                    object,
                });
            }
        }
    }
    writer
}

/// Releases memory, returns, and lists the function among those that may be called.
pub(crate) fn finish(
    mut writer: Writer<'_, '_>,
    params: Vec<Parameter>,
    results: Vec<Outcome>,
    values: &[Value],
    role: Role,
) {
    writer.release_all();
    writer.b().ret(values);
    let cost = writer.cost;
    let reads_only = writer.reads_only;
    let function = writer.function;
    let id = writer.shared.module.functions.push(function);
    let mut helper = Helper::new(id, params, results, cost);
    helper.reads_only = reads_only;
    helper.role = role;
    writer.shared.helpers.push(helper);
}
