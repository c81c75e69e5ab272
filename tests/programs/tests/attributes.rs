//! The attributes in every place that they are allowed, on every kind of function and argument.

use ferrozyme::{Differentiable, autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{EXACT, assert_close};

/// Documentation, other attributes and a trailing comma.
#[inline]
#[must_use]
#[autodiff_reverse(dnoted, Active, Active)]
fn noted(x: f64) -> f64 {
    x * x
}

#[test]
fn among_other_attributes() {
    assert_eq!(dnoted(3.0, 1.0), (9.0, 6.0));
}

mod geometry {
    use ferrozyme::autodiff_reverse;

    #[autodiff_reverse(area_gradient, Active, Active, Active)]
    pub(crate) fn area(width: f64, height: f64) -> f64 {
        width * height + hidden(width)
    }

    fn hidden(x: f64) -> f64 {
        x
    }
}

/// The derivative is as visible as the primal.
#[test]
fn visibility() {
    assert_eq!(geometry::area(2.0, 3.0), 8.0);
    assert_eq!(geometry::area_gradient(2.0, 3.0, 1.0), (8.0, 4.0, 2.0));
}

#[test]
fn nested_function() {
    fn outer(scale: f64) -> f64 {
        #[autodiff_forward(binner, Dual, DualOnly)]
        fn inner(x: f64) -> f64 {
            x.powi(3)
        }
        binner(2.0, scale)
    }
    assert_eq!(outer(0.5), 6.0);
}

#[autodiff_reverse(dfour, Active, Const, Active, Active)]
#[autodiff_reverse(dfour_first, Active, Const, Const, ActiveOnly)]
#[autodiff_forward(bfour, Dual, Const, Dual, Dual)]
#[autodiff_forward(bfour_width, 3, Dual, Const, Const, DualOnly)]
fn stacked(x: f64, n: u32, y: f64) -> f64 {
    f64::from(n) * x * y * y
}

#[test]
fn stacked_attributes() {
    assert_eq!(dfour(2.0, 3, 5.0, 1.0), (150.0, 75.0, 60.0));
    assert_eq!(dfour_first(2.0, 3, 5.0, 2.0), 150.0);
    assert_eq!(bfour(2.0, 1.0, 3, 5.0, 10.0), (150.0, 675.0));
    assert_eq!(
        bfour_width(2.0, 1.0, 0.5, -1.0, 3, 5.0),
        [75.0, 37.5, -75.0]
    );
}

#[autodiff_reverse(dcurved, Active, Active)]
extern "C" fn foreign_interface(x: f64) -> f64 {
    x.exp()
}

#[autodiff_reverse(draw_sum, Duplicated, Const, Active)]
#[autodiff_forward(braw_sum, Dual, Const, Dual)]
/// # Safety
/// `start` must point to `count` numbers.
unsafe fn raw_sum(start: *const f64, count: usize) -> f64 {
    let mut sum = 0.0;
    for i in 0..count {
        // SAFETY: the caller promises that many.
        let value = unsafe { *start.add(i) };
        sum += value * value;
    }
    sum
}

#[test]
fn foreign_and_unsafe_functions() {
    let (value, gradient) = dcurved(0.5, 2.0);
    assert_close("extern", value, 0.5f64.exp(), 1e-14);
    assert_close("extern", gradient, 2.0 * 0.5f64.exp(), 1e-14);
    let (x, mut dx) = ([1.0, 2.0, 3.0], [0.0; 3]);
    // SAFETY: both pointers lead to three numbers.
    let value = unsafe { draw_sum(x.as_ptr(), dx.as_mut_ptr(), 3, 1.0) };
    assert_eq!((value, dx), (14.0, [2.0, 4.0, 6.0]));
    // SAFETY: as above.
    let (_, tangent) = unsafe { braw_sum(x.as_ptr(), [1.0, 1.0, 1.0].as_ptr(), 3) };
    assert_eq!(tangent, 12.0);
}

struct Counter {
    total: f64,
    steps: u32,
}

impl Counter {
    #[autodiff_reverse(advance_reverse, Duplicated, Active, Active)]
    #[autodiff_forward(advance_forward, Dual, Dual, Dual)]
    fn advance(&mut self, x: f64) -> f64 {
        self.steps += 1;
        self.total = self.total * x;
        self.total + x
    }

    #[autodiff_reverse(weight_reverse, Active, Active)]
    fn weight(x: f64) -> f64 {
        x.sqrt()
    }
}

/// A method that changes its receiver: the receiver's shadow holds the seed of what it becomes.
#[test]
fn receiver_by_unique_reference() {
    let (mut counter, mut shadow) = (
        Counter {
            total: 3.0,
            steps: 0,
        },
        Counter {
            total: 10.0,
            steps: 0,
        },
    );
    let (value, gradient) = counter.advance_reverse(&mut shadow, 2.0, 1.0);
    assert_eq!((value, counter.total, counter.steps), (8.0, 6.0, 1));
    // d(10 total' + value)/dx = 11 total + 1, by total: 11 x.
    assert_eq!((gradient, shadow.total), (34.0, 22.0));

    let (mut counter, mut tangent) = (
        Counter {
            total: 3.0,
            steps: 0,
        },
        Counter {
            total: 1.0,
            steps: 0,
        },
    );
    let (value, along) = counter.advance_forward(&mut tangent, 2.0, 0.5);
    assert_eq!((value, along, tangent.total), (8.0, 4.0, 3.5));
}

#[test]
fn associated_function() {
    assert_eq!(Counter::weight_reverse(4.0, 1.0), (2.0, 0.25));
}

trait Model {
    fn predict(&self, x: f64) -> f64;
    fn sensitivity(&self, x: f64) -> f64;
}

struct Line {
    slope: f64,
}

impl Line {
    #[autodiff_reverse(line_reverse, Const, Active, ActiveOnly)]
    fn line(&self, x: f64) -> f64 {
        self.slope * x * x
    }
}

impl Model for Line {
    fn predict(&self, x: f64) -> f64 {
        self.line(x)
    }
    fn sensitivity(&self, x: f64) -> f64 {
        self.line_reverse(x, 1.0)
    }
}

#[test]
fn derivative_behind_a_trait_object() {
    let model: &dyn Model = &Line { slope: 3.0 };
    assert_eq!((model.predict(2.0), model.sensitivity(2.0)), (12.0, 12.0));
}

#[autodiff_reverse(dmutable, Active, Const, Active)]
fn mutable_arguments(mut x: f64, mut n: usize) -> f64 {
    while n > 0 {
        x *= x;
        n -= 1;
    }
    x
}

#[test]
fn arguments_that_are_changed() {
    assert_eq!(dmutable(2.0, 3, 1.0), (256.0, 1024.0));
}

#[autodiff_reverse(dnothing, Const, Const)]
#[autodiff_forward(bnothing, Const, Const)]
fn nothing_active(x: f64) -> f64 {
    x + 1.0
}

#[autodiff_reverse(dconstant, Duplicated, Active)]
fn constant(x: &[f64]) -> f64 {
    x.len() as f64
}

#[test]
fn nothing_to_differentiate() {
    assert_eq!(dnothing(1.0), 2.0);
    assert_eq!(bnothing(1.0), 2.0);
    let mut dx = [5.0; 2];
    assert_eq!(dconstant(&[1.0, 2.0], &mut dx, 1.0), 2.0);
    assert_eq!(dx, [5.0; 2]);
}

#[autodiff_reverse(dwith_lifetimes, Duplicated, Duplicated, Const, Active)]
fn with_lifetimes<'a, 'b: 'a>(x: &'a [f64], y: &'b [f64], first: bool) -> f64 {
    fn pick<'c>(x: &'c [f64], y: &'c [f64], first: bool) -> &'c [f64] {
        if first { x } else { y }
    }
    pick(x, y, first).iter().product()
}

