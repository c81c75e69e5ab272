//! The input and output floats of a function: the place of each, and how it is loaded and stored.

use super::shadow::Shadow;
use crate::arguments::Target;
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{Scalar, Type, float_to_bits};
use std::fmt;

/// One number among the inputs or outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    pub(super) place: Place,
    /// Which lane of a vector.
    pub(super) lane: u16,
    pub(super) ty: Type,
}

/// The place of a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In an argument.
    Argument(usize),
    /// In a result.
    Result(usize),
    /// A cell of the arguments' memory.
    Memory(Target),
}

impl Variable {
    /// The type of the number.
    pub fn scalar(&self) -> Scalar {
        self.ty.scalar()
    }

    /// Reads the number, from results or from memory at the place that `locate` says.
    pub(super) fn read(
        &self,
        results: &[Datum],
        machine: &Machine,
        locate: impl Fn(Target) -> Option<Pointer>,
    ) -> Result<f64, String> {
        let datum = match self.place {
            Place::Argument(index) | Place::Result(index) => results.get(index).cloned(),
            Place::Memory(target) => match locate(target) {
                Some(at) => Some(
                    machine
                        .read_datum(at, self.ty)
                        .map_err(|fault| format!("{self}: {fault}"))?,
                ),
                None => None,
            },
        };
        datum
            .and_then(|datum| datum.lane(usize::from(self.lane)).as_float())
            .ok_or_else(|| format!("{self} is undefined"))
    }

    /// Stores the number in shadow memory, if its place is in memory.
    pub(super) fn write_to_memory(
        &self,
        machine: &mut Machine,
        shadow: &Shadow,
        number: f64,
    ) -> Result<(), String> {
        match self.place {
            Place::Memory(target) => match shadow.at(target) {
                Some(at) => self.write_cell(machine, at, number),
                None => Ok(()),
            },
            Place::Argument(_) | Place::Result(_) => Ok(()),
        }
    }

    pub(super) fn write_cell(
        &self,
        machine: &mut Machine,
        at: Pointer,
        number: f64,
    ) -> Result<(), String> {
        let at = at.offset(i64::from(self.lane) * self.ty.scalar().bytes() as i64);
        machine
            .write_datum(at, &zero_with(self.ty.scalar(), number))
            .map_err(|fault| fault.to_string())
    }

    pub(super) fn write_lane(&self, datum: &mut Datum, number: f64) {
        let scalar = self.ty.scalar();
        if datum.ty.is_vector() {
            let mut lanes: Vec<Option<u128>> = (0..usize::from(datum.ty.lanes()))
                .map(|lane| datum.bits.lane(lane))
                .collect();
            lanes[usize::from(self.lane)] = Some(float_to_bits(scalar, number));
            *datum = Datum::vector(scalar, &lanes).expect("a vector type has lanes");
        } else {
            *datum = zero_with(scalar, number);
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Argument(index) => write!(f, "argument {index}")?,
            Place::Result(index) => write!(f, "result {index}")?,
            Place::Memory(Target { block, offset }) => {
                write!(f, "memory {block} at byte {offset}")?;
            }
        }
        if self.ty.is_vector() {
            write!(f, ", lane {}", self.lane)?;
        }
        Ok(())
    }
}

/// The distance from 1 to the next number of this type.
pub(super) fn epsilon(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => 2f64.powi(-10),
        Scalar::Bf16 => 2f64.powi(-7),
        Scalar::F32 => f64::from(f32::EPSILON),
        Scalar::F64 | Scalar::Int(_) | Scalar::Ptr => f64::EPSILON,
    }
}

fn zero_with(scalar: Scalar, number: f64) -> Datum {
    Datum::scalar(scalar, float_to_bits(scalar, number))
}

/// Zero, in all lanes.
pub(super) fn zero(ty: Type) -> Datum {
    if ty.is_vector() {
        let lanes = vec![Some(0); usize::from(ty.lanes())];
        Datum::vector(ty.scalar(), &lanes).expect("a vector type has lanes")
    } else {
        Datum::scalar(ty.scalar(), 0)
    }
}
