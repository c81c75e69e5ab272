//! Reverse mode: appends the operations that compute gradients to the region that is being built.
//!
//! The sweep goes backwards through the regions that are being built, from the innermost to the body, and applies the rule of each operation ([`rules`](self::rules)) to the
//! adjoint of its result. It ends at the arguments of these regions: inside a loop's body, the gradient is that of one iteration. Parameters are states: the adjoint of a parameter
//! is what its reads collect, and an `update` passes it on to the value that was stored.
//!
//! ```text
//! %x = parameter @x : f64[2]            %x = parameter @x : f64[2]
//! %y = exp %x : f64[2]            ─▶    %y = exp %x : f64[2]
//!                                       %0 = constant 1.0 : f64[2]
//!                                       %1 = fmul %0, %y : f64[2]        gradient of @x
//! ```
//!
//! *Regions.* The derivative of an `if` is an `if` that computes its region again before it goes backwards through it. That of a `for` is a `for` that does so for each iteration,
//! the last first; the tensors that each iteration started with are kept (`loops.rs`). Regions that are computed again must not feed or update, and parameters that they read must not
//! have changed since; these, loops with a trip count that is no constant, and `while` are refused.

mod formula;
mod loops;
pub(crate) mod rules;

pub use rules::{Contributions, Vjp};

use crate::graph::{Def, Graph, Op, OpData, Parameter, Tensor};
use crate::opcode::{Effect, Opcode};
use crate::payload::Payload;
use crate::user::not_known;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::panic::Location;

/// Why something has no derivative.
#[derive(Clone, Debug)]
pub struct BackwardError {
    /// The operation.
    pub operation: String,
    /// The line of the program that made it.
    pub location: Option<&'static Location<'static>>,
    /// What the matter is, and what to do.
    pub message: String,
}

