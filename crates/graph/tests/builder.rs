//! What the builder does with operands that do not fit, and with those of different shapes.

use ferrozyme_graph::interpret::Machine;
use ferrozyme_graph::{Graph, Payload, Reduction, Scalar, TensorType, UserFunction, verify};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;

/// The hook belongs to the whole process.
static HOOK: Mutex<()> = Mutex::new(());

/// The message of a panic, and the line of this file that it names.
fn panic_of(build: impl FnOnce()) -> (String, u32) {
    static PLACE: Mutex<Option<(String, u32)>> = Mutex::new(None);
    let _guard = HOOK.lock().unwrap();
    let before = take_hook();
    set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|place| (place.file().to_owned(), place.line()));
        *PLACE.lock().unwrap() = place;
    }));
    let outcome = catch_unwind(AssertUnwindSafe(build));
    set_hook(before);
    let payload = outcome.expect_err("it panics");
    let message = payload.downcast_ref::<String>().expect("with a message");
    let (file, line) = PLACE.lock().unwrap().take().expect("at a place");
    assert_eq!(file, file!());
    (message.clone(), line)
}

#[test]
fn an_error_names_both_shapes_and_the_line_of_the_caller() {
    let mut g = Graph::new();
    let a = g.feed("a", [2, 3]);
    let b = g.feed("b", [2, 4]);
    let mut line = 0;
    let (message, at) = panic_of(|| {
        line = line!() + 1;
        g.add(a, b);
    });
    assert_eq!(
        message,
        "`fadd`: the shapes do not fit: f32[2, 3] and f32[2, 4]"
    );
    assert_eq!(at, line);
    let (message, at) = panic_of(|| {
        line = line!() + 1;
        g.contract("ij,jk->ik", a, b);
    });
    assert!(message.contains("f32[2, 3] and f32[2, 4] cannot be contracted by (ab, bc -> ac)"));
    assert_eq!(at, line);
}

#[test]
fn an_update_has_the_type_of_its_parameter() {
    let mut g = Graph::new();
    let w = g.parameter("w", [3], 0.0);
    let x = g.feed("x", [4]);
    let (message, _) = panic_of(|| g.update(w, x));
    assert_eq!(
        message,
        "`update`: a parameter of type f32[3] cannot become a tensor of type f32[4]"
    );
    let (message, _) = panic_of(|| {
        g.parameter("w", [1], 0.0);
    });
    assert_eq!(message, "there is a parameter \"w\" already");
}

#[test]
fn a_tensor_stays_in_its_region() {
    let mut g = Graph::new();
    let mut inner = None;
    g.repeat(3, |g, step| inner = Some(g.add(step, step)));
    let inner = inner.expect("the body was built");
    let (message, _) = panic_of(|| {
        g.add(inner, inner);
    });
    assert!(message.contains("yield it from there"), "{message}");
}

#[test]
fn shapes_are_broadcast_as_numpy_does() {
    let mut g = Graph::new();
    let matrix = g.feed("matrix", [2, 3]);
    let row = g.feed("row", [3]);
    let column = g.feed("column", [2, 1]);
    let number = g.feed("number", []);
    for other in [row, column, number] {
        let sum = g.add(matrix, other);
        assert_eq!(g.ty(sum).to_string(), "f32[2, 3]");
    }
    let outer = g.mul(row, column);
    assert_eq!(g.ty(outer).to_string(), "f32[2, 3]");
    assert_eq!(verify(&g), Ok(()));
}

#[test]
fn the_verifier_finds_what_a_pass_broke() {
    let broken = |break_it: &dyn Fn(&mut Graph)| {
        let mut g = Graph::new();
        let x = g.feed("x", [2, 3]);
        let sum = g.sum(x, &[0]);
        g.receive("sum", &[sum]);
        assert_eq!(verify(&g), Ok(()));
        break_it(&mut g);
        verify(&g).expect_err("it is broken").message
    };
    let body = Graph::new().body();
    let reduce = |g: &Graph| g.regions[body].ops[1];
    let message = broken(&|g| g.regions[body].ops.swap(0, 1));
    assert_eq!(message, "an operand is not defined here");
    let message = broken(&|g| {
        let op = reduce(g);
        g.ops[op].payload = Payload::Reduce(Reduction::Sum, [1].into());
    });
    assert_eq!(message, "the results must have the types [f32[2]]");
    let message = broken(&|g| {
        let op = reduce(g);
        g.ops[op].payload = Payload::None;
    });
    assert!(message.contains("another payload"));
    let message = broken(&|g| {
        let op = reduce(g);
        g.regions[body].ops.push(op);
    });
    assert!(message.contains("stands in two places"));
}

#[test]
fn gradients_are_of_the_line_of_the_operation() {
    let mut g = Graph::new();
    let x = g.parameter_of("x", TensorType::new(Scalar::F64, [2]), 1.0);
    let value = g.read(x);
    let line = line!() + 1;
    let y = g.exp(value);
    let gradients = g.backward(y);
    let gradient = gradients.of_parameter(x).expect("it depends on it");
    let op = g.def_op(gradient).expect("it is computed");
    assert_eq!(g.ops[op].location.map(Location::line), Some(line));
    assert_eq!(gradients.of(value), Some(gradient));
}

