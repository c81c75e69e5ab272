// Functions with derivatives of every kind. What rustc's own macros make of them stands in `signatures.txt`. There is no
// head, so that it can be compiled with those macros and with Ferrozyme's.
use std::ops::Mul;

// The examples of the documents.
#[autodiff_reverse(document_1, Active, Active, Active)]
fn mixed(x: f32, y: f32) -> f64 { 0.0 }
#[autodiff_reverse(document_2, Duplicated, Const, Active)]
fn weighted(x: &[f64], y: f64) -> f64 { 0.0 }
#[autodiff_forward(document_3, 4, Dual, Dual)]
fn wide(x: &f32) -> f32 { 0.0 }

// Reverse mode: inputs and results by value.
#[autodiff_reverse(reverse_1, Active, Active)]
pub fn scalar(x: f64) -> f64 { x }
#[autodiff_reverse(reverse_2, Active, ActiveOnly)]
pub(crate) fn scalar_only(x: f64) -> f64 { x }
#[autodiff_reverse(reverse_3, Active, Const)]
fn scalar_constant(x: f64) -> f64 { x }
#[autodiff_reverse(reverse_4, Active, Active, ActiveOnly)]
fn two(x: f64, y: f32) -> f64 { x }
#[autodiff_reverse(reverse_5, Active, Const, Active, Active,)]
fn three(x: f64, n: usize, y: f32) -> f64 { x }
#[autodiff_reverse(reverse_6, Const, Active)]
fn nothing(n: usize) -> f64 { 0.0 }
#[autodiff_reverse(reverse_7, Const, ActiveOnly)]
fn nothing_only(n: usize) -> f64 { 0.0 }
#[autodiff_reverse(reverse_8, Const, Const)]
fn constant(n: usize) -> f64 { 0.0 }
#[autodiff_reverse(reverse_9)]
fn empty() {}
#[autodiff_reverse(reverse_10, Active)]
fn empty_result() -> f64 { 0.0 }

// Reverse mode: references and pointers.
#[autodiff_reverse(reverse_11, Duplicated, Duplicated)]
fn reference_pair(x: &[f64], y: &mut [f64]) {}
#[autodiff_reverse(reverse_12, Duplicated, DuplicatedOnly)]
unsafe fn pointer_pair(x: *const f64, y: *mut f64) {}
#[autodiff_reverse(reverse_13, Duplicated, DuplicatedOnly, Active)]
fn made_unsafe(x: &f64, y: &mut f64) -> f64 { 0.0 }
#[autodiff_reverse(reverse_14, Duplicated, ActiveOnly)]
fn lifetime<'a>(x: &'a f32) -> f32 { 0.0 }
#[autodiff_reverse(reverse_15, Duplicated, Duplicated)]
fn lifetimes<'a, 'b: 'a>(x: &'a mut [f64], y: &'b [&'a f64]) {}
#[autodiff_reverse(reverse_16, Active, Duplicated)]
fn unit(x: f64, y: &mut f64) {}
#[autodiff_reverse(reverse_17, Active, Active, Duplicated)]
fn unit_pair(x: f64, z: f32, y: &mut f64) {}
#[autodiff_reverse(reverse_18, Duplicated, Const, Active)]
fn nested(x: &Vec<Vec<f64>>, y: &&f64) -> f64 { 0.0 }
#[autodiff_reverse(reverse_19, Duplicated, Active)]
fn fixed(x: &'static [f64; 3]) -> f64 { 0.0 }
#[autodiff_reverse(reverse_20, Duplicated, Const, Active)]
fn dynamic(x: &[f64], f: &dyn Fn(f64) -> f64) -> f64 { 0.0 }

// Reverse mode with a width.
#[autodiff_reverse(reverse_wide_1, 2, Duplicated, Active)]
fn wide_reverse(x: &[f64]) -> f64 { 0.0 }
#[autodiff_reverse(reverse_wide_2, 3, Duplicated, ActiveOnly)]
fn wide_only(x: &f64) -> f64 { 0.0 }
#[autodiff_reverse(reverse_wide_3, 2, Active, Active)]
fn wide_scalar(x: f64) -> f64 { x }
#[autodiff_reverse(reverse_wide_4, 2, Duplicated, Duplicated)]
fn wide_pair(x: &f64, y: &mut f64) {}

// Forward mode.
#[autodiff_forward(forward_1, Dual, Dual)]
fn tangent(x: f64) -> f64 { x }
#[autodiff_forward(forward_2, Dual, DualOnly)]
fn tangent_only(x: f64) -> f64 { x }
#[autodiff_forward(forward_3, Dual, Const)]
fn tangent_constant(x: f64) -> f64 { x }
#[autodiff_forward(forward_4, DualOnly, DualOnly)]
fn input_only(x: f64) -> f64 { x }
#[autodiff_forward(forward_5, Dual, Dual)]
fn output(x: &[f64], y: &mut [f64]) {}
#[autodiff_forward(forward_6, Dual, Const, Dual)]
fn owned(x: Vec<f64>, n: usize) -> Vec<f64> { x }
#[autodiff_forward(forward_7, Dual, Dual)]
fn borrowed<'a, const N: usize>(x: &'a [f64; N]) -> &'a f64 { &x[0] }
#[autodiff_forward(forward_8, Dual, Dual)]
unsafe fn pointers(x: *const f64, y: *mut f64) {}
#[autodiff_forward(forward_9, Const)]
fn no_tangent(x: f64) {}

