//! Arguments that a function rearranges, where the parts of a gradient would end in different places, and shadows that are not of the argument's type or variant:
//! the program stops instead.

use ferrozyme::{Differentiable, autodiff_reverse, shadow_of};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, Differentiable)]
struct Track {
    weight: f64,
    name: String,
    samples: Vec<f64>,
}

fn tracks() -> Vec<Track> {
    let track = |weight: f64, samples: &[f64]| Track {
        weight,
        name: weight.to_string(),
        samples: samples.to_vec(),
    };
    vec![
        track(3.0, &[1.0, 2.0]),
        track(1.0, &[4.0]),
        track(2.0, &[5.0, 6.0, 7.0]),
    ]
}

fn energy(tracks: &[Track]) -> f64 {
    let of = |(index, track): (usize, &Track)| {
        (index + 1) as f64 * track.weight * track.samples.iter().map(|x| x * x).sum::<f64>()
    };
    tracks.iter().enumerate().map(of).sum()
}

#[autodiff_reverse(d_sorted, Duplicated, Active)]
fn sorted(tracks: &mut Vec<Track>) -> f64 {
    tracks.sort_by(|a, b| a.weight.total_cmp(&b.weight));
    energy(tracks)
}

#[test]
#[should_panic(
    expected = "argument `tracks` of `changed_places::sorted`: elements that hold floats beside memory of their own have changed places"
)]
fn elements_are_sorted() {
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_sorted(&mut tracks, &mut shadow, 1.0);
}

#[autodiff_reverse(d_swapped, Duplicated, Active)]
fn swapped(tracks: &mut [Track]) -> f64 {
    tracks.swap(0, 2);
    energy(tracks)
}

#[test]
#[should_panic(expected = "have changed places")]
fn elements_are_swapped() {
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_swapped(&mut tracks, &mut shadow, 1.0);
}

#[autodiff_reverse(d_inserted, Duplicated, Active)]
fn inserted(tracks: &mut Vec<Track>) -> f64 {
    let first = tracks[0].clone();
    tracks.insert(0, first);
    energy(tracks)
}

#[test]
#[should_panic(expected = "have changed places")]
fn elements_make_room_for_another() {
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_inserted(&mut tracks, &mut shadow, 1.0);
}

/// Sorted in a copy, or already in order, all is well.
#[test]
fn elements_stay_where_they_are() {
    #[autodiff_reverse(d_in_a_copy, Duplicated, Active)]
    fn in_a_copy(tracks: &mut Vec<Track>) -> f64 {
        let mut copy = tracks.clone();
        copy.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        energy(&copy)
    }
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_in_a_copy(&mut tracks, &mut shadow, 1.0);
    assert_eq!(shadow[0].weight, 3.0 * 5.0);
    assert_eq!(shadow[1].samples, [2.0 * 4.0]);

    tracks.sort_by(|a, b| a.weight.total_cmp(&b.weight));
    let mut shadow = shadow_of(&tracks);
    d_sorted(&mut tracks, &mut shadow, 1.0);
    assert_eq!(shadow[2].weight, 3.0 * 5.0);
    assert_eq!(shadow[0].samples, [2.0 * 4.0]);
}

/// Elements are taken out and put back, and grow; their neighbours are not touched.
#[test]
fn elements_come_back() {
    #[autodiff_reverse(d_extended, Duplicated, Active)]
    fn extended(tracks: &mut Vec<Track>) -> f64 {
        for track in tracks.iter_mut() {
            let mut samples = std::mem::take(&mut track.samples);
            let first = samples[0];
            samples.push(first * first);
            track.samples = samples;
        }
        energy(tracks)
    }
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_extended(&mut tracks, &mut shadow, 1.0);
    assert_eq!(shadow[1].weight, 2.0 * (16.0 + 256.0));
    assert_eq!(shadow[1].samples[0], 2.0 * (8.0 + 4.0 * 64.0));
}

/// All of their memory is reallocated.
#[test]
#[should_panic(expected = "have changed places")]
fn elements_are_swapped_and_grow() {
    #[autodiff_reverse(d_grown, Duplicated, Active)]
    fn grown(tracks: &mut Vec<Track>) -> f64 {
        tracks.swap(0, 2);
        for track in tracks.iter_mut() {
            for _ in 0..3 {
                let first = track.samples[0];
                track.samples.push(first * first);
                track.samples.shrink_to_fit();
            }
        }
        energy(tracks)
    }
    let mut tracks = tracks();
    let mut shadow = shadow_of(&tracks);
    d_grown(&mut tracks, &mut shadow, 1.0);
}

/// Floats beside memory that has none have one gradient each, which lies where they were.
#[test]
fn names_move_with_numbers() {
    #[derive(Clone, Differentiable)]
    struct Named {
        value: f64,
        name: String,
        tags: Vec<u32>,
    }
    #[autodiff_reverse(d_weighted, Duplicated, Active)]
    fn weighted(all: &mut Vec<Named>) -> f64 {
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        let of = |(index, named): (usize, &Named)| {
            named.value * (index + named.tags.len() + named.name.len()) as f64
        };
        all.iter().enumerate().map(of).sum()
    }
    let named = |value: f64, name: &str| Named {
        value,
        name: name.into(),
        tags: vec![1],
    };
    let mut all = vec![named(3.0, "abc"), named(1.0, "a"), named(2.0, "ab")];
    let mut shadow = shadow_of(&all);
    d_weighted(&mut all, &mut shadow, 1.0);
    let gradient: Vec<f64> = shadow.iter().map(|named| named.value).collect();
    assert_eq!(gradient, [2.0 + 1.0 + 3.0, 1.0 + 1.0, 1.0 + 1.0 + 2.0]);
}

