//! Memory behind memory: vectors of vectors, boxes, lists, queues, shared cells and maps.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{EXACT, Field, assert_all_close, assert_close, gradient_by_differences};

fn rows(x: &[f64], width: usize) -> Vec<Vec<f64>> {
    x.chunks(width).map(<[f64]>::to_vec).collect()
}

#[autodiff_reverse(dfrobenius, Duplicated, Duplicated, Active)]
#[autodiff_forward(bfrobenius, Dual, Dual, Dual)]
fn product_norm(a: &Vec<Vec<f64>>, b: &Vec<Vec<f64>>) -> f64 {
    let mut norm = 0.0;
    for row in a {
        for j in 0..b[0].len() {
            let mut entry = 0.0;
            for k in 0..b.len() {
                entry += row[k] * b[k][j];
            }
            norm += entry * entry;
        }
    }
    norm.sqrt()
}

#[test]
fn vectors_of_vectors() {
    let x: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.8).cos()).collect();
    Field::new("product of Vec<Vec<f64>>", |x| {
        product_norm(&rows(&x[..6], 3), &rows(&x[6..], 2))
    })
    .reverse(|x, dx, seed| {
        let (mut da, mut db) = (rows(&dx[..6], 3), rows(&dx[6..], 2));
        let value = dfrobenius(&rows(&x[..6], 3), &mut da, &rows(&x[6..], 2), &mut db, seed);
        dx.copy_from_slice(&[da.concat(), db.concat()].concat());
        value
    })
    .forward(|x, v| {
        bfrobenius(
            &rows(&x[..6], 3),
            &rows(&v[..6], 3),
            &rows(&x[6..], 2),
            &rows(&v[6..], 2),
        )
    })
    .check(&x);
}

#[autodiff_reverse(dscale_rows, Duplicated, Duplicated)]
#[autodiff_forward(bscale_rows, Dual, Dual)]
fn scale_rows(factors: &[f64], rows: &mut Vec<Vec<f64>>) {
    for (row, factor) in rows.iter_mut().zip(factors) {
        for entry in row.iter_mut() {
            *entry = *entry * factor + entry.sin();
        }
    }
    rows.swap(0, 1);
}

#[test]
fn vectors_of_vectors_in_place() {
    let factors = [2.0, -0.5];
    let start = vec![vec![1.0, 2.0, 3.0], vec![0.5, -1.0]];
    let seed = vec![vec![1.0, -1.0], vec![0.5, 2.0, -3.0]];
    // A seed belongs to memory: that of the second row at the end lies where the first row was at the start.
    let (mut dfactors, mut x) = (vec![0.0; 2], start.clone());
    let mut dx = vec![seed[1].clone(), seed[0].clone()];
    dscale_rows(&factors, &mut dfactors, &mut x, &mut dx);
    let mut expected = start.clone();
    scale_rows(&factors, &mut expected);
    assert_eq!(x, expected);
    let loss = |z: &[f64]| {
        let mut rows = vec![z[2..5].to_vec(), z[5..].to_vec()];
        scale_rows(&z[..2], &mut rows);
        rows.concat()
            .iter()
            .zip(seed.concat())
            .map(|(y, u)| y * u)
            .sum::<f64>()
    };
    let z = [factors.to_vec(), start.concat()].concat();
    let gradient = gradient_by_differences(loss, &z);
    assert_all_close("factors", &dfactors, &gradient[..2], 1e-7);
    // The rows of the shadow have changed places with those of the primal.
    assert_all_close(
        "rows in place: gradient",
        &[dx[1].clone(), dx[0].clone()].concat(),
        &gradient[2..],
        1e-7,
    );

    let direction = [0.5, 1.0, -1.0, 0.25, 2.0, 0.75, -0.5];
    let (mut x, mut tangent) = (
        start,
        vec![direction[2..5].to_vec(), direction[5..].to_vec()],
    );
    bscale_rows(&factors, &direction[..2], &mut x, &mut tangent);
    let product: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
    let forward: f64 = tangent
        .concat()
        .iter()
        .zip(seed.concat())
        .map(|(t, u)| t * u)
        .sum();
    assert_close("rows in place: tangents", forward, product, 1e-7);
}

