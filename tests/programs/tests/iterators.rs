//! Iterator chains: every adaptor that numerical code uses.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Mapping};

/// A program that is an iterator chain over `x`, checked in both modes.
macro_rules! chains {
    ($($(#[$note:meta])* $name:ident: |$x:ident| $body:expr, at $point:expr;)*) => { $(
        $(#[$note])*
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Duplicated, Active)]
            #[autodiff_forward(forward, Dual, Dual)]
            fn primal($x: &[f64]) -> f64 {
                $body
            }
            Field::new(stringify!($name), primal).reverse(reverse).forward(forward).check(&$point);
        }
    )* };
}

chains! {
    sum: |x| x.iter().sum(), at [1.0, -2.0, 3.0];
    product: |x| x.iter().product(), at [1.5, -2.0, 3.0];
    map_and_sum: |x| x.iter().map(|x| x.sin() * x).sum(), at [1.0, -2.0, 3.0];
    zip: |x| { let (a, b) = x.split_at(x.len() / 2); a.iter().zip(b).map(|(a, b)| a * b * b).sum() }, at [1.0, -2.0, 3.0, 0.5];
    windows: |x| x.windows(3).map(|w| w[0] * w[1] - w[2] * w[2]).sum(), at [1.0, -2.0, 3.0, 0.5, 2.5];
    chunks: |x| x.chunks(2).map(|c| c.iter().product::<f64>().exp()).sum(), at [1.0, -2.0, 0.5, 0.25, 1.5];
    chunks_exact: |x| { let chunks = x.chunks_exact(2); let rest: f64 = chunks.remainder().iter().sum(); chunks.map(|c| c[0] * c[1]).sum::<f64>() * rest }, at [1.0, -2.0, 0.5, 0.25, 1.5];
    rchunks: |x| x.rchunks(2).map(|c| c[0] * c[c.len() - 1]).fold(1.0, |a, b| a * 0.5 + b), at [1.0, -2.0, 0.5, 0.25, 1.5];
    rev: |x| x.iter().rev().fold(0.0, |sum, x| sum * 0.5 + x * x), at [1.0, -2.0, 3.0];
    fold: |x| x.iter().fold(1.0, |product, x| product * (1.0 + x * x)), at [1.0, -2.0, 0.5];
    fold_pairs: |x| { let (a, b) = x.iter().fold((0.0, 1.0), |(a, b), x| (a + x * b, b * 0.9 + x)); a * b }, at [1.0, -2.0, 0.5];
    map_and_collect: |x| { let squares: Vec<f64> = x.iter().map(|x| x * x).collect(); squares.iter().zip(&squares[1..]).map(|(a, b)| a * b).sum() }, at [1.0, -2.0, 0.5, 3.0];
    flat_map: |x| x.iter().flat_map(|&a| x.iter().map(move |&b| a * b * b)).sum(), at [1.0, -2.0, 0.5];
    flatten: |x| { let rows: Vec<Vec<f64>> = x.chunks(2).map(|row| row.iter().map(|x| x * x * x).collect()).collect(); rows.into_iter().flatten().sum() }, at [1.0, -2.0, 0.5];
    flatten_options: |x| x.iter().map(|&x| (x > 0.0).then_some(x * x)).flatten().sum(), at [1.0, -2.0, 0.5];
    step_by: |x| x.iter().step_by(2).map(|x| x * x).sum::<f64>() + (0..x.len()).step_by(3).map(|i| x[i]).product::<f64>(), at [1.0, -2.0, 0.5, 3.0, 0.25];
    enumerate: |x| x.iter().enumerate().map(|(i, x)| x.powi(i as i32 + 1)).sum(), at [1.0, -2.0, 0.5];
    scan: |x| x.iter().scan(1.0, |state, x| { *state = *state * x + 0.5; Some(*state * *state) }).sum(), at [1.0, -2.0, 0.5];
    filter: |x| x.iter().filter(|x| **x > 0.0).map(|x| x.ln()).sum(), at [1.0, -2.0, 0.5];
    filter_map: |x| x.iter().filter_map(|x| if *x > 0.0 { Some(x.sqrt()) } else { None }).sum(), at [1.0, -2.0, 0.5];
    take_and_skip: |x| x.iter().skip(1).take(2).map(|x| x * x).sum::<f64>() * x.iter().skip_while(|x| **x > 0.0).sum::<f64>(), at [1.0, -2.0, 0.5, 4.0];
    take_while: |x| x.iter().take_while(|x| **x > 0.0).map(|x| x * x).sum(), at [1.0, 2.0, -0.5, 4.0];
    chain: |x| x.iter().chain(x.iter().rev()).enumerate().map(|(i, x)| x * x * i as f64).sum(), at [1.0, 2.0, -0.5];
    cycle: |x| x.iter().cycle().take(7).fold(0.5, |a, x| (a * x).sin() + a), at [1.0, 2.0, -0.5];
    once_and_repeat: |x| std::iter::once(x[0] * x[1]).chain(std::iter::repeat(x[1]).take(3)).product(), at [1.5, 2.0];
    successors: |x| std::iter::successors(Some(x[0]), |value| (*value < 50.0).then(|| value * value + x[1])).sum(), at [1.5, 2.0];
    from_fn: |x| { let (mut a, mut n) = (x[0], 0); std::iter::from_fn(|| { n += 1; a = a * x[1] + 0.5; (n < 5).then_some(a) }).sum() }, at [1.5, 0.75];
    ranges: |x| (1..=x.len()).rev().map(|n| x[..n].iter().sum::<f64>().powi(2)).sum(), at [1.5, 2.0, -0.5];
    peekable: |x| { let mut it = x.iter().peekable(); let mut sum = 0.0; while let Some(a) = it.next() { if let Some(b) = it.peek() { sum += a * **b; } else { sum += a; } } sum }, at [1.5, 2.0, -0.5];
    reduce: |x| x.iter().copied().reduce(|a, b| a * b + a).unwrap_or(0.0), at [1.5, 2.0, -0.5];
    maximum: |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max).powi(2), at [1.5, 2.0, -0.5];
    max_by: |x| { let largest = x.iter().max_by(|a, b| a.total_cmp(b)).unwrap(); largest * x[0] }, at [1.5, 2.0, -0.5];
    min_by_partial_cmp: |x| x.iter().copied().min_by(|a, b| a.partial_cmp(b).unwrap()).map_or(0.0, |smallest| smallest * smallest), at [1.5, 2.0, -0.5];
    position: |x| { let i = x.iter().position(|x| *x < 0.0).unwrap_or(0); x[i] * x[i] * i as f64 }, at [1.5, 2.0, -0.5];
    any_and_all: |x| if x.iter().any(|x| *x < 0.0) && !x.iter().all(|x| *x < 0.0) { x[0] * x[1] } else { x[2] }, at [1.5, 2.0, -0.5];
    unzip: |x| { let (a, b): (Vec<f64>, Vec<f64>) = x.iter().map(|x| (x.sin(), x.cos())).unzip(); a.iter().sum::<f64>() * b.iter().sum::<f64>() }, at [1.5, 2.0, -0.5];
    partition: |x| { let (positive, negative): (Vec<f64>, Vec<f64>) = x.iter().partition(|x| **x > 0.0); positive.iter().product::<f64>() - negative.iter().map(|x| x * x).sum::<f64>() }, at [1.5, 2.0, -0.5, -3.0];
    for_each: |x| { let mut sum = 0.0; x.iter().for_each(|x| sum += x.exp()); sum }, at [0.5, 1.0, -0.5];
    try_fold: |x| x.iter().try_fold(0.0, |sum, x| if *x < 100.0 { Some(sum + x * x) } else { None }).unwrap_or(-1.0), at [0.5, 1.0, -0.5];
    sum_of_options: |x| x.iter().map(|x| (*x > -10.0).then(|| x * x)).sum::<Option<f64>>().unwrap_or(0.0), at [0.5, 1.0, -0.5];
    collect_results: |x| { let all: Result<Vec<f64>, String> = x.iter().map(|x| if x.is_finite() { Ok(x.cosh()) } else { Err(format!("bad {x}")) }).collect(); all.map_or(0.0, |all| all.iter().product()) }, at [0.5, 1.0, -0.5];
    last_and_nth: |x| x.iter().last().unwrap() * x.iter().nth(1).unwrap() + x.iter().nth_back(1).unwrap(), at [0.5, 1.0, -0.5];
    map_while: |x| x.iter().map_while(|x| (*x > 0.0).then(|| x.sqrt())).sum(), at [0.5, 1.0, -0.5, 2.0];
    inspect: |x| { let mut count = 0; let sum: f64 = x.iter().inspect(|_| count += 1).map(|x| x * x).sum(); sum * count as f64 }, at [0.5, 1.0, -0.5];
    array_windows_by_hand: |x| (0..x.len() - 1).zip(1..).map(|(i, j)| (x[i] - x[j]).powi(2)).sum(), at [0.5, 1.0, -0.5, 2.0];
    split: |x| x.split(|x| *x < 0.0).map(|part| part.iter().product::<f64>()).sum(), at [0.5, 1.0, -0.5, 2.0, 3.0];
    three_way_zip: |x| { let n = x.len() / 3; x[..n].iter().zip(&x[n..2 * n]).zip(&x[2 * n..]).map(|((a, b), c)| a * b + b * c).sum() }, at [0.5, 1.0, -0.5, 2.0, 3.0, 0.25];
    array_into_iter: |x| [x[0], x[1] * x[0], x[1]].into_iter().map(|x| x * x).sum(), at [0.5, 1.5];
    array_map: |x| [x[0], x[1]].map(|x| x.exp()).iter().product(), at [0.5, 1.5];
    chunk_by: |x| x.chunk_by(|a, b| a <= b).map(|run| run[0] * run[run.len() - 1]).sum(), at [0.5, 1.5, 1.0, 2.0, 3.0];
    comparison_of_iterators: |x| if x.iter().lt([1.0, 0.0].iter()) { x[0] * x[0] } else { x[1] }, at [0.5, 1.5];
}

