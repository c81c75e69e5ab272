//! Branches, loops with several exits, labels, early returns, `?`, and enums and options as local state.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Scalar};

#[autodiff_reverse(dpiecewise, Active, Active)]
#[autodiff_forward(bpiecewise, Dual, Dual)]
fn piecewise(x: f64) -> f64 {
    if x < -1.0 {
        -2.0 * x - 1.0
    } else if x < 1.0 {
        x * x
    } else if (1.0..4.0).contains(&x) {
        2.0 * x - 1.0
    } else {
        7.0 + (x - 4.0).sqrt()
    }
}

#[test]
fn branches() {
    Scalar::new("piecewise", piecewise)
        .reverse(dpiecewise)
        .forward(bpiecewise)
        .closed_form(|x| match x {
            x if x < -1.0 => -2.0,
            x if x < 1.0 => 2.0 * x,
            x if x < 4.0 => 2.0,
            _ => 0.5 / (x - 4.0).sqrt(),
        })
        .check(&[-2.0, 0.5, 3.0, 5.0]);
}

#[autodiff_reverse(dlabels, Duplicated, Const, Active)]
#[autodiff_forward(blabels, Dual, Const, Dual)]
fn labels(x: &[f64], columns: usize) -> f64 {
    let mut sum = 0.0;
    'rows: for row in x.chunks(columns) {
        let mut product = 1.0;
        for &entry in row {
            if entry < 0.0 {
                // A negative entry spoils its row.
                continue 'rows;
            }
            if entry > 100.0 {
                break 'rows;
            }
            if entry == 0.5 {
                continue;
            }
            product *= entry;
        }
        sum += product;
    }
    sum
}

#[test]
fn labelled_loops() {
    Field::new("labelled loops", |x| labels(x, 2))
        .reverse(|x, dx, seed| dlabels(x, dx, 2, seed))
        .forward(|x, v| blabels(x, v, 2))
        .closed_form(|x| vec![x[1], x[0], 0.0, 0.0, x[5], x[4], 0.0, 0.0, 0.0, 0.0])
        .check(&[2.0, 3.0, 5.0, -1.0, 1.5, 4.0, 200.0, 1.0, 2.0, 2.0]);
}

#[autodiff_reverse(dsearch, Duplicated, Active, Active)]
#[autodiff_forward(bsearch, Dual, Dual, Dual)]
fn interpolate(table: &[f64], x: f64) -> f64 {
    // Knots lie at 0, 1, 2, …; the interval is found by bisection.
    let (mut low, mut high) = (0, table.len() - 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if x < middle as f64 {
            high = middle;
        } else {
            low = middle;
        }
    }
    let t = x - low as f64;
    table[low] * (1.0 - t) + table[high] * t
}

#[test]
fn bisection_for_an_interval() {
    for point in [0.25, 1.5, 3.75] {
        Field::new("interpolation", |z| interpolate(&z[..5], z[5]))
            .reverse(|z, dz, seed| {
                let (dtable, dx) = dz.split_at_mut(5);
                let (value, gradient) = dsearch(&z[..5], dtable, z[5], seed);
                dx[0] += gradient;
                value
            })
            .forward(|z, v| bsearch(&z[..5], &v[..5], z[5], v[5]))
            .check(&[1.0, 4.0, 2.0, -1.0, 3.0, point]);
    }
}

/// A state machine whose states carry numbers.
#[derive(Clone, Copy)]
enum State {
    Idle,
    Rising { level: f64, steps: u32 },
    Falling(f64, f64),
    Done(f64),
}

