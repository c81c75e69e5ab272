//! Which Rust functions can be operations: those whose arguments are slices, inputs first. The traits are implemented for every number of them; which implementation it is follows from the function.

use super::{Routine, Slice, SliceMut};
use crate::types::INDEX;
use ferrozyme_ir::Scalar;

/// Numbers that tensors and Rust have.
pub trait Number: Copy + Default + Send + Sync + 'static {
    /// What a graph calls it.
    const SCALAR: Scalar;
    /// The slice, which has these elements.
    fn of<'s>(slice: &Slice<'s>) -> &'s [Self];
    /// The slice, which has these elements.
    fn of_mut<'s>(slice: &'s mut SliceMut<'_>) -> &'s mut [Self];
}

/// Signatures are compared when a function is made an operation.
const CHECKED: &str = "operands have the elements of the function";

macro_rules! numbers {
    ($($ty:ty, $variant:ident, $scalar:expr;)*) => {
        $(
            impl Number for $ty {
                const SCALAR: Scalar = $scalar;
                fn of<'s>(slice: &Slice<'s>) -> &'s [$ty] {
                    match slice {
                        Slice::$variant(slice) => slice,
                        _ => unreachable!("{CHECKED}"),
                    }
                }
                fn of_mut<'s>(slice: &'s mut SliceMut<'_>) -> &'s mut [$ty] {
                    match slice {
                        SliceMut::$variant(slice) => slice,
                        _ => unreachable!("{CHECKED}"),
                    }
                }
            }
        )*
    };
}

numbers! {
    f32, F32, Scalar::F32;
    f64, F64, Scalar::F64;
    i32, I32, INDEX;
}

/// A number that results may be, because derivatives go through it.
pub trait Float: Number {}
impl Float for f32 {}
impl Float for f64 {}

/// A function of slices, `S` being its type: inputs `&[A]`, then results `&mut [R]`.
#[diagnostic::on_unimplemented(
    message = "this function cannot be an operation of a graph",
    note = "it takes up to four inputs `&[f32]`, `&[f64]` or `&[i32]`, and then one to three results `&mut [f32]` or `&mut [f64]`; closures need the types of their arguments"
)]
pub trait Primal<S> {
    #[doc(hidden)]
    fn inputs() -> Vec<Scalar>;
    #[doc(hidden)]
    fn results() -> Vec<Scalar>;
    #[doc(hidden)]
    fn into_routine(self) -> Routine;
}

/// The derivative of a function of slices, as `#[autodiff_reverse]` makes it.
#[diagnostic::on_unimplemented(
    message = "this is not the derivative of a function of slices",
    note = "`#[autodiff_reverse(name, Duplicated, …)]` makes one: each input `&[A]` that is `Duplicated` is followed by its shadow `&mut [A]`, as is each result `&mut [R]`"
)]
pub trait Derivative<S> {
    #[doc(hidden)]
    fn inputs() -> Vec<Scalar>;
    #[doc(hidden)]
    fn results() -> Vec<Scalar>;
    #[doc(hidden)]
    fn active() -> Vec<bool>;
    #[doc(hidden)]
    fn into_routine(self) -> Routine;
}

/// Operands are counted when a function is made an operation.
const COUNTED: &str = "there are as many operands as the function takes";

/// The next of some slices.
fn next<T>(mut slices: impl Iterator<Item = T>) -> T {
    slices.next().expect(COUNTED)
}

macro_rules! primal {
    ([$($input:ident $a:ident)*] [$($result:ident $r:ident)*]) => {
        impl<F, $($input: Number,)* $($result: Float,)*> Primal<fn($(&[$input],)* $(&mut [$result],)*)> for F
        where
            F: Fn($(&[$input],)* $(&mut [$result],)*) + Send + Sync + 'static,
        {
            fn inputs() -> Vec<Scalar> {
                vec![$($input::SCALAR),*]
            }
            fn results() -> Vec<Scalar> {
                vec![$($result::SCALAR),*]
            }
            fn into_routine(self) -> Routine {
                Routine::of::<F>(move |inputs, results| {
                    #[allow(unused_mut, reason = "a function may have no inputs")]
                    let (mut _inputs, mut results) = (inputs.iter(), results.iter_mut());
                    $(let $a = $input::of(next(&mut _inputs));)*
                    $(let $r = $result::of_mut(next(&mut results));)*
                    self($($a,)* $($r,)*);
                })
            }
        }
    };
}

