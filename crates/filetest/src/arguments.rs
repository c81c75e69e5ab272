//! Stores written arguments in a machine's memory, and compares results with expectations.

use crate::value::{Cell, Written, size_of};
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{Scalar, Type, float_to_bits, ones};

/// Arguments in memory.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The arguments of the call.
    pub data: Vec<Datum>,
    /// For each argument that points into this memory, where to.
    pub targets: Vec<Option<Target>>,
    /// The memory of all arguments, the blocks of an argument before those of the next.
    pub blocks: Vec<Block>,
}

/// Memory of an argument.
#[derive(Clone, Debug)]
pub struct Block {
    /// Where it is.
    pub at: Pointer,
    /// Its contents, as written.
    pub cells: Vec<Cell>,
    /// For each cell that points into memory of the arguments, where to.
    pub targets: Vec<Option<Target>>,
}

/// A place in memory of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Which block.
    pub block: usize,
    /// How many bytes from its start.
    pub offset: i64,
}

/// Puts arguments of these types into memory.
pub fn place_arguments(
    machine: &mut Machine,
    types: &[Type],
    written: &[Written],
) -> Result<Arguments, String> {
    if types.len() != written.len() {
        return Err(format!(
            "{} arguments for {} parameters",
            written.len(),
            types.len()
        ));
    }
    let mut arguments = Arguments::default();
    for (index, (&ty, value)) in types.iter().zip(written).enumerate() {
        let (datum, target) = place(machine, &mut arguments, ty, value)
            .map_err(|error| format!("argument {index}: {error}"))?;
        arguments.data.push(datum);
        arguments.targets.push(target);
    }
    Ok(arguments)
}

fn place(
    machine: &mut Machine,
    arguments: &mut Arguments,
    ty: Type,
    value: &Written,
) -> Result<(Datum, Option<Target>), String> {
    match value {
        Written::Memory(cells) => {
            need_pointer(ty)?;
            let block = place_block(machine, arguments, cells)?;
            let target = Target { block, offset: 0 };
            Ok((Datum::ptr(arguments.blocks[block].at), Some(target)))
        }
        Written::Alias { argument, offset } => {
            need_pointer(ty)?;
            let base = arguments
                .targets
                .get(*argument)
                .copied()
                .flatten()
                .ok_or_else(|| format!("`&{argument}` names no earlier argument with memory"))?;
            let target = Target {
                block: base.block,
                offset: base.offset.wrapping_add(*offset),
            };
            let at = arguments.blocks[target.block].at.offset(target.offset);
            Ok((Datum::ptr(at), Some(target)))
        }
        _ => Ok((datum_of(machine, ty, value)?, None)),
    }
}

fn need_pointer(ty: Type) -> Result<(), String> {
    if ty == Type::PTR {
        Ok(())
    } else {
        Err(format!(
            "memory is given where a value of type {ty} belongs"
        ))
    }
}

fn place_block(
    machine: &mut Machine,
    arguments: &mut Arguments,
    cells: &[Cell],
) -> Result<usize, String> {
    // Allocators align to sixteen bytes, so every type has its natural alignment.
    let at = machine
        .try_allocate(size_of(cells), 16)
        .map_err(|fault| fault.to_string())?;
    let block = arguments.blocks.len();
    arguments.blocks.push(Block {
        at,
        cells: cells.to_vec(),
        targets: vec![None; cells.len()],
    });
    for (index, cell) in cells.iter().enumerate() {
        let (datum, target) = place(machine, arguments, cell.ty, &cell.value)?;
        arguments.blocks[block].targets[index] = target;
        machine
            .write_datum(at.offset(cell.offset as i64), &datum)
            .map_err(|fault| fault.to_string())?;
    }
    Ok(block)
}

