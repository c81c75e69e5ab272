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
struct Promise {
    #[differentiable(unshared)]
    float: f64,
}

fn main() {}
