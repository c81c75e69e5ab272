//! Rust functions as operations of a graph.
//!
//! A [`UserFunction`] is a function of slices with a name: inputs, then results, which are zeros when it is called. Its derivative is what `#[autodiff_reverse]` makes of it: each `Duplicated` slice is followed by its shadow.
//!
//! ```
//! use ferrozyme_graph::{Graph, Scalar, TensorType, UserFunction, interpret::{Array, Machine}};
//!
//! fn decay(x: &[f64], rate: &[f64], y: &mut [f64]) {
//!     for (x, y) in x.iter().zip(y) {
//!         *y = x * (-rate[0]).exp();
//!     }
//! }
//!
//! // `#[autodiff_reverse(d_decay, Duplicated, Duplicated, Duplicated)]` above the function makes this one.
//! fn d_decay(x: &[f64], dx: &mut [f64], rate: &[f64], drate: &mut [f64], y: &mut [f64], dy: &mut [f64]) {
//!     decay(x, rate, y);
//!     for i in 0..x.len() {
//!         dx[i] += dy[i] * (-rate[0]).exp();
//!         drate[0] -= dy[i] * y[i];
//!         dy[i] = 0.0;
//!     }
//! }
//!
//! let decay = UserFunction::new("decay", decay).with_derivative(d_decay);
//! let mut g = Graph::new();
//! let x = g.constant(TensorType::new(Scalar::F64, [2]), vec![1.0, 2.0]);
//! let rate = g.parameter_of("rate", TensorType::new(Scalar::F64, [1]), 0.0);
//! let value = g.read(rate);
//! let [y] = g.call(&decay, &[x, value], [[2]]);
//! let gradients = g.backward(y);
//! g.receive("gradient", &[gradients.of_parameter(rate).unwrap()]);
//! let mut machine = Machine::new(&g);
//! machine.run()?;
//! assert_eq!(machine.received("gradient").unwrap(), [Array::f64s([1], &[-3.0])]);
//! # Ok::<(), ferrozyme_graph::interpret::Fault>(())
//! ```
//!
//! *Assumes* that a function's results depend on nothing but its inputs: it may be called again for a derivative, or not at all where nobody uses its results.
//! A panic in it ends the run with its message.

mod signature;

pub use signature::{Derivative, Number, Primal};