#[autodiff_reverse(dboxed, Duplicated, Duplicated, Active)]
#[autodiff_forward(bboxed, Dual, Dual, Dual)]
fn boxed(scale: &Box<f64>, values: &Box<[f64]>) -> f64 {
    let local: Box<[f64; 2]> = Box::new([**scale, scale.sin()]);
    let mut sum = Box::new(0.0);
    for value in values.iter() {
        *sum += value * local[0] + value.powi(2) * local[1];
    }
    *sum
}

#[test]
fn boxes() {
    Field::new("boxes", |x| boxed(&Box::new(x[0]), &x[1..].into()))
        .reverse(|x, dx, seed| {
            let (mut dscale, mut dvalues): (Box<f64>, Box<[f64]>) =
                (Box::new(dx[0]), dx[1..].into());
            let value = dboxed(
                &Box::new(x[0]),
                &mut dscale,
                &x[1..].into(),
                &mut dvalues,
                seed,
            );
            dx[0] = *dscale;
            dx[1..].copy_from_slice(&dvalues);
            value
        })
        .forward(|x, v| {
            bboxed(
                &Box::new(x[0]),
                &Box::new(v[0]),
                &x[1..].into(),
                &v[1..].into(),
            )
        })
        .closed_form(|x| {
            let a = x[0];
            let mut gradient = vec![x[1..].iter().map(|v| v + v * v * a.cos()).sum()];
            gradient.extend(x[1..].iter().map(|v| a + 2.0 * v * a.sin()));
            gradient
        })
        .check(&[0.7, 1.0, -2.0, 3.0]);
}

/// A list as textbooks write it.
struct Node {
    value: f64,
    next: Option<Box<Node>>,
}

#[autodiff_reverse(dlist, Duplicated, Active)]
#[autodiff_forward(blist, Dual, Dual)]
fn through_a_list(x: &[f64]) -> f64 {
    let mut head: Option<Box<Node>> = None;
    for &value in x {
        head = Some(Box::new(Node {
            value: value * value,
            next: head,
        }));
    }
    let mut sum = 0.0;
    let mut weight = 1.0;
    let mut current = &head;
    while let Some(node) = current {
        sum += weight * node.value;
        weight *= 2.0;
        current = &node.next;
    }
    sum
}

#[test]
fn linked_list() {
    Field::new("linked list", through_a_list)
        .reverse(dlist)
        .forward(blist)
        .closed_form(|x| vec![8.0 * x[0], 4.0 * x[1], 2.0 * x[2]])
        .check(&[1.0, -2.0, 3.0]);
}

#[autodiff_reverse(dqueue, Duplicated, Const, Active)]
#[autodiff_forward(bqueue, Dual, Const, Dual)]
fn moving_average(x: &[f64], width: usize) -> f64 {
    let mut window = VecDeque::with_capacity(width);
    let mut total = 0.0;
    let mut result = 0.0;
    for &value in x {
        if window.len() == width {
            if let Some(oldest) = window.pop_front() {
                total -= oldest;
            }
        }
        window.push_back(value);
        total += value;
        let average = total / window.len() as f64;
        result += (value - average) * (value - average);
    }
    result
}

#[test]
fn queue() {
    Field::new("moving average over a queue", |x| moving_average(x, 3))
        .reverse(|x, dx, seed| dqueue(x, dx, 3, seed))
        .forward(|x, v| bqueue(x, v, 3))
        .check(&[1.0, 3.0, -2.0, 0.5, 4.0, 2.5]);
}

#[autodiff_reverse(dshared, Duplicated, Active)]
#[autodiff_forward(bshared, Dual, Dual)]
fn shared_cells(x: &[f64]) -> f64 {
    let total = Rc::new(RefCell::new(0.0));
    let steps = Cell::new(0u32);
    let add = {
        let total = Rc::clone(&total);
        move |value: f64| *total.borrow_mut() += value * value
    };
    for &value in x {
        add(value);
        steps.set(steps.get() + 1);
    }
    let mean = *total.borrow() / f64::from(steps.get());
    mean * Rc::strong_count(&total) as f64
}

#[test]
fn shared_and_interior_mutability() {
    Field::new("Rc<RefCell<f64>>", shared_cells)
        .reverse(dshared)
        .forward(bshared)
        .closed_form(|x| x.iter().map(|value| 4.0 * value / x.len() as f64).collect())
        .check(&[1.0, -2.0, 3.0]);
}

