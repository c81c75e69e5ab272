//! Recursion: over trees, over halves of a slice, mutual, and to a depth that depends on numbers.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Scalar};

/// An expression tree with numbers at its leaves.
enum Expression {
    Variable(usize),
    Number(f64),
    Sum(Box<Expression>, Box<Expression>),
    Product(Box<Expression>, Box<Expression>),
    Sine(Box<Expression>),
}

use Expression::{Number, Product, Sine, Sum, Variable};

fn evaluate(expression: &Expression, x: &[f64]) -> f64 {
    match expression {
        Variable(index) => x[*index],
        Number(value) => *value,
        Sum(a, b) => evaluate(a, x) + evaluate(b, x),
        Product(a, b) => evaluate(a, x) * evaluate(b, x),
        Sine(a) => evaluate(a, x).sin(),
    }
}

#[autodiff_reverse(dexpression, Const, Duplicated, Active)]
#[autodiff_forward(bexpression, Const, Dual, Dual)]
fn value_of(expression: &Expression, x: &[f64]) -> f64 {
    evaluate(expression, x)
}

#[test]
fn recursion_over_an_expression_tree() {
    // sin(x0 * x1) * x1 + 2 * x0
    let tree = Sum(
        Box::new(Product(
            Box::new(Sine(Box::new(Product(
                Box::new(Variable(0)),
                Box::new(Variable(1)),
            )))),
            Box::new(Variable(1)),
        )),
        Box::new(Product(Box::new(Number(2.0)), Box::new(Variable(0)))),
    );
    Field::new("expression tree", |x| value_of(&tree, x))
        .reverse(|x, dx, seed| dexpression(&tree, x, dx, seed))
        .forward(|x, v| bexpression(&tree, x, v))
        .closed_form(|x| {
            let (sin, cos) = (x[0] * x[1]).sin_cos();
            vec![x[1] * x[1] * cos + 2.0, x[0] * x[1] * cos + sin]
        })
        .check(&[0.7, 1.3]);
}

/// A binary tree that owns its numbers; the shadow is a tree of the same shape.
#[derive(Clone)]
struct Tree {
    weight: f64,
    children: Option<Box<(Tree, Tree)>>,
}

impl Tree {
    fn build(weights: &mut impl Iterator<Item = f64>, depth: usize) -> Tree {
        let weight = weights.next().unwrap();
        let children = (depth > 0).then(|| {
            Box::new((
                Tree::build(weights, depth - 1),
                Tree::build(weights, depth - 1),
            ))
        });
        Tree { weight, children }
    }

    fn weights(&self, into: &mut Vec<f64>) {
        into.push(self.weight);
        if let Some(children) = &self.children {
            children.0.weights(into);
            children.1.weights(into);
        }
    }

    fn score(&self, x: f64) -> f64 {
        match &self.children {
            None => self.weight * x,
            Some(children) => {
                (children.0.score(self.weight * x) + children.1.score(x + self.weight)).tanh()
            }
        }
    }
}

#[autodiff_reverse(dtree, Duplicated, Active, Active)]
#[autodiff_forward(btree, Dual, Dual, Dual)]
fn score(tree: &Tree, x: f64) -> f64 {
    tree.score(x)
}

#[test]
fn recursion_over_a_tree_with_a_shadow() {
    let tree = |x: &[f64]| Tree::build(&mut x.iter().copied(), 2);
    Field::new("tree", |x| score(&tree(x), x[7]))
        .reverse(|x, dx, seed| {
            let mut shadow = tree(dx);
            let (value, gradient) = dtree(&tree(x), &mut shadow, x[7], seed);
            let mut all = Vec::new();
            shadow.weights(&mut all);
            all.push(dx[7] + gradient);
            dx.copy_from_slice(&all);
            value
        })
        .forward(|x, v| btree(&tree(x), &tree(v), x[7], v[7]))
        .check(&[0.5, -0.75, 0.3, 0.9, 0.4, -0.6, 0.8, 0.35]);
}

