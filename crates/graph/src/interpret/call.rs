//! Calls of Rust functions on arrays.

use super::Array;
use crate::types::{INDEX, TensorType};
use crate::user::{Slice, SliceMut, UserFunction};
use ferrozyme_ir::Scalar;

/// The elements of an array as the function takes them.
enum Elements {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
}

impl Elements {
    fn of(array: &Array) -> Result<Elements, String> {
        let all = array.elements.iter();
        Ok(match array.ty.element {
            Scalar::F32 => Elements::F32(all.map(|&value| value as f32).collect()),
            Scalar::F64 => Elements::F64(array.elements.to_vec()),
            INDEX => Elements::I32(all.map(|&value| value as i32).collect()),
            _ => return Err(format!("no function takes {}", array.ty)),
        })
    }

    fn slice(&self) -> Slice<'_> {
        match self {
            Elements::F32(values) => Slice::F32(values),
            Elements::F64(values) => Slice::F64(values),
            Elements::I32(values) => Slice::I32(values),
        }
    }

    fn slice_mut(&mut self) -> SliceMut<'_> {
        match self {
            Elements::F32(values) => SliceMut::F32(values),
            Elements::F64(values) => SliceMut::F64(values),
            Elements::I32(values) => SliceMut::I32(values),
        }
    }

    fn into_array(self, ty: &TensorType) -> Array {
        let elements = match self {
            Elements::F32(values) => values.into_iter().map(f64::from).collect(),
            Elements::F64(values) => values,
            Elements::I32(values) => values.into_iter().map(f64::from).collect(),
        };
        Array::new(ty.clone(), elements)
    }
}

/// Calls a function, or its derivative, on arrays that fit. The error is the message of its panic.
pub fn call(
    function: &UserFunction,
    derivative: bool,
    operands: &[Array],
    types: &[TensorType],
) -> Result<Vec<Array>, String> {
    let operands: Vec<Elements> = operands
        .iter()
        .map(Elements::of)
        .collect::<Result<_, _>>()?;
    let zeros =
        |ty: &TensorType| Elements::of(&Array::new(ty.clone(), vec![0.0; ty.shape.count()]));
    let mut results: Vec<Elements> = types.iter().map(zeros).collect::<Result<_, _>>()?;
    let inputs: Vec<Slice<'_>> = operands.iter().map(Elements::slice).collect();
    let mut outputs: Vec<SliceMut<'_>> = results.iter_mut().map(Elements::slice_mut).collect();
    function.call(derivative, &inputs, &mut outputs)?;
    drop(outputs);
    let made = results.into_iter().zip(types);
    Ok(made.map(|(elements, ty)| elements.into_array(ty)).collect())
}