#[autodiff_reverse(dnormalise, Duplicated, Duplicated)]
#[autodiff_forward(bnormalise, Dual, Dual)]
fn normalise(x: &[f64], y: &mut [f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x.exp());
    let sum: f64 = y.iter().sum();
    y.iter_mut().for_each(|y| *y /= sum);
    for (i, y) in y.iter_mut().enumerate().skip(1).step_by(2) {
        *y *= i as f64;
    }
}

#[test]
fn iter_mut() {
    Mapping::new("softmax by iter_mut", 4, normalise)
        .reverse(dnormalise)
        .forward(bnormalise)
        .check(&[0.5, -1.0, 2.0, 0.25]);
}

#[autodiff_reverse(dchunks_mut, Duplicated, Const, Duplicated)]
#[autodiff_forward(bchunks_mut, Dual, Const, Dual)]
fn transpose_and_scale(x: &[f64], width: usize, y: &mut [f64]) {
    let height = x.len() / width;
    for (column, out) in y.chunks_exact_mut(height).enumerate() {
        for (row, out) in x.chunks_exact(width).zip(out.iter_mut()) {
            *out = row[column] * row[0];
        }
    }
    y.rotate_left(1);
    y.reverse();
}

#[test]
fn chunks_mut() {
    Mapping::new("transpose by chunks_exact_mut", 6, |x, y| {
        transpose_and_scale(x, 3, y)
    })
    .reverse(|x, dx, y, dy| dchunks_mut(x, dx, 3, y, dy))
    .forward(|x, v, y, ty| bchunks_mut(x, v, 3, y, ty))
    .check(&[0.5, -1.0, 2.0, 0.25, 3.0, 1.5]);
}