/// Implementations for each choice of active inputs. First come the parameters of the derivative, how each input is read, and the arguments.
macro_rules! derivatives {
    ([$($chosen:tt)*] []) => {
        derivatives!{@ [$($chosen)*] [R r dr]}
        derivatives!{@ [$($chosen)*] [R r dr S s ds]}
    };
    ([$($chosen:tt)*] [$input:ident $a:ident $da:ident $($rest:ident)*]) => {
        derivatives!{[$($chosen)* {$input Float true [&[$input], &mut [$input],] [$a $da]}] [$($rest)*]}
        derivatives!{[$($chosen)* {$input Number false [&[$input],] [$a]}] [$($rest)*]}
    };
    (@ [$({$input:ident $kind:ident $active:literal [$($parameter:tt)*] [$a:ident $($da:ident)?]})*] [$($result:ident $r:ident $dr:ident)*]) => {
        impl<F, $($input: $kind,)* $($result: Float,)*> Derivative<fn($($($parameter)*)* $(&mut [$result], &mut [$result],)*)> for F
        where
            F: Fn($($($parameter)*)* $(&mut [$result], &mut [$result],)*) + Send + Sync + 'static,
        {
            fn inputs() -> Vec<Scalar> {
                vec![$($input::SCALAR),*]
            }
            fn results() -> Vec<Scalar> {
                vec![$($result::SCALAR),*]
            }
            fn active() -> Vec<bool> {
                vec![$($active),*]
            }
            fn into_routine(self) -> Routine {
                Routine::of::<F>(move |inputs, adjoints| {
                    let (mut inputs, mut adjoints) = (inputs.iter(), adjoints.iter_mut());
                    $(
                        let $a = $input::of(next(&mut inputs));
                        // Floats have an adjoint in any case.
                        let _adjoint = $input::SCALAR.is_float().then(|| next(&mut adjoints));
                        $(let $da = $input::of_mut(_adjoint.expect("what is active is a float"));)?
                    )*
                    $(
                        let mut $dr = $result::of(next(&mut inputs)).to_vec();
                        let mut $r = vec![$result::default(); $dr.len()];
                    )*
                    self($($a, $($da,)?)* $(&mut $r, &mut $dr,)*);
                })
            }
        }
    };
}

macro_rules! of_inputs {
    ([$($input:ident $a:ident $da:ident)*]) => {
        primal!{[$($input $a)*] [R r]}
        primal!{[$($input $a)*] [R r S s]}
        primal!{[$($input $a)*] [R r S s T t]}
        derivatives!{[] [$($input $a $da)*]}
    };
}

of_inputs! {[A a da]}
of_inputs! {[A a da B b db]}
of_inputs! {[A a da B b db C c dc]}
of_inputs! {[A a da B b db C c dc D d dd]}

#[cfg(test)]
mod tests {
    use super::super::UserFunction;
    use super::*;

    fn scaled(x: &[f32], by: &[f32], times: &[i32], y: &mut [f32], sum: &mut [f64]) {
        for (x, y) in x.iter().zip(y) {
            *y = x * by[0] * times[0] as f32;
            sum[0] += f64::from(*y);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "as the attribute makes it")]
    fn d_scaled(
        x: &[f32],
        dx: &mut [f32],
        by: &[f32],
        times: &[i32],
        y: &mut [f32],
        dy: &mut [f32],
        sum: &mut [f64],
        dsum: &mut [f64],
    ) {
        scaled(x, by, times, y, sum);
        for (dx, dy) in dx.iter_mut().zip(dy) {
            *dx += (*dy + dsum[0] as f32) * by[0] * times[0] as f32;
        }
    }

    #[test]
    fn signatures_follow_from_functions() {
        let function = UserFunction::new("scaled", scaled).with_derivative(d_scaled);
        assert_eq!(
            format!("{function:?}"),
            "scaled fn(&[f32], &[f32], &[i32], &mut [f32], &mut [f64])"
        );
        assert_eq!(function.active(), Some(&[true, false, false][..]));
        let (x, by, times) = ([1.0, 2.0], [3.0], [2]);
        let inputs = [Slice::F32(&x), Slice::F32(&by), Slice::I32(&times)];
        let (mut y, mut sum) = ([9.0; 2], [9.0]);
        let mut results = [SliceMut::F32(&mut y), SliceMut::F64(&mut sum)];
        function.call(false, &inputs, &mut results).unwrap();
        assert_eq!((y, sum), ([6.0, 12.0], [18.0]));
        let (dy, dsum) = ([1.0, 0.0], [10.0]);
        let all = [&inputs[..], &[Slice::F32(&dy), Slice::F64(&dsum)]].concat();
        let (mut dx, mut dby) = ([9.0; 2], [9.0]);
        let mut adjoints = [SliceMut::F32(&mut dx), SliceMut::F32(&mut dby)];
        function.call(true, &all, &mut adjoints).unwrap();
        assert_eq!((dx, dby), ([66.0, 60.0], [0.0]));
    }

    #[test]
    fn closures_capture_what_they_need() {
        let by = 4.0;
        let function = UserFunction::new("by_four", move |x: &[f64], y: &mut [f64]| {
            y[0] = by * x[0];
        });
        let mut y = [0.0];
        let outcome = function.call(false, &[Slice::F64(&[2.0])], &mut [SliceMut::F64(&mut y)]);
        assert_eq!((outcome, y), (Ok(()), [8.0]));
        let missing = function.call(true, &[], &mut []).unwrap_err();
        assert_eq!(missing, "\"by_four\" has no derivative");
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let function = UserFunction::new("third", |x: &[f32], y: &mut [f32]| y[0] = x[2]);
        let mut y = [0.0];
        let outcome = function.call(false, &[Slice::F32(&[2.0])], &mut [SliceMut::F32(&mut y)]);
        assert_eq!(
            outcome.unwrap_err(),
            "\"third\" panicked: index out of bounds: the len is 1 but the index is 2"
        );
    }

    #[test]
    #[should_panic(
        expected = "the derivative of \"third\", which is fn(&[f32], &mut [f32]), is that of a function fn(&[f64], &mut [f64])"
    )]
    fn a_derivative_is_that_of_the_function() {
        let third = |x: &[f32], y: &mut [f32]| y[0] = x[0];
        let derivative = |_: &[f64], _: &mut [f64], _: &mut [f64], _: &mut [f64]| {};
        let _ = UserFunction::new("third", third).with_derivative(derivative);
    }
}