// Forward mode with a width.
#[autodiff_forward(forward_wide_1, 2, Dual, Dual)]
fn wide_tangent(x: f64) -> f64 { x }
#[autodiff_forward(forward_wide_2, 2, Dual, DualOnly)]
fn wide_tangent_only(x: f64) -> f64 { x }
#[autodiff_forward(forward_wide_3, 3, Dual, Const)]
fn wide_tangent_constant(x: f64) -> f64 { x }
#[autodiff_forward(forward_wide_4, 3, Dual, Dual)]
fn wide_output(x: &f64, y: &mut f64) {}
#[autodiff_forward(forward_wide_5, 2, Dualv, Dual)]
fn flat(x: &[f64]) -> f64 { 0.0 }
#[autodiff_forward(forward_wide_6, 2, DualvOnly, DualOnly)]
fn flat_only(x: &mut [f64]) -> f64 { 0.0 }
#[autodiff_forward(forward_wide_7, 2, Dualv, Dualv)]
fn flat_output(x: &[f64], y: &mut [f64]) {}
#[autodiff_forward(forward_wide_8, 8, Dual, Const, Dual)]
fn eight(x: &[f32], n: usize) -> f32 { 0.0 }
#[autodiff_forward(forward_wide_9, 1, Dual, Dual)]
fn width_of_one(x: f64) -> f64 { x }

// Heads.
#[autodiff_reverse(head_1, Active, Active)]
pub unsafe extern "C" fn foreign(x: f64) -> f64 { x }
#[autodiff_forward(head_2, Dual, Dual)]
extern "C" fn foreign_safe(x: f64) -> f64 { x }
#[autodiff_reverse(head_3, Duplicated, Active)]
#[inline]
#[must_use]
/// With documentation.
fn decorated(x: &f64) -> f64 { *x }
#[autodiff_reverse(head_4, Active, Active)]
fn mutable(mut x: f64) -> f64 { x += 1.0; x }
#[autodiff_reverse(head_5, Duplicated, Active)]
fn generic<T: Copy + Into<f64>>(x: &[T]) -> f64 where T: Mul<Output = T> { 0.0 }
#[autodiff_forward(head_6, Dual, Const, Dual)]
fn generics<'a, T: Copy, const N: usize, F>(x: &'a [T; N], f: F) -> T where F: Fn(&T) -> T { f(&x[0]) }
#[autodiff_reverse(head_7, Active, Active, Active)]
fn of_parameter<T: Mul<Output = T>>(x: T, y: T) -> T { x * y }
#[autodiff_reverse(head_8, Duplicated, Active)]
fn r#final(r#type: &f64) -> f64 { 0.0 }
#[autodiff_reverse(head_9, Duplicated, Active)]
fn structure(s: &Structure<f64>) -> f64 { 0.0 }

