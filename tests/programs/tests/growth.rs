//! Containers of the caller that are reallocated: the gradient of the old memory is the gradient of the caller's elements, and moves with them.

use ferrozyme::{Differentiable, autodiff_reverse, shadow_of};
use ferrozyme_programs::{assert_close, assert_stops};
use std::collections::VecDeque;

/// The derivative of a function of a few numbers in one of them, by differences.
fn difference(f: impl Fn(&[f64]) -> f64, at: &[f64], index: usize) -> f64 {
    let step = 1e-6;
    let shifted = |by: f64| {
        let mut point = at.to_vec();
        point[index] += by;
        f(&point)
    };
    (shifted(step) - shifted(-step)) / (2.0 * step)
}

#[autodiff_reverse(d_append, Duplicated, Active)]
fn append(v: &mut Vec<f64>) -> f64 {
    for i in 0..20 {
        let next = v[i] * v[i] * 0.5 + 0.1;
        v.push(next);
    }
    v.iter().sum()
}

#[test]
fn vectors_grow_several_times() {
    let at = [0.5, 0.75];
    let mut v = at.to_vec();
    let mut dv = vec![0.0; 2];
    let sum = d_append(&mut v, &mut dv, 1.0);
    assert_eq!((v.len(), dv.len()), (22, 22));
    assert_close("value", sum, append(&mut at.to_vec()), 1e-12);
    for index in 0..2 {
        let expected = difference(|x| append(&mut x.to_vec()), &at, index);
        assert!(
            (dv[index] - expected).abs() < 1e-7,
            "{index}: {} and not {expected}",
            dv[index]
        );
    }
    // A pushed element is not an input.
    assert!(dv[2..].iter().all(|&x| x == 0.0), "{dv:?}");
}

#[test]
fn gradients_do_not_depend_on_the_room_there_was() {
    let mut roomy = Vec::with_capacity(64);
    roomy.extend([0.5, 0.75]);
    let mut d_roomy = shadow_of(&roomy);
    d_append(&mut roomy, &mut d_roomy, 1.0);
    let mut tight = vec![0.5, 0.75];
    let mut d_tight = shadow_of(&tight);
    d_append(&mut tight, &mut d_tight, 1.0);
    assert_eq!((roomy, d_roomy), (tight, d_tight));
}

#[test]
fn seeds_stay_with_their_elements() {
    #[autodiff_reverse(d_outputs, Duplicated, Active)]
    fn outputs(v: &mut Vec<f64>, x: f64) {
        v[1] = x * x;
        for _ in 0..8 {
            v.push(x);
        }
    }
    let (mut v, mut dv) = (vec![1.0, 2.0], vec![0.25, 1.0]);
    let dx = d_outputs(&mut v, &mut dv, 3.0);
    assert_eq!(v[..3], [1.0, 9.0, 3.0]);
    // The first element comes out as it went in, the second is overwritten.
    assert_eq!((dx, &dv[..3]), (6.0, &[0.25, 0.0, 0.0][..]));
}

#[test]
fn seeds_go_with_their_elements() {
    #[autodiff_reverse(d_square, Duplicated)]
    fn square(v: &mut Vec<f64>) {
        v.push(1.0);
        v[0] = v[0] * v[0];
    }
    let (mut v, mut dv) = (vec![3.0], vec![1.0]);
    d_square(&mut v, &mut dv);
    assert_eq!((v, dv), (vec![9.0, 1.0], vec![6.0, 0.0]));

    #[autodiff_reverse(d_squares, Duplicated, Duplicated)]
    fn squares(x: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend(x.iter().map(|x| x * x));
    }
    let mut dx = [0.0; 2];
    let (mut out, mut seeds) = (vec![0.0], vec![1.0]);
    d_squares(&[3.0, 5.0], &mut dx, &mut out, &mut seeds);
    assert_eq!((out, dx), (vec![9.0, 25.0], [6.0, 0.0]));
}

