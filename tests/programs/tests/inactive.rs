//! What accompanies the numbers without being differentiated: printing, strings, counters, time, tables.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use ferrozyme::{autodiff_forward, autodiff_reverse, inactive};
use ferrozyme_programs::{Field, Scalar};

#[autodiff_reverse(dprinting, Duplicated, Active)]
#[autodiff_forward(bprinting, Dual, Dual)]
fn printing(x: &[f64]) -> f64 {
    println!("evaluating at {} numbers", x.len());
    let mut sum = 0.0;
    for (i, x) in x.iter().enumerate() {
        sum += x * x;
        // An active number is printed: that has no derivative and needs none.
        eprintln!("after {i}: {sum:.3}");
    }
    sum
}

#[test]
fn printing_on_the_way() {
    Field::new("printing", printing)
        .reverse(dprinting)
        .forward(bprinting)
        .closed_form(|x| x.iter().map(|x| 2.0 * x).collect())
        .check(&[1.0, -2.0]);
}

/// Says more than it holds.
#[derive(Clone, Debug)]
struct Point {
    x: f64,
    y: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut square = 0.0;
        [self.x, self.y].iter().for_each(|x| square += x * x);
        write!(
            text,
            "({:.1}, {:.1}), {:.1} away",
            self.x,
            self.y,
            square.sqrt()
        )
    }
}

#[derive(Debug)]
enum Failure {
    Negative(f64),
    Large(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Negative(x) => write!(text, "{x} has no root"),
            Failure::Large(message) => text.write_str(message),
        }
    }
}

fn root(x: f64) -> Result<f64, Failure> {
    match x {
        x if x < 0.0 => Err(Failure::Negative(x)),
        x if x > 1e9 => Err(Failure::Large(format!("{x} is too much"))),
        x => Ok(x.sqrt()),
    }
}

#[autodiff_reverse(ddescribed, Duplicated, Active)]
#[autodiff_forward(bdescribed, Dual, Dual)]
fn described(x: &[f64]) -> f64 {
    let point = Point { x: x[0], y: x[1] };
    let both = vec![point.clone(), point.clone()];
    println!("{point}, {both:?}");
    let text = format!("{point}");
    let product = match root(-x[0]) {
        Ok(_) => 0.0,
        Err(failure) => {
            eprintln!("{failure}, {failure:?}");
            root(x[0] * x[1]).unwrap()
        }
    };
    product * text.len() as f64 * both[1].x
}

#[test]
fn types_with_a_text_of_their_own() {
    let length = "(1.3, 0.7), 1.5 away".len() as f64;
    Field::new("described", described)
        .reverse(ddescribed)
        .forward(bdescribed)
        .closed_form(|x| {
            let root = (x[0] * x[1]).sqrt();
            vec![length * 1.5 * root, length * x[0] * x[0] / (2.0 * root)]
        })
        .check(&[1.3, 0.7]);
}

#[autodiff_reverse(dstrings, Active, Const, Active)]
fn commands(x: f64, text: &str) -> f64 {
    let mut value = x;
    for word in text.split_whitespace() {
        value = match word {
            "square" => value * value,
            "sin" => value.sin(),
            "double" => value * 2.0,
            number => value + number.parse::<f64>().unwrap_or(0.0) * x,
        };
    }
    value
}

#[test]
fn program_in_a_string() {
    Scalar::new("program in a string", |x| {
        commands(x, "square sin 2.5 double")
    })
    .reverse(|x, seed| dcommands_of(x, seed))
    .closed_form(|x| 2.0 * (2.0 * x * (x * x).cos() + 2.5))
    .check(&[0.4, 1.3]);
}

fn dcommands_of(x: f64, seed: f64) -> (f64, f64) {
    dstrings(x, "square sin 2.5 double", seed)
}

#[autodiff_reverse(dlogged, Duplicated, Const, Active)]
fn logged(x: &[f64], names: &[String]) -> f64 {
    let mut log = String::new();
    let mut total = 0.0;
    for (x, name) in x.iter().zip(names) {
        let cube = x.powi(3);
        write!(log, "{name}={cube:e};").unwrap();
        total += cube * name.len() as f64;
    }
    assert!(log.ends_with(';'), "{log}");
    total
}

#[test]
fn building_a_string() {
    let names = ["a".to_string(), "bcd".to_string()];
    Field::new("log in a string", |x| logged(x, &names))
        .reverse(|x, dx, seed| dlogged(x, dx, &names, seed))
        .closed_form(|x| vec![3.0 * x[0] * x[0], 9.0 * x[1] * x[1]])
        .check(&[1.5, -2.0]);
}

static CALLS: AtomicUsize = AtomicUsize::new(0);
static WEIGHTS: [f64; 5] = [1.0, -0.5, 0.25, -0.125, 0.0625];
const NODES: &[(f64, f64)] = &[
    (-0.774_596_669_241_483_4, 5.0 / 9.0),
    (0.0, 8.0 / 9.0),
    (0.774_596_669_241_483_4, 5.0 / 9.0),
];
static PRIMES: [u8; 6] = [2, 3, 5, 7, 11, 13];

