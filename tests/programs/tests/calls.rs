//! Calls that are decided at run time: function pointers, trait objects, closures in all their forms.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Scalar};
use std::rc::Rc;

fn squared(x: f64) -> f64 {
    x * x
}

fn sine(x: f64) -> f64 {
    x.sin()
}

fn damped(x: f64) -> f64 {
    (-x * x).exp() * x
}

const TABLE: [fn(f64) -> f64; 3] = [squared, sine, damped];

#[autodiff_reverse(dpointers, Duplicated, Const, Active)]
#[autodiff_forward(bpointers, Dual, Const, Dual)]
fn by_table(x: &[f64], choice: &[usize]) -> f64 {
    let mut value = 1.0;
    for (&x, &choice) in x.iter().zip(choice) {
        value = value * 0.5 + TABLE[choice](x * value);
    }
    value
}

#[test]
fn table_of_function_pointers() {
    let choice = [2, 0, 1, 1];
    Field::new("function pointers", |x| by_table(x, &choice))
        .reverse(|x, dx, seed| dpointers(x, dx, &choice, seed))
        .forward(|x, v| bpointers(x, v, &choice))
        .check(&[0.5, 1.5, -0.75, 2.0]);
}

#[autodiff_reverse(dgiven, Active, Const, Active)]
#[autodiff_forward(bgiven, Dual, Const, Dual)]
fn given(x: f64, f: fn(f64) -> f64) -> f64 {
    f(f(x)) + x
}

#[test]
fn function_pointer_as_argument() {
    for f in TABLE {
        Scalar::new("function pointer as argument", |x| given(x, f))
            .reverse(|x, seed| dgiven(x, f, seed))
            .forward(|x, v| bgiven(x, v, f))
            .check(&[0.4, -1.3]);
    }
}

trait Shape {
    fn area(&self, scale: f64) -> f64;
    fn name(&self) -> &str {
        "shape"
    }
}

struct Circle {
    radius: f64,
}

struct Rectangle {
    sides: [f64; 2],
}

struct Polygon {
    corners: Vec<(f64, f64)>,
    label: String,
}

impl Shape for Circle {
    fn area(&self, scale: f64) -> f64 {
        std::f64::consts::PI * (self.radius * scale).powi(2)
    }
}

impl Shape for Rectangle {
    fn area(&self, scale: f64) -> f64 {
        self.sides[0] * self.sides[1] * scale * scale
    }
}

impl Shape for Polygon {
    fn area(&self, scale: f64) -> f64 {
        let n = self.corners.len();
        let mut twice = 0.0;
        for i in 0..n {
            let (a, b) = (self.corners[i], self.corners[(i + 1) % n]);
            twice += a.0 * b.1 - b.0 * a.1;
        }
        0.5 * twice.abs() * scale * scale
    }
    fn name(&self) -> &str {
        &self.label
    }
}

#[autodiff_reverse(dshape, Active, Const, Active)]
#[autodiff_forward(bshape, Dual, Const, Dual)]
fn area_of(scale: f64, shape: &dyn Shape) -> f64 {
    shape.area(scale.sin()) + shape.name().len() as f64
}

#[test]
fn trait_object_as_argument() {
    let polygon = Polygon {
        corners: vec![(0.0, 0.0), (2.0, 0.0), (1.0, 1.5)],
        label: "triangle".into(),
    };
    let shapes: [&dyn Shape; 3] = [
        &Circle { radius: 1.5 },
        &Rectangle { sides: [2.0, 0.5] },
        &polygon,
    ];
    for shape in shapes {
        Scalar::new("&dyn Trait", |x| area_of(x, shape))
            .reverse(|x, seed| dshape(x, shape, seed))
            .forward(|x, v| bshape(x, v, shape))
            .check(&[0.4, 1.3]);
    }
}