#[test]
fn rows_and_the_matrix_grow() {
    #[autodiff_reverse(d_rows, Duplicated, Active)]
    fn rows(matrix: &mut Vec<Vec<f64>>) -> f64 {
        let mut sum = 0.0;
        for row in matrix.iter_mut() {
            let square = row[0] * row[0];
            row.push(square);
            sum += row[row.len() - 1];
        }
        let copy = matrix[matrix.len() - 1].clone();
        matrix.push(copy);
        sum + matrix[matrix.len() - 1][0]
    }
    let mut matrix = vec![vec![3.0], vec![2.0, 1.0]];
    let mut d_matrix = shadow_of(&matrix);
    d_rows(&mut matrix, &mut d_matrix, 1.0);
    assert_eq!(matrix[2], [2.0, 1.0, 4.0]);
    assert_eq!(d_matrix[0], [6.0, 0.0]);
    assert_eq!(d_matrix[1], [5.0, 0.0, 0.0]);
}

#[test]
fn queues_grow() {
    #[autodiff_reverse(d_queue, Duplicated, Active)]
    fn queue(q: &mut VecDeque<f64>) -> f64 {
        for _ in 0..10 {
            let sum = q[0] * q[1];
            q.push_back(sum + 0.5);
        }
        q.iter().sum()
    }
    let at = [0.5, 0.75];
    let mut q = VecDeque::from(at);
    let mut dq = VecDeque::from([0.0, 0.0]);
    d_queue(&mut q, &mut dq, 1.0);
    for index in 0..2 {
        let of = |x: &[f64]| queue(&mut x.iter().copied().collect());
        assert!((dq[index] - difference(of, &at, index)).abs() < 1e-7);
    }
    // They have grown alike, so that the shadow serves again.
    q.truncate(2);
    dq.truncate(2);
    dq.iter_mut().for_each(|x| *x = 0.0);
    let expected = difference(|x| queue(&mut x.iter().copied().collect()), &at, 0);
    d_queue(&mut q, &mut dq, 1.0);
    assert!((dq[0] - expected).abs() < 1e-7);
}

#[autodiff_reverse(d_front, Duplicated, Active)]
fn front(q: &VecDeque<f64>) -> f64 {
    q[0] * q[1]
}

#[autodiff_reverse(d_pass, Active, Duplicated, Active)]
fn pass(x: f64, q: &mut VecDeque<f64>) -> f64 {
    q.push_back(x * x);
    q.pop_front().unwrap()
}

/// A queue of so much room that starts in the middle of it.
fn turned(room: usize, by: usize, elements: &[f64]) -> VecDeque<f64> {
    let mut q = VecDeque::with_capacity(room);
    for _ in 0..by {
        q.push_back(4321.5);
        q.pop_front();
    }
    q.extend(elements);
    q
}

#[test]
fn shadows_of_queues_start_where_they_do() {
    for (room, by) in [(3, 0), (3, 1), (3, 2), (5, 0), (5, 4)] {
        let q = turned(room, by, &[2.0, 3.0, 1.0]);
        let mut dq = shadow_of(&q);
        assert_eq!(d_front(&q, &mut dq, 1.0), 6.0);
        assert_eq!(dq, [3.0, 2.0, 0.0], "{room}, {by}");
    }
}

#[test]
fn what_a_queue_held_is_no_seed() {
    for by in 0..4 {
        let (mut q, mut dq) = (turned(4, by, &[]), turned(4, by, &[7.0; 4]));
        while dq.pop_back().is_some() {}
        assert_eq!(d_pass(3.0, &mut q, &mut dq, 1.0), (9.0, 6.0), "{by}");
        let mut q = turned(4, by, &[]);
        let mut dq = shadow_of(&q);
        assert_eq!(d_pass(3.0, &mut q, &mut dq, 1.0), (9.0, 6.0), "{by}");
        let mut q = turned(4, by, &[5.0, 6.0]);
        let mut dq = turned(4, by, &[0.0, 1.0]);
        assert_eq!(d_pass(3.0, &mut q, &mut dq, 1.0), (5.0, 0.0), "{by}");
        assert_eq!((q, dq), ([6.0, 9.0].into(), [1.0, 0.0].into()));
    }
}