#[autodiff_reverse(dpairwise, Duplicated, Active)]
#[autodiff_forward(bpairwise, Dual, Dual)]
fn pairwise_product_sum(x: &[f64]) -> f64 {
    fn halves(x: &[f64]) -> (f64, f64) {
        if x.len() == 1 {
            return (x[0], x[0] * x[0]);
        }
        let (left, right) = x.split_at(x.len() / 2);
        let ((a, b), (c, d)) = (halves(left), halves(right));
        (a * 0.5 + c, b + d + a * c)
    }
    let (sum, squares) = halves(x);
    sum * squares
}

#[test]
fn recursion_over_halves() {
    Field::new("recursion over halves", pairwise_product_sum)
        .reverse(dpairwise)
        .forward(bpairwise)
        .check(&[1.0, -0.5, 2.0, 0.25, 1.5]);
}

fn even(x: f64, n: u32) -> f64 {
    if n == 0 { x } else { x * odd(x, n - 1) }
}

fn odd(x: f64, n: u32) -> f64 {
    if n == 0 { 1.0 } else { x + even(x, n - 1) }
}

#[autodiff_reverse(dmutual, Active, Const, Active)]
#[autodiff_forward(bmutual, Dual, Const, Dual)]
fn mutual(x: f64, n: u32) -> f64 {
    even(x, n)
}

#[test]
fn mutual_recursion() {
    for n in [0, 1, 2, 5] {
        Scalar::new("mutual recursion", |x| mutual(x, n))
            .reverse(|x, seed| dmutual(x, n, seed))
            .forward(|x, direction| bmutual(x, direction, n))
            .check(&[0.7, -1.2]);
    }
}

fn simpson(f: fn(f64, f64) -> f64, p: f64, a: f64, b: f64, whole: f64, depth: u32) -> f64 {
    let m = 0.5 * (a + b);
    let rule = |a: f64, b: f64| (b - a) / 6.0 * (f(p, a) + 4.0 * f(p, 0.5 * (a + b)) + f(p, b));
    let (left, right) = (rule(a, m), rule(m, b));
    if depth == 0 || (left + right - whole).abs() < 1e-6 {
        return left + right;
    }
    simpson(f, p, a, m, left, depth - 1) + simpson(f, p, m, b, right, depth - 1)
}

#[autodiff_reverse(dintegral, Active, Active, Active)]
#[autodiff_forward(bintegral, Dual, Dual, Dual)]
fn integral(parameter: f64, end: f64) -> f64 {
    fn integrand(p: f64, x: f64) -> f64 {
        (-p * x * x).exp() * (3.0 * x).cos()
    }
    simpson(integrand, parameter, 0.0, end, 0.0, 12)
}

#[test]
fn adaptive_quadrature() {
    Field::new("adaptive Simpson", |x| integral(x[0], x[1]))
        .reverse(|x, dx, seed| {
            let (value, a, b) = dintegral(x[0], x[1], seed);
            dx[0] += a;
            dx[1] += b;
            value
        })
        .forward(|x, v| bintegral(x[0], v[0], x[1], v[1]))
        .check(&[0.8, 1.7]);
}

#[autodiff_reverse(dhanoi, Duplicated, Active)]
fn in_place_recursion(x: &[f64]) -> f64 {
    /// A butterfly over the whole slice, then over each half: the shape of many fast transforms.
    fn transform(x: &mut [f64]) {
        let n = x.len();
        if n == 1 {
            return;
        }
        let (left, right) = x.split_at_mut(n / 2);
        for (a, b) in left.iter_mut().zip(right.iter_mut()) {
            let (sum, difference) = (*a + *b, *a * *b);
            *a = sum;
            *b = difference;
        }
        transform(left);
        transform(right);
    }
    let mut copy = x.to_vec();
    transform(&mut copy);
    copy.iter()
        .enumerate()
        .map(|(i, x)| x * (i + 1) as f64)
        .sum()
}

