//! Reads `@main` as a list of what the host does: launches, copies, exchanges, loops and branches.
//!
//! `@main` is what `ferrozyme_graph::lower` makes: its pointers are parameters, or the arena, at constant offsets, and the only numbers that it computes with are trip counts and conditions, which it loads.

use ferrozyme_backend::Error;
use ferrozyme_graph::lower::{CALL, FEED, RECEIVE};
use ferrozyme_ir::{
    Function, FunctionId, IntPredicate, Module, Op, OpView, Opcode, Region, Type, Value,
};
use rustc_hash::FxHashMap;

/// A piece of the device's memory: a parameter, or behind all of them the arena.
pub type Buffer = usize;

/// A place in the device's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Which piece.
    pub buffer: Buffer,
    /// How many bytes behind its start.
    pub offset: usize,
}

/// What the host does. `K` is what names a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<K = usize> {
    /// Runs a kernel on these places.
    Launch {
        /// Which one.
        kernel: K,
        /// Where its buffers are.
        places: Vec<Place>,
    },
    /// Copies bytes, which do not overlap.
    Copy {
        /// Where to.
        to: Place,
        /// Where from.
        from: Place,
        /// How many.
        bytes: usize,
    },
    /// Feeds the tensor of an exchange.
    Feed {
        /// The number of the exchange.
        number: usize,
        /// Where it goes.
        to: Place,
    },
    /// Hands over a tensor of an exchange.
    Receive {
        /// The number of the exchange.
        number: usize,
        /// The position of the tensor in it.
        position: usize,
        /// Where it is.
        from: Place,
    },
    /// Calls a Rust function, which runs on the host.
    Call {
        /// The number of the call.
        number: usize,
        /// Where its operands are, and then its results.
        places: Vec<Place>,
    },
    /// Writes the number of the current iteration of the loop around it, as `i32`.
    Count {
        /// Where to.
        to: Place,
    },
    /// Runs steps as often as the `i32` in memory says.
    For {
        /// Where the trip count is.
        count: Place,
        /// What is done.
        body: Vec<Step<K>>,
    },
    /// Runs steps, and again as long as the byte in memory is not zero behind them.
    Again {
        /// Where the condition is.
        condition: Place,
        /// What is done.
        body: Vec<Step<K>>,
    },
    /// Runs one of two lists of steps, the first if the byte in memory is not zero.
    If {
        /// Where the condition is.
        condition: Place,
        /// The steps if it holds.
        then: Vec<Step<K>>,
        /// The steps if not.
        otherwise: Vec<Step<K>>,
    },
}

/// The kernels of all launches among steps, with their places: those of loops once, those of both branches.
pub fn launches<K: Copy>(steps: &[Step<K>]) -> Vec<(K, &[Place])> {
    let inner = |step| match step {
        &Step::Launch { kernel, ref places } => vec![(kernel, &places[..])],
        Step::For { body, .. } | Step::Again { body, .. } => launches(body),
        Step::If {
            then, otherwise, ..
        } => [launches(then), launches(otherwise)].concat(),
        _ => Vec::new(),
    };
    steps.iter().flat_map(inner).collect()
}

/// The steps of `@main`, whose kernels are functions of the module.
pub(crate) fn read_schedule(
    module: &Module,
    main: FunctionId,
) -> Result<Vec<Step<FunctionId>>, Error> {
    let function = &module.functions[main];
    let mut reader = Reader {
        module,
        function,
        places: FxHashMap::default(),
    };
    for (buffer, &argument) in function.arguments().iter().enumerate() {
        reader.places.insert(argument, Place { buffer, offset: 0 });
    }
    reader.region(function.body(), None)
}

struct Reader<'m> {
    module: &'m Module,
    function: &'m Function,
    places: FxHashMap<Value, Place>,
}