#[test]
fn queues_in_structures_have_shadows() {
    #[derive(Differentiable)]
    struct Window {
        last: VecDeque<Vec<f64>>,
        scale: f64,
    }
    #[autodiff_reverse(d_slide, Duplicated, Duplicated, Active)]
    fn slide(window: &mut Window, x: &[f64]) -> f64 {
        for i in 0..x.len() {
            window.last[i % 2].push(x[i] * window.scale);
        }
        let mut total = 0.0;
        for row in &window.last {
            total += row.iter().product::<f64>();
        }
        total
    }
    let make = |x: &[f64]| {
        let mut last = VecDeque::from([vec![x[0]], vec![x[1]]]);
        last.rotate_left(1);
        Window { last, scale: x[2] }
    };
    let at = [0.5, 0.75, 1.5, 0.4, 0.3];
    let mut window = make(&at);
    let mut shadow = shadow_of(&window);
    let mut dx = [0.0; 2];
    slide(&mut make(&at), &at[3..]);
    d_slide(&mut window, &mut shadow, &at[3..], &mut dx, 1.0);
    let gradient = [
        shadow.last[1][0],
        shadow.last[0][0],
        shadow.scale,
        dx[0],
        dx[1],
    ];
    for (index, &got) in gradient.iter().enumerate() {
        let expected = difference(|x| slide(&mut make(x), &x[3..]), &at, index);
        assert_close("gradient", got, expected, 1e-7);
    }
}

/// The message for a shadow of another shape.
fn refusal(mut q: VecDeque<f64>, mut dq: VecDeque<f64>) -> String {
    let call = || d_pass(3.0, &mut q, &mut dq, 1.0);
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call))
        .expect_err("the shadow has another shape");
    *payload.downcast::<String>().expect("a message")
}

#[test]
fn shadows_of_queues_with_another_ring_are_refused() {
    let q = || turned(4, 1, &[1.0, 2.0]);
    let start = "the shadow of argument `q` of `growth::pass` has another shape: ";
    assert_eq!(
        refusal(q(), VecDeque::new()),
        format!("{start}`q` has length 2, but `dq_0` has length 0")
    );
    assert_eq!(
        refusal(q(), turned(5, 1, &[0.0; 2])),
        format!(
            "{start}`q` has capacity 4, but `dq_0` has capacity 5 (make it with `ferrozyme::shadow_of`)"
        )
    );
    assert_eq!(
        refusal(q(), turned(4, 3, &[0.0; 2])),
        format!(
            "{start}`q` has its first element in slot 1 of its memory, but `dq_0` has its first element in slot 3 (make it with `ferrozyme::shadow_of`)"
        )
    );
}

#[test]
fn fields_grow() {
    struct Trace {
        values: Vec<f32>,
        count: usize,
    }
    #[autodiff_reverse(d_follow, Duplicated, Active, Active)]
    fn follow(trace: &mut Trace, x: f32) -> f32 {
        for i in 0..10 {
            trace.count += 1;
            let last = trace.values[trace.values.len() - 1];
            trace.values.push(last * x + i as f32);
        }
        trace.values[trace.values.len() - 1]
    }
    let values = vec![1.0];
    let mut trace = Trace { values, count: 0 };
    let values = vec![0.0];
    let mut shadow = Trace { values, count: 0 };
    let (y, dx) = d_follow(&mut trace, &mut shadow, 0.5, 1.0);
    assert_eq!((y, trace.count), (trace.values[10], 10));
    assert_eq!(shadow.values[0], 0.5f32.powi(10));
    let by_hand = 10.0 * 0.5f32.powi(9)
        + (0..10)
            .map(|i| i as f32 * (9 - i) as f32 * 0.5f32.powi(8 - i))
            .sum::<f32>();
    assert!((dx - by_hand).abs() < 1e-4, "{dx} and not {by_hand}");
}

#[autodiff_reverse(d_replace, Duplicated, Active)]
fn replace(v: &mut Vec<f64>) -> f64 {
    *v = v.iter().map(|x| x * x).collect();
    v.iter().sum()
}

#[autodiff_reverse(d_shrink, Duplicated, Active)]
fn shrink(v: &mut Vec<f64>) -> f64 {
    let sum = v.iter().map(|x| x * x).sum();
    v.truncate(1);
    v.shrink_to_fit();
    sum
}

/// Truncated elements have no gradient here, and the rest moves to the smaller memory.
#[test]
fn vectors_shrink() {
    #[autodiff_reverse(d_first, Duplicated, Active)]
    fn first(v: &mut Vec<f64>) -> f64 {
        v.truncate(1);
        v.shrink_to_fit();
        v[0] * v[0]
    }
    #[autodiff_reverse(d_half, Duplicated, Active)]
    fn half(v: &mut Vec<f64>) -> f64 {
        v.truncate(v.len() / 2);
        v.shrink_to_fit();
        v.iter().map(|x| x * x).sum()
    }
    for room in [2, 5] {
        let mut v = Vec::with_capacity(room);
        v.extend([3.0, 2.0]);
        let (mut dv, mut w) = (shadow_of(&v), v.clone());
        assert_eq!(d_first(&mut v, &mut dv, 1.0), 9.0);
        assert_eq!((v, dv), (vec![3.0], vec![6.0]));
        w.extend([1.0, 1.0]);
        let mut dw = shadow_of(&w);
        assert_eq!(d_half(&mut w, &mut dw, 1.0), 13.0);
        assert_eq!((w, dw), (vec![3.0, 2.0], vec![6.0, 4.0]));
    }
}