#[autodiff_reverse(dmachine, Duplicated, Active)]
#[autodiff_forward(bmachine, Dual, Dual)]
fn machine(signal: &[f64]) -> f64 {
    let mut state = State::Idle;
    for &s in signal {
        state = match state {
            State::Idle if s > 0.0 => State::Rising { level: s, steps: 1 },
            State::Idle => State::Idle,
            State::Rising { level, steps } if s > level => State::Rising {
                level: level * 0.5 + s,
                steps: steps + 1,
            },
            State::Rising { level, steps } => State::Falling(level * f64::from(steps), s),
            State::Falling(peak, last) if s < last => State::Falling(peak, s * last),
            State::Falling(peak, last) => State::Done(peak - last + s * s),
            done @ State::Done(_) => done,
        };
    }
    match state {
        State::Idle => 0.0,
        State::Rising { level, .. } => level,
        State::Falling(peak, last) => peak * last,
        State::Done(value) => value,
    }
}

#[test]
fn enum_as_local_state() {
    for signal in [
        [-1.0, -2.0, -1.5, -0.5, -0.25, -3.0],
        [-1.0, 1.0, 2.0, 3.5, 5.0, 8.0],
        [1.0, 2.0, 0.5, 0.25, 0.1, 0.01],
        [1.0, 2.0, 0.5, 0.25, 0.75, 9.0],
    ] {
        Field::new("state machine", machine)
            .reverse(dmachine)
            .forward(bmachine)
            .check(&signal);
    }
}

#[autodiff_reverse(doption, Duplicated, Active)]
#[autodiff_forward(boption, Dual, Dual)]
fn best_pair(x: &[f64]) -> f64 {
    let mut best: Option<(usize, f64)> = None;
    let mut second: Option<f64> = None;
    for (i, &value) in x.iter().enumerate() {
        match best {
            Some((_, largest)) if value <= largest => {
                second = Some(second.map_or(value, |s| s.max(value)))
            }
            Some((_, largest)) => {
                second = Some(largest);
                best = Some((i, value));
            }
            None => best = Some((i, value)),
        }
    }
    let (index, largest) = best.unwrap_or((0, 1.0));
    let gap = second.map(|second| largest - second);
    gap.filter(|gap| *gap > 0.0).unwrap_or(0.0) * largest + index as f64 * largest
}

#[test]
fn options_as_local_state() {
    for x in [
        vec![1.0, 5.0, 3.0, 4.0],
        vec![2.0],
        vec![5.0, 1.0, 7.5, -2.0],
    ] {
        Field::new("two largest", best_pair)
            .reverse(doption)
            .forward(boption)
            .check(&x);
    }
}

#[derive(Debug, PartialEq)]
enum Failure {
    Negative(usize),
    TooLarge,
}

fn checked_root(x: &[f64], i: usize) -> Result<f64, Failure> {
    let value = *x.get(i).ok_or(Failure::TooLarge)?;
    if value < 0.0 {
        return Err(Failure::Negative(i));
    }
    Ok(value.sqrt())
}

fn sum_of_roots(x: &[f64], count: usize) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for i in 0..count {
        sum += checked_root(x, i)? * (i + 1) as f64;
    }
    Ok(sum)
}

#[autodiff_reverse(dquestion, Duplicated, Const, Active)]
#[autodiff_forward(bquestion, Dual, Const, Dual)]
fn question_marks(x: &[f64], count: usize) -> f64 {
    match sum_of_roots(x, count) {
        Ok(sum) => sum,
        Err(Failure::Negative(i)) => x[i] * x[i],
        Err(Failure::TooLarge) => x[0],
    }
}

#[test]
fn results_and_question_marks() {
    for (x, count) in [
        ([4.0, 9.0, 2.0], 3),
        ([4.0, -9.0, 2.0], 3),
        ([4.0, 9.0, 2.0], 4),
    ] {
        Field::new("question marks", |x| question_marks(x, count))
            .reverse(|x, dx, seed| dquestion(x, dx, count, seed))
            .forward(|x, v| bquestion(x, v, count))
            .check(&x);
    }
}

fn last_of(x: &[f64]) -> Option<f64> {
    let first = x.first()?;
    let last = x.last().filter(|last| **last > 0.0)?;
    Some(first * last)
}

