//! Types without `#[derive(Differentiable)]` as arguments: their shadows are checked and fitted by what debug information says of them.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The message of a derivative that stops.
#[track_caller]
fn message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it should stop");
    let text = payload.downcast_ref::<String>().cloned();
    text.expect("the message is a text")
}

#[derive(Clone, Debug, PartialEq)]
struct Layer {
    weights: Vec<Vec<f64>>,
    // Shadows need not have these.
    names: Vec<String>,
    enabled: bool,
    order: usize,
    activation: Activation,
    next: Option<Box<Layer>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Activation {
    Linear,
    Leaky(f64),
    Table { values: Vec<f64>, scale: f64 },
}

fn layer(activation: Activation, next: Option<Layer>) -> Layer {
    Layer {
        weights: vec![vec![1.0, 2.0], vec![3.0]],
        names: vec!["first".to_owned()],
        enabled: true,
        order: 3,
        activation,
        next: next.map(Box::new),
    }
}

fn zeroed(layer: &Layer) -> Layer {
    let zeros = |values: &Vec<f64>| vec![0.0; values.len()];
    Layer {
        weights: layer.weights.iter().map(zeros).collect(),
        names: Vec::new(),
        enabled: false,
        order: 0,
        activation: match &layer.activation {
            Activation::Linear => Activation::Linear,
            Activation::Leaky(_) => Activation::Leaky(0.0),
            Activation::Table { values, .. } => Activation::Table {
                values: zeros(values),
                scale: 0.0,
            },
        },
        next: layer.next.as_ref().map(|next| Box::new(zeroed(next))),
    }
}

#[autodiff_reverse(d_energy, Duplicated, Active)]
#[autodiff_forward(t_energy, Dual, Dual)]
fn energy(layer: &Layer) -> f64 {
    let own: f64 = layer.weights.iter().flatten().map(|w| w * w).sum();
    let factor = match &layer.activation {
        Activation::Linear => 1.0,
        Activation::Leaky(slope) => *slope,
        Activation::Table { values, scale } => values.iter().sum::<f64>() * scale,
    };
    own * factor + layer.next.as_ref().map_or(0.0, |next| energy(next))
}

fn network() -> Layer {
    let table = Activation::Table {
        values: vec![1.0, 2.0],
        scale: 0.5,
    };
    layer(
        Activation::Leaky(0.5),
        Some(layer(table, Some(layer(Activation::Linear, None)))),
    )
}

#[test]
fn shadows_of_the_same_shape() {
    let network = network();
    let mut shadow = zeroed(&network);
    assert_eq!(
        d_energy(&network, &mut shadow, 1.0),
        14.0 * (0.5 + 1.5 + 1.0)
    );
    assert_eq!(shadow.weights, [vec![1.0, 2.0], vec![3.0]]);
    assert_eq!(shadow.activation, Activation::Leaky(14.0));
    let next = shadow.next.expect("it has the shape of the value");
    assert_eq!(
        next.activation,
        Activation::Table {
            values: vec![7.0, 7.0],
            scale: 42.0
        }
    );
}

const START: &str =
    "the shadow of argument `layer` of `without_the_derive::energy` has another shape: ";

#[test]
fn lengths_and_variants_inside_of_other_types() {
    let network = network();
    let mut shadow = zeroed(&network);
    shadow.weights[1].clear();
    let lengths =
        format!("{START}`layer.weights[1]` has length 1, but `dlayer_0.weights[1]` has length 0");
    assert_eq!(
        message(|| _ = d_energy(&network, &mut shadow, 1.0)),
        lengths
    );
    let forward = message(|| _ = t_energy(&network, &shadow));
    assert_eq!(forward, lengths.replace("dlayer", "blayer"));

    let mut shadow = zeroed(&network);
    let next = shadow.next.as_mut().expect("it has the shape of the value");
    next.activation = Activation::Leaky(0.0);
    assert_eq!(
        message(|| _ = d_energy(&network, &mut shadow, 1.0)),
        format!(
            "{START}`layer.next.0.activation` has variant `Table`, but `dlayer_0.next.0.activation` has variant `Leaky`"
        )
    );
    let mut shadow = zeroed(&network);
    shadow.next = None;
    assert_eq!(
        message(|| _ = d_energy(&network, &mut shadow, 1.0)),
        format!("{START}`layer.next` has variant `Some`, but `dlayer_0.next` has variant `None`")
    );
}

#[autodiff_reverse(d_generic, Duplicated, Active)]
fn generic<T: AsRef<[f64]>>(values: &T) -> f64 {
    values.as_ref().iter().map(|x| x * x).sum()
}

#[test]
fn types_that_generic_functions_do_not_know() {
    struct Samples(Vec<f64>);
    impl AsRef<[f64]> for Samples {
        fn as_ref(&self) -> &[f64] {
            &self.0
        }
    }
    let mut shadow = Samples(vec![0.0; 2]);
    d_generic(&Samples(vec![1.0, 2.0]), &mut shadow, 1.0);
    assert_eq!(shadow.0, [2.0, 4.0]);
    let stopped = message(|| _ = d_generic(&Samples(vec![1.0; 3]), &mut shadow, 1.0));
    assert!(stopped.ends_with("`values.0` has length 3, but `dvalues_0.0` has length 2"));
}

struct Shared<'a> {
    cell: Rc<RefCell<Vec<f64>>>,
    slice: &'a [f64],
    boxed: Box<[f64]>,
    queue: VecDeque<f64>,
    rows: [Vec<f64>; 2],
}

