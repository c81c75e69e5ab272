use ferrozyme::*;

#[autodiff_reverse(df, Active, Active)]
fn active_reference(x: &f64) -> f64 {
    *x
}

#[autodiff_reverse(df, Active, Active)]
fn active_pointer(x: *const f64) -> f64 {
    unsafe { *x }
}

#[autodiff_reverse(df, Active, Active)]
fn active_integer(x: usize) -> f64 {
    x as f64
}

#[autodiff_reverse(df, Active, Active)]
fn active_vector(x: Vec<f64>) -> f64 {
    x[0]
}

#[autodiff_reverse(df, Active, Active)]
fn active_integers(x: [i32; 3]) -> f64 {
    x[0] as f64
}

#[autodiff_reverse(df, Duplicated, Active)]
fn active_integer_result(x: &f64) -> i64 {
    *x as i64
}

#[autodiff_reverse(df, Duplicated, ActiveOnly)]
fn active_reference_result(x: &f64) -> &f64 {
    x
}

#[autodiff_reverse(df, Duplicated, Active)]
fn duplicated_scalar(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, DuplicatedOnly, Active)]
fn duplicated_vector(x: Vec<f64>) -> f64 {
    x[0]
}

#[autodiff_forward(df, 2, Dualv, Dual)]
fn dualv_scalar(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, 2, DualvOnly, Dual)]
fn dualv_array(x: &[f64; 3]) -> f64 {
    x[0]
}

#[autodiff_reverse(df, 2, Active, Duplicated)]
fn lanes(x: f64, y: &mut f64) {
    *y = x;
}

#[autodiff_reverse(df, 2, Duplicated, Duplicated)]
unsafe fn pointer_lanes(x: &f64, y: *mut f64) {
    unsafe { *y = *x }
}

fn main() {}