#[autodiff_reverse(d_pop, Duplicated, Active)]
fn pop(rows: &mut Vec<Vec<f64>>) -> f64 {
    rows.pop().map_or(0.0, |row| row.iter().sum())
}

const LOST: &str = "Ferrozyme: memory of an argument was freed, and a gradient that is not zero would be lost with it [FZ0705]";
const LOST_SEED: &str = "Ferrozyme: memory of an argument was freed, and its shadow is not zero: a seed belongs to memory that exists when the function returns [FZ0706]";
const UNCLEAR: &str = "Ferrozyme: memory of an argument was freed that may hold a float or, at other times, a pointer or integer, so a gradient may be lost [FZ0707]";

#[test]
fn replaced_memory_stops_the_program() {
    assert_stops("replaced_memory_stops_the_program", LOST, || {
        d_replace(&mut vec![3.0], &mut vec![0.0], 1.0);
    });
}

#[test]
fn seeds_of_replaced_memory_stop_the_program() {
    assert_stops(
        "seeds_of_replaced_memory_stop_the_program",
        LOST_SEED,
        || {
            d_replace(&mut vec![3.0], &mut vec![1.0], 0.0);
        },
    );
}

#[test]
fn elements_that_are_cut_off_stop_the_program() {
    assert_stops("elements_that_are_cut_off_stop_the_program", LOST, || {
        d_shrink(&mut vec![3.0, 2.0], &mut vec![0.0, 0.0], 1.0);
    });
}

#[test]
fn dropped_rows_stop_the_program() {
    assert_stops("dropped_rows_stop_the_program", LOST, || {
        d_pop(&mut vec![vec![3.0]], &mut vec![vec![0.0]], 1.0);
    });
}

#[test]
fn sums_ahead_of_the_release_are_no_seeds() {
    #[autodiff_reverse(d_sum, Duplicated, Active)]
    fn sum(v: &mut Vec<f64>) -> f64 {
        let sum: f64 = v.iter().map(|x| x * x).sum();
        *v = Vec::new();
        sum * sum
    }
    assert_stops("sums_ahead_of_the_release_are_no_seeds", LOST, || {
        d_sum(&mut vec![3.0], &mut vec![0.0], 1.0);
    });
}

#[test]
fn sums_ahead_of_growth_are_no_seeds() {
    #[autodiff_reverse(d_sum, Duplicated, Active)]
    fn sum(v: &mut Vec<f64>) -> f64 {
        let sum: f64 = v.iter().map(|x| x * x).sum();
        v.push(1.0);
        v[0] = v[0] * v[0];
        sum
    }
    let (mut v, mut dv) = (vec![3.0], vec![10.0]);
    d_sum(&mut v, &mut dv, 1.0);
    assert_eq!(dv, [66.0, 0.0]);
}

#[test]
fn released_enums_stop_the_program() {
    enum Entry {
        Here(f64),
        There(Box<f64>),
    }
    #[autodiff_reverse(d_entries, Duplicated, Active)]
    fn entries(v: &mut Vec<Entry>) -> f64 {
        let value = |entry: &Entry| match entry {
            Entry::Here(x) => x * x,
            Entry::There(x) => **x,
        };
        let sum = v.iter().map(value).sum();
        *v = Vec::new();
        sum
    }
    assert_stops("released_enums_stop_the_program", UNCLEAR, || {
        let mut entries = vec![Entry::Here(3.0), Entry::There(Box::new(2.0))];
        let mut shadow = vec![Entry::Here(0.0), Entry::There(Box::new(0.0))];
        d_entries(&mut entries, &mut shadow, 1.0);
    });
}

#[test]
fn memory_without_gradient_may_go() {
    let (mut v, mut dv) = (vec![3.0], vec![0.0]);
    d_replace(&mut v, &mut dv, 0.0);
    assert_eq!((v, dv), (vec![9.0], vec![0.0]));
}
