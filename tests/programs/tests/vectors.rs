//! Vectors that grow, shrink, are copied, cut, swapped and sorted.

use ferrozyme::{autodiff_forward, autodiff_reverse, shadow_of};
use ferrozyme_programs::{Field, Mapping};

/// A program that works on vectors of its own, checked in both modes.
macro_rules! programs {
    ($($name:ident: |$x:ident| $body:block, at $point:expr;)*) => { $(
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Duplicated, Active)]
            #[autodiff_forward(forward, Dual, Dual)]
            fn primal($x: &[f64]) -> f64 $body
            Field::new(stringify!($name), primal).reverse(reverse).forward(forward).check(&$point);
        }
    )* };
}

/// A sum in which every place has a weight of its own, so that misplaced gradients show.
fn weighted(x: &[f64]) -> f64 {
    x.iter()
        .enumerate()
        .map(|(i, x)| x * x * (i + 1) as f64)
        .sum()
}

programs! {
    push: |x| {
        let mut v = Vec::new();
        for &value in x {
            v.push(value * value);
            if v.len() > 1 {
                let last = v[v.len() - 2];
                v.push(last * value);
            }
        }
        weighted(&v)
    }, at [1.0, -0.5, 2.0, 0.25, 1.5];
    with_capacity: |x| {
        let mut v = Vec::with_capacity(x.len() * 2);
        for pair in x.windows(2) {
            v.push(pair[0]);
            v.push(pair[0] * pair[1]);
        }
        v.shrink_to_fit();
        weighted(&v)
    }, at [1.0, -0.5, 2.0];
    extend: |x| {
        let mut v = vec![x[0] * x[1]];
        v.extend(x.iter().map(|x| x.sin()));
        v.extend_from_slice(x);
        v.extend(&v.clone());
        weighted(&v)
    }, at [1.0, -0.5, 2.0];
    insert_and_remove: |x| {
        let mut v = x.to_vec();
        v.insert(1, x[0] * x[2]);
        v.insert(0, x[1]);
        let removed = v.remove(2);
        let last = v.swap_remove(0);
        weighted(&v) * removed + last
    }, at [1.0, -0.5, 2.0];
    pop: |x| {
        let mut stack = x.to_vec();
        let mut total = 0.0;
        while let Some(top) = stack.pop() {
            if top > 3.0 {
                stack.push(top / 2.0);
                stack.push(top - 3.0);
            } else {
                total = total * 0.9 + top * top;
            }
        }
        total
    }, at [1.0, 7.5, 2.0];
    drain: |x| {
        let mut v: Vec<f64> = x.iter().map(|x| x * x).collect();
        let taken: Vec<f64> = v.drain(1..3).collect();
        weighted(&v) + taken[0] * taken[1]
    }, at [1.0, -0.5, 2.0, 3.0];
    truncate_and_resize: |x| {
        let mut v = x.to_vec();
        v.truncate(2);
        v.resize(4, x[2]);
        v.resize_with(5, || x[0] * x[1]);
        weighted(&v)
    }, at [1.0, -0.5, 2.0];
    retain_and_dedup: |x| {
        let mut v: Vec<f64> = x.iter().flat_map(|&x| [x, x, -x]).collect();
        v.dedup();
        v.retain(|x| *x > 0.0);
        weighted(&v)
    }, at [1.0, -0.5, 2.0];
    split_off_and_append: |x| {
        let mut v = x.to_vec();
        let mut tail = v.split_off(2);
        tail.append(&mut v);
        weighted(&tail) + v.len() as f64
    }, at [1.0, -0.5, 2.0, 3.0];
    swap_and_reverse: |x| {
        let mut v = x.to_vec();
        v.swap(0, 2);
        v.reverse();
        v.rotate_right(1);
        let taken = std::mem::take(&mut v);
        let replaced = std::mem::replace(&mut v, vec![x[0] * x[1]]);
        weighted(&taken) * v[0] + replaced.len() as f64
    }, at [1.0, -0.5, 2.0, 3.0];
    clone: |x| {
        let mut rows = vec![x.to_vec(); 2];
        rows[0][0] *= 2.0;
        let copy = rows.clone();
        rows[1][1] = copy[0][0] * copy[1][0];
        weighted(&rows.concat()) - weighted(&copy[1])
    }, at [1.0, -0.5];
    copy_from_slice: |x| {
        let mut v = vec![0.0; x.len() * 2];
        let n = x.len();
        v[..n].copy_from_slice(x);
        v.copy_within(0..n - 1, n + 1);
        v[n] = v[0] * v[1];
        weighted(&v)
    }, at [1.0, -0.5, 2.0];
    fill: |x| {
        let mut v = [1.0; 6];
        v[1..3].fill(x[0]);
        v[4..].fill_with(|| x[1] * x[0]);
        weighted(&v)
    }, at [1.0, -0.5];
    split_at_mut: |x| {
        let mut v = x.to_vec();
        let (left, right) = v.split_at_mut(2);
        left[0] += right[0] * left[1];
        right[1] = left[0] * right[0];
        left.swap_with_slice(right);
        weighted(&v)
    }, at [1.0, -0.5, 2.0, 3.0];
    sort_by_partial_cmp: |x| {
        let mut v = x.to_vec();
        v.sort_by(|a, b| a.partial_cmp(b).unwrap());
        weighted(&v)
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    sort_by_total_cmp: |x| {
        let mut v: Vec<f64> = x.iter().map(|x| x * x).collect();
        v.sort_by(|a, b| b.total_cmp(a));
        weighted(&v)
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    sort_unstable: |x| {
        let mut v = x.to_vec();
        v.sort_unstable_by(f64::total_cmp);
        let median = v[v.len() / 2];
        weighted(&v) * median
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    sort_many: |x| {
        // Enough elements that the library's algorithms for long slices run.
        let mut v: Vec<f64> = (0..60).map(|i| 0.1 * x[i % x.len()] + ((i * 37) % 61) as f64).collect();
        v.sort_by(|a, b| a.total_cmp(b));
        weighted(&v) / 1e5
    }, at [1.0, -0.5, 2.0];
    sort_pairs_by_key: |x| {
        let mut pairs: Vec<(u32, f64)> = x.iter().enumerate().map(|(i, &x)| ((i as u32 * 7) % 5, x)).collect();
        pairs.sort_by_key(|pair| pair.0);
        let values: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        weighted(&values)
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    sort_indices: |x| {
        let mut order: Vec<usize> = (0..x.len()).collect();
        order.sort_by(|&a, &b| x[a].partial_cmp(&x[b]).unwrap());
        order.iter().enumerate().map(|(rank, &i)| x[i] * x[i] * (rank + 1) as f64).sum()
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    select_nth: |x| {
        let mut v = x.to_vec();
        let (_, median, _) = v.select_nth_unstable_by(2, f64::total_cmp);
        *median * *median
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    binary_search: |x| {
        let i = x.binary_search_by(|probe| probe.total_cmp(&1.0)).unwrap_or_else(|i| i);
        let j = x.partition_point(|x| *x < 2.5);
        x[i] * x[j]
    }, at [-1.0, 0.5, 2.0, 3.0];
    insertion_sort: |x| {
        let mut v = x.to_vec();
        for i in 1..v.len() {
            let mut j = i;
            while j > 0 && v[j - 1] > v[j] {
                v.swap(j - 1, j);
                j -= 1;
            }
        }
        weighted(&v)
    }, at [1.0, -0.5, 2.0, 0.25, 3.0];
    concat_and_join: |x| {
        let parts = [&x[1..], &x[..1]];
        let v = parts.concat();
        let joined = parts.join(&x[0]);
        weighted(&v) + weighted(&joined)
    }, at [1.0, -0.5, 2.0];
    vec_macro: |x| {
        let zeros = vec![0.0; 3];
        let mut filled = vec![x[0]; 3];
        let listed = vec![x[0], x[1] * x[0], 3.0];
        for i in 0..3 {
            filled[i] += zeros[i] + listed[i];
        }
        weighted(&filled)
    }, at [1.0, -0.5];
    boxed_slice: |x| {
        let boxed: Box<[f64]> = x.iter().map(|x| x * x).collect();
        let back = boxed.clone().into_vec();
        weighted(&back) * boxed[0]
    }, at [1.0, -0.5, 2.0];
    small_structs: |x| {
        #[derive(Clone, Copy, Default)]
        struct Particle { position: f64, charge: i32, speed: f64 }
        let mut particles = vec![Particle::default(); x.len()];
        for (i, particle) in particles.iter_mut().enumerate() {
            particle.position = x[i];
            particle.charge = if i % 2 == 0 { 1 } else { -1 };
        }
        particles.push(Particle { position: x[0] * x[1], charge: 2, speed: x[1] });
        particles.sort_by(|a, b| a.position.total_cmp(&b.position));
        particles.iter().enumerate().map(|(i, p)| (p.position + p.speed) * f64::from(p.charge) * (i + 1) as f64).sum::<f64>().powi(2)
    }, at [1.5, -0.5, 2.0];
}

#[autodiff_reverse(dprefix, Duplicated, Duplicated)]
#[autodiff_forward(bprefix, Dual, Dual)]
fn prefix_sums(x: &[f64], y: &mut [f64]) {
    y.copy_from_slice(x);
    for i in 1..y.len() {
        y[i] += y[i - 1] * y[i - 1];
    }
}

#[test]
fn prefix_sums_in_the_output() {
    Mapping::new("prefix sums", 4, prefix_sums)
        .reverse(dprefix)
        .forward(bprefix)
        .check(&[0.5, -1.0, 0.25, 0.75]);
}

#[autodiff_reverse(dgrow, Duplicated, Const, Active)]
fn grow_by_branches(x: &[f64], mask: &[bool]) -> f64 {
    let mut kept = Vec::new();
    let mut dropped = Vec::new();
    for (&value, &keep) in x.iter().zip(mask) {
        let target = if keep { &mut kept } else { &mut dropped };
        target.push(value * value);
    }
    weighted(&kept) - weighted(&dropped)
}

#[test]
fn one_of_two_vectors_grows() {
    let mask = [true, false, true, true, false];
    Field::new("two vectors", |x| grow_by_branches(x, &mask))
        .reverse(|x, dx, seed| dgrow(x, dx, &mask, seed))
        .check(&[0.5, -1.0, 0.25, 0.75, 2.0]);
}

#[autodiff_reverse(dextended, Duplicated, Active)]
fn extended(values: &mut Vec<f64>) -> f64 {
    let product = values[0] * values[1];
    values.push(product);
    values.iter().sum()
}

#[test]
fn vector_of_the_caller_that_grows() {
    let mut values = Vec::with_capacity(4);
    values.extend([2.0, 3.0]);
    let mut gradient = shadow_of(&values);
    assert_eq!(dextended(&mut values, &mut gradient, 1.0), 11.0);
    assert_eq!(values, [2.0, 3.0, 6.0]);
    assert_eq!(gradient, [4.0, 3.0, 0.0]);
}
