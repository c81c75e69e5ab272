//! Builds without optimisation accept what optimised ones accept: there, floats, pointers and numbers share their places in memory more often, as far as can be seen.

use super::project::Project;

/// Each function has its own reason to be difficult; the program says which gradients differ from finite differences.
const PROGRAM: &str = r#"
use std::collections::HashMap;

trait Shape {
    fn area(&self, scale: f64) -> f64;
}
struct Circle {
    radius: f64,
}
struct Polygon {
    corners: Vec<(f64, f64)>,
    label: String,
}
impl Shape for Circle {
    fn area(&self, scale: f64) -> f64 {
        self.radius * self.radius * scale
    }
}
impl Shape for Polygon {
    fn area(&self, scale: f64) -> f64 {
        self.corners.iter().map(|p| p.0 * p.1).sum::<f64>() * scale + self.label.len() as f64
    }
}

/// The function's arguments seem to lie where its objects do.
fn objects(x: &[f64]) -> f64 {
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    shapes.push(Box::new(Circle { radius: x[0] }));
    let corners = vec![(x[1], x[2]), (x[3], x[4])];
    shapes.push(Box::new(Polygon { corners, label: "corners".into() }));
    shapes.iter().enumerate().map(|(i, shape)| shape.area(i as f64 + 1.0)).sum()
}

enum Formula {
    Number(f64),
    Variable(usize),
    Sum(Box<Formula>, Box<Formula>),
    Product(Box<Formula>, Box<Formula>),
}

/// A position is counted up where a float is at other times.
fn parse(text: &[u8], at: &mut usize, x: &[f64]) -> Formula {
    let letter = text[*at];
    *at += 1;
    match letter {
        b'+' | b'*' => {
            let a = Box::new(parse(text, at, x));
            let b = Box::new(parse(text, at, x));
            if letter == b'+' { Formula::Sum(a, b) } else { Formula::Product(a, b) }
        }
        b'a'..=b'e' => Formula::Variable((letter - b'a') as usize),
        _ => Formula::Number((letter - b'0') as f64 * x[0]),
    }
}

fn value(formula: &Formula, x: &[f64]) -> f64 {
    match formula {
        Formula::Number(number) => *number,
        Formula::Variable(index) => x[*index],
        Formula::Sum(a, b) => value(a, x) + value(b, x),
        Formula::Product(a, b) => value(a, x) * value(b, x),
    }
}

fn formula(x: &[f64]) -> f64 {
    value(&parse(b"+*ab*3+cd", &mut 0, x), x)
}

/// The constant from which an empty map is made leads to another constant.
fn groups(x: &[f64]) -> f64 {
    let mut groups: HashMap<usize, Vec<f64>> = HashMap::new();
    for (i, x) in x.iter().enumerate() {
        groups.entry(i % 2).or_default().push(x * x);
    }
    let of = |key: usize| groups.get(&key).map_or(0.0, |group| group.iter().sum());
    of(0).powi(2) + of(1).powi(3)
}

/// Records with floats, vectors and names are moved as a whole.
fn records(x: &[f64]) -> f64 {
    struct Record {
        weight: f64,
        name: String,
        samples: Vec<f64>,
    }
    let record = |(i, &weight): (usize, &f64)| Record { weight, name: format!("n{i}"), samples: vec![weight; i] };
    let mut records: Vec<Record> = x.iter().enumerate().map(record).collect();
    records.sort_by(|a, b| a.weight.total_cmp(&b.weight));
    records.swap(0, 3);
    let of = |(i, r): (usize, &Record)| (i as f64 + 1.0) * r.weight * r.samples.iter().sum::<f64>() + r.name.len() as f64;
    records.iter().enumerate().map(of).sum()
}

enum Reason {
    Converged { residual: bool, step: bool },
    Rejected(&'static str),
    Patience,
}
struct Search {
    at: [f64; 2],
    data: Vec<f64>,
    turns: usize,
}
impl Search {
    fn start(data: Vec<f64>) -> Result<Search, (f64, Reason)> {
        match data.len() {
            0 => Err((0.0, Reason::Rejected("no data"))),
            _ => Ok(Search { at: [1.0, 0.5], data, turns: 0 }),
        }
    }
    /// Small variants lie where others have floats and pointers, which are moved in the parts that they make.
    fn step(mut self) -> Result<Search, (f64, Reason)> {
        let slope = |k: usize| self.data.iter().enumerate().map(|(i, y)| (self.at[k] - y) * (i as f64 + 1.0)).sum::<f64>();
        let next = [self.at[0] - 0.02 * slope(0), self.at[1] - 0.01 * slope(1)];
        let change = (next[0] - self.at[0]).abs() + (next[1] - self.at[1]).abs();
        self.at = next;
        self.turns += 1;
        if change < 1e-3 {
            return Err((self.at[0] + self.at[1], Reason::Converged { residual: true, step: false }));
        }
        if self.turns > 4 {
            return Err((self.at[0] - self.at[1], Reason::Patience));
        }
        Ok(self)
    }
}

/// The last state is given out through the same place as the reason for which it is the last.
fn search(x: &[f64]) -> f64 {
    let mut state = Search::start(x.to_vec());
    let (value, reason) = loop {
        match state {
            Ok(search) => state = search.step(),
            Err(end) => break end,
        }
    };
    let extra = match reason {
        Reason::Converged { residual, step } => (residual as u8 + step as u8) as f64,
        Reason::Rejected(why) => why.len() as f64,
        Reason::Patience => 0.5,
    };
    value * (1.0 + extra)
}

fn check(name: &str, f: fn(&[f64]) -> f64, gradient: impl Fn(&[f64]) -> Vec<f64>) {
    let x = [0.3, 0.7, 1.1, 0.0, 0.9];
    // What one call leaves behind is nothing to the next.
    for gradient in [gradient(&x), gradient(&x)] {
        for i in 0..x.len() {
            let at = |step: f64| {
                let mut x = x;
                x[i] += step;
                f(&x)
            };
            let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
            if (gradient[i] - expected).abs() > 1e-7 {
                println!("{name} {i}: {} instead of {expected}", gradient[i]);
            }
        }
    }
}

/// The gradient in forward mode, direction by direction.
macro_rules! tangents {
    ($f:expr, $x:expr) => {{
        let direction = |i: usize| -> Vec<f64> { (0..$x.len()).map(|k| (k == i) as u8 as f64).collect() };
        (0..$x.len()).map(|i| ferrozyme::jvp($f, $x, &direction(i)[..]).1).collect()
    }};
}

fn main() {
    check("objects", objects, |x| ferrozyme::grad(objects, x));
    check("formula", formula, |x| ferrozyme::grad(formula, x));
    check("groups", groups, |x| ferrozyme::grad(groups, x));
    check("records", records, |x| ferrozyme::grad(records, x));
    check("search", search, |x| ferrozyme::grad(search, x));
    check("objects", objects, |x| tangents!(objects, x));
    check("formula", formula, |x| tangents!(formula, x));
    check("groups", groups, |x| tangents!(groups, x));
    check("records", records, |x| tangents!(records, x));
    check("search", search, |x| tangents!(search, x));
    println!("checked");
}
"#;

#[test]
fn the_same_is_accepted_in_all_profiles() {
    let project = Project::program("unoptimised", PROGRAM);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["run", "--profile", profile]);
        assert_eq!(run.expect_success(), "checked\n", "{profile}");
    }
}