#[autodiff_reverse(dscene, Duplicated, Active)]
#[autodiff_forward(bscene, Dual, Dual)]
fn scene(x: &[f64]) -> f64 {
    // The objects are made inside, so what they hold is active.
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    shapes.push(Box::new(Circle { radius: x[0] }));
    if x[1] > 0.0 {
        shapes.push(Box::new(Rectangle {
            sides: [x[1], x[2]],
        }));
    }
    shapes.push(Box::new(Polygon {
        corners: vec![(0.0, 0.0), (x[3], x[0]), (x[2], x[1])],
        label: "corners".into(),
    }));
    shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| shape.area((i + 1) as f64))
        .sum()
}

#[test]
fn vector_of_boxed_trait_objects() {
    Field::new("Vec<Box<dyn Trait>>", scene)
        .reverse(dscene)
        .forward(bscene)
        .check(&[1.5, 2.0, 0.5, 3.0]);
    Field::new("Vec<Box<dyn Trait>>", scene)
        .reverse(dscene)
        .forward(bscene)
        .check(&[1.5, -2.0, 0.5, 3.0]);
}

/// Layers with names: one is a constant, the other was formatted, and is memory without a shadow beside an active value.
trait HasName {
    fn apply(&self, x: f64) -> f64;
    fn name(&self) -> String;
}

struct NamedScale {
    by: f64,
}

struct NamedPower {
    label: String,
    exponent: f64,
}

impl HasName for NamedScale {
    fn apply(&self, x: f64) -> f64 {
        self.by * x
    }
    fn name(&self) -> String {
        "scale".to_string()
    }
}

impl HasName for NamedPower {
    fn apply(&self, x: f64) -> f64 {
        x.powf(self.exponent)
    }
    fn name(&self) -> String {
        self.label.clone()
    }
}

#[inline(never)]
fn named_layers(numbers: &[f64]) -> Vec<Box<dyn HasName>> {
    let layer = |(index, &number): (usize, &f64)| -> Box<dyn HasName> {
        match index % 2 {
            0 => Box::new(NamedScale { by: number }),
            _ => Box::new(NamedPower {
                label: format!("power{index}"),
                exponent: number,
            }),
        }
    };
    numbers.iter().enumerate().map(layer).collect()
}

#[autodiff_reverse(dnamed, Duplicated, Active)]
#[autodiff_forward(bnamed, Dual, Dual)]
fn named(numbers: &[f64]) -> f64 {
    let (mut value, mut letters) = (1.3, 0);
    for layer in &named_layers(numbers) {
        value = layer.apply(value);
        letters += layer.name().len();
    }
    value * letters as f64
}

#[test]
fn formatted_names_beside_active_values() {
    Field::new("formatted names", named)
        .reverse(dnamed)
        .forward(bnamed)
        .check(&[1.1, 2.2, 0.7, 1.9]);
}

/// A trait object with state that changes.
trait Filter {
    fn step(&mut self, input: f64) -> f64;
}

struct LowPass {
    factor: f64,
    state: f64,
}

struct Delay {
    buffer: Vec<f64>,
    position: usize,
}

impl Filter for LowPass {
    fn step(&mut self, input: f64) -> f64 {
        self.state += self.factor * (input - self.state);
        self.state
    }
}

impl Filter for Delay {
    fn step(&mut self, input: f64) -> f64 {
        let output = std::mem::replace(&mut self.buffer[self.position], input);
        self.position = (self.position + 1) % self.buffer.len();
        input - 0.5 * output
    }
}

#[autodiff_reverse(dfilters, Duplicated, Active, Active)]
#[autodiff_forward(bfilters, Dual, Dual, Dual)]
fn filter_chain(signal: &[f64], factor: f64) -> f64 {
    let mut chain: Vec<Box<dyn Filter>> = vec![
        Box::new(LowPass { factor, state: 0.0 }),
        Box::new(Delay {
            buffer: vec![0.0; 2],
            position: 0,
        }),
    ];
    let mut energy = 0.0;
    for &sample in signal {
        let output = chain
            .iter_mut()
            .fold(sample, |value, filter| filter.step(value));
        energy += output * output;
    }
    energy
}