/// A loop before a training loop is computed again in each of its steps, when parameters have changed.
#[test]
fn a_region_outside_of_the_loop_is_not_computed_again_with_other_parameters() {
    let build = |read_inside: bool| {
        let mut g = Graph::new();
        let ty = TensorType::new(Scalar::F64, [2]);
        let w = g.parameter_of("w", ty.clone(), 0.5);
        let start = g.constant(ty, 1.0);
        let count = g.constant(TensorType::scalar(ferrozyme_graph::INDEX), 3.0);
        let before = g.read(w);
        let carried = g.for_loop(count, &[start], |g, _, carried| {
            let value = if read_inside { g.read(w) } else { before };
            vec![g.mul(carried[0], value)]
        });
        let mut outcome = None;
        g.repeat(2, |g, _| {
            let seed = g.constant_like(carried[0], 1.0);
            outcome = Some(g.try_backward(&[(carried[0], seed)]));
            if let Some(Ok(gradients)) = &outcome {
                let gradient = gradients.of_parameter(w).expect("it depends on it");
                g.receive("gradient", &[gradient]);
                g.update(w, gradient);
            }
        });
        (g, outcome.expect("the body was built"))
    };
    let error = build(true).1.expect_err("it is refused").to_string();
    assert!(error.contains("@w is read in it"), "{error}");
    let (g, outcome) = build(false);
    assert!(outcome.is_ok());
    let mut machine = Machine::new(&g);
    machine.run().unwrap();
    // The derivative of w³ at the value that was read, in both steps.
    for (_, tensors) in machine.all_received() {
        assert_eq!(tensors[0].elements[..], [0.75, 0.75]);
    }
    assert_eq!(machine.all_received().len(), 2);
}

fn twice(x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        *y = 2.0 * x;
    }
}

#[test]
fn a_call_that_does_not_fit_names_the_function_and_the_types() {
    let function = UserFunction::new("twice", twice);
    let mut g = Graph::new();
    let x = g.feed_of("x", TensorType::new(Scalar::F64, [3]));
    let mut line = 0;
    let (message, at) = panic_of(|| {
        line = line!() + 1;
        let [_] = g.call(&function, &[x], [[3]]);
    });
    assert_eq!(
        message,
        "`call`: \"twice\" is fn(&[f32], &mut [f32]), but the operands are [f64[3]] and the results [f32[3]]"
    );
    assert_eq!(at, line);
    let (message, at) = panic_of(|| {
        line = line!() + 1;
        let [_, _] = g.call(&function, &[x], [[3], [3]]);
    });
    assert_eq!(
        message,
        "`call`: \"twice\" has 1 results, but 2 shapes are given"
    );
    assert_eq!(at, line);
}

#[test]
fn a_name_is_that_of_one_function() {
    let mut g = Graph::new();
    let x = g.feed("x", [3]);
    let [_] = g.call(&UserFunction::new("f", twice), &[x], [[3]]);
    // The same one again.
    let [_] = g.call(&UserFunction::new("f", twice), &[x], [[3]]);
    let other = UserFunction::new("f", |x: &[f32], y: &mut [f32]| y.copy_from_slice(x));
    let (message, _) = panic_of(|| {
        let [_] = g.call(&other, &[x], [[3]]);
    });
    assert_eq!(message, "`call`: another function is called \"f\"");
    // What is captured may differ.
    let scaled =
        |by: f32| UserFunction::new("scaled", move |x: &[f32], y: &mut [f32]| y[0] = by * x[0]);
    let scaled_by_two = scaled(2.0);
    let [_] = g.call(&scaled_by_two, &[x], [[1]]);
    let [_] = g.call(&scaled_by_two.clone(), &[x], [[1]]);
    let (message, _) = panic_of(|| {
        let [_] = g.call(&scaled(3.0), &[x], [[1]]);
    });
    assert_eq!(message, "`call`: another function is called \"scaled\"");
}

#[test]
fn a_function_without_a_derivative_is_refused_at_its_line() {
    let function = UserFunction::new("twice", twice);
    let mut g = Graph::new();
    let w = g.parameter("w", [3], 1.0);
    let x = g.read(w);
    let line = line!() + 1;
    let [y] = g.call(&function, &[x], [[3]]);
    let seed = g.constant_like(y, 1.0);
    let message = g.try_backward(&[(y, seed)]).unwrap_err().to_string();
    let expected = "cannot differentiate `call \"twice\"` (";
    assert!(message.starts_with(expected), "{message}");
    assert!(
        message.contains(&format!("builder.rs:{line}:"))
            && message.ends_with("give it one by `with_derivative`, or `detach` its operands"),
        "{message}"
    );
    // No gradient goes through what is detached.
    let still = g.detach(x);
    let [y] = g.call(&function, &[still], [[3]]);
    let gradients = g.backward(y);
    assert!(gradients.of_parameter(w).is_none());
}

#[test]
fn a_panic_of_a_function_is_a_fault_at_the_line_of_its_call() {
    let function = UserFunction::new("late", |x: &[f32], y: &mut [f32]| y[0] = x[7]);
    let mut g = Graph::new();
    let x = g.constant(TensorType::new(Scalar::F32, [3]), 1.0);
    let line = line!() + 1;
    let [y] = g.call(&function, &[x], [[3]]);
    g.receive("y", &[y]);
    let message = Machine::new(&g).run().unwrap_err().to_string();
    assert!(
        message.contains(&format!("builder.rs:{line}:")),
        "{message}"
    );
    assert!(
        message
            .ends_with("\"late\" panicked: index out of bounds: the len is 3 but the index is 7"),
        "{message}"
    );
}