#[test]
fn references_chosen_at_run_time() {
    let (x, y) = ([2.0, 3.0], [5.0, 7.0]);
    for first in [true, false] {
        let (mut dx, mut dy) = ([0.0; 2], [0.0; 2]);
        dwith_lifetimes(&x, &mut dx, &y, &mut dy, first, 1.0);
        assert_eq!(
            (dx, dy),
            if first {
                ([3.0, 2.0], [0.0; 2])
            } else {
                ([0.0; 2], [7.0, 5.0])
            }
        );
    }
}

macro_rules! generate {
    ($name:ident, $derivative:ident, $power:literal) => {
        #[autodiff_reverse($derivative, Active, ActiveOnly)]
        fn $name(x: f64) -> f64 {
            x.powi($power)
        }
    };
}

generate!(cube, dcube, 3);
generate!(fifth, dfifth, 5);

#[test]
fn inside_a_macro() {
    assert_close("cube", dcube(2.0, 1.0), 12.0, EXACT);
    assert_close("fifth", dfifth(2.0, 1.0), 80.0, EXACT);
}

/// The seed and the gradients of single precision stay single.
#[autodiff_reverse(dprecision, Active, Duplicated, Active)]
fn precision(x: f32, y: &[f32]) -> f64 {
    f64::from(x) * y.iter().map(|y| f64::from(*y)).sum::<f64>()
}

