use ferrozyme::*;

#[autodiff_forward]
fn no_arguments(x: f64) -> f64 {
    x
}

#[autodiff_reverse()]
fn empty_arguments(x: f64) -> f64 {
    x
}

#[autodiff_reverse("df", Active, Active)]
fn string_as_name(x: f64) -> f64 {
    x
}

#[autodiff_reverse(1, Active, Active)]
fn number_as_name(x: f64) -> f64 {
    x
}

#[autodiff_reverse(module::df, Active, Active)]
fn path_as_name(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, 0, Dual, Dual)]
fn width_0(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, 4294967296, Dual, Dual)]
fn width_too_large(x: f64) -> f64 {
    x
}

#[autodiff_forward(df, Dual, 4, Dual)]
fn width_too_late(x: f64) -> f64 {
    x
}

#[autodiff_reverse(Active, Active)]
fn name_forgotten(x: f64) -> f64 {
    x
}

fn main() {}