/// Rows, which hold no floats themselves, go where they go.
#[test]
fn rows_change_places() {
    #[autodiff_reverse(d_rows, Duplicated, Active)]
    fn rows(rows: &mut Vec<Vec<f64>>) -> f64 {
        rows.swap(0, 1);
        rows[0][0] * 3.0 + rows[1][0]
    }
    let mut matrix = vec![vec![1.0], vec![2.0]];
    let mut shadow = shadow_of(&matrix);
    d_rows(&mut matrix, &mut shadow, 1.0);
    assert_eq!(
        (matrix, shadow),
        (vec![vec![2.0], vec![1.0]], vec![vec![3.0], vec![1.0]])
    );
}

#[autodiff_reverse(d_queue, Duplicated, Active)]
fn queue(q: &mut VecDeque<f64>) -> f64 {
    q.push_back(1.0);
    q[0] * q[1] + q[2]
}

fn wrapped() -> VecDeque<f64> {
    let mut q = VecDeque::with_capacity(4);
    q.extend([0.0, 0.0, 3.0, 4.0]);
    q.drain(..2);
    q.extend([5.0, 6.0]);
    q
}

#[test]
#[should_panic(expected = "a `VecDeque` has grown while its elements wrapped around")]
fn queues_wrap_and_grow() {
    let mut q = wrapped();
    let mut shadow = shadow_of(&q);
    d_queue(&mut q, &mut shadow, 1.0);
}

#[test]
fn queues_with_room_wrap() {
    let mut q = wrapped();
    q.pop_back();
    let mut shadow = shadow_of(&q);
    d_queue(&mut q, &mut shadow, 1.0);
    assert_eq!(shadow, [4.0, 3.0, 1.0, 0.0]);
}

/// The unused bytes of an enum are not a seed, also in a cell.
#[test]
fn variants_change_in_cells() {
    #[autodiff_reverse(d_remember, Duplicated, Active, Active)]
    fn remember(last: &mut Cell<Option<f64>>, x: f64) -> f64 {
        last.set(Some(x * x));
        x
    }
    #[autodiff_reverse(d_share, Duplicated, Active, Active)]
    fn share(last: &mut Rc<RefCell<Option<f64>>>, x: f64) -> f64 {
        *last.borrow_mut() = Some(x * x);
        x
    }
    let leftover = || {
        let mut shadow = Some(7.0);
        // Writes only what tells the variant.
        shadow.take();
        shadow
    };
    let mut last = Cell::new(None);
    let mut shadow = Cell::new(leftover());
    assert_eq!(d_remember(&mut last, &mut shadow, 3.0, 1.0).1, 1.0);
    let mut last = Rc::new(RefCell::new(None));
    let mut shadow = Rc::new(RefCell::new(Some(7.0)));
    shadow.borrow_mut().take();
    assert_eq!(d_share(&mut last, &mut shadow, 3.0, 1.0).1, 1.0);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Plain {
    Nothing,
    Number(f64),
}

#[autodiff_reverse(d_plain, Duplicated, Active, Active)]
fn plain(state: &mut Plain, x: f64) -> f64 {
    if x > 0.0 {
        *state = Plain::Number(x * x);
    }
    x
}

/// Unused bytes are not a seed.
#[test]
fn variants_of_enums_without_the_derive_change() {
    let mut shadow = Plain::Number(5.0);
    assert_eq!(shadow, Plain::Number(5.0));
    shadow = Plain::Nothing;
    let mut state = Plain::Nothing;
    assert_eq!(d_plain(&mut state, &mut shadow, 3.0, 1.0), (3.0, 1.0));
    assert_eq!(state, Plain::Number(9.0));
}

#[test]
#[should_panic(
    expected = "has another shape: `state` has variant `Number`, but `dstate_0` has variant `Nothing`"
)]
fn shadows_of_enums_without_the_derive_are_of_another_variant() {
    d_named(&mut Plain::Number(1.0), &mut Plain::Nothing, 3.0, 1.0);
}

#[autodiff_reverse(d_named, Duplicated, Active, Active)]
fn named(state: &mut Plain, x: f64) -> f64 {
    if let Plain::Number(number) = state {
        *number *= x;
    }
    x
}

#[test]
fn variants_of_enums_without_the_derive_stay() {
    let (mut state, mut shadow) = (Plain::Number(2.0), Plain::Number(1.0));
    assert_eq!(d_named(&mut state, &mut shadow, 3.0, 1.0), (3.0, 1.0 + 2.0));
    assert_eq!((state, shadow), (Plain::Number(6.0), Plain::Number(3.0)));
}

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);

struct Rectangle(f64, f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Rectangle {
    fn area(&self) -> f64 {
        self.0 * self.1
    }
}

#[autodiff_reverse(d_area, Duplicated, Active)]
fn area(shapes: &[Box<dyn Shape>]) -> f64 {
    shapes.iter().map(|shape| shape.area()).sum()
}

#[test]
fn shapes_have_shadows() {
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(3.0)), Box::new(Rectangle(2.0, 5.0))];
    let mut shadow: [Box<dyn Shape>; 2] = [Box::new(Square(0.0)), Box::new(Rectangle(1.0, 0.0))];
    d_area(&shapes, &mut shadow, 1.0);
    assert_eq!(shadow[0].area(), 36.0);
    assert_eq!(shadow[1].area(), 6.0 * 2.0);
}

#[test]
#[should_panic(expected = "a trait object, but")]
fn shapes_have_shadows_of_another_type() {
    let shapes: [Box<dyn Shape>; 1] = [Box::new(Rectangle(2.0, 5.0))];
    let mut shadow: [Box<dyn Shape>; 1] = [Box::new(Square(0.0))];
    d_area(&shapes, &mut shadow, 1.0);
}
