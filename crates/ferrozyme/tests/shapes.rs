//! Shadows whose shape is not that of what they shadow: panics that say which, where, and why, at the caller's place.

#![cfg(ferrozyme)]

use ferrozyme::{Differentiable, autodiff_forward, autodiff_reverse, shadow_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// The message of a panic, and the line it names.
fn panic_of(f: impl FnOnce()) -> (String, u32) {
    let line = Arc::new(Mutex::new(0));
    let seen = line.clone();
    // Tests run in threads of one process, and the hook is of the process: other panics must not be lost.
    static HOOK: Mutex<()> = Mutex::new(());
    let _guard = HOOK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        *seen.lock().expect("nobody panics with it") =
            info.location().map_or(0, |place| place.line());
    }));
    let result = catch_unwind(AssertUnwindSafe(f));
    std::panic::set_hook(previous);
    let payload = result.expect_err("it should panic");
    let message = payload.downcast_ref::<String>().cloned();
    let line = *line.lock().expect("nobody panics with it");
    (message.expect("the message is a text"), line)
}

#[autodiff_reverse(d_sum, Duplicated, Active)]
#[autodiff_forward(t_sum, 3, Dualv, Dual)]
fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[test]
fn slices_of_another_length() {
    let expected = line!() + 1;
    let (message, line) = panic_of(|| _ = d_sum(&[1.0, 2.0, 3.0], &mut [0.0; 2], 1.0));
    assert_eq!(
        message,
        "the shadow of argument `values` of `shapes::sum` has another shape: \
         `values` has length 3, but `dvalues_0` has length 2"
    );
    assert_eq!(line, expected);
}

#[test]
fn lanes_of_another_length() {
    let (message, _) = panic_of(|| _ = t_sum(&[1.0, 2.0], &[0.0; 4]));
    assert_eq!(
        message,
        "the shadow of argument `values` of `shapes::sum` has another shape: `values` has length 2, \
         so with width 3 `bvalues_0` must have 3 times that length, but has length 4"
    );
}

#[derive(Differentiable, Clone)]
struct Network {
    layers: Vec<Layer>,
    offsets: Vec<Vec<f64>>,
    #[differentiable(inactive)]
    name: String,
}

#[derive(Differentiable, Clone)]
enum Layer {
    Dense { weights: Vec<f64> },
    Scale(Vec<f64>),
}

#[autodiff_reverse(d_energy, Duplicated, Active)]
fn energy(network: &Network) -> f64 {
    let energy = |layer: &Layer| match layer {
        Layer::Dense { weights } => weights.iter().map(|w| w * w).sum(),
        Layer::Scale(factors) => factors[0],
    };
    let offsets = network.offsets.iter().flatten().sum::<f64>();
    network.layers.iter().map(energy).sum::<f64>() + offsets
}

fn network() -> Network {
    let weights = vec![1.0, 2.0];
    Network {
        layers: vec![Layer::Scale(vec![2.0]), Layer::Dense { weights }],
        offsets: vec![vec![1.0], vec![2.0, 3.0]],
        name: "test".to_owned(),
    }
}

#[test]
fn the_right_shape() {
    let network = network();
    let mut shadow = shadow_of(&network);
    assert_eq!(d_energy(&network, &mut shadow, 1.0), 13.0);
    assert_eq!(shadow.name, "test");
    assert_eq!(shadow.offsets, [vec![1.0], vec![1.0, 1.0]]);
    match &shadow.layers[..] {
        [Layer::Scale(factors), Layer::Dense { weights }] => {
            assert_eq!(*factors, [1.0]);
            assert_eq!(*weights, [2.0, 4.0]);
        }
        _ => panic!("another shape"),
    }
}

#[test]
fn vectors_inside_of_other_types() {
    let network = network();
    let mut shadow = shadow_of(&network);
    if let Layer::Dense { weights } = &mut shadow.layers[1] {
        weights.pop();
    }
    let (message, _) = panic_of(|| _ = d_energy(&network, &mut shadow, 1.0));
    assert_eq!(
        message,
        "the shadow of argument `network` of `shapes::energy` has another shape: \
         `network.layers[1].weights` has length 2, but `dnetwork_0.layers[1].weights` has length 1"
    );
    shadow.offsets[1].clear();
    shadow.layers = shadow_of(&network).layers;
    let (message, _) = panic_of(|| _ = d_energy(&network, &mut shadow, 1.0));
    assert_eq!(
        message,
        "the shadow of argument `network` of `shapes::energy` has another shape: \
         `network.offsets[1]` has length 2, but `dnetwork_0.offsets[1]` has length 0"
    );
    shadow.layers.swap(0, 1);
    let (message, _) = panic_of(|| _ = d_energy(&network, &mut shadow, 1.0));
    assert_eq!(
        message,
        "the shadow of argument `network` of `shapes::energy` has another shape: \
         `network.layers[0]` has variant `Scale`, but `dnetwork_0.layers[0]` has variant `Dense`"
    );
}

#[autodiff_reverse(d_generic, Duplicated, Active)]
fn generic<T: Copy + Into<f64>>(values: &[T]) -> f64 {
    values.iter().map(|&value| value.into()).sum()
}

#[test]
fn slices_of_elements_that_nothing_is_known_of() {
    let (message, _) = panic_of(|| _ = d_generic(&[1.0], &mut [0.0; 2], 1.0));
    assert!(
        message.ends_with("`values` has length 1, but `dvalues_0` has length 2"),
        "{message}"
    );
}

#[autodiff_reverse(d_first, Duplicated, Active)]
fn first(values: &[f64]) -> Option<f64> {
    values.first().map(|value| value * value)
}

#[test]
fn seeds_of_another_variant() {
    let mut gradient = [0.0; 2];
    assert_eq!(d_first(&[3.0, 1.0], &mut gradient, Some(0.5)), Some(9.0));
    assert_eq!(gradient, [3.0, 0.0]);
    let expected = line!() + 1;
    let (message, line) = panic_of(|| _ = d_first(&[3.0, 1.0], &mut [0.0; 2], None));
    assert_eq!(
        message,
        "the seed of the result of `shapes::first` has another shape: the result is Some, but the seed is None; the gradients are invalid"
    );
    assert_eq!(line, expected);
}

#[autodiff_reverse(d_product, Duplicated, Active)]
fn product(values: &Result<Vec<f64>, String>) -> f64 {
    values
        .as_ref()
        .map_or(2.0, |values| values.iter().product())
}

#[test]
fn results_of_another_variant() {
    let values = Ok(vec![2.0, 3.0]);
    let mut gradient = shadow_of(&values);
    assert_eq!(d_product(&values, &mut gradient, 1.0), 6.0);
    assert_eq!(gradient, Ok(vec![3.0, 2.0]));
    let (message, _) = panic_of(|| _ = d_product(&values, &mut Err("none".to_owned()), 1.0));
    assert_eq!(
        message,
        "the shadow of argument `values` of `shapes::product` has another shape: `values` has Ok, but `dvalues_0` has Err"
    );
}
