//! Derivatives in every place that an attribute may stand, and of every kind, with the values that they must have.

#![cfg(ferrozyme)]
#![allow(unsafe_code)]

use ferrozyme::{Differentiable, autodiff_forward, autodiff_reverse, shadow_of};
use std::ops::{Add, Mul};

mod reverse_results {
    use super::*;

    #[autodiff_reverse(both, Active, Active, Active)]
    #[autodiff_reverse(gradients, Active, Active, ActiveOnly)]
    #[autodiff_reverse(first, Active, Const, Active)]
    #[autodiff_reverse(first_only, Active, Const, ActiveOnly)]
    #[autodiff_reverse(neither, Const, Const, Active)]
    #[autodiff_reverse(nothing, Const, Const, ActiveOnly)]
    #[autodiff_reverse(constant, Active, Active, Const)]
    fn product(x: f64, y: f64) -> f64 {
        x * y
    }

    #[autodiff_reverse(d_mixed, Active, Active, Active)]
    fn mixed(x: f32, y: f64) -> f64 {
        f64::from(x) * y
    }

    #[autodiff_reverse(d_unit, Active, Active, Duplicated)]
    fn unit(x: f64, y: f64, out: &mut f64) {
        *out = x * y;
    }

    #[test]
    fn results_are_put_together() {
        assert_eq!(both(2.0, 3.0, 10.0), (6.0, 30.0, 20.0));
        assert_eq!(gradients(2.0, 3.0, 10.0), (30.0, 20.0));
        assert_eq!(first(2.0, 3.0, 10.0), (6.0, 30.0));
        assert_eq!(first_only(2.0, 3.0, 10.0), 30.0);
        assert_eq!(neither(2.0, 3.0, 10.0), 6.0);
        let () = nothing(2.0, 3.0, 10.0);
        assert_eq!(constant(2.0, 3.0), (6.0, 0.0, 0.0));
        assert_eq!(d_mixed(2.0, 3.0, 10.0), (6.0, 30.0_f32, 20.0));
        let (mut out, mut seed) = (0.0, 10.0);
        assert_eq!(d_unit(2.0, 3.0, &mut out, &mut seed), (30.0, 20.0));
        assert_eq!((out, seed), (6.0, 0.0));
    }
}

mod forward_results {
    use super::*;

    #[autodiff_forward(dual, Dual, Dual, Dual)]
    #[autodiff_forward(dual_only, Dual, Const, DualOnly)]
    #[autodiff_forward(constant, Dual, Dual, Const)]
    #[autodiff_forward(wide, 3, Dual, Const, Dual)]
    #[autodiff_forward(wide_only, 2, Dual, Dual, DualOnly)]
    #[autodiff_forward(input_only, DualOnly, Const, Dual)]
    fn product(x: f64, y: f64) -> f64 {
        x * y
    }

    #[autodiff_forward(flat, 2, Dualv, Dual)]
    #[autodiff_forward(flat_only, 2, DualvOnly, DualOnly)]
    fn sum_of_squares(x: &[f64]) -> f64 {
        x.iter().map(|x| x * x).sum()
    }

    #[autodiff_forward(flat_output, 2, Dualv, Dualv)]
    fn squares(x: &[f64], y: &mut [f64]) {
        for (x, y) in x.iter().zip(y) {
            *y = x * x;
        }
    }

    #[autodiff_forward(d_owned, Dual, Dual)]
    #[autodiff_forward(d_owned_only, Dual, DualOnly)]
    fn owned(x: Vec<f64>) -> Vec<f64> {
        x.iter().map(|x| x * x).collect()
    }

    #[test]
    fn results_are_put_together() {
        assert_eq!(dual(2.0, 1.0, 3.0, 10.0), (6.0, 23.0));
        assert_eq!(dual_only(2.0, 1.0, 3.0), 3.0);
        assert_eq!(constant(2.0, 1.0, 3.0, 10.0), 6.0);
        assert_eq!(wide(2.0, 1.0, 2.0, 3.0, 3.0), [6.0, 3.0, 6.0, 9.0]);
        assert_eq!(wide_only(2.0, 1.0, 0.0, 3.0, 0.0, 1.0), [3.0, 2.0]);
        // SAFETY: the argument is a float, which is the same afterwards.
        assert_eq!(unsafe { input_only(2.0, 1.0, 3.0) }, (6.0, 3.0));
    }

    #[test]
    fn lanes_lie_one_after_the_other() {
        let x = [1.0, 2.0];
        let directions = [1.0, 0.0, 0.0, 1.0];
        assert_eq!(flat(&x, &directions), [5.0, 2.0, 4.0]);
        assert_eq!(flat_only(&x, &directions), [2.0, 4.0]);
        let (mut y, mut dy) = ([0.0; 2], [7.0; 4]);
        flat_output(&x, &directions, &mut y, &mut dy);
        assert_eq!((y, dy), ([1.0, 4.0], [2.0, 0.0, 0.0, 4.0]));
    }

