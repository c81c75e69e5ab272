//! Enums whose variants share their place: a float in one, a pointer or a number in another. Trees, formulas, layers, states, objects of several types.

use ferrozyme::{Differentiable, autodiff_forward, autodiff_reverse, shadow_of};
use ferrozyme_programs::{Field, assert_close};

enum Tree {
    Leaf(f64),
    Node(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn build(x: &[f64]) -> Tree {
        if x.len() == 1 {
            return Tree::Leaf(x[0] * x[0]);
        }
        let (left, right) = x.split_at(x.len() / 2);
        Tree::Node(Box::new(Tree::build(left)), Box::new(Tree::build(right)))
    }

    fn value(&self) -> f64 {
        match self {
            Tree::Leaf(value) => value.sin(),
            Tree::Node(left, right) => left.value() * right.value() + left.value(),
        }
    }

    /// Nodes whose leaves are small become leaves, and large leaves become nodes.
    fn reshape(&mut self) {
        match self {
            Tree::Leaf(value) if *value > 1.0 => {
                let half = *value / 2.0;
                *self = Tree::Node(
                    Box::new(Tree::Leaf(half)),
                    Box::new(Tree::Leaf(half * half)),
                );
            }
            Tree::Leaf(value) => *value *= 3.0,
            Tree::Node(left, right) => {
                if let (Tree::Leaf(a), Tree::Leaf(b)) = (&**left, &**right)
                    && a + b < 1.0
                {
                    *self = Tree::Leaf(a * b);
                    return;
                }
                left.reshape();
                right.reshape();
            }
        }
    }
}

#[autodiff_reverse(dtree, Duplicated, Active)]
#[autodiff_forward(btree, Dual, Dual)]
fn tree(x: &[f64]) -> f64 {
    let mut tree = Tree::build(x);
    let before = tree.value();
    tree.reshape();
    before + tree.value() * 0.5
}

#[test]
fn trees_with_floats_where_others_have_children() {
    Field::new("tree", tree)
        .reverse(dtree)
        .forward(btree)
        .check(&[0.7, 0.31, 1.2, 0.45, 0.2, 0.6]);
}

enum Formula {
    Constant(f64),
    Variable(usize),
    Sum(Box<Formula>, Box<Formula>),
    Product(Box<Formula>, Box<Formula>),
    Sine(Box<Formula>),
    Power(Box<Formula>, i32),
}

use Formula::{Constant, Power, Product, Sine, Sum, Variable};

fn evaluate(formula: &Formula, x: &[f64]) -> f64 {
    match formula {
        Constant(value) => *value,
        Variable(index) => x[*index],
        Sum(a, b) => evaluate(a, x) + evaluate(b, x),
        Product(a, b) => evaluate(a, x) * evaluate(b, x),
        Sine(a) => evaluate(a, x).sin(),
        Power(a, n) => evaluate(a, x).powi(*n),
    }
}

#[autodiff_reverse(dformula, Duplicated, Active)]
#[autodiff_forward(bformula, Dual, Dual)]
fn formula(x: &[f64]) -> f64 {
    let inner = Sum(Box::new(Constant(x[2] * 2.0)), Box::new(Variable(3)));
    let formula = Sum(
        Box::new(Product(
            Box::new(Variable(0)),
            Box::new(Sine(Box::new(Variable(1)))),
        )),
        Box::new(Power(Box::new(inner), 3)),
    );
    evaluate(&formula, x)
}

#[test]
fn formulas() {
    Field::new("formula", formula)
        .reverse(dformula)
        .forward(bformula)
        .check(&[0.7, 0.31, 1.2, 0.45]);
}

/// Which variables a formula has is known only when it runs.
#[autodiff_reverse(dtwo_leaves, Const, Const, Duplicated, Active)]
fn two_leaves(first: usize, second: usize, x: &[f64]) -> f64 {
    let leaf = |k: usize| match k {
        0..9 => Variable(k),
        _ => Constant(1.0),
    };
    let product = Product(Box::new(leaf(first)), Box::new(leaf(second)));
    evaluate(&product, x)
}

#[test]
fn formulas_of_chosen_variables() {
    let x = [2.0, 3.0];
    for (first, second, value, gradient) in [
        (0, 1, 6.0, [3.0, 2.0]),
        (1, 1, 9.0, [0.0, 6.0]),
        (1, 9, 3.0, [0.0, 1.0]),
        (9, 9, 1.0, [0.0, 0.0]),
    ] {
        let mut dx = [0.0; 2];
        let y = dtwo_leaves(first, second, &x, &mut dx, 1.0);
        assert_eq!((y, dx), (value, gradient), "{first} {second}");
    }
}

enum Layer {
    Dense { w: Vec<f64>, b: f64, out: usize },
    Relu,
    Scale(f64),
    Tanh,
    Power(i32),
}

fn run(layers: &[Layer], mut v: Vec<f64>) -> f64 {
    for layer in layers {
        v = match layer {
            Layer::Dense { w, b, out } => (0..*out)
                .map(|o| {
                    let row = v.iter().enumerate();
                    row.map(|(i, x)| x * w[o * v.len() + i]).sum::<f64>() + b
                })
                .collect(),
            Layer::Relu => v.iter().map(|x| x.max(0.0)).collect(),
            Layer::Scale(s) => v.iter().map(|x| x * s).collect(),
            Layer::Tanh => v.into_iter().map(f64::tanh).collect(),
            Layer::Power(n) => v.into_iter().map(|x| x.powi(*n)).collect(),
        };
    }
    v.iter().sum()
}

#[autodiff_reverse(dlayers, Duplicated, Active)]
#[autodiff_forward(blayers, Dual, Dual)]
fn layers(x: &[f64]) -> f64 {
    let layers = vec![
        Layer::Dense {
            w: x.to_vec(),
            b: x[0],
            out: 2,
        },
        Layer::Relu,
        Layer::Scale(x[3]),
        Layer::Dense {
            w: x[..2].to_vec(),
            b: 0.1,
            out: 1,
        },
        Layer::Tanh,
        Layer::Power(2),
    ];
    run(&layers, x[1..3].to_vec())
}

#[test]
fn layers_of_several_kinds() {
    Field::new("layers", layers)
        .reverse(dlayers)
        .forward(blayers)
        .check(&[0.7, 0.31, 1.2, 0.45]);
}

#[derive(Clone, Copy)]
enum State {
    Idle,
    Ramp { from: f64, rate: f64 },
    Hold(f64),
    Count(u64),
}

impl State {
    fn step(self, u: f64) -> State {
        match self {
            State::Idle => State::Ramp {
                from: u,
                rate: u * 0.5,
            },
            State::Ramp { from, rate } if from + rate > 1.0 => State::Hold(from * rate),
            State::Ramp { from, rate } => State::Ramp {
                from: from + rate * u,
                rate,
            },
            State::Hold(v) if v > 2.0 => State::Count(3),
            State::Hold(v) => State::Hold(v * 1.5 + u),
            State::Count(0) => State::Idle,
            State::Count(n) => State::Count(n - 1),
        }
    }

