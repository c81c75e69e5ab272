use ferrozyme::Differentiable;

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

#[derive(Clone, Differentiable)]
#[differentiable(no_shadow)]
struct Handle {
    table: Vec<std::rc::Rc<f64>>,
}

#[derive(Differentiable)]
struct Hidden {
    float: f64,
    #[differentiable(inactive)]
    data: Handle,
}

#[derive(Clone)]
struct Unknown {
    name: String,
}

#[derive(Clone)]
enum Kind {
    First,
    Second,
}

#[derive(Differentiable)]
struct Inner {
    float: f64,
    #[differentiable(inactive)]
    kind: Kind,
    #[differentiable(inactive)]
    names: std::collections::HashMap<String, (usize, Vec<u8>)>,
    #[differentiable(inactive, unshared)]
    promised: Unknown,
    #[differentiable(inactive)]
    unknown: Unknown,
}

fn main() {}