    #[test]
    fn vectors_go_in_and_come_out() {
        let (value, tangent) = d_owned(vec![1.0, 2.0], vec![1.0, 10.0]);
        assert_eq!((value, tangent), (vec![1.0, 4.0], vec![2.0, 40.0]));
        assert_eq!(d_owned_only(vec![3.0], vec![1.0]), [6.0]);
    }
}

#[derive(Differentiable, Clone, PartialEq, Debug)]
struct Line<T> {
    slope: T,
    offset: T,
}

impl<T: Copy + Add<Output = T> + Mul<Output = T>> Line<T> {
    #[autodiff_reverse(d_at, Duplicated, Active, Active)]
    #[autodiff_forward(t_at, Dual, Dual, Dual)]
    fn at(&self, x: T) -> T {
        self.slope * x + self.offset
    }

    #[autodiff_forward(t_into_at, Dual, Const, Dual)]
    #[autodiff_reverse(d_into_at, Active, Const, ActiveOnly)]
    fn into_at(self, x: T) -> T {
        self.slope * x + self.offset
    }

    #[autodiff_reverse(d_shift, Duplicated, Active)]
    fn shift(&mut self, by: T) {
        self.offset = self.offset + by * self.slope;
    }

    #[autodiff_reverse(d_twice, Active, Active)]
    fn twice(x: T) -> T {
        x + x
    }

    #[autodiff_reverse(d_typed, Const, Active, Active)]
    fn typed(self: &Self, x: T) -> T {
        self.slope * x
    }
}

#[test]
fn methods_have_derivatives() {
    let line = Line {
        slope: 2.0,
        offset: 1.0,
    };
    let mut shadow = shadow_of(&line);
    assert_eq!(line.d_at(&mut shadow, 3.0, 1.0), (7.0, 2.0));
    assert_eq!(
        shadow,
        Line {
            slope: 3.0,
            offset: 1.0
        }
    );
    let direction = Line {
        slope: 1.0,
        offset: 10.0,
    };
    assert_eq!(line.t_at(&direction, 3.0, 100.0), (7.0, 213.0));
    assert_eq!(line.clone().t_into_at(direction, 3.0), (7.0, 13.0));
    assert_eq!(
        line.clone().d_into_at(3.0, 1.0),
        Line {
            slope: 3.0,
            offset: 1.0
        }
    );

    let mut moved = line.clone();
    let mut seed = Line {
        slope: 0.0,
        offset: 1.0,
    };
    assert_eq!(moved.d_shift(&mut seed, 5.0), 2.0);
    assert_eq!(moved.offset, 11.0);
    assert_eq!(
        seed,
        Line {
            slope: 5.0,
            offset: 1.0
        }
    );

    assert_eq!(Line::<f32>::d_twice(3.0, 1.0), (6.0, 2.0));
    assert_eq!(line.d_typed(3.0, 1.0), (6.0, 2.0));
}

trait Model {
    #[autodiff_reverse(d_predict, Duplicated, Active, Active)]
    #[autodiff_reverse(d_predict_input, Const, Active, Active)]
    fn predict(&self, x: f64) -> f64;

    #[autodiff_forward(t_squared, Const, Dual, Dual)]
    fn squared(&self, x: f64) -> f64 {
        let y = self.predict(x);
        y * y
    }

    #[autodiff_reverse(d_unit, Active, Active)]
    fn unit(x: f64) -> f64
    where
        Self: Sized;
}

impl Model for Line<f64> {
    fn predict(&self, x: f64) -> f64 {
        self.at(x)
    }

    #[autodiff_reverse(d_unit, Active, Active)]
    fn unit(x: f64) -> f64 {
        3.0 * x
    }
}

struct Overridden;

impl Model for Overridden {
    fn predict(&self, x: f64) -> f64 {
        x
    }

    fn d_predict_input(&self, x: f64, _dret: f64) -> (f64, f64) {
        (x, 42.0)
    }

    fn unit(x: f64) -> f64 {
        x
    }
}

#[test]
fn functions_of_traits_have_derivatives() {
    let line = Line {
        slope: 2.0,
        offset: 1.0,
    };
    let mut shadow = shadow_of(&line);
    assert_eq!(line.d_predict(&mut shadow, 3.0, 1.0), (7.0, 2.0));
    assert_eq!(
        shadow,
        Line {
            slope: 3.0,
            offset: 1.0
        }
    );
    assert_eq!(line.t_squared(3.0, 1.0), (49.0, 28.0));
    assert_eq!(Line::<f64>::d_unit(1.0, 1.0), (3.0, 3.0));
    assert_eq!(Overridden::d_unit(1.0, 1.0), (1.0, 1.0));
    // A trait with derivatives of its functions can be used as an object.
    let models: [&dyn Model; 2] = [&line, &Overridden];
    assert_eq!(
        models.map(|model| model.d_predict_input(3.0, 1.0)),
        [(7.0, 2.0), (3.0, 42.0)]
    );
}

mod heads {
    use super::*;

    #[autodiff_reverse(d_dot, Duplicated, Duplicated, Active)]
    fn dot<'a, T, const N: usize>(x: &'a [T; N], y: &'a [T; N]) -> T
    where
        T: Copy + Mul<Output = T> + std::iter::Sum,
    {
        x.iter().zip(y).map(|(&x, &y)| x * y).sum()
    }