#[test]
fn mixed_signature() {
    let mut dy = [0.0f32; 2];
    let (value, dx): (f64, f32) = dprecision(2.0, &[1.5, 0.5], &mut dy, 3.0);
    assert_eq!((value, dx, dy), (4.0, 6.0, [6.0, 6.0]));
}

/// Slices of unequal length are found before anything is computed.
#[test]
fn shadows_of_wrong_length() {
    let result = std::panic::catch_unwind(|| {
        let mut dy = [0.0f32; 3];
        dprecision(2.0, &[1.5, 0.5], &mut dy, 3.0)
    });
    let payload = result.expect_err("a shadow of three for a slice of two");
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(payload.downcast_ref::<&str>().copied())
        .unwrap_or("");
    assert!(
        message.contains('2') && message.contains('3'),
        "the message names both lengths: {message}"
    );
}

/// Its gradient is of the same variant.
#[derive(Clone, Copy, Debug, Differentiable, PartialEq)]
enum Shape {
    Disc(f64),
    Polygon { side: f64, corners: i32 },
    Nothing,
}

#[autodiff_reverse(d_boundary, Active, Active)]
fn boundary(shape: Shape) -> f64 {
    match shape {
        Shape::Disc(radius) => 2.0 * std::f64::consts::PI * radius,
        Shape::Polygon { side, corners } => side * f64::from(corners),
        Shape::Nothing => 0.0,
    }
}

#[autodiff_reverse(d_doubled, Active, Active)]
fn doubled(x: Option<f64>) -> f64 {
    x.unwrap_or(1.0) * 2.0
}

#[test]
fn active_enums_by_value() {
    let (length, gradient) = d_boundary(Shape::Disc(1.0), 0.5);
    assert_eq!(length, 2.0 * std::f64::consts::PI);
    assert_eq!(gradient, Shape::Disc(std::f64::consts::PI));
    let square = Shape::Polygon {
        side: 2.0,
        corners: 4,
    };
    let expected = Shape::Polygon {
        side: 4.0,
        corners: 4,
    };
    assert_eq!(d_boundary(square, 1.0), (8.0, expected));
    assert_eq!(d_boundary(Shape::Nothing, 1.0), (0.0, Shape::Nothing));
    assert_eq!(d_doubled(Some(3.0), 1.0), (6.0, Some(2.0)));
    assert_eq!(d_doubled(None, 1.0), (2.0, None));
}