    fn output(&self) -> f64 {
        match self {
            State::Idle => 0.0,
            State::Ramp { from, rate } => from * rate,
            State::Hold(v) => v.sin(),
            State::Count(n) => *n as f64,
        }
    }
}

#[autodiff_reverse(dstates, Duplicated, Active)]
#[autodiff_forward(bstates, Dual, Dual)]
fn states(x: &[f64]) -> f64 {
    let mut state = State::Idle;
    let mut best: Option<f64> = None;
    let mut sum = 0.0;
    for i in 0..12 {
        state = state.step(x[i % x.len()]);
        let output = state.output();
        best = Some(best.map_or(output, |best| best.max(output)));
        sum += output;
    }
    sum * best.unwrap_or(0.0)
}

#[test]
fn states_with_numbers_and_floats() {
    Field::new("states", states)
        .reverse(dstates)
        .forward(bstates)
        .check(&[0.7, 0.31, 1.2, 0.45]);
}

trait Body {
    fn area(&self, scale: f64) -> f64;
    fn grow(&mut self, by: f64);
}

struct Square(f64);

struct Star {
    radius: f64,
    rays: Vec<f64>,
}

impl Body for Square {
    fn area(&self, scale: f64) -> f64 {
        self.0 * self.0 * scale
    }
    fn grow(&mut self, by: f64) {
        self.0 *= by;
    }
}

impl Body for Star {
    fn area(&self, scale: f64) -> f64 {
        self.radius.sin() + self.rays.iter().map(|ray| ray * scale).product::<f64>()
    }
    fn grow(&mut self, by: f64) {
        self.rays.push(by);
    }
}

#[autodiff_reverse(dbodies, Duplicated, Active)]
#[autodiff_forward(bbodies, Dual, Dual)]
fn bodies(x: &[f64]) -> f64 {
    let mut bodies: Vec<Box<dyn Body>> = vec![
        Box::new(Square(x[0])),
        Box::new(Star {
            radius: x[1],
            rays: vec![x[2], x[3]],
        }),
    ];
    for body in &mut bodies {
        body.grow(x[3] * x[0]);
    }
    bodies.push(Box::new(Square(x[2])));
    bodies.reverse();
    bodies
        .iter()
        .map(|body| body.area(x[3]))
        .fold(1.0, |a, b| a * 0.5 + b * b)
}

#[test]
fn objects_of_several_types() {
    Field::new("bodies", bodies)
        .reverse(dbodies)
        .forward(bbodies)
        .check(&[0.7, 0.31, 1.2, 0.45]);
}

trait Kernel {
    fn value(&self, a: f64, b: f64) -> f64;
}

struct Gaussian {
    width: f64,
}

struct Linear {
    factors: Vec<f64>,
}

impl Kernel for Gaussian {
    fn value(&self, a: f64, b: f64) -> f64 {
        (-(a - b).powi(2) / self.width).exp()
    }
}

impl Kernel for Linear {
    fn value(&self, a: f64, b: f64) -> f64 {
        a * b + self.factors.iter().sum::<f64>() * a
    }
}

#[autodiff_reverse(dgram, Duplicated, Const, Active)]
#[autodiff_forward(bgram, Dual, Const, Dual)]
fn gram(x: &[f64], kernel: &dyn Kernel) -> f64 {
    let mut sum = 0.0;
    for a in x {
        for b in x {
            sum += kernel.value(*a, *b);
        }
    }
    sum
}

#[test]
fn constant_objects_of_several_types() {
    let kernels: Vec<Box<dyn Kernel>> = vec![
        Box::new(Gaussian { width: 0.7 }),
        Box::new(Linear {
            factors: vec![0.1, 0.2],
        }),
    ];
    for kernel in &kernels {
        let kernel = &**kernel;
        Field::new("kernel", |x| gram(x, kernel))
            .reverse(|x, dx, seed| dgram(x, dx, kernel, seed))
            .forward(|x, v| bgram(x, v, kernel))
            .check(&[0.7, 0.31, 1.2, 0.45]);
    }
}

enum List {
    Nil,
    Item(f64, Box<List>),
}

#[autodiff_reverse(dlist, Duplicated, Active)]
#[autodiff_forward(blist, Dual, Dual)]
fn list(x: &[f64]) -> f64 {
    fn sum(list: &List) -> f64 {
        match list {
            List::Nil => 0.0,
            List::Item(value, rest) => value * value + 0.5 * sum(rest),
        }
    }
    let mut list = List::Nil;
    for value in x {
        list = List::Item(*value, Box::new(list));
    }
    sum(&list)
}

#[test]
fn lists() {
    Field::new("list", list)
        .reverse(dlist)
        .forward(blist)
        .check(&[0.7, 0.31, 1.2, 0.45]);
}

/// Numbers of several shapes, which are taken apart and made anew.
enum Quantity {
    Scalar(f64),
    Vector(Vec<f64>),
    Matrix(Vec<Vec<f64>>),
    Nothing,
}

impl Quantity {
    fn norm(&self) -> f64 {
        match self {
            Quantity::Scalar(x) => x.abs(),
            Quantity::Vector(x) => x.iter().map(|x| x * x).sum::<f64>().sqrt(),
            Quantity::Matrix(x) => x.iter().flatten().map(|x| x * x).sum::<f64>().sqrt(),
            Quantity::Nothing => 0.0,
        }
    }

