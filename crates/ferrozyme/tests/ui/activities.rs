use ferrozyme::*;

#[autodiff_forward(df, Dula, Dual)]
fn misspelt(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, duplicated, Active)]
fn wrong_case(x: &f64) -> f64 {
    *x
}

#[autodiff_reverse(df, Something, Active)]
fn unknown(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, "Active", Active)]
fn string(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, ferrozyme::Active, Active)]
fn path(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active,, Active)]
fn gap(x: f64) -> f64 {
    x
}

#[autodiff_forward(df)]
fn none(x: f64, y: f64) -> f64 {
    x + y
}

#[autodiff_reverse(df, Active)]
fn no_return_activity(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active, Active, Active)]
fn too_many(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Duplicated, Active)]
fn return_activity_of_unit(x: &mut f64) {
    *x = 1.0;
}

#[autodiff_reverse(df, Active)]
fn nothing() {}

fn main() {}