#[autodiff_reverse(d_shared, Duplicated, Active)]
fn shared(value: &Shared) -> f64 {
    let cells: f64 = value.cell.borrow().iter().sum();
    cells * value.slice[0] + value.boxed[0] * value.queue[0] + value.rows[1][0]
}

#[test]
fn vectors_behind_all_kinds_of_pointers() {
    let make = |[cell, slice, boxed, queue, row]: [usize; 5]| Shared {
        cell: Rc::new(RefCell::new(vec![1.0; cell])),
        slice: vec![2.0; slice].leak(),
        boxed: vec![1.0; boxed].into(),
        queue: vec![1.0; queue].into(),
        rows: [vec![], vec![1.0; row]],
    };
    assert_eq!(d_shared(&make([2; 5]), &mut make([2; 5]), 1.0), 6.0);
    let fields = ["cell", "slice", "boxed", "queue", "rows[1]"];
    for (number, field) in fields.into_iter().enumerate() {
        let mut lengths = [2; 5];
        lengths[number] = 1;
        let stopped = message(|| _ = d_shared(&make([2; 5]), &mut make(lengths), 1.0));
        let place = stopped
            .rsplit_once(", but `")
            .map_or("", |(_, place)| place);
        assert!(place.starts_with(&format!("dvalue_0.{field}")), "{stopped}");
        assert!(place.ends_with("has length 1"), "{stopped}");
    }
}

struct Trace {
    values: Vec<f64>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Started,
    One(f64),
    Two(f64, f64),
}

/// Elements beyond the shadow's capacity, and unused bytes.
#[test]
fn values_change() {
    #[autodiff_reverse(d_follow, Duplicated, Active, Active)]
    fn follow(trace: &mut Trace, x: f64) -> f64 {
        trace.values.push(x * x);
        trace.state = match trace.state {
            State::Started => State::One(x),
            State::One(y) => State::Two(y, x * y),
            two => two,
        };
        trace.values.iter().sum()
    }
    for start in [State::Started, State::One(3.0)] {
        let mut trace = Trace {
            values: Vec::with_capacity(100),
            state: start,
        };
        trace.values.extend([1.0, 2.0]);
        // The shadow has been another variant before, and its vector had other elements.
        let mut shadow = Trace {
            values: vec![0.0, 0.0, 7.0],
            state: State::Two(5.0, 6.0),
        };
        shadow.values.pop();
        shadow.values.shrink_to_fit();
        match start {
            State::Started => shadow.state = State::Started,
            _ => shadow.state = State::One(0.0),
        }
        let (sum, dx) = d_follow(&mut trace, &mut shadow, 3.0, 1.0);
        assert_eq!((sum, dx), (12.0, 6.0));
        assert_eq!(shadow.values[..2], [1.0, 1.0]);
    }
}

