use ferrozyme::accelerate;

#[accelerate(fast)]
fn with_argument(x: f64) -> f64 {
    x
}

#[accelerate]
struct Structure;

#[accelerate]
const fn constant(x: f64) -> f64 {
    x
}

#[accelerate]
async fn later(x: f64) -> f64 {
    x
}

#[accelerate]
fn endless() -> ! {
    loop {}
}

#[accelerate]
fn anonymous(x: &[f64]) -> impl Iterator<Item = f64> + '_ {
    x.iter().copied()
}

#[accelerate]
#[track_caller]
fn tracked(x: Option<f64>) -> f64 {
    x.unwrap()
}

trait Declared {
    #[accelerate]
    fn declared(&self) -> f64;
}

fn main() {}
