use ferrozyme::*;

#[autodiff_forward(df, Dual)]
struct Structure;

#[autodiff_forward(df, Dual)]
const CONSTANT: f64 = 1.0;

#[autodiff_reverse(df, Const)]
impl Structure {}

#[autodiff_reverse(df, Active, Active)]
fn pattern((x, y): (f64, f64)) -> f64 {
    x + y
}

#[autodiff_reverse(df, Const, Active, Active)]
fn wildcard(_: f64, x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active, Active)]
async fn asynchronous(x: f64) -> f64 {
    x
}

#[autodiff_reverse(df, Active, Active)]
fn anonymous_result(x: f64) -> impl Copy {
    x
}

#[autodiff_reverse(df, Duplicated, Active, Active)]
fn taken_shadow(x: &f64, dx_0: f64) -> f64 {
    *x + dx_0
}

#[autodiff_reverse(df, Active, Active)]
fn taken_seed(dret: f64) -> f64 {
    dret
}

struct Methods;

impl Methods {
    #[autodiff_reverse(df, Duplicated, Active, Active)]
    fn method(&self, n: usize) -> f64 {
        n as f64
    }
}

trait Model {
    #[autodiff_reverse(df, Dual, Active)]
    fn run(&self) -> f64;
}

fn main() {}