#[derive(Clone)]
struct Track {
    weight: f64,
    sample: Box<f64>,
}

#[test]
fn elements_change_places() {
    #[autodiff_reverse(d_sorted, Duplicated, Active)]
    fn sorted(tracks: &mut Vec<Track>) -> f64 {
        if tracks[0].weight > tracks[1].weight {
            tracks.swap(0, 1);
        }
        tracks[0].weight * *tracks[0].sample
    }
    let track = |weight| Track {
        weight,
        sample: Box::new(weight),
    };
    let stopped = message(|| {
        let mut tracks = vec![track(2.0), track(1.0)];
        d_sorted(&mut tracks, &mut vec![track(0.0); 2], 1.0);
    });
    assert!(stopped.contains("have changed places"), "{stopped}");
    let (mut tracks, mut shadow) = (vec![track(1.0), track(2.0)], vec![track(0.0); 2]);
    d_sorted(&mut tracks, &mut shadow, 1.0);
    assert_eq!((shadow[0].weight, *shadow[0].sample), (1.0, 1.0));
}

/// Gradients would be added to the value.
#[test]
fn shadows_share_memory() {
    struct Model<'a> {
        slope: f64,
        data: &'a [f64],
        state: Option<Rc<RefCell<f64>>>,
    }
    #[autodiff_reverse(d_loss, Duplicated, Active)]
    #[autodiff_forward(t_loss, Dual, Dual)]
    fn loss(model: &Model) -> f64 {
        let state = model.state.as_ref().map_or(1.0, |state| *state.borrow());
        model.data.iter().map(|x| x * model.slope * state).sum()
    }
    let (data, other) = ([1.0, 2.0], [0.0; 2]);
    let state = Rc::new(RefCell::new(2.0));
    let make = |slope, data, state: Option<&Rc<_>>| Model {
        slope,
        data,
        state: state.cloned(),
    };
    let model = make(3.0, &data[..], Some(&state));
    let start = "argument `model` of `without_the_derive::loss` and its shadow share memory: ";
    let zero = Rc::new(RefCell::new(0.0));
    let stopped = message(|| _ = d_loss(&model, &mut make(0.0, &data[..], Some(&zero)), 1.0));
    assert!(
        stopped.starts_with(&format!(
            "{start}`model.data` and `dmodel_0.data` are the same"
        )),
        "{stopped}"
    );
    let stopped = message(|| _ = d_loss(&model, &mut make(0.0, &other[..], Some(&state)), 1.0));
    assert!(
        stopped.starts_with(&format!("{start}`model.state.0` and")),
        "{stopped}"
    );
    // A value is also a direction.
    assert_eq!(t_loss(&model, &model), (18.0, 3.0 * 18.0));
}

#[test]
fn slices_and_what_ends_in_them() {
    struct Ends<T: ?Sized> {
        rows: Vec<f64>,
        tail: T,
    }
    #[autodiff_reverse(d_ends, Duplicated, Active)]
    fn ends(value: &Ends<[f64]>) -> f64 {
        value.rows.iter().chain(&value.tail).map(|x| x * x).sum()
    }
    #[autodiff_reverse(d_all, Duplicated, Active)]
    fn all(states: &[Track]) -> f64 {
        states.iter().map(|one| one.weight * *one.sample).sum()
    }
    let make = |x: f64| Ends {
        rows: vec![x; 2],
        tail: [x; 7],
    };
    let (value, mut shadow) = (make(3.0), make(0.0));
    d_ends(&value, &mut shadow, 1.0);
    assert_eq!((shadow.rows[1], shadow.tail[6]), (6.0, 6.0));

    let track = |weight| Track {
        weight,
        sample: Box::new(2.0 * weight),
    };
    let mut shadow = vec![track(0.0); 2];
    d_all(&[track(1.0), track(3.0)], &mut shadow, 1.0);
    assert_eq!((shadow[1].weight, *shadow[1].sample), (6.0, 3.0));
    d_all(&[], &mut [], 1.0);
}
