//! Graphs, queues and heaps, arenas: structure that integers steer and numbers flow through.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

const EDGES: [(usize, usize); 8] = [
    (0, 1),
    (0, 2),
    (1, 2),
    (1, 3),
    (2, 3),
    (2, 4),
    (3, 4),
    (3, 5),
];

/// A cost that can stand in a heap.
#[derive(Clone, Copy, PartialEq)]
struct Cost(f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Cost) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Cost) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[autodiff_reverse(dpath, Duplicated, Active)]
#[autodiff_forward(bpath, Dual, Dual)]
fn shortest_path(weights: &[f64]) -> f64 {
    let mut best = [f64::INFINITY; 6];
    let mut heap = BinaryHeap::new();
    best[0] = 0.0;
    heap.push((Reverse(Cost(0.0)), 0usize));
    while let Some((Reverse(Cost(cost)), node)) = heap.pop() {
        if cost > best[node] {
            continue;
        }
        for (edge, &(a, b)) in EDGES.iter().enumerate() {
            if a != node {
                continue;
            }
            let next = cost + weights[edge] * weights[edge];
            if next < best[b] {
                best[b] = next;
                heap.push((Reverse(Cost(next)), b));
            }
        }
    }
    best[4] + 0.5 * best[5]
}

#[test]
fn shortest_path_with_a_heap() {
    Field::new("shortest path", shortest_path)
        .reverse(dpath)
        .forward(bpath)
        .check(&[1.0, 2.0, 0.5, 1.7, 0.9, 2.1, 0.8, 1.1]);
}

#[autodiff_reverse(drank, Duplicated, Active)]
#[autodiff_forward(brank, Dual, Dual)]
fn page_rank(weights: &[f64]) -> f64 {
    let mut outgoing: Vec<Vec<(usize, f64)>> = vec![Vec::new(); 6];
    for (&(a, b), &weight) in EDGES.iter().zip(weights) {
        outgoing[a].push((b, weight));
        outgoing[b].push((a, 0.5 * weight));
    }
    let mut rank = vec![1.0 / 6.0; 6];
    for _ in 0..15 {
        let mut next = vec![0.15 / 6.0; 6];
        for (node, edges) in outgoing.iter().enumerate() {
            let total: f64 = edges.iter().map(|edge| edge.1).sum();
            for &(to, weight) in edges {
                next[to] += 0.85 * rank[node] * weight / total;
            }
        }
        rank = next;
    }
    rank[3] * 10.0 + rank[5]
}

#[test]
fn ranks_of_a_graph() {
    Field::new("page rank", page_rank)
        .reverse(drank)
        .forward(brank)
        .check(&[1.0, 2.0, 0.5, 1.7, 0.9, 2.1, 0.8, 1.1]);
}

#[autodiff_reverse(dbreadth, Duplicated, Active)]
fn breadth_first(weights: &[f64]) -> f64 {
    let mut queue = VecDeque::from([(0usize, 1.0)]);
    let mut seen = HashSet::from([0usize]);
    let mut order = BTreeSet::new();
    let mut total = 0.0;
    while let Some((node, flow)) = queue.pop_front() {
        order.insert((node * 7) % 5);
        total += flow * flow;
        for (edge, &(a, b)) in EDGES.iter().enumerate() {
            if a == node && seen.insert(b) {
                queue.push_back((b, flow * weights[edge].sin()));
            }
        }
    }
    total * order.len() as f64
}

#[test]
fn breadth_first_search() {
    Field::new("breadth first", breadth_first)
        .reverse(dbreadth)
        .check(&[1.0, 2.0, 0.5, 1.7, 0.9, 2.1, 0.8, 1.1]);
}

/// A computation graph in an arena: nodes know each other by index.
#[derive(Clone, Copy)]
enum Node {
    Input(usize),
    Add(usize, usize),
    Multiply(usize, usize),
    Sine(usize),
}

struct Arena {
    nodes: Vec<Node>,
}

impl Arena {
    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn evaluate(&self, inputs: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            values[i] = match *node {
                Node::Input(at) => inputs[at],
                Node::Add(a, b) => values[a] + values[b],
                Node::Multiply(a, b) => values[a] * values[b],
                Node::Sine(a) => values[a].sin(),
            };
        }
        values
    }
}

#[autodiff_reverse(darena, Duplicated, Active)]
#[autodiff_forward(barena, Dual, Dual)]
fn arena(x: &[f64]) -> f64 {
    let mut arena = Arena { nodes: Vec::new() };
    let inputs: Vec<usize> = (0..x.len()).map(|i| arena.push(Node::Input(i))).collect();
    let mut last = inputs[0];
    for &input in &inputs[1..] {
        let product = arena.push(Node::Multiply(last, input));
        let sine = arena.push(Node::Sine(product));
        last = arena.push(Node::Add(sine, input));
    }
    *arena.evaluate(x).last().unwrap()
}

#[test]
fn nodes_in_an_arena() {
    Field::new("arena", arena)
        .reverse(darena)
        .forward(barena)
        .check(&[0.7, 1.3, -0.4, 0.9]);
}

#[autodiff_reverse(dmemo, Duplicated, Const, Active)]
fn memoised(x: &[f64], n: u32) -> f64 {
    fn go(x: &[f64], n: u32, memo: &mut HashMap<u32, f64>) -> f64 {
        if n < 2 {
            return x[n as usize];
        }
        if let Some(&known) = memo.get(&n) {
            return known;
        }
        let value = go(x, n - 1, memo) * 0.7 + (go(x, n - 2, memo) * 0.3).sin();
        memo.insert(n, value);
        value
    }
    go(x, n, &mut HashMap::new())
}

#[test]
fn memoised_recursion() {
    Field::new("memo", |x| memoised(x, 8))
        .reverse(|x, dx, seed| dmemo(x, dx, 8, seed))
        .check(&[0.7, 1.3]);
}

#[autodiff_reverse(dunion, Duplicated, Active)]
#[autodiff_forward(bunion, Dual, Dual)]
fn spanning_tree(weights: &[f64]) -> f64 {
    fn find(parent: &mut [usize], mut node: usize) -> usize {
        while parent[node] != node {
            parent[node] = parent[parent[node]];
            node = parent[node];
        }
        node
    }
    let mut order: Vec<usize> = (0..EDGES.len()).collect();
    order.sort_unstable_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    let mut parent: Vec<usize> = (0..6).collect();
    let mut total = 0.0;
    for edge in order {
        let (a, b) = (
            find(&mut parent, EDGES[edge].0),
            find(&mut parent, EDGES[edge].1),
        );
        if a != b {
            parent[a] = b;
            total += weights[edge].powi(2);
        }
    }
    total
}

#[test]
fn minimum_spanning_tree() {
    Field::new("spanning tree", spanning_tree)
        .reverse(dunion)
        .forward(bunion)
        .check(&[1.0, 2.0, 0.5, 1.7, 0.9, 2.1, 0.8, 1.1]);
}