impl Reader<'_> {
    fn problem(&self, op: Op) -> Error {
        let opcode = self.function.ops[op].opcode;
        Error::Compile(format!(
            "the host cannot carry out the `{opcode}` of @main as a step (a bug in Ferrozyme)"
        ))
    }

    fn place(&self, op: Op, value: Value) -> Result<Place, Error> {
        self.places
            .get(&value)
            .copied()
            .ok_or_else(|| self.problem(op))
    }

    fn places(&self, op: Op, values: &[Value]) -> Result<Vec<Place>, Error> {
        values.iter().map(|&value| self.place(op, value)).collect()
    }

    fn number(&self, op: Op, value: Value) -> Result<usize, Error> {
        let number = self.function.int_of(value);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| self.problem(op))
    }

    /// The place that a value is loaded from, through casts and comparisons with zero.
    fn loaded_from(&self, op: Op, value: Value) -> Result<Place, Error> {
        match self.function.definition(value) {
            Some(OpView::Load { address, .. }) => self.place(op, address),
            Some(OpView::Cast(Opcode::Sext, inner)) => self.loaded_from(op, inner),
            Some(OpView::Icmp(IntPredicate::Ne, inner, zero))
                if self.function.int_of(zero) == Some(0) =>
            {
                self.loaded_from(op, inner)
            }
            _ => Err(self.problem(op)),
        }
    }

    /// Reads a region; `counter` is that of the loop whose body it is.
    fn region(
        &mut self,
        region: Region,
        counter: Option<Value>,
    ) -> Result<Vec<Step<FunctionId>>, Error> {
        let mut steps = Vec::new();
        for &op in &self.function.regions[region].ops {
            match self.function.view(op) {
                OpView::Offset { base, index, scale } => {
                    let base = self.place(op, base)?;
                    let bytes = self.number(op, index)? * scale as usize;
                    let place = Place {
                        offset: base.offset + bytes,
                        ..base
                    };
                    self.places.insert(self.function.result(op), place);
                }
                OpView::Call { callee, arguments } => {
                    steps.push(self.call(op, callee, arguments)?);
                }
                OpView::Copy {
                    destination,
                    source,
                    size,
                    ..
                } => steps.push(Step::Copy {
                    to: self.place(op, destination)?,
                    from: self.place(op, source)?,
                    bytes: self.number(op, size)?,
                }),
                OpView::Store { value, address, .. } => {
                    let is_counter = matches!(
                        self.function.definition(value),
                        Some(OpView::Cast(Opcode::TruncInt, inner)) if Some(inner) == counter
                    );
                    if !is_counter || self.function.ty(value) != Type::I32 {
                        return Err(self.problem(op));
                    }
                    let to = self.place(op, address)?;
                    steps.push(Step::Count { to });
                }
                OpView::For {
                    from,
                    to,
                    step,
                    initial,
                    body,
                } => {
                    let starts = (self.function.int_of(from), self.function.int_of(step));
                    if starts != (Some(0), Some(1)) || !initial.is_empty() {
                        return Err(self.problem(op));
                    }
                    let count = self.loaded_from(op, to)?;
                    let counter = self.function.counter(op);
                    let body = self.region(body, Some(counter))?;
                    steps.push(Step::For { count, body });
                }
                OpView::Loop { body, .. } => {
                    let end = self.function.terminator(body);
                    let OpView::Again { condition, .. } = self.function.view(end) else {
                        return Err(self.problem(op));
                    };
                    let condition = self.loaded_from(op, condition)?;
                    let body = self.region(body, None)?;
                    steps.push(Step::Again { condition, body });
                }
                OpView::If {
                    condition,
                    then,
                    otherwise,
                } => steps.push(Step::If {
                    condition: self.loaded_from(op, condition)?,
                    then: self.region(then, None)?,
                    otherwise: self.region(otherwise, None)?,
                }),
                // Numbers, which those who use them trace back.
                OpView::Load { .. } | OpView::Cast(..) | OpView::Icmp(..) => {}
                OpView::Yield { .. } | OpView::Again { .. } | OpView::Return { .. } => {}
                _ => return Err(self.problem(op)),
            }
        }
        Ok(steps)
    }

    fn call(
        &self,
        op: Op,
        callee: FunctionId,
        arguments: &[Value],
    ) -> Result<Step<FunctionId>, Error> {
        match (&*self.module.functions[callee].name, arguments) {
            (FEED, &[number, to]) => Ok(Step::Feed {
                number: self.number(op, number)?,
                to: self.place(op, to)?,
            }),
            (RECEIVE, &[number, position, from]) => Ok(Step::Receive {
                number: self.number(op, number)?,
                position: self.number(op, position)?,
                from: self.place(op, from)?,
            }),
            (name, [number, addresses @ ..]) if name.starts_with(CALL) => Ok(Step::Call {
                number: self.number(op, *number)?,
                places: self.places(op, addresses)?,
            }),
            _ => Ok(Step::Launch {
                kernel: callee,
                places: self.places(op, arguments)?,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_in_loops_and_both_branches_are_found() {
        let place = |offset| Place { buffer: 0, offset };
        let launch = |kernel| Step::Launch {
            kernel,
            places: vec![place(kernel)],
        };
        let copy = Step::Copy {
            to: place(1),
            from: place(0),
            bytes: 1,
        };
        let branch = Step::If {
            condition: place(0),
            then: vec![launch(2)],
            otherwise: vec![copy.clone(), launch(3)],
        };
        let count = place(0);
        let again = Step::Again {
            condition: count,
            body: vec![launch(1), branch],
        };
        let body = vec![again, launch(4)];
        let steps = [launch(0), copy, Step::For { count, body }];
        let found = launches(&steps);
        assert!(
            found
                .iter()
                .all(|&(kernel, places)| places == [place(kernel)])
        );
        let kernels: Vec<usize> = found.into_iter().map(|(kernel, _)| kernel).collect();
        assert_eq!(kernels, [0, 1, 2, 3, 4]);
    }
}