#[autodiff_reverse(dordered, Duplicated, Const, Active)]
#[autodiff_forward(fordered, Dual, Const, Dual)]
fn ordered_map(x: &[f64], keys: &[u32]) -> f64 {
    let mut totals = BTreeMap::new();
    for (&key, &value) in keys.iter().zip(x) {
        *totals.entry(key).or_insert(0.0) += value;
    }
    totals
        .iter()
        .map(|(&key, total)| f64::from(key) * total * total)
        .sum()
}

#[test]
fn map_in_order() {
    let keys = [3u32, 1, 3, 2];
    Field::new("BTreeMap", |x| ordered_map(x, &keys))
        .reverse(|x, dx, seed| dordered(x, dx, &keys, seed))
        .forward(|x, v| fordered(x, v, &keys))
        .closed_form(|x| {
            vec![
                6.0 * (x[0] + x[2]),
                2.0 * x[1],
                6.0 * (x[0] + x[2]),
                4.0 * x[3],
            ]
        })
        .check(&[1.0, -2.0, 3.0, 0.5]);
}

#[autodiff_reverse(dhashed, Duplicated, Const, Active)]
#[autodiff_forward(fhashed, Dual, Const, Dual)]
fn hash_map(x: &[f64], keys: &[u32]) -> f64 {
    let mut totals: HashMap<u32, f64> = HashMap::new();
    for (&key, &value) in keys.iter().zip(x) {
        *totals.entry(key).or_default() += value;
    }
    let mut result = 0.0;
    for key in 0..4 {
        if let Some(total) = totals.get(&key) {
            result += f64::from(key) * total * total;
        }
    }
    result
}

#[test]
fn map_by_hash() {
    let keys = [3u32, 1, 3, 2];
    Field::new("HashMap", |x| hash_map(x, &keys))
        .reverse(|x, dx, seed| dhashed(x, dx, &keys, seed))
        .forward(|x, v| fhashed(x, v, &keys))
        .closed_form(|x| {
            vec![
                6.0 * (x[0] + x[2]),
                2.0 * x[1],
                6.0 * (x[0] + x[2]),
                4.0 * x[3],
            ]
        })
        .check(&[1.0, -2.0, 3.0, 0.5]);
}

/// The constant from which an empty map is made points to another constant.
#[autodiff_reverse(dgrouped, Duplicated, Active)]
#[autodiff_forward(fgrouped, Dual, Dual)]
fn groups_by_hash(x: &[f64]) -> f64 {
    let mut groups: HashMap<usize, Vec<f64>> = HashMap::new();
    for (i, value) in x.iter().enumerate() {
        groups.entry(i % 2).or_default().push(value * value);
    }
    let of = |key: usize| groups.get(&key).map_or(0.0, |group| group.iter().sum());
    of(0).powi(2) + 2.0 * of(1).powi(2) + of(2)
}

#[test]
fn map_of_vectors() {
    Field::new("HashMap of vectors", groups_by_hash)
        .reverse(dgrouped)
        .forward(fgrouped)
        .check(&[0.3, 0.7, 1.1, 0.2, 0.9]);
}

#[derive(PartialEq)]
struct Reached {
    cost: f64,
    node: usize,
}

impl Eq for Reached {}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Reached) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reached {
    fn cmp(&self, other: &Reached) -> Ordering {
        other.cost.total_cmp(&self.cost)
    }
}

#[inline(never)]
fn edges(lengths: &[f64]) -> HashMap<usize, Vec<(usize, f64)>> {
    let mut edges: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
    let ends = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)];
    for ((from, to), &length) in ends.into_iter().zip(lengths) {
        edges.entry(from).or_default().push((to, length));
    }
    edges
}

/// The keys of the hash are numbers with many digits in a structure that is passed to a function with maps of floats.
#[autodiff_reverse(dshortest_path, Duplicated, Active)]
#[autodiff_forward(bshortest_path, Dual, Dual)]
fn shortest_path(lengths: &[f64]) -> f64 {
    let edges = edges(lengths);
    let mut costs: BTreeMap<usize, f64> = BTreeMap::from([(0, 0.0)]);
    let mut done = HashSet::new();
    let mut next = BinaryHeap::from([Reached { cost: 0.0, node: 0 }]);
    while let Some(Reached { cost, node }) = next.pop() {
        if node == 4 {
            return cost * cost;
        }
        if !done.insert(node) {
            continue;
        }
        for &(to, length) in edges.get(&node).into_iter().flatten() {
            let cost = cost + length;
            if costs.get(&to).is_none_or(|&known| cost < known) {
                costs.insert(to, cost);
                next.push(Reached { cost, node: to });
            }
        }
    }
    f64::INFINITY
}

