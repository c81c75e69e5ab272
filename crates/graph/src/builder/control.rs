//! Loops and branches, as closures over the graph.

use crate::graph::{Def, Graph, Op, Region, Tensor, TensorData};
use crate::opcode::Opcode;
use crate::payload::Payload;
use crate::types::{INDEX, TensorType};

impl Graph {
    /// Runs the body this many times; it gets the number of the iteration.
    ///
    /// ```
    /// use ferrozyme_graph::{Graph, interpret::Machine};
    /// let mut g = Graph::new();
    /// let w = g.parameter("w", [2], 1.0);
    /// g.repeat(10, |g, _step| {
    ///     let value = g.read(w);
    ///     let doubled = g.scale(value, 2.0);
    ///     g.update(w, doubled);
    /// });
    /// let mut machine = Machine::new(&g);
    /// machine.run()?;
    /// assert_eq!(machine.parameter(w).elements[..], [1024.0, 1024.0]);
    /// # Ok::<(), ferrozyme_graph::interpret::Fault>(())
    /// ```
    #[track_caller]
    pub fn repeat(&mut self, count: u32, body: impl FnOnce(&mut Graph, Tensor)) {
        let count = self.constant(TensorType::scalar(INDEX), f64::from(count));
        self.for_loop(count, &[], |g, iteration, _| {
            body(g, iteration);
            Vec::new()
        });
    }

    /// Runs the body `count` times with the number of the iteration and carried tensors, which become what the body returns. Returns their last values.
    #[track_caller]
    pub fn for_loop(
        &mut self,
        count: Tensor,
        initial: &[Tensor],
        body: impl FnOnce(&mut Graph, Tensor, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let mut types = vec![TensorType::scalar(INDEX)];
        types.extend(initial.iter().map(|&tensor| self.ty(tensor).clone()));
        let region = self.build_region(&types, |g, arguments| {
            body(g, arguments[0], &arguments[1..])
        });
        let mut operands = vec![count];
        operands.extend_from_slice(initial);
        self.structured(Opcode::For, &operands, &[region])
    }

    /// Runs the body as long as the condition holds, with carried tensors, which become what the body returns. Returns their last values.
    #[track_caller]
    pub fn while_loop(
        &mut self,
        initial: &[Tensor],
        condition: impl FnOnce(&mut Graph, &[Tensor]) -> Tensor,
        body: impl FnOnce(&mut Graph, &[Tensor]) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let types: Vec<TensorType> = initial
            .iter()
            .map(|&tensor| self.ty(tensor).clone())
            .collect();
        let condition = self.build_region(&types, |g, carried| vec![condition(g, carried)]);
        let body = self.build_region(&types, body);
        self.structured(Opcode::While, initial, &[condition, body])
    }

    /// What the first closure returns if the condition holds, else what the second returns.
    #[track_caller]
    pub fn if_else(
        &mut self,
        condition: Tensor,
        then: impl FnOnce(&mut Graph) -> Vec<Tensor>,
        otherwise: impl FnOnce(&mut Graph) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let then = self.build_region(&[], |g, _| then(g));
        let otherwise = self.build_region(&[], |g, _| otherwise(g));
        self.structured(Opcode::If, &[condition], &[then, otherwise])
    }

    /// A region with arguments of these types, with the operations that the closure makes.
    #[track_caller]
    pub(crate) fn build_region(
        &mut self,
        arguments: &[TensorType],
        build: impl FnOnce(&mut Graph, &[Tensor]) -> Vec<Tensor>,
    ) -> Region {
        let region = self.new_region(arguments);
        let arguments = self.regions[region].arguments.clone();
        self.open.push(region);
        let results = build(self, &arguments);
        let visible = results.iter().all(|&result| self.is_visible(result));
        assert!(visible, "{}", super::NOT_VISIBLE);
        self.open.pop();
        self.regions[region].results = results.into();
        region
    }

    /// Appends an operation with regions.
    #[track_caller]
    pub(crate) fn structured(
        &mut self,
        opcode: Opcode,
        operands: &[Tensor],
        regions: &[Region],
    ) -> Vec<Tensor> {
        match self.insert(opcode, operands, Payload::None, regions) {
            Ok(op) => self.ops[op].results.to_vec(),
            Err(message) => panic!("`{opcode}`: {message}"),
        }
    }

    /// Has a `for` carry one more tensor, which starts as zeros and becomes what the closure makes of it at the end of the body. Returns its last value.
    pub(crate) fn carry(
        &mut self,
        op: Op,
        ty: TensorType,
        next: impl FnOnce(&mut Graph, Tensor) -> Tensor,
    ) -> Tensor {
        let (region, body) = (self.ops[op].region, self.ops[op].regions[0]);
        let at = self.regions[region]
            .ops
            .iter()
            .position(|&other| other == op);
        let at = at.expect("the operation stands in its region");
        // Zeros before the loop.
        let behind = self.regions[region].ops.split_off(at);
        self.open.push(region);
        let zeros = self.constant(ty.clone(), 0.0);
        self.open.pop();
        self.regions[region].ops.extend(behind);
        let index = self.regions[body].arguments.len();
        let argument = self.tensors.push(TensorData {
            ty: ty.clone(),
            def: Def::Argument(body, index),
            name: None,
        });
        self.regions[body].arguments.push(argument);
        self.open.push(body);
        let carried = next(self, argument);
        self.open.pop();
        self.regions[body].results.push(carried);
        let result = self.tensors.push(TensorData {
            ty,
            def: Def::Result(op, self.ops[op].results.len()),
            name: None,
        });
        self.ops[op].operands.push(zeros);
        self.ops[op].results.push(result);
        result
    }
}