#[test]
fn recursion_in_place() {
    Field::new("recursive butterfly", in_place_recursion)
        .reverse(dhanoi)
        .check(&[1.0, -0.5, 2.0, 0.25, 1.5, 0.75, -1.0, 0.5]);
}

fn ackermann_like(x: f64, m: u32, n: u32) -> f64 {
    match (m, n) {
        (0, _) => x + f64::from(n),
        (_, 0) => ackermann_like(x * 1.1, m - 1, 1),
        _ => ackermann_like(ackermann_like(x * 0.5, m, n - 1), m - 1, n),
    }
}

#[autodiff_reverse(dnested_calls, Active, Active)]
#[autodiff_forward(bnested_calls, Dual, Dual)]
fn nested_calls(x: f64) -> f64 {
    ackermann_like(x * x, 2, 2)
}

#[test]
fn recursive_argument_of_a_recursive_call() {
    Scalar::new("nested recursion", nested_calls)
        .reverse(dnested_calls)
        .forward(bnested_calls)
        .check(&[0.7, -1.2]);
}

/// A search tree that grows at the place that a reference was led to.
#[derive(Default)]
struct Sorted {
    key: f64,
    weight: f64,
    left: Option<Box<Sorted>>,
    right: Option<Box<Sorted>>,
}

fn insert(place: &mut Option<Box<Sorted>>, key: f64, weight: f64) {
    match place {
        None => {
            *place = Some(Box::new(Sorted {
                key,
                weight,
                ..Sorted::default()
            }));
        }
        Some(node) if key < node.key => insert(&mut node.left, key, weight),
        Some(node) => insert(&mut node.right, key, weight),
    }
}

fn sum_by_depth(tree: &Option<Box<Sorted>>, depth: f64) -> f64 {
    tree.as_ref().map_or(0.0, |node| {
        let below = sum_by_depth(&node.left, depth + 1.0) + sum_by_depth(&node.right, depth + 1.0);
        below + node.key * node.weight / depth
    })
}

#[autodiff_reverse(dsorted, Duplicated, Active)]
#[autodiff_forward(bsorted, Dual, Dual)]
fn search_tree(x: &[f64]) -> f64 {
    let mut tree = None;
    for &value in x {
        insert(&mut tree, value.cos(), value * value);
    }
    sum_by_depth(&tree, 1.0)
}

#[test]
fn insertion_into_a_search_tree() {
    Field::new("search tree", search_tree)
        .reverse(dsorted)
        .forward(bsorted)
        .check(&[0.7, 1.3, 2.1, 1.9, 0.2]);
}

/// A node of an expression whose nodes lie in one vector: a number, or where its operands are.
enum Node {
    Value(f64),
    Times(usize, usize),
    Sin(usize),
}

fn evaluate_node(nodes: &[Node], at: usize) -> f64 {
    match &nodes[at] {
        Node::Value(value) => *value,
        Node::Times(a, b) => evaluate_node(nodes, *a) * evaluate_node(nodes, *b),
        Node::Sin(a) => evaluate_node(nodes, *a).sin(),
    }
}

#[autodiff_reverse(dnodes, Duplicated, Active)]
#[autodiff_forward(bnodes, Dual, Dual)]
fn nodes_by_position(x: &[f64]) -> f64 {
    let mut nodes: Vec<Node> = x.iter().map(|&value| Node::Value(value)).collect();
    let mut last = 0;
    for at in 0..x.len() {
        nodes.push(Node::Sin(last));
        nodes.push(Node::Times(nodes.len() - 1, at));
        last = nodes.len() - 1;
    }
    evaluate_node(&nodes, last)
}

#[test]
fn positions_of_nodes_are_passed_on() {
    Field::new("nodes by position", nodes_by_position)
        .reverse(dnodes)
        .forward(bnodes)
        .check(&[0.8, 1.2, -0.5, 2.0]);
}