    fn scale(self, k: f64) -> Quantity {
        let row = |row: Vec<f64>| -> Vec<f64> { row.into_iter().map(|x| x * k).collect() };
        match self {
            Quantity::Scalar(x) => Quantity::Scalar(k * x),
            Quantity::Vector(x) => Quantity::Vector(row(x)),
            Quantity::Matrix(x) => Quantity::Matrix(x.into_iter().map(row).collect()),
            Quantity::Nothing => Quantity::Nothing,
        }
    }
}

#[autodiff_reverse(dquantities, Duplicated, Active)]
#[autodiff_forward(bquantities, Dual, Dual)]
fn quantities(x: &[f64]) -> f64 {
    let all = [
        Quantity::Scalar(x[0]),
        Quantity::Vector(x.to_vec()),
        Quantity::Matrix(vec![x[..2].to_vec(), x[2..].to_vec()]),
        Quantity::Nothing,
    ];
    all.into_iter().map(|one| one.scale(x[3]).norm()).sum()
}

#[test]
fn quantities_of_several_shapes() {
    Field::new("quantities", quantities)
        .reverse(dquantities)
        .forward(bquantities)
        .check(&[0.7, 1.3, 2.1, 1.9]);
}

/// A map's nodes hold floats beside keys, lengths and the addresses of other nodes.
#[autodiff_reverse(dtotals, Duplicated, Active)]
fn totals(x: &[f64]) -> f64 {
    let mut totals = std::collections::BTreeMap::new();
    for i in 0..200 {
        *totals.entry((i * 7) % 113).or_insert(0.0) += x[i % 4] * i as f64;
    }
    totals.values().map(|total| total * total).sum::<f64>() * 1e-4
}

#[test]
fn ordered_map_that_grows() {
    Field::new("totals", totals)
        .reverse(dtotals)
        .check(&[0.7, 0.0, 2.1, 1.9]);
}

#[autodiff_reverse(d_remember, Active, Duplicated, Active)]
fn remember(x: f64, memo: &mut Option<f64>) -> f64 {
    if memo.is_none() {
        *memo = Some(x * x);
    }
    memo.unwrap()
}

#[autodiff_reverse(d_by_value, Active, Active, Active)]
fn by_value(x: f64, mut memo: Option<f64>) -> f64 {
    remember(x, &mut memo)
}

/// Leaves numbers on the stack and in memory that is free.
#[inline(never)]
fn dirty() {
    let numbers = std::hint::black_box([4321.5f64; 200]);
    std::hint::black_box(&numbers);
    for n in [2, 4, 8, 16, 32] {
        std::hint::black_box(vec![9.25f64; n]);
        std::hint::black_box(vec![Some(5.0f64); n]);
    }
}

#[test]
fn what_an_option_held_is_no_seed() {
    let mut shadow = std::hint::black_box(Some(77.0));
    shadow.take();
    let mut memo = None;
    assert_eq!(d_remember(3.0, &mut memo, &mut shadow, 1.0), (9.0, 6.0));
    assert_eq!((memo, shadow), (Some(9.0), Some(0.0)));
    dirty();
    let (value, dx, _) = d_by_value(3.0, None, 1.0);
    assert_eq!((value, dx), (9.0, 6.0));
}

#[derive(Differentiable, Clone)]
struct Memory {
    k: f64,
    memo: Option<f64>,
    table: Vec<Option<f64>>,
    pair: Option<(f64, bool)>,
    outcome: Result<f64, u8>,
}

impl Memory {
    fn new(k: f64) -> Memory {
        Memory {
            k,
            memo: None,
            table: vec![None; 8],
            pair: None,
            outcome: Err(3),
        }
    }