#[test]
fn shortest_path_in_a_map_of_edges() {
    Field::new("shortest path", shortest_path)
        .reverse(dshortest_path)
        .forward(bshortest_path)
        .check(&[0.5, 1.5, 0.7, 2.2, 0.9, 1.1]);
}

/// Memoised results are looked up, by a recursive function.
#[autodiff_reverse(dremembered, Duplicated, Active)]
#[autodiff_forward(fremembered, Dual, Dual)]
fn remembered(x: &[f64]) -> f64 {
    fn term(n: usize, x: &[f64], seen: &mut HashMap<usize, f64>) -> f64 {
        if n < 2 {
            return x[n];
        }
        if let Some(value) = seen.get(&n) {
            return *value;
        }
        let value = term(n - 1, x, seen) * x[2] + term(n - 2, x, seen);
        seen.insert(n, value);
        value
    }
    term(8, x, &mut HashMap::new())
}

#[test]
fn map_of_what_was_computed() {
    Field::new("HashMap in a recursion", remembered)
        .reverse(dremembered)
        .forward(fremembered)
        .check(&[0.4, 1.4, 0.8]);
}

#[autodiff_reverse(djagged, Duplicated, Active)]
#[autodiff_forward(bjagged, Dual, Dual)]
fn jagged(x: &[f64]) -> f64 {
    // A triangle of rows that grow, built and reduced from the bottom up.
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    for n in 1..=x.len() {
        triangle.push((0..n).map(|i| x[i] * x[n - 1]).collect());
    }
    while triangle.len() > 1 {
        let last = triangle.pop().unwrap();
        let above = triangle.last_mut().unwrap();
        for i in 0..above.len() {
            above[i] += 0.5 * last[i].max(last[i + 1]);
        }
    }
    triangle[0][0]
}

#[test]
fn jagged_rows() {
    Field::new("jagged rows", jagged)
        .reverse(djagged)
        .forward(bjagged)
        .check(&[1.0, -2.0, 3.0, 0.5]);
}

#[autodiff_reverse(dcells, Duplicated, Active)]
fn graph_of_shared_nodes(x: &[f64]) -> f64 {
    struct Vertex {
        value: RefCell<f64>,
        parents: Vec<Rc<Vertex>>,
    }
    let leaves: Vec<Rc<Vertex>> = x
        .iter()
        .map(|&value| {
            Rc::new(Vertex {
                value: RefCell::new(value),
                parents: Vec::new(),
            })
        })
        .collect();
    let sum = Rc::new(Vertex {
        value: RefCell::new(0.0),
        parents: leaves.clone(),
    });
    let top = Vertex {
        value: RefCell::new(1.0),
        parents: vec![sum.clone(), leaves[0].clone()],
    };
    for vertex in [&*sum, &top] {
        for parent in &vertex.parents {
            let value = *parent.value.borrow();
            let old = *vertex.value.borrow();
            *vertex.value.borrow_mut() = old * 0.5 + value * value;
        }
    }
    let result = *top.value.borrow();
    result
}

#[test]
fn shared_nodes() {
    Field::new("graph of Rc nodes", graph_of_shared_nodes)
        .reverse(dcells)
        .check(&[1.0, -0.5, 0.25]);
}

#[test]
fn both_modes_agree_on_boxes() {
    let (mut dscale, mut dvalues): (Box<f64>, Box<[f64]>) = (Box::new(0.0), vec![0.0; 2].into());
    let values: Box<[f64]> = vec![1.5, -0.5].into();
    dboxed(&Box::new(0.3), &mut dscale, &values, &mut dvalues, 1.0);
    let (_, tangent) = bboxed(
        &Box::new(0.3),
        &Box::new(2.0),
        &values,
        &vec![1.0, -1.0].into(),
    );
    assert_close(
        "boxes",
        2.0 * *dscale + dvalues[0] - dvalues[1],
        tangent,
        EXACT,
    );
}