/// The value that is written, as a value of this type; memory has no such value.
pub fn datum_of(machine: &Machine, ty: Type, value: &Written) -> Result<Datum, String> {
    let wrong = || Err(format!("{} is no value of type {ty}", describe(value)));
    if ty.is_vector() {
        return match value {
            Written::Undef => Ok(Datum::undef(ty)),
            Written::Lanes(lanes) if lanes.len() == usize::from(ty.lanes()) => {
                let lanes = lanes
                    .iter()
                    .map(|lane| Ok(datum_of(machine, ty.lane_type(), lane)?.raw()))
                    .collect::<Result<Vec<_>, String>>()?;
                Datum::vector(ty.scalar(), &lanes).map_or_else(wrong, Ok)
            }
            _ => wrong(),
        };
    }
    let scalar = ty.scalar();
    match (value, scalar) {
        (Written::Undef, _) => Ok(Datum::undef(ty)),
        (Written::Int(value), Scalar::Int(bits)) => {
            // From 127 bits on everything that can be written down fits.
            let fits = bits >= 127 || (-(1i128 << (bits - 1))..1i128 << bits).contains(value);
            if !fits {
                return Err(format!("{value} does not fit into {ty}"));
            }
            Ok(Datum::int(bits, *value))
        }
        (Written::Bits(raw), _) if *raw <= ones(scalar.bits()) => Ok(Datum::scalar(scalar, *raw)),
        (Written::Float(value), _) if scalar.is_float() => {
            Ok(Datum::scalar(scalar, float_to_bits(scalar, *value)))
        }
        // As in the IR, an integer literal may denote a float.
        (Written::Int(value), _) if scalar.is_float() => {
            Ok(Datum::scalar(scalar, float_to_bits(scalar, *value as f64)))
        }
        (Written::Null, Scalar::Ptr) => Ok(Datum::ptr(Pointer::NULL)),
        (Written::Symbol(name), Scalar::Ptr) => address_of(machine, name)
            .map(Datum::ptr)
            .ok_or_else(|| format!("there is no function or global @{name}")),
        _ => wrong(),
    }
}

/// The address of a function or global.
fn address_of(machine: &Machine, name: &str) -> Option<Pointer> {
    let module = machine.module();
    let function = module.function_named(name);
    function
        .map(|function| machine.function_address(function))
        .or_else(|| {
            let global = module.global_named(name)?;
            Some(machine.global_address(global))
        })
}

fn describe(value: &Written) -> String {
    match value {
        Written::Int(value) => format!("{value}"),
        Written::Float(value) => format!("{value:?}"),
        Written::Bits(raw) => format!("{raw:#x}"),
        Written::Null => "null".into(),
        Written::Undef => "undef".into(),
        Written::Any => "_".into(),
        Written::Symbol(name) => format!("@{name}"),
        Written::Lanes(_) => "a vector".into(),
        Written::Memory(_) => "memory".into(),
        Written::Alias { argument, .. } => format!("&{argument}"),
    }
}

/// How close numbers must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Closeness {
    /// Equal bit for bit, except that all NaNs are equal.
    Exact,
    /// Within this distance, relative to the larger of the two and to 1.
    Within(f64),
}

/// Whether a value is as expected; memory behind a pointer is compared cell by cell.
pub fn is_as_expected(
    machine: &Machine,
    actual: &Datum,
    expected: &Written,
    closeness: Closeness,
) -> Result<bool, String> {
    match expected {
        Written::Any => Ok(true),
        Written::Memory(cells) => {
            let Some(at) = actual.as_ptr() else {
                return Ok(false);
            };
            for cell in cells {
                if cell.value == Written::Any {
                    continue;
                }
                let Ok(found) = machine.read_datum(at.offset(cell.offset as i64), cell.ty) else {
                    return Ok(cell.value == Written::Undef);
                };
                if !is_as_expected(machine, &found, &cell.value, closeness)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Written::Alias { .. } => Err("`&` cannot be expected".into()),
        _ => {
            let expected = datum_of(machine, actual.ty, expected)?;
            Ok(match closeness {
                Closeness::Exact => *actual == expected,
                Closeness::Within(distance) => is_close(actual, &expected, distance),
            })
        }
    }
}

fn is_close(actual: &Datum, expected: &Datum, distance: f64) -> bool {
    (0..usize::from(actual.ty.lanes())).all(|lane| {
        let (a, b) = (actual.lane(lane), expected.lane(lane));
        match (a.as_float(), b.as_float()) {
            (Some(x), Some(y)) if x.is_finite() && y.is_finite() => {
                (x - y).abs() <= distance * x.abs().max(y.abs()).max(1.0)
            }
            _ => a == b,
        }
    })
}

/// A value as text; memory behind an address is shown with the cells that were expected there.
pub fn show(machine: &Machine, actual: &Datum, shape: &Written) -> String {
    let (Written::Memory(cells), Some(at)) = (shape, actual.as_ptr()) else {
        return actual.to_string();
    };
    let shown: Vec<String> = cells
        .iter()
        .map(
            |cell| match machine.read_datum(at.offset(cell.offset as i64), cell.ty) {
                Ok(found) => show(machine, &found, &cell.value),
                Err(_) => "undef".to_owned(),
            },
        )
        .collect();
    format!("[{}]", shown.join(", "))
}