#[test]
fn trait_objects_with_state() {
    Field::new("filters", |x| filter_chain(&x[..5], x[5]))
        .reverse(|x, dx, seed| {
            let (dsignal, dfactor) = dx.split_at_mut(5);
            let (value, gradient) = dfilters(&x[..5], dsignal, x[5], seed);
            dfactor[0] += gradient;
            value
        })
        .forward(|x, v| bfilters(&x[..5], &v[..5], x[5], v[5]))
        .check(&[1.0, 0.5, -2.0, 0.25, 3.0, 0.4]);
}

#[autodiff_reverse(dpipeline, Duplicated, Active)]
fn pipeline(x: &[f64]) -> f64 {
    let offset = x[1];
    let stages: Vec<Box<dyn Fn(f64) -> f64 + '_>> = vec![
        Box::new(|y| y * x[0]),
        Box::new(f64::sin),
        Box::new(move |y| y * y + offset),
        Box::new(|y| y * y),
    ];
    stages.iter().fold(x[2], |value, stage| stage(value))
}

#[test]
fn vector_of_boxed_closures() {
    Field::new("pipeline of closures", pipeline)
        .reverse(dpipeline)
        .check(&[0.5, 1.5, 2.0]);
}

#[autodiff_reverse(dcapturing, Duplicated, Active)]
#[autodiff_forward(bcapturing, Dual, Dual)]
fn closures(x: &[f64]) -> f64 {
    // Captures by reference, by value, and by unique reference.
    let (a, b) = (x[0], x[1] * x[0]);
    let by_reference = |y: f64| a * y + b;
    let by_value = move |y: f64| a * y * y - b;
    let mut calls = 0;
    let mut total = 0.0;
    let mut add = |y: f64| {
        calls += 1;
        total += y;
    };
    for &y in x {
        add(by_reference(y));
        add(by_value(y));
    }
    total * f64::from(calls)
}

#[test]
fn closures_that_capture() {
    Field::new("closures", closures)
        .reverse(dcapturing)
        .forward(bcapturing)
        .check(&[0.5, -1.5, 2.0]);
}

fn polynomial(coefficients: Vec<f64>) -> impl Fn(f64) -> f64 {
    move |x| {
        coefficients
            .iter()
            .rev()
            .fold(0.0, |value, c| value * x + c)
    }
}

fn boxed_by_choice(cubic: bool, c: f64) -> Box<dyn Fn(f64) -> f64> {
    if cubic {
        Box::new(move |x| c * x * x * x)
    } else {
        Box::new(move |x| (c * x).cos())
    }
}

fn compose<A, B>(f: impl Fn(A) -> B, g: impl Fn(B) -> f64) -> impl Fn(A) -> f64 {
    move |x| g(f(x))
}

#[autodiff_reverse(dreturned, Duplicated, Const, Active)]
#[autodiff_forward(breturned, Dual, Const, Dual)]
fn returned_closures(x: &[f64], cubic: bool) -> f64 {
    let p = polynomial(x[..3].to_vec());
    let q = boxed_by_choice(cubic, x[3]);
    let both = compose(&p, &q);
    both(x[0]) + p(x[3])
}

#[test]
fn closures_that_are_returned() {
    for cubic in [false, true] {
        Field::new("returned closures", |x| returned_closures(x, cubic))
            .reverse(|x, dx, seed| dreturned(x, dx, cubic, seed))
            .forward(|x, v| breturned(x, v, cubic))
            .check(&[0.5, -0.75, 1.25, 0.8]);
    }
}

fn integrate(f: &dyn Fn(f64) -> f64, a: f64, b: f64, n: u32) -> f64 {
    let h = (b - a) / f64::from(n);
    (0..n).map(|i| f(a + (f64::from(i) + 0.5) * h)).sum::<f64>() * h
}

fn repeat(times: usize, f: &mut dyn FnMut(usize)) {
    for i in 0..times {
        f(i);
    }
}