impl fmt::Display for BackwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot differentiate `{}`", self.operation)?;
        if let Some(location) = self.location {
            write!(f, " ({location})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for BackwardError {}

/// Gradients of a tensor.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    tensors: FxHashMap<Tensor, Tensor>,
    parameters: FxHashMap<Parameter, Tensor>,
}

impl Gradients {
    /// The gradient by a tensor; none if there is no influence.
    pub fn of(&self, tensor: Tensor) -> Option<Tensor> {
        self.tensors.get(&tensor).copied()
    }

    /// The gradient by the state of a parameter; none if there is no influence.
    pub fn of_parameter(&self, parameter: Parameter) -> Option<Tensor> {
        self.parameters.get(&parameter).copied()
    }

    /// Has another tensor stand for the gradient by a parameter: a clipped one, for instance.
    pub fn set_parameter(&mut self, parameter: Parameter, gradient: Tensor) {
        self.parameters.insert(parameter, gradient);
    }
}

impl Graph {
    /// The gradients of the sum of a tensor's elements.
    ///
    /// ```
    /// use ferrozyme_graph::{Graph, interpret::{Array, Machine}, Scalar, TensorType};
    /// let mut g = Graph::new();
    /// let x = g.parameter_of("x", TensorType::new(Scalar::F64, [2]), vec![3.0, 4.0]);
    /// let value = g.read(x);
    /// let square = g.mul(value, value);
    /// let gradients = g.backward(square);
    /// g.receive("gradient", &[gradients.of_parameter(x).unwrap()]);
    /// let mut machine = Machine::new(&g);
    /// machine.run()?;
    /// assert_eq!(machine.received("gradient").unwrap(), [Array::f64s([2], &[6.0, 8.0])]);
    /// # Ok::<(), ferrozyme_graph::interpret::Fault>(())
    /// ```
    ///
    /// # Panics
    /// If there is no derivative; [`try_backward`](Self::try_backward) returns why.
    #[track_caller]
    pub fn backward(&mut self, tensor: Tensor) -> Gradients {
        let seed = self.constant_like(tensor, 1.0);
        match self.try_backward(&[(tensor, seed)]) {
            Ok(gradients) => gradients,
            Err(error) => panic!("{error}"),
        }
    }

    /// The gradients of tensors that have these adjoints, or why there are none. If there are none, some of the operations may have been appended.
    pub fn try_backward(&mut self, seeds: &[(Tensor, Tensor)]) -> Result<Gradients, BackwardError> {
        let mut sweep = Sweep::new();
        for &(tensor, adjoint) in seeds {
            sweep.add(self, tensor, adjoint);
        }
        for region in self.open.clone().into_iter().rev() {
            let ops = self.regions[region].ops.clone();
            sweep.is_outside = region != self.current_region();
            sweep.backwards(self, &ops)?;
        }
        Ok(sweep.gradients)
    }
}

/// A sweep that goes on.
struct Sweep {
    /// The adjoints so far.
    gradients: Gradients,
    /// Whether a tensor depends on something that gradients are asked for, as far as that was looked at.
    varied: FxHashMap<Tensor, bool>,
    /// Parameters that operations behind the current one update.
    updated: FxHashSet<Parameter>,
    /// Whether it goes through a region around the one that is being built, which may run again and again, and after updates that are not there yet.
    is_outside: bool,
}

impl Sweep {
    fn new() -> Sweep {
        Sweep {
            gradients: Gradients::default(),
            varied: FxHashMap::default(),
            updated: FxHashSet::default(),
            is_outside: false,
        }
    }

    /// Adds to the adjoint of a tensor, if it is a float that depends on something.
    fn add(&mut self, g: &mut Graph, tensor: Tensor, adjoint: Tensor) {
        if self.is_varied(g, tensor) {
            let sum = match self.gradients.tensors.get(&tensor) {
                Some(&other) => g.add(other, adjoint),
                None => adjoint,
            };
            self.gradients.tensors.insert(tensor, sum);
        }
    }

    fn add_to_parameter(&mut self, g: &mut Graph, parameter: Parameter, adjoint: Tensor) {
        let sum = match self.gradients.parameters.get(&parameter) {
            Some(&other) => g.add(other, adjoint),
            None => adjoint,
        };
        self.gradients.parameters.insert(parameter, sum);
    }

    /// Whether a tensor is a float that depends on a parameter, a feed, or an argument of a region.
    fn is_varied(&mut self, g: &Graph, tensor: Tensor) -> bool {
        if !g.ty(tensor).is_float() {
            return false;
        }
        // A stack instead of recursion: graphs are deep.
        let mut waiting = vec![tensor];
        while let Some(&top) = waiting.last() {
            let operands: &[Tensor] = match g.tensors[top].def {
                Def::Argument(..) => &[],
                Def::Result(op, _) if g.ops[op].opcode == Opcode::Detach => &[],
                Def::Result(op, _) => &g.ops[op].operands,
            };
            let is_source = match g.tensors[top].def {
                Def::Argument(..) => true,
                Def::Result(op, _) => {
                    let effect = g.ops[op].opcode.row().effect;
                    !matches!(effect, Effect::Pure | Effect::Partial)
                }
            };
            let known = |operand: &Tensor| match g.ty(*operand).is_float() {
                true => self.varied.get(operand).copied(),
                false => Some(false),
            };
            let unknown = operands.iter().find(|operand| known(operand).is_none());
            match unknown {
                Some(&operand) if !is_source => waiting.push(operand),
                _ => {
                    let depends = operands.iter().any(|operand| known(operand) == Some(true));
                    self.varied.insert(top, is_source || depends);
                    waiting.pop();
                }
            }
        }
        self.varied[&tensor]
    }

    /// Goes backwards through operations of one region, which are visible.
    fn backwards(&mut self, g: &mut Graph, ops: &[Op]) -> Result<(), BackwardError> {
        for &op in ops.iter().rev() {
            // Operations of the derivative are of the line that made the operation.
            let outer = std::mem::replace(&mut g.blame, g.ops[op].location);
            let done = self.operation(g, op);
            g.blame = outer;
            done?;
            self.updated.extend(loops::changes(g, op).updated);
        }
        Ok(())
    }

    /// The adjoints of a Rust function's operands: `call_vjp`. Results that nobody uses have zeros for adjoints.
    fn call(
        &mut self,
        g: &mut Graph,
        data: &OpData,
        name: &str,
        adjoints: &[Option<Tensor>],
    ) -> Result<(), BackwardError> {
        let refuse = |message: String| {
            Err(BackwardError {
                operation: data.label(),
                location: data.location,
                message,
            })
        };
        if data.opcode == Opcode::CallVjp {
            return refuse("the derivative of a function has no derivative itself".to_owned());
        }
        let Some(function) = g.function_named(name) else {
            return refuse(not_known(name));
        };
        let Some(active) = function.active() else {
            return refuse(
                "the function has no derivative: give it one by `with_derivative`, or `detach` its operands".to_owned(),
            );
        };
        let active = active.to_vec();
        let mut operands = data.operands.to_vec();
        let is_float = |&(_, operand): &(usize, Tensor)| g.ty(operand).is_float();
        let inputs = operands.iter().copied().enumerate().filter(is_float);
        let inputs: Vec<(usize, Tensor)> = inputs.collect();
        for (&result, adjoint) in data.results.iter().zip(adjoints) {
            operands.push(adjoint.unwrap_or_else(|| g.constant_like(result, 0.0)));
        }
        let types = inputs.iter().map(|&(_, input)| g.ty(input).clone());
        let payload = Payload::Call(name.into(), types.collect());
        let op = g
            .insert(Opcode::CallVjp, &operands, payload, &[])
            .expect("the adjoints have the types of operands and results");
        let made = g.ops[op].results.clone();
        for ((position, input), adjoint) in inputs.into_iter().zip(made) {
            if active[position] {
                self.add(g, input, adjoint);
            }
        }
        Ok(())
    }

    fn operation(&mut self, g: &mut Graph, op: Op) -> Result<(), BackwardError> {
        let data = g.ops[op].clone();
        let adjoint = |sweep: &Sweep, tensor: &Tensor| sweep.gradients.tensors.get(tensor).copied();
        match (data.opcode, &data.payload) {
            (Opcode::Parameter, Payload::Parameter(parameter)) => {
                if let Some(adjoint) = adjoint(self, &data.results[0]) {
                    self.add_to_parameter(g, *parameter, adjoint);
                }
            }
            (Opcode::Update, Payload::Parameter(parameter)) => {
                if let Some(adjoint) = self.gradients.parameters.remove(parameter) {
                    self.add(g, data.operands[0], adjoint);
                }
            }
            (Opcode::Feed | Opcode::Receive, _) => {}
            (Opcode::Call | Opcode::CallVjp, Payload::Call(name, _)) => {
                let results = data.results.iter();
                let adjoints: Vec<Option<Tensor>> =
                    results.map(|result| adjoint(self, result)).collect();
                if adjoints.iter().any(Option::is_some) {
                    self.call(g, &data, name, &adjoints)?;
                }
            }
            (Opcode::For | Opcode::If | Opcode::While, _) => {
                let changes = loops::changes(g, op);
                let has_adjoint = data
                    .results
                    .iter()
                    .any(|result| adjoint(self, result).is_some());
                let states = &self.gradients.parameters;
                let has_state = changes
                    .updated
                    .iter()
                    .any(|state| states.contains_key(state));
                if has_adjoint || has_state {
                    loops::check(g, op, &changes, self)?;
                    loops::backwards(self, g, op)?;
                }
            }
            _ => {
                if let (Some(rule), &[result]) = (data.opcode.row().vjp, &data.results[..])
                    && let Some(adjoint) = adjoint(self, &result)
                {
                    let needed: Vec<bool> = data
                        .operands
                        .iter()
                        .map(|&operand| self.is_varied(g, operand))
                        .collect();
                    let contributions = rule(g, &data, adjoint, &needed);
                    for (&operand, contribution) in data.operands.iter().zip(contributions) {
                        if let Some(contribution) = contribution {
                            self.add(g, operand, contribution);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
