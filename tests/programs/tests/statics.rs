//! Statics that hold constants: lazily initialised tables, and the standard library's own.
//! Statics that do carry derivatives are tested beside them, behind calls that are not inlined.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use ferrozyme_programs::check_function;

const POINT: [f64; 5] = [0.3, 0.7, 1.1, 0.2, 0.9];

static VECTOR: LazyLock<Vec<f64>> =
    LazyLock::new(|| (0..5).map(|i| 1.0 / (f64::from(i) + 1.0)).collect());
static ARRAY: LazyLock<[f64; 5]> = LazyLock::new(|| std::array::from_fn(|i| (i as f64).cos()));
static MAP: LazyLock<HashMap<&'static str, f64>> =
    LazyLock::new(|| HashMap::from([("a", 2.0), ("b", 3.0)]));

fn weights() -> &'static Vec<f64> {
    static WEIGHTS: OnceLock<Vec<f64>> = OnceLock::new();
    WEIGHTS.get_or_init(|| (0..5).map(|i| (f64::from(i) * 0.7).sin()).collect())
}

thread_local! {
    static TABLE: RefCell<Vec<f64>> = RefCell::new((1..6).map(f64::from).collect());
    static ONCE: OnceCell<Vec<f64>> = const { OnceCell::new() };
    static SUM: Cell<f64> = const { Cell::new(0.0) };
}

fn lazy_vector(x: &[f64]) -> f64 {
    x.iter().zip(VECTOR.iter()).map(|(x, w)| x * x * w).sum()
}

fn lazy_array(x: &[f64]) -> f64 {
    x.iter().zip(ARRAY.iter()).map(|(x, w)| x.sin() * w).sum()
}

fn lazy_map(x: &[f64]) -> f64 {
    x[0] * x[0] * MAP["a"] + x[1].sin() * MAP["b"]
}

fn once_lock(x: &[f64]) -> f64 {
    let weights = weights();
    x.iter().enumerate().map(|(i, x)| x * x * weights[i]).sum()
}

fn thread_local_table(x: &[f64]) -> f64 {
    TABLE.with_borrow(|table| x.iter().zip(table).map(|(x, w)| x.exp() * w).sum())
}

fn thread_local_once(x: &[f64]) -> f64 {
    ONCE.with(|once| {
        let table = once.get_or_init(|| vec![0.5, 1.5, 2.5, 3.5, 4.5]);
        x.iter().zip(table).map(|(x, w)| x * x * x * w).sum()
    })
}

/// The standard library keeps the seeds of its hash functions in a thread-local.
fn positions_in_a_map(x: &[f64]) -> f64 {
    let index: HashMap<&str, usize> = [("a", 0), ("b", 1), ("c", 2)].into_iter().collect();
    x[index["a"]] * x[index["b"]] + x[index["c"]].exp()
}

#[test]
fn tables_that_are_made_when_they_are_needed() {
    check_function!(lazy_vector, &POINT);
    check_function!(lazy_array, &POINT);
    check_function!(lazy_map, &POINT);
    check_function!(once_lock, &POINT);
    check_function!(thread_local_table, &POINT);
    check_function!(thread_local_once, &POINT);
    check_function!(positions_in_a_map, &POINT);
}

#[inline(never)]
fn add(x: f64) {
    SUM.set(SUM.get() + x * x);
}

#[inline(never)]
fn take() -> f64 {
    SUM.take()
}

#[inline(never)]
fn add_all(x: &[f64]) {
    x.iter().for_each(|x| add(*x));
}

#[inline(never)]
fn call(f: &dyn Fn(f64), x: f64) {
    f(x);
}

fn through_calls(x: &[f64]) -> f64 {
    add_all(x);
    take().sin()
}

fn through_pointers(x: &[f64]) -> f64 {
    let f: fn(f64) = if x[0] > 0.0 { add } else { |_| () };
    for x in x {
        f(*x);
        call(&add, *x);
    }
    take().sin()
}

#[test]
fn sums_in_a_thread_local() {
    check_function!(through_calls, &POINT);
    check_function!(through_pointers, &POINT);
}
