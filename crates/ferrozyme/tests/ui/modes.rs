use ferrozyme::*;

#[autodiff_forward(df, Active, Dual)]
fn active_in_forward(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, Duplicated, DuplicatedOnly)]
fn duplicated_in_forward(x: &f64, y: &mut f64) {
    *y = *x;
}

#[autodiff_reverse(df, Dual, Active)]
fn dual_in_reverse(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, DualOnly, Dualv, DualvOnly, Active)]
fn other_duals_in_reverse(x: f64, y: &[f64], z: &[f64]) -> f64 {
    x + y[0] + z[0]
}

#[autodiff_reverse(df, ActiveOnly, Active)]
fn active_only_argument(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, Dual, Active)]
fn active_result_in_forward(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, Dual, Dualv)]
fn dualv_result(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active, Dual)]
fn dual_result_in_reverse(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active, Duplicated)]
fn duplicated_result(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Dual, DualOnly)]
fn two_errors(x: f64) -> f64 {
    x
}

fn main() {}
