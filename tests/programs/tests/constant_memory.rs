//! Data without derivatives and values with derivatives, looked at through the same pointers.

use ferrozyme::{autodiff_forward, autodiff_reverse, grad, jvp};
use ferrozyme_programs::Field;
use std::collections::VecDeque;

fn rows() -> Vec<Vec<f64>> {
    vec![vec![1.0, 2.0], vec![3.0, 4.0, 5.0, 6.0], vec![0.0]]
}

/// Rows of the data, and rows computed from the variables, are sorted together.
#[autodiff_reverse(dsorted, Const, Duplicated, Active)]
#[autodiff_forward(fsorted, Const, Dual, Dual)]
fn sorted(data: &[Vec<f64>], x: &[f64]) -> f64 {
    let multiple = |i: usize| x.iter().map(|v| v * (i as f64 + 1.0)).collect();
    let own: Vec<Vec<f64>> = (0..3).map(multiple).collect();
    let mut rows: Vec<&[f64]> = data.iter().map(Vec::as_slice).collect();
    rows.extend(own.iter().map(Vec::as_slice));
    rows.sort_by_key(|row| row.len());
    let dot = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
    let terms = rows.iter().enumerate();
    terms.map(|(i, row)| dot(row) * (i as f64 + 1.0)).sum()
}

#[test]
fn rows_of_both_kinds() {
    let data = rows();
    Field::new("rows of both kinds", |x| sorted(&data, x))
        .reverse(|x, dx, seed| dsorted(&data, x, dx, seed))
        .forward(|x, v| fsorted(&data, x, v))
        .check(&[0.3, -0.7, 1.1]);
    // Nothing was added to the data.
    assert_eq!(data, rows());
}

/// A closure's capture is copied to where results are stored in other iterations.
#[test]
fn captured_data() {
    let captured = vec![2.0, -1.0, 0.0];
    let f = |x: &[f64]| {
        let mut window = VecDeque::new();
        for round in 0..4 {
            let squares: Vec<f64> = x.iter().map(|v| v * v).collect();
            let next = if round % 2 == 0 { &captured } else { &squares };
            window.push_back(next.clone());
            if window.len() > 2 {
                window.pop_front();
            }
        }
        let sum = |v: &Vec<f64>| v.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        window.iter().map(sum).sum::<f64>()
    };
    let x = [0.3, -0.7, 1.1];
    let expected: Vec<f64> = (0..3).map(|i| captured[i] + 3.0 * x[i] * x[i]).collect();
    let found = grad(f, &x[..]);
    let (_, tangent) = jvp(f, &x[..], &[1.0, 2.0, 3.0][..]);
    for i in 0..3 {
        assert!((found[i] - expected[i]).abs() < 1e-12, "{found:?}");
    }
    let along = expected[0] + 2.0 * expected[1] + 3.0 * expected[2];
    assert!((tangent - along).abs() < 1e-12, "{tangent}");
    assert_eq!(captured, [2.0, -1.0, 0.0]);
}

#[inline(never)]
fn weighted(values: &[f64], x: &[f64]) -> f64 {
    values.iter().zip(x).map(|(v, x)| v * x * x).sum()
}

/// A separate function takes the one or the other.
#[autodiff_reverse(dgiven, Const, Duplicated, Active)]
#[autodiff_forward(fgiven, Const, Dual, Dual)]
fn given(data: &[f64], x: &[f64]) -> f64 {
    let own: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    (0..x.len())
        .map(|i| weighted(if i % 2 == 0 { data } else { &own }, &x[i..]))
        .sum()
}

#[test]
fn given_to_a_function() {
    let data = [0.5, 0.0, -2.0];
    Field::new("given to a function", |x| given(&data, x))
        .reverse(|x, dx, seed| dgiven(&data, x, dx, seed))
        .forward(|x, v| fgiven(&data, x, v))
        .check(&[0.3, -0.7, 1.1]);
    assert_eq!(data, [0.5, 0.0, -2.0]);
}

/// A tree that is made outside. The stack of those of its nodes that are still to be looked at, and the point that is looked for, are in one struct, as in the iterators of search trees.
enum Tree {
    Leaf([f64; 2]),
    Inner(Vec<Tree>, [f64; 2]),
}

struct Search<'a> {
    open: Vec<&'a Tree>,
    point: [f64; 2],
    nearest: Option<&'a [f64; 2]>,
}

impl<'a> Search<'a> {
    #[inline(never)]
    fn next(&mut self) -> Option<f64> {
        loop {
            match self.open.pop()? {
                Tree::Leaf(place) => {
                    self.nearest = Some(place);
                    let [a, b] = [place[0] - self.point[0], place[1] - self.point[1]];
                    return Some((a * a + b * b).sqrt());
                }
                Tree::Inner(children, corner) if corner[0] < 10.0 + self.point[0] => {
                    self.open.extend(children);
                }
                Tree::Inner(..) => {}
            }
        }
    }
}