#[autodiff_reverse(dadaptor, Duplicated, Active)]
#[autodiff_forward(badaptor, Dual, Dual)]
fn own_iterator(x: &[f64]) -> f64 {
    /// Differences of neighbours, as an iterator of the user's own.
    struct Differences<'a> {
        rest: &'a [f64],
    }
    impl Iterator for Differences<'_> {
        type Item = f64;
        fn next(&mut self) -> Option<f64> {
            let [first, second, ..] = self.rest else {
                return None;
            };
            self.rest = &self.rest[1..];
            Some(second - first)
        }
    }
    Differences { rest: x }
        .map(|d| d * d)
        .zip(Differences { rest: x }.skip(1))
        .map(|(a, b)| a * b)
        .sum()
}

#[test]
fn own_iterators() {
    Field::new("iterator of one's own", own_iterator)
        .reverse(dadaptor)
        .forward(badaptor)
        .check(&[0.5, 1.5, 1.0, 2.0, 3.0]);
}

fn boxed_chain<'a>(x: &'a [f64], reversed: bool) -> Box<dyn Iterator<Item = f64> + 'a> {
    if reversed {
        Box::new(x.iter().rev().copied())
    } else {
        Box::new(x.iter().map(|x| x * 2.0))
    }
}

#[autodiff_reverse(ddynamic, Duplicated, Const, Active)]
#[autodiff_forward(bdynamic, Dual, Const, Dual)]
fn dynamic_iterator(x: &[f64], reversed: bool) -> f64 {
    boxed_chain(x, reversed).fold(0.25, |sum, x| sum * x + x)
}

#[test]
fn boxed_iterators() {
    for reversed in [false, true] {
        Field::new("boxed iterator", |x| dynamic_iterator(x, reversed))
            .reverse(|x, dx, seed| ddynamic(x, dx, reversed, seed))
            .forward(|x, v| bdynamic(x, v, reversed))
            .check(&[0.5, 1.5, -1.0]);
    }
}