// Several on one function.
#[autodiff_forward(stacked_1, Dual, Dual)]
#[autodiff_forward(stacked_2, 3, Dual, DualOnly)]
#[autodiff_reverse(stacked_3, Duplicated, Active)]
fn stacked(x: &[f64]) -> f64 { 0.0 }

#[derive(Clone)]
struct Structure<T>(T);

impl<T: Copy> Structure<T> {
    #[autodiff_reverse(method_1, Duplicated, Active, Active)]
    fn shared(&self, x: f64) -> f64 { x }
    #[autodiff_reverse(method_2, 2, Duplicated, Active)]
    pub fn unique(&mut self) -> f64 { 0.0 }
    #[autodiff_reverse(method_3, Active, Active)]
    fn by_value(self) -> f64 { 0.0 }
    #[autodiff_forward(method_4, Dual, Dual, Dual)]
    fn forward_by_value(self, x: f64) -> f64 { x }
    #[autodiff_forward(method_5, 2, Dual, Dual)]
    fn forward_unique(&mut self) -> f64 { 0.0 }
    #[autodiff_forward(method_6, Const, Dual, Dual)]
    fn typed(self: &Self, x: f64) -> f64 { x }
    #[autodiff_forward(method_7, Dual, Dual)]
    fn without_self(x: T) -> T { x }
    #[autodiff_forward(method_8, Dual, Dual)]
    fn forward_lifetime<'a>(&'a self) -> &'a T { &self.0 }
    #[autodiff_reverse(method_9, Duplicated, Active)]
    fn reverse_lifetime<'a>(&'a self) -> f64 { 0.0 }
    #[autodiff_forward(method_10, Dual, Dual)]
    fn boxed(self: Box<Self>) -> f64 { 0.0 }
    #[autodiff_reverse(method_11, Const, Active, Active)]
    fn constant_self(&self, x: f64) -> f64 { x }
    #[autodiff_forward(method_12, Dual, Dual)]
    fn returns_self(x: &Self) -> Self { Structure(x.0) }
}

trait Model {
    #[autodiff_reverse(trait_1, Const, Active, Active)]
    fn declared(&self, x: f64) -> f64;
    #[autodiff_reverse(trait_2, Duplicated, Duplicated, Active)]
    fn with_shadow(&self, x: &[f64]) -> f64;
    #[autodiff_forward(trait_3, Const, Dual, Dual)]
    fn provided(&self, x: f64) -> f64 { x }
    #[autodiff_reverse(trait_4, Active, Active)]
    fn associated(x: f64) -> f64;
    #[autodiff_forward(trait_5, Const, Dual, Const, Dual)]
    fn generic_method<T: Copy>(&mut self, x: f64, t: T) -> f64;
}

impl Model for f64 {
    #[autodiff_reverse(trait_1, Const, Active, Active)]
    fn declared(&self, x: f64) -> f64 { x }
    fn with_shadow(&self, x: &[f64]) -> f64 { 0.0 }
    fn associated(x: f64) -> f64 { x }
    fn generic_method<T: Copy>(&mut self, x: f64, t: T) -> f64 { x }
}

mod module {
    use super::*;
    #[autodiff_reverse(module_1, Active, Active)]
    pub(super) fn inside(x: f64) -> f64 { x }
}

fn outer() {
    #[autodiff_reverse(nested_1, Active, Active)]
    fn inner(x: f64) -> f64 { x }
    {
        #[autodiff_forward(nested_2, Dual, Dual)]
        fn in_block(x: f64) -> f64 { x }
    }
}