    fn square(&mut self) -> f64 {
        if let Some(square) = self.memo {
            return square;
        }
        let square = self.k * self.k;
        self.memo = Some(square);
        square
    }

    fn fibonacci(&mut self, n: usize) -> f64 {
        if n < 2 {
            return self.k;
        }
        if let Some(value) = self.table[n] {
            return value;
        }
        let value = self.fibonacci(n - 1) + self.k * self.fibonacci(n - 2);
        self.table[n] = Some(value);
        value
    }
}

#[autodiff_reverse(d_recall, Duplicated, Active, Active)]
fn recall(memory: &mut Memory, x: f64) -> f64 {
    let a = memory.square() * x;
    let b = memory.square() + x;
    let (p, sure) = *memory.pair.get_or_insert((a, true));
    if memory.outcome.is_err() {
        memory.outcome = Ok(b * memory.k);
    }
    match (sure, memory.outcome) {
        (true, Ok(q)) => p * q,
        _ => 0.0,
    }
}

#[autodiff_reverse(d_fibonacci, Duplicated, Active, Active)]
fn fibonacci(memory: &mut Memory, x: f64) -> f64 {
    memory.fibonacci(6) * x
}

#[test]
fn what_lay_where_shadows_are_is_no_seed() {
    let (k, x) = (0.7, 0.3);
    for _ in 0..3 {
        dirty();
        let mut memory = Memory::new(k);
        let mut shadow = shadow_of(&memory);
        let (_, dx) = d_recall(&mut memory, &mut shadow, x, 1.0);
        // k²·x · (k² + x)·k
        let dk = 5.0 * k.powi(4) * x + 3.0 * k * k * x * x;
        assert_close("k", shadow.k, dk, 1e-12);
        assert_close("x", dx, k.powi(5) + 2.0 * k.powi(3) * x, 1e-12);
        dirty();
        let mut memory = Memory::new(k);
        let mut shadow = shadow_of(&memory);
        let (value, dx) = d_fibonacci(&mut memory, &mut shadow, x, 1.0);
        assert_close("x", dx, value / x, 1e-12);
        // k + 5k² + 6k³ + k⁴
        let polynomial = 1.0 + 10.0 * k + 18.0 * k * k + 4.0 * k.powi(3);
        assert_close("k", shadow.k, polynomial * x, 1e-12);
    }
}

#[derive(Differentiable, Clone, Copy)]
enum Flow {
    Idle,
    One(f64),
    Two { first: f64, second: f64 },
}

#[autodiff_reverse(d_flow, Duplicated, Duplicated, Active)]
fn flow(x: &[f64], state: &mut Flow) -> f64 {
    let mut total = 0.0;
    for a in x {
        *state = match *state {
            Flow::Idle => Flow::One(a * a),
            Flow::One(first) => Flow::Two {
                first,
                second: a * first,
            },
            Flow::Two { first, second } => Flow::One(first * second),
        };
        total += match *state {
            Flow::Idle => 0.0,
            Flow::One(first) => first,
            Flow::Two { first, second } => first * second,
        };
    }
    total
}

#[test]
fn what_another_variant_held_is_no_seed() {
    let becomes_idle: fn(&mut Flow) = |shadow| *shadow = Flow::Idle;
    let becomes_one: fn(&mut Flow) = |shadow| *shadow = Flow::One(0.0);
    for (state, change) in [(Flow::Idle, becomes_idle), (Flow::One(0.6), becomes_one)] {
        Field::new("flow", move |x| flow(x, &mut state.clone()))
            .reverse(move |x, dx, seed| {
                let mut shadow = std::hint::black_box(Flow::Two {
                    first: 7.0,
                    second: 9.0,
                });
                std::hint::black_box(change)(&mut shadow);
                d_flow(x, dx, &mut state.clone(), &mut shadow, seed)
            })
            .check(&[0.7, 1.3, 0.4, 0.9, 1.1]);
    }
}

/// The gradient of `flow`, from a state and a shadow that held another variant.
#[autodiff_forward(d_slope_of_flow, Dual, Dual)]
fn slope_of_flow(x: &[f64], dx: &mut [f64]) {
    let mut state = Flow::Idle;
    let mut shadow = Flow::Two {
        first: x[0],
        second: x[1],
    };
    shadow = match shadow {
        Flow::Two { .. } if x[0] > 0.0 => Flow::Idle,
        other => other,
    };
    d_flow(x, dx, &mut state, &mut shadow, 1.0);
}

/// The gradient of `remember`, with the memory of an option that was full before.
#[autodiff_forward(d_slope_of_remember, Dual, DualOnly)]
fn slope_of_remember(x: f64) -> f64 {
    let mut shadow = Some(5.0 * x);
    if x > 0.0 {
        shadow.take();
    }
    d_remember(x, &mut None, &mut shadow, x).1
}

#[test]
fn unused_bytes_are_cleared_in_derivatives_of_derivatives() {
    let (x, v) = ([0.7, 1.3, 0.4, 0.9, 1.1], [0.3, -1.0, 0.5, 0.2, 0.8]);
    let gradient = |step: f64| {
        let mut dx = [0.0; 5];
        slope_of_flow(
            &std::array::from_fn::<f64, 5, _>(|i| x[i] + step * v[i]),
            &mut dx,
        );
        dx
    };
    let (mut dx, mut ddx) = ([0.0; 5], [0.0; 5]);
    d_slope_of_flow(&x, &v, &mut dx, &mut ddx);
    assert_eq!(dx, gradient(0.0));
    let (above, below) = (gradient(1e-5), gradient(-1e-5));
    for (i, ddx) in ddx.into_iter().enumerate() {
        assert_close("ddx", ddx, (above[i] - below[i]) / 2e-5, 1e-7);
    }
    // The slope is 2x², since its seed is x.
    assert_close("slope", slope_of_remember(3.0), 18.0, 1e-12);
    assert_close("its slope", d_slope_of_remember(3.0, 1.0), 12.0, 1e-12);
}