    #[autodiff_reverse(d_apply, Const, Active, Active)]
    fn apply(f: impl Fn(f64) -> f64, x: f64) -> f64 {
        f(x) * x
    }

    #[autodiff_reverse(d_foreign, Active, Active)]
    extern "C" fn foreign(x: f64) -> f64 {
        x * x
    }

    #[autodiff_reverse(d_raw, Duplicated, Active)]
    unsafe fn raw(x: *const f64) -> f64 {
        // SAFETY: the caller's.
        unsafe { *x * *x }
    }

    #[autodiff_reverse(d_only, Duplicated, DuplicatedOnly)]
    fn only(x: &f64, y: &mut f64) {
        *y = x * x;
    }

    // The function and its argument have the same name.
    #[autodiff_reverse(d_same, Active, Active)]
    fn same(same: f64) -> f64 {
        same * same
    }

    #[autodiff_reverse(d_mutable, Active, Active)]
    const fn mutable(mut x: f64) -> f64 {
        x = x * x;
        x
    }

    #[autodiff_reverse(d_raw_names, Duplicated, Active)]
    fn r#move(r#type: &f64) -> f64 {
        *r#type * 2.0
    }

    macro_rules! make {
        ($name:ident, $derivative:ident) => {
            #[autodiff_reverse($derivative, Active, Active)]
            fn $name(x: f64) -> f64 {
                x * x
            }
        };
    }
    make!(made, d_made);

    struct Made;
    macro_rules! make_associated {
        ($type:ty) => {
            impl $type {
                #[autodiff_reverse(d_made, Active, Active)]
                fn made(x: f64) -> f64 {
                    x * x * x
                }
            }
        };
    }
    make_associated!(Made);

    #[test]
    fn heads_are_kept() {
        let (mut dx, mut dy) = ([0.0; 2], [0.0; 2]);
        assert_eq!(d_dot(&[1.0, 2.0], &mut dx, &[3.0, 4.0], &mut dy, 1.0), 11.0);
        assert_eq!((dx, dy), ([3.0, 4.0], [1.0, 2.0]));
        assert_eq!(d_apply(|x| x + 1.0, 2.0, 1.0), (6.0, 5.0));
        assert_eq!(d_foreign(3.0, 1.0), (9.0, 6.0));
        let mut shadow = 0.0;
        // SAFETY: both point to floats.
        assert_eq!(unsafe { d_raw(&3.0, &mut shadow, 1.0) }, 9.0);
        assert_eq!(shadow, 6.0);
        let (mut dx, mut y, mut dy) = (0.0, 0.0, 1.0);
        // SAFETY: `y` is not looked at.
        unsafe { d_only(&3.0, &mut dx, &mut y, &mut dy) };
        assert_eq!((dx, dy), (6.0, 0.0));
        assert_eq!(d_same(3.0, 1.0), (9.0, 6.0));
        assert_eq!(d_mutable(3.0, 1.0), (9.0, 6.0));
        let mut shadow = 0.0;
        assert_eq!(d_raw_names(&3.0, &mut shadow, 1.0), 6.0);
        assert_eq!(shadow, 2.0);
        assert_eq!(d_made(3.0, 1.0), (9.0, 6.0));
        assert_eq!(Made::d_made(2.0, 1.0), (8.0, 12.0));
    }

    #[test]
    fn functions_in_functions() {
        #[autodiff_reverse(d_inner, Active, Active)]
        fn inner(x: f64) -> f64 {
            x * x
        }
        assert_eq!(d_inner(3.0, 1.0), (9.0, 6.0));
        {
            #[autodiff_forward(d_inner, Dual, Dual)]
            fn inner(x: f64) -> f64 {
                x * x * x
            }
            assert_eq!(d_inner(2.0, 1.0), (8.0, 12.0));
        }
    }
}

mod widths {
    use super::*;

    #[autodiff_reverse(d_both, 2, Duplicated, Duplicated)]
    fn both(x: &[f64], y: &mut [f64]) {
        y[0] = x[0] * x[1];
        y[1] = x[0] + x[1];
    }

    #[autodiff_reverse(d_product, 2, Duplicated, Active, Active)]
    fn product(x: &f64, y: f64) -> f64 {
        x * y
    }

    #[test]
    fn several_gradients_at_once() {
        let x = [2.0, 3.0];
        let (mut by_first, mut by_second) = ([0.0; 2], [0.0; 2]);
        let (mut y, mut first, mut second) = ([0.0; 2], [1.0, 0.0], [0.0, 1.0]);
        d_both(
            &x,
            &mut by_first,
            &mut by_second,
            &mut y,
            &mut first,
            &mut second,
        );
        assert_eq!(y, [6.0, 5.0]);
        assert_eq!((by_first, by_second), ([3.0, 2.0], [1.0, 1.0]));

        let (mut first, mut second) = (0.0, 0.0);
        assert_eq!(
            d_product(&2.0, &mut first, &mut second, 3.0, 1.0),
            (6.0, 2.0)
        );
        assert_eq!((first, second), (3.0, 3.0));
    }
}