#[autodiff_reverse(dcounted, Duplicated, Active)]
#[autodiff_forward(bcounted, Dual, Dual)]
fn tables(x: &[f64]) -> f64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let series: f64 = x.iter().zip(&WEIGHTS).map(|(x, w)| w * x * x).sum();
    let integral: f64 = NODES
        .iter()
        .map(|(node, weight)| weight * (x[0] * node).exp())
        .sum();
    let powers: f64 = PRIMES
        .iter()
        .filter(|p| **p < 10)
        .map(|p| x[1] * f64::from(*p))
        .sum();
    series * integral + powers
}

#[test]
fn tables_and_counters() {
    let before = CALLS.load(Ordering::Relaxed);
    Field::new("tables", tables)
        .reverse(dcounted)
        .forward(bcounted)
        .check(&[1.5, -2.0, 0.5]);
    assert!(CALLS.load(Ordering::Relaxed) > before);
}

#[autodiff_reverse(dtimed, Active, Active)]
fn timed(x: f64) -> f64 {
    let start = std::time::Instant::now();
    let mut value = x;
    for _ in 0..10 {
        value = value.sin() + 0.1;
    }
    let elapsed = start.elapsed();
    if elapsed.as_secs() > 3600 { 0.0 } else { value }
}

#[test]
fn measuring_time() {
    Scalar::new("measured time", timed)
        .reverse(dtimed)
        .check(&[0.4, 1.3]);
}

/// A linear congruential generator: integers that steer floats.
struct Generator(u64);

impl Generator {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[autodiff_reverse(doption_price, Duplicated, Const, Active)]
#[autodiff_forward(boption_price, Dual, Const, Dual)]
fn option_price(x: &[f64], paths: u32) -> f64 {
    let [spot, volatility, rate, strike] = *x else {
        panic!("four numbers are needed, got {}", x.len())
    };
    let mut generator = Generator(42);
    let mut sum = 0.0;
    for _ in 0..paths {
        let end =
            spot * ((rate - 0.5 * volatility * volatility) + volatility * generator.normal()).exp();
        sum += (end - strike).max(0.0);
    }
    (-rate).exp() * sum / f64::from(paths)
}

#[test]
fn monte_carlo() {
    Field::new("Monte Carlo", |x| option_price(x, 50))
        .reverse(|x, dx, seed| doption_price(x, dx, 50, seed))
        .forward(|x, v| boption_price(x, v, 50))
        .check(&[1.0, 0.4, 0.05, 1.1]);
}

#[autodiff_reverse(dhash, Duplicated, Const, Active)]
fn integer_work(x: &[f64], key: u32) -> f64 {
    let mut hash = key ^ 0x811c_9dc5;
    let mut value = 0.0;
    for i in 0..12u32 {
        hash = hash.wrapping_mul(16_777_619).rotate_left(5) ^ i;
        let place = (hash % x.len() as u32) as usize;
        let sign = if hash.leading_zeros() % 2 == 0 {
            1.0
        } else {
            -1.0
        };
        let shift = i32::try_from(hash & 7).unwrap_or(0) - 3;
        value += sign * x[place] * f64::from(shift) + x[place].powi((hash >> 30) as i32);
    }
    value
}

#[test]
fn integer_arithmetic() {
    Field::new("integers", |x| integer_work(x, 12345))
        .reverse(|x, dx, seed| dhash(x, dx, 12345, seed))
        .check(&[1.5, -0.5, 2.0]);
}

#[autodiff_reverse(ddebug, Duplicated, Active)]
fn debug_assertions(x: &[f64]) -> f64 {
    debug_assert!(!x.is_empty(), "needs numbers");
    let total: f64 = x.iter().sum();
    debug_assert!(total.is_finite());
    assert!(total < 1e9, "too large: {total}");
    assert_ne!(x[0], 1e300);
    total * total
}

#[test]
fn assertions() {
    Field::new("assertions", debug_assertions)
        .reverse(ddebug)
        .closed_form(|x| vec![2.0 * x.iter().sum::<f64>(); x.len()])
        .check(&[1.5, -0.5, 2.0]);
}

/// The size of the first number, as a scale that is not differentiated.
#[inactive]
fn scale_of(x: &[f64]) -> f64 {
    x[0].abs()
}

#[autodiff_reverse(dscaled, Duplicated, Active)]
#[autodiff_forward(bscaled, Dual, Dual)]
fn scaled(x: &[f64]) -> f64 {
    x[0] * x[1] / scale_of(x)
}

#[test]
fn inactive_functions_may_look_at_active_memory() {
    let (x, mut gradient) = ([-2.0, 3.0], [0.0; 2]);
    assert_eq!(dscaled(&x, &mut gradient, 1.0), -3.0);
    assert_eq!(gradient, [1.5, -1.0]);
    assert_eq!(bscaled(&x, &[1.0, 10.0]), (-3.0, -8.5));
}