#[autodiff_reverse(dearly, Duplicated, Active)]
#[autodiff_forward(bearly, Dual, Dual)]
fn early_returns(x: &[f64]) -> f64 {
    if x.is_empty() {
        return 0.0;
    }
    for &value in x {
        if value > 10.0 {
            return value * value;
        }
    }
    let Some(value) = last_of(x) else {
        return x.iter().sum();
    };
    value.exp()
}

#[test]
fn functions_that_return_early() {
    for x in [
        vec![],
        vec![1.0, 11.0, 12.0],
        vec![1.0, -2.0],
        vec![0.5, -2.0, 1.5],
    ] {
        Field::new("early returns", early_returns)
            .reverse(dearly)
            .forward(bearly)
            .check(&x);
    }
}

#[autodiff_reverse(dcollatz, Active, Const, Active)]
#[autodiff_forward(bcollatz, Dual, Const, Dual)]
fn collatz(x: f64, start: u64) -> f64 {
    let mut n = start;
    let mut value = x;
    let steps = loop {
        match n {
            1 => break value,
            n_even if n_even % 2 == 0 => {
                n /= 2;
                value *= 0.9;
            }
            _ => {
                n = 3 * n + 1;
                value = value.sin() + x;
            }
        }
    };
    steps * (start.count_ones() as f64) + (start >> 1) as f64
}

#[test]
fn loop_that_integers_steer() {
    for start in [1, 6, 7] {
        Scalar::new("Collatz", |x| collatz(x, start))
            .reverse(|x, seed| dcollatz(x, start, seed))
            .forward(|x, direction| bcollatz(x, direction, start))
            .check(&[0.3, 1.2]);
    }
}

#[autodiff_reverse(dconverge, Active, Active)]
#[autodiff_forward(bconverge, Dual, Dual)]
fn fixed_point(x: f64) -> f64 {
    // The number of iterations depends on the number that is differentiated.
    let mut y = 1.0f64;
    let mut iterations = 0;
    loop {
        let next = 0.5 * (x * y).cos() + 0.25 * x;
        iterations += 1;
        if (next - y).abs() < 1e-15 || iterations > 200 {
            return next;
        }
        y = next;
    }
}

#[test]
fn loop_until_convergence() {
    Scalar::new("fixed point", fixed_point)
        .reverse(dconverge)
        .forward(bconverge)
        .closed_form(|x| {
            let y = fixed_point(x);
            let s = (x * y).sin();
            (0.25 - 0.5 * y * s) / (1.0 + 0.5 * x * s)
        })
        .check(&[0.3, 0.9]);
}

#[autodiff_reverse(dcodes, Duplicated, Const, Active)]
#[autodiff_forward(bcodes, Dual, Const, Dual)]
fn stack_machine(x: &[f64], program: &[u8]) -> f64 {
    let mut stack = [0.0; 8];
    let mut top = 0;
    for &code in program {
        match code {
            b'0'..=b'9' => {
                stack[top] = x[usize::from(code - b'0')];
                top += 1;
            }
            b'+' | b'-' | b'*' | b'/' => {
                let (a, b) = (stack[top - 2], stack[top - 1]);
                top -= 1;
                stack[top - 1] = match code {
                    b'+' => a + b,
                    b'-' => a - b,
                    b'*' => a * b,
                    _ => a / b,
                };
            }
            b's' => stack[top - 1] = stack[top - 1].sin(),
            b'd' => {
                stack[top] = stack[top - 1];
                top += 1;
            }
            _ => {}
        }
    }
    stack[top - 1]
}

#[test]
fn interpreter_of_a_stack_machine() {
    let program = b"01*s 2d*+ 0/";
    Field::new("stack machine", |x| stack_machine(x, program))
        .reverse(|x, dx, seed| dcodes(x, dx, program, seed))
        .forward(|x, v| bcodes(x, v, program))
        .closed_form(|x| {
            let (a, b, c) = (x[0], x[1], x[2]);
            let (sin, cos) = (a * b).sin_cos();
            vec![b * cos / a - (sin + c * c) / (a * a), cos, 2.0 * c / a]
        })
        .check(&[1.5, 0.75, -2.0]);
}