#[test]
fn searches_in_a_captured_tree() {
    let leaf = |i: usize| Tree::Leaf([(i as f64).sin(), (i as f64 * 1.3).cos()]);
    let inner = |i: usize| Tree::Inner((3 * i..3 * i + 3).map(leaf).collect(), [i as f64, 0.0]);
    let tree = Tree::Inner((0..4).map(inner).collect(), [0.0, 0.0]);
    let f = |x: &[f64]| {
        let mut search = Search {
            open: vec![&tree],
            point: [x[0], x[1] * x[1]],
            nearest: None,
        };
        let mut sum = 0.0;
        while let Some(distance) = search.next() {
            sum += distance * search.nearest.map_or(0.0, |place| place[0] + x[0]);
        }
        sum
    };
    Field::new("searches in a captured tree", f)
        .reverse(|x, dx, seed| {
            let gradient = grad(f, x);
            dx.iter_mut()
                .zip(gradient)
                .for_each(|(to, d)| *to += seed * d);
            f(x)
        })
        .forward(|x, v| jvp(f, x, v))
        .check(&[0.3, -0.7]);
}

/// What a formula is made of, in the order in which it is evaluated.
enum Token {
    Number(f64),
    Variable(String),
    Operator(char),
}

#[test]
fn captured_formulas() {
    use Token::{Number, Operator, Variable};
    let variable = |name: &str| Variable(name.to_string());
    // 2.5 * x * y + x / (y - 0)
    let formula = [
        Number(2.5),
        variable("x"),
        Operator('*'),
        variable("y"),
        Operator('*'),
        variable("x"),
        variable("y"),
        Number(0.0),
        Operator('-'),
        Operator('/'),
        Operator('+'),
    ];
    let f = |x: &[f64]| {
        let mut stack: Vec<f64> = Vec::new();
        for token in &formula {
            let value = match token {
                Number(value) => *value,
                Variable(name) => x[usize::from(name == "y")],
                Operator(sign) => {
                    let (b, a) = (stack.pop().unwrap(), stack.pop().unwrap());
                    match sign {
                        '+' => a + b,
                        '-' => a - b,
                        '*' => a * b,
                        _ => a / b,
                    }
                }
            };
            stack.push(value);
        }
        stack[0]
    };
    Field::new("captured formulas", f)
        .reverse(|x, dx, seed| {
            let gradient = grad(f, x);
            dx.iter_mut()
                .zip(gradient)
                .for_each(|(to, d)| *to += seed * d);
            f(x)
        })
        .forward(|x, v| jvp(f, x, v))
        .closed_form(|x| vec![2.5 * x[1] + 1.0 / x[1], 2.5 * x[0] - x[0] / (x[1] * x[1])])
        .check(&[0.3, -0.7]);
}

/// Numbers and text, some constant and some not, are put into one list, which is sorted.
enum Entry {
    Number(f64),
    Shared(Box<f64>),
    Text(String),
}

impl Entry {
    #[inline(never)]
    fn value(&self) -> f64 {
        match self {
            Entry::Number(value) => *value,
            Entry::Shared(value) => **value,
            Entry::Text(text) => text.len() as f64,
        }
    }
}

#[autodiff_reverse(dentries, Const, Duplicated, Active)]
#[autodiff_forward(fentries, Const, Dual, Dual)]
fn entries(data: &[Entry], x: &[f64]) -> f64 {
    let own = [
        Entry::Number(x[0] * x[1]),
        Entry::Shared(Box::new(x[1].sin())),
        Entry::Text("four".to_string()),
    ];
    let mut all: Vec<&Entry> = data.iter().chain(&own).collect();
    all.sort_by(|a, b| a.value().total_cmp(&b.value()));
    let terms = all.iter().enumerate();
    terms
        .map(|(i, entry)| entry.value() * x[i % 2] * i as f64)
        .sum()
}

#[test]
fn entries_of_both_kinds() {
    let data = [
        Entry::Text("three".to_string()),
        Entry::Shared(Box::new(-1.5)),
        Entry::Number(0.0),
        Entry::Number(0.9),
    ];
    Field::new("entries of both kinds", |x| entries(&data, x))
        .reverse(|x, dx, seed| dentries(&data, x, dx, seed))
        .forward(|x, v| fentries(&data, x, v))
        .check(&[0.3, -0.7]);
    let values: Vec<f64> = data.iter().map(Entry::value).collect();
    assert_eq!(values, [5.0, -1.5, 0.0, 0.9]);
}