#[autodiff_reverse(dcallbacks, Duplicated, Active)]
#[autodiff_forward(bcallbacks, Dual, Dual)]
fn callbacks(x: &[f64]) -> f64 {
    let area = integrate(&|t| (x[0] * t).sin() * x[1], 0.0, x[2], 16);
    let mut sums = vec![0.0; 2];
    repeat(x.len(), &mut |i| sums[i % 2] += x[i] * area);
    sums[0] * sums[1]
}

#[test]
fn closures_as_trait_objects() {
    Field::new("callbacks", callbacks)
        .reverse(dcallbacks)
        .forward(bcallbacks)
        .check(&[0.5, 1.5, 2.0]);
}

#[inline(never)]
fn kept_out_of_line(x: f64, table: &[f64; 4], n: usize) -> (f64, usize) {
    (x * table[n % 4] + table[(n + 1) % 4].sin(), n + 1)
}

#[inline(never)]
fn through_references(x: &mut f64, y: &mut [f64], factor: &f64) {
    *x *= *factor;
    for (i, y) in y.iter_mut().enumerate() {
        *y += *x * i as f64;
    }
}

#[autodiff_reverse(doutlined, Duplicated, Active)]
#[autodiff_forward(boutlined, Dual, Dual)]
fn calls_out_of_line(x: &[f64]) -> f64 {
    let table = [x[0], x[1], x[0] * x[1], 2.0];
    let mut value = x[2];
    let mut n = 0;
    while n < 6 {
        (value, n) = kept_out_of_line(value, &table, n);
    }
    let mut work = x.to_vec();
    through_references(&mut value, &mut work, &x[1]);
    work.iter().map(|w| w * value).sum()
}

#[test]
fn functions_that_are_not_inlined() {
    Field::new("calls out of line", calls_out_of_line)
        .reverse(doutlined)
        .forward(boutlined)
        .check(&[0.5, 0.75, 1.2]);
}

/// One object has a number that carries a derivative, the other none at all.
trait Stage {
    fn run(&self, x: f64) -> f64;
}

struct Square {
    on: bool,
}

struct Gain {
    factor: f64,
}

impl Stage for Square {
    fn run(&self, x: f64) -> f64 {
        if self.on { x * x } else { x }
    }
}

impl Stage for Gain {
    fn run(&self, x: f64) -> f64 {
        x * self.factor
    }
}

#[autodiff_reverse(dshared, Active, Active)]
#[autodiff_forward(bshared, Dual, Dual)]
fn shared_stages(x: f64) -> f64 {
    let stages: Vec<Rc<dyn Stage>> =
        vec![Rc::new(Square { on: true }), Rc::new(Gain { factor: x })];
    let again = stages.clone();
    again[1].run(stages[0].run(x))
}

#[test]
fn shared_objects_with_and_without_numbers() {
    Scalar::new("Vec<Rc<dyn Trait>>", shared_stages)
        .reverse(dshared)
        .forward(bshared)
        .closed_form(|x| 3.0 * x * x)
        .check(&[3.0, -0.5]);
}

/// Trait objects that hold trait objects: what is called through a pointer calls through pointers itself.
trait Layer {
    fn apply(&self, x: &[f64]) -> Vec<f64>;
}

struct Scale(f64);

struct Sequence(Vec<Box<dyn Layer>>);

impl Layer for Scale {
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| x * self.0).collect()
    }
}

impl Layer for Sequence {
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let layers = self.0.iter();
        layers.fold(x.to_vec(), |x, layer| layer.apply(&x))
    }
}

#[autodiff_reverse(dnested, Duplicated, Active)]
#[autodiff_forward(bnested, Dual, Dual)]
fn nested(x: &[f64]) -> f64 {
    let inner = Sequence(vec![Box::new(Scale(x[1]))]);
    let outer = Sequence(vec![Box::new(Scale(x[0])), Box::new(inner)]);
    outer.apply(&[1.0])[0]
}

#[test]
fn trait_objects_that_hold_trait_objects() {
    Field::new("nested trait objects", nested)
        .reverse(dnested)
        .forward(bnested)
        .check(&[3.0, 0.5]);
}
