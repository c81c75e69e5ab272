//! What a run of a graph comes to, to be compared with that of another graph.

use super::gradient::Direction;
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, Payload};

/// What a graph hands to the host, and the parameters afterwards.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What is received, in order.
    pub received: Vec<(Box<str>, Vec<Array>)>,
    /// The parameters.
    pub parameters: Vec<Array>,
}

impl Outcome {
    /// Of a run with arbitrary tensors for all feeds, the same for the same names and types.
    pub fn of(graph: &Graph) -> Result<Outcome, String> {
        let mut machine = Machine::new(graph);
        graph.for_each_op(graph.body(), &mut |_, op| {
            if let Payload::Feed(name, ty) = &graph.ops[op].payload {
                let mut numbers = Direction::new();
                let ty = ty.clone();
                machine.feed(name, move || {
                    let elements = (0..ty.shape.count()).map(|_| numbers.next());
                    Array::new(ty.clone(), elements.collect())
                });
            }
        });
        machine.run().map_err(|fault| fault.to_string())?;
        let parameters = graph.parameters.keys();
        Ok(Outcome {
            received: machine.all_received().to_vec(),
            parameters: parameters.map(|p| machine.parameter(p).clone()).collect(),
        })
    }

    /// Whether another one is the same up to rounding; says where not.
    pub fn compare(&self, other: &Outcome) -> Result<(), String> {
        self.compare_within(other, 0.0)
    }

    /// As [`compare`](Self::compare), where numbers on the way may have been rounded by so much, relative to the largest.
    pub(crate) fn compare_within(&self, other: &Outcome, rounding: f64) -> Result<(), String> {
        let names = |outcome: &Outcome| -> Vec<Box<str>> {
            let received = outcome.received.iter();
            received.map(|(name, _)| name.clone()).collect()
        };
        if names(self) != names(other) {
            return Err(format!(
                "received {:?}, not {:?}",
                names(other),
                names(self)
            ));
        }
        let arrays = |outcome: &Outcome| -> Vec<Array> {
            let received = outcome.received.iter().flat_map(|(_, tensors)| tensors);
            received.chain(&outcome.parameters).cloned().collect()
        };
        let (own, others) = (arrays(self), arrays(other));
        for (a, b) in own.iter().zip(&others) {
            if own.len() != others.len() || !are_within(a, b, rounding) {
                return Err(format!("the result is {b}, not {a}"));
            }
        }
        Ok(())
    }
}

/// Whether two tensors differ by rounding only.
pub(crate) fn are_close(a: &Array, b: &Array) -> bool {
    are_within(a, b, 0.0)
}

fn are_within(a: &Array, b: &Array, rounding: f64) -> bool {
    let largest = a
        .elements
        .iter()
        .fold(0.0f64, |most, value| most.max(value.abs()));
    let tolerance: f64 = match a.ty.element {
        ferrozyme_graph::Scalar::F64 => 1e-10,
        element if element.is_float() => 1e-4,
        _ => 0.0,
    };
    let tolerance = tolerance.max(rounding);
    let close = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + largest)
    };
    a.ty == b.ty && a.elements.iter().zip(&*b.elements).all(close)
}

/// Whether two graphs come to the same; says where not.
pub fn same_results(before: &Graph, after: &Graph) -> Result<(), String> {
    nearly_same_results(before, after, 0.0)
}

/// As [`same_results`], for numbers that were rounded by so much on the way, relative to the largest.
pub(crate) fn nearly_same_results(
    before: &Graph,
    after: &Graph,
    rounding: f64,
) -> Result<(), String> {
    // Where the first fails, the second may have removed what fails.
    let Ok(expected) = Outcome::of(before) else {
        return Ok(());
    };
    let actual = Outcome::of(after).map_err(|fault| format!("it fails now: {fault}"))?;
    expected.compare_within(&actual, rounding)
}
