use ferrozyme::Differentiable;

#[derive(Differentiable)]
union Both {
    float: f64,
    integer: u64,
}

#[derive(Differentiable)]
#[repr(C, packed)]
struct Packed {
    byte: u8,
    float: f64,
}

#[derive(Differentiable)]
struct WrongOption {
    #[differentiable(no_shadow)]
    float: f64,
}

#[derive(Differentiable)]
#[differentiable(inactive)]
struct OtherWrongOption {
    float: f64,
}

#[derive(Differentiable)]
struct Shared {
    float: f64,
    #[differentiable(inactive)]
    data: Option<std::rc::Rc<Vec<f64>>>,
}

#[derive(Differentiable)]
struct Borrowed<'a> {
    float: f64,
    #[differentiable(inactive)]
    name: &'static str,
    #[differentiable(inactive)]
    data: &'a [f64],
}

fn main() {}
