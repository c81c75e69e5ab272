//! Panics inside the primal unwind out of the derivative with their message, and drop what is to be dropped.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrozyme::{autodiff_forward, autodiff_reverse};

/// Runs `f`, which must panic, and returns the message.
#[track_caller]
fn message_of<T>(f: impl FnOnce() -> T) -> String {
    let payload = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("expected a panic"),
        Err(payload) => payload,
    };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload
            .downcast::<&str>()
            .map_or_else(|_| "no text".to_string(), |text| text.to_string()),
    }
}

/// Counts how often it is dropped.
struct Guard<'a>(&'a Cell<u32>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[autodiff_reverse(dindexed, Duplicated, Const, Const, Active)]
#[autodiff_forward(bindexed, Dual, Const, Const, Dual)]
fn indexed(x: &[f64], last: usize, drops: &Cell<u32>) -> f64 {
    let _guard = Guard(drops);
    let mut copies = Vec::new();
    let mut sum = 0.0;
    for i in 0..=last {
        let _inner = Guard(drops);
        copies.push(x[i] * sum);
        sum += x[i].sin();
    }
    sum * copies.iter().sum::<f64>()
}

#[test]
fn index_out_of_bounds() {
    let x = [0.5, 1.0, 1.5];
    let drops = Cell::new(0);
    let (mut dx, tangents) = ([0.0; 3], [1.0; 3]);
    dindexed(&x, &mut dx, 2, &drops, 1.0);
    assert!(
        drops.get() >= 4,
        "the guards are dropped without a panic, too"
    );

    drops.set(0);
    let message = message_of(|| dindexed(&x, &mut dx, 3, &drops, 1.0));
    assert_eq!(
        message,
        "index out of bounds: the len is 3 but the index is 3"
    );
    assert_eq!(drops.get(), 5, "one guard outside, four inside the loop");

    drops.set(0);
    let message = message_of(|| bindexed(&x, &tangents, 3, &drops));
    assert_eq!(
        message,
        "index out of bounds: the len is 3 but the index is 3"
    );
    assert_eq!(drops.get(), 5);
}

fn checked(x: f64, drops: &Cell<u32>) -> f64 {
    let _guard = Guard(drops);
    let noted = vec![x; 4];
    assert!(x < 10.0, "{x} is too large, noted {} times", noted.len());
    x * noted[3]
}

#[autodiff_reverse(dcalls, Duplicated, Const, Active)]
fn calls(x: &[f64], drops: &Cell<u32>) -> f64 {
    x.iter().map(|&x| checked(x, drops)).sum()
}

#[test]
fn formatted_message_from_a_callee() {
    let drops = Cell::new(0);
    let mut dx = [0.0; 3];
    let message = message_of(|| dcalls(&[1.0, 12.5, 2.0], &mut dx, &drops, 1.0));
    assert_eq!(message, "12.5 is too large, noted 4 times");
    assert_eq!(drops.get(), 2);
    let mut dx = [0.0; 2];
    assert_eq!(dcalls(&[1.0, 3.0], &mut dx, &drops, 1.0), 10.0);
    assert_eq!(dx, [2.0, 6.0]);
}

#[autodiff_reverse(dkinds, Active, Const, Active)]
fn kinds(x: f64, kind: u32) -> f64 {
    let nothing: Option<f64> = if kind == 1 { None } else { Some(x) };
    let value = nothing.unwrap();
    let result: Result<f64, String> = if kind == 2 {
        Err(format!("kind {kind}"))
    } else {
        Ok(value)
    };
    let value = result.expect("a result");
    if kind == 3 {
        panic!("explicitly");
    }
    if kind == 4 {
        unreachable!("never {kind}");
    }
    let zero = kind.saturating_sub(5);
    let divided = if kind == 5 { 7 / zero } else { 1 };
    let text = if kind == 6 { "é"[1..].len() } else { 1 };
    value * f64::from(divided) * text as f64
}

#[test]
fn every_kind_of_panic() {
    assert_eq!(dkinds(3.0, 0, 1.0), (3.0, 1.0));
    let expected = [
        "called `Option::unwrap()` on a `None` value",
        "a result: \"kind 2\"",
        "explicitly",
        "internal error: entered unreachable code: never 4",
        "attempt to divide by zero",
    ];
    for (kind, expected) in (1..).zip(expected) {
        assert_eq!(message_of(|| dkinds(3.0, kind, 1.0)), expected);
    }
    let message = message_of(|| dkinds(3.0, 6, 1.0));
    assert!(message.contains("char boundary"), "{message}");
}

struct Node {
    value: f64,
    children: Vec<Box<Node>>,
}

impl Node {
    fn total(&self, depth: u32) -> f64 {
        if depth > 5 {
            panic!("deeper than {}", depth - 1);
        }
        self.value * self.value
            + self
                .children
                .iter()
                .map(|child| child.total(depth + 1))
                .sum::<f64>()
    }
}

#[autodiff_reverse(ddeep, Duplicated, Active)]
fn deep(x: &[f64]) -> f64 {
    let mut node = Node {
        value: x[0],
        children: Vec::new(),
    };
    for &value in &x[1..] {
        node = Node {
            value,
            children: vec![Box::new(node)],
        };
    }
    node.total(0)
}

/// Boxes that the primal made are on the way out of the panic.
#[test]
fn panic_in_a_recursion() {
    let mut dx = [0.0; 6];
    assert_eq!(deep(&[1.0, 2.0, 3.0]), 14.0);
    ddeep(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut dx, 1.0);
    assert_eq!(dx, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let message = message_of(|| ddeep(&[1.0; 7], &mut [0.0; 7], 1.0));
    assert_eq!(message, "deeper than 5");
}

#[autodiff_reverse(doutput, Duplicated, Duplicated)]
fn output(x: &[f64], y: &mut [f64]) {
    y.copy_from_slice(x);
    for y in y {
        *y = y.exp();
    }
}

#[test]
fn library_checks() {
    let (mut dx, mut y, mut dy) = ([0.0; 2], [0.0; 3], [0.0; 3]);
    let message = message_of(|| doutput(&[1.0, 2.0], &mut dx, &mut y, &mut dy));
    assert_eq!(message, message_of(|| output(&[1.0, 2.0], &mut [0.0; 3])));
    assert!(message.contains("copy_from_slice"), "{message}");
}

#[autodiff_reverse(doverflow, Active, Const, Active)]
fn overflow(x: f64, n: u8) -> f64 {
    x * f64::from(n + 10)
}

/// Overflow panics where the profile says so, and wraps where not.
#[test]
fn arithmetic_overflow() {
    assert_eq!(doverflow(2.0, 5, 1.0), (30.0, 15.0));
    match catch_unwind(|| overflow(2.0, 250)) {
        Ok(wrapped) => assert_eq!(doverflow(2.0, 250, 1.0), (wrapped, 4.0)),
        Err(_) => assert_eq!(
            message_of(|| doverflow(2.0, 250, 1.0)),
            "attempt to add with overflow"
        ),
    }
}