use crate::lower::Call;
use crate::types::TensorType;
use ferrozyme_ir::Scalar;
use std::any::{Any, TypeId};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The elements of a tensor that a function reads.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after their elements")]
pub enum Slice<'s> {
    F32(&'s [f32]),
    F64(&'s [f64]),
    I32(&'s [i32]),
}

/// The elements of a tensor that a function writes.
#[derive(Debug)]
#[allow(missing_docs, reason = "named after their elements")]
pub enum SliceMut<'s> {
    F32(&'s mut [f32]),
    F64(&'s mut [f64]),
    I32(&'s mut [i32]),
}

/// A function of any slices: inputs and results.
pub(crate) type Body = dyn Fn(&[Slice<'_>], &mut [SliceMut<'_>]) + Send + Sync;

/// A function, and how it is told from others.
#[derive(Clone)]
pub struct Routine {
    /// The type of a function that captures nothing, which no other one has.
    identity: Option<TypeId>,
    body: Arc<Body>,
}

impl Routine {
    /// Of a function of type `F`.
    pub(crate) fn of<F: 'static>(
        body: impl Fn(&[Slice<'_>], &mut [SliceMut<'_>]) + Send + Sync + 'static,
    ) -> Routine {
        Routine {
            identity: (size_of::<F>() == 0).then(TypeId::of::<F>),
            body: Arc::new(body),
        }
    }

    fn is(&self, other: &Routine) -> bool {
        let same_type = self.identity.is_some() && self.identity == other.identity;
        same_type || Arc::ptr_eq(&self.body, &other.body)
    }
}

/// A Rust function with a name, and with its derivative if it has one.
#[derive(Clone)]
pub struct UserFunction {
    name: Box<str>,
    inputs: Vec<Scalar>,
    results: Vec<Scalar>,
    primal: Routine,
    derivative: Option<Reverse>,
}

/// The derivative of a function.
#[derive(Clone)]
struct Reverse {
    /// For each input, whether it has an adjoint.
    active: Vec<bool>,
    /// From the inputs and the adjoints of the results the adjoints of the inputs that are floats.
    routine: Routine,
}

impl UserFunction {
    /// Of a function `fn(&[A], …, &mut [R], …)`, where each element is `f32` or `f64`, and of inputs also `i32`. It has no derivative.
    pub fn new<S, F: Primal<S>>(name: &str, function: F) -> UserFunction {
        UserFunction {
            name: name.into(),
            inputs: F::inputs(),
            results: F::results(),
            primal: function.into_routine(),
            derivative: None,
        }
    }

    /// With its derivative, as `#[autodiff_reverse]` makes it: a slice that is `Duplicated` is followed by its shadow, and a `Const` input is not. The results are `Duplicated`.
    ///
    /// # Panics
    /// If it is the derivative of a function with other elements.
    #[track_caller]
    #[must_use]
    pub fn with_derivative<S, D: Derivative<S>>(self, derivative: D) -> UserFunction {
        let own = (D::inputs(), D::results());
        assert!(
            own.0 == self.inputs && own.1 == self.results,
            "the derivative of \"{}\", which is {}, is that of a function {}",
            self.name,
            signature_of(&self.inputs, &self.results),
            signature_of(&own.0, &own.1),
        );
        UserFunction {
            derivative: Some(Reverse {
                active: D::active(),
                routine: derivative.into_routine(),
            }),
            ..self
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The elements of its inputs.
    pub fn inputs(&self) -> &[Scalar] {
        &self.inputs
    }

    /// The elements of its results.
    pub fn results(&self) -> &[Scalar] {
        &self.results
    }

    /// For each input, whether its derivative gives an adjoint of it; none if there is no derivative.
    pub fn active(&self) -> Option<&[bool]> {
        Some(&self.derivative.as_ref()?.active)
    }

    /// Whether both are the same function, not only of the same name.
    pub(crate) fn is(&self, other: &UserFunction) -> bool {
        let derivatives_are = match (&self.derivative, &other.derivative) {
            (Some(own), Some(other)) => own.routine.is(&other.routine),
            (None, None) => true,
            _ => false,
        };
        self.name == other.name && self.primal.is(&other.primal) && derivatives_are
    }

    /// Calls it, or its derivative (`call_vjp`). The results are set to zeros first. The error is the message of a panic, or that there is no derivative.
    pub fn call(
        &self,
        derivative: bool,
        inputs: &[Slice<'_>],
        results: &mut [SliceMut<'_>],
    ) -> Result<(), String> {
        for result in results.iter_mut() {
            result.clear();
        }
        let body = match (&self.derivative, derivative) {
            (_, false) => &self.primal.body,
            (Some(derivative), true) => &derivative.routine.body,
            (None, true) => return Err(format!("\"{}\" has no derivative", self.name)),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(inputs, results)));
        outcome.map_err(|panic| {
            let of = if derivative { "the derivative of " } else { "" };
            format!("{of}\"{}\" panicked: {}", self.name, message_of(&*panic))
        })
    }

    /// Why it cannot be what a call of a compiled graph names, if it cannot.
    pub fn check_call(&self, call: &Call) -> Result<(), String> {
        let all: Vec<&TensorType> = call.operands.iter().collect();
        if !call.derivative {
            return self.check(&all, &call.results);
        }
        let (inputs, adjoints) = all.split_at(self.inputs.len().min(all.len()));
        let adjoints: Vec<TensorType> = adjoints.iter().map(|&ty| ty.clone()).collect();
        self.check(inputs, &adjoints)?;
        match self.active() {
            Some(_) => Ok(()),
            None => Err(format!("\"{}\" has no derivative", self.name)),
        }
    }

    /// Why it cannot be called with these operands for these results, if it cannot.
    pub(crate) fn check(
        &self,
        operands: &[&TensorType],
        results: &[TensorType],
    ) -> Result<(), String> {
        let inputs: Vec<Scalar> = operands.iter().map(|ty| ty.element).collect();
        let made: Vec<Scalar> = results.iter().map(|ty| ty.element).collect();
        match inputs == self.inputs && made == self.results {
            true => Ok(()),
            false => Err(format!(
                "\"{}\" is {}, but the operands are {operands:?} and the results {results:?}",
                self.name,
                signature_of(&self.inputs, &self.results),
            )),
        }
    }
}

/// The error of a call of a function that a graph only has the name of.
pub fn not_known(name: &str) -> String {
    format!("nothing defines the function \"{name}\": say what it is by `Graph::define`")
}

/// As in `fn(&[f32], &[f32], &mut [f32])`.
fn signature_of(inputs: &[Scalar], results: &[Scalar]) -> String {
    let inputs = inputs.iter().map(|element| format!("&[{element}]"));
    let results = results.iter().map(|element| format!("&mut [{element}]"));
    let all: Vec<String> = inputs.chain(results).collect();
    format!("fn({})", all.join(", "))
}

/// The message of a panic.
pub fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}

impl SliceMut<'_> {
    /// Sets all elements to zero.
    fn clear(&mut self) {
        match self {
            SliceMut::F32(slice) => slice.fill(0.0),
            SliceMut::F64(slice) => slice.fill(0.0),
            SliceMut::I32(slice) => slice.fill(0),
        }
    }
}

impl fmt::Debug for UserFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.name,
            signature_of(&self.inputs, &self.results)
        )
    }
}
