//! Calls: of functions of the same group, of functions analysed before, and of unknown code.

use super::super::graph::Target;
use super::super::span::Span;
use super::super::{Source, may_put_words};
use super::Gather;
use ferrozyme_ir::{Constant, FunctionId, Module, Op, OpView, Type, Value};
use ferrozyme_opt::{Handling, handling};
use rustc_hash::{FxHashMap, FxHashSet};

impl Gather<'_> {
    /// Whether an indirect call has the types of a function.
    pub(super) fn fits(&self, b: usize, op: Op, callee: FunctionId) -> bool {
        let function = self.bodies[b].function;
        let data = &function.ops[op];
        let callee = &self.module.functions[callee];
        let types = |values: &[Value]| -> Vec<Type> {
            values.iter().map(|&value| function.ty(value)).collect()
        };
        types(data.arguments()) == callee.params.iter().map(|p| p.ty).collect::<Vec<_>>()
            && types(&data.results) == callee.results
    }

    pub(super) fn call(&mut self, b: usize, op: Op, callee: FunctionId, arguments: &[Value]) {
        if let Some(&inner) = self.positions.get(&callee)
            && self.bodies[inner].function.body.is_some()
        {
            self.call_within(b, op, inner, arguments);
        } else if let Some(finished) = self.finished.get(&callee)
            && self.module.functions[callee].body.is_some()
        {
            let finished = finished.clone();
            self.call_finished(b, op, &finished, arguments);
        } else {
            self.call_unknown(b, op, arguments, Some(callee));
        }
    }

    /// What is passed for a parameter that is a number by all that is done with it is one, too, and nothing else is known of it.
    pub(super) fn pass_number(&mut self, b: usize, argument: Value) {
        if self.last {
            self.used(b, &[argument]);
        }
    }

    /// A call of a function of the same group.
    fn call_within(&mut self, b: usize, op: Op, inner: usize, arguments: &[Value]) {
        let function = self.bodies[inner].function;
        let params = function.arguments();
        for (index, (&argument, &param)) in arguments.iter().zip(params).enumerate() {
            self.passes(b, argument, inner, param);
            if self.bodies[inner].counted[index] {
                self.pass_number(b, argument);
                continue;
            }
            if function.ty(param).is_ptr() {
                let target = self.place_of(b, argument);
                self.grow(inner, param, target);
            } else if let Some(cell) = self.cell_of(inner, param) {
                self.same_integer(b, argument, cell);
                self.give_address(b, argument, cell);
            }
        }
        let results = &self.bodies[b].function.ops[op].results;
        for (index, &result) in results.iter().enumerate() {
            self.gives(b, result, inner, index);
            let outlet = self.bodies[inner].results[index];
            match outlet.cell {
                Some(cell) => {
                    self.same_integer(b, result, cell);
                    self.take_address(b, result);
                }
                None => self.assign(b, result, outlet.pointer.target),
            }
        }
    }

    /// A call of code that is not seen.
    pub(super) fn call_unknown(
        &mut self,
        b: usize,
        op: Op,
        arguments: &[Value],
        callee: Option<FunctionId>,
    ) {
        let callee = callee.map(|id| &self.module.functions[id]);
        let results = &self.bodies[b].function.ops[op].results;
        for &value in arguments.iter().chain(results) {
            if let Some(cell) = self.cell_of(b, value) {
                self.graph.set_foreign(cell);
            }
        }
        for (index, &argument) in arguments.iter().enumerate() {
            let Some(target) = self.place_of(b, argument) else {
                continue;
            };
            let facts = callee
                .and_then(|callee| callee.params.get(index))
                .map(|param| &param.facts);
            let Handling { writes, keeps, .. } = handling(callee, index);
            if let Some(layout) = facts.and_then(|facts| facts.layout.as_ref())
                && let Some(at) = target.span.as_exact()
            {
                let class = self.graph.find(target.class);
                let target = Target {
                    class: class.0,
                    span: Span::exact(at.wrapping_add(class.1)),
                };
                self.describe(target, layout);
            }
            let (class, _) = self.graph.find(target.class);
            let node = self.graph.node_mut(class);
            node.escapes |= keeps;
            node.clobbered |= writes;
            node.repointed |= writes && callee.is_none_or(may_put_words);
        }
        let results = &self.bodies[b].function.ops[op].results;
        for (index, &result) in results.iter().enumerate() {
            if self.bodies[b].function.ty(result).is_ptr() {
                self.made_by(b, op, index, Source::External(op));
            }
        }
    }
}

/// The functions that `function` calls, directly or not, and itself: in groups that call each other in circles, callees first.
pub(super) fn groups(module: &Module, function: FunctionId) -> Vec<Vec<FunctionId>> {
    // Tarjan's algorithm with a stack of its own.
    struct Frame {
        id: FunctionId,
        callees: Vec<FunctionId>,
        next: usize,
    }
    let mut groups = Vec::new();
    let mut order: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut low: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut open: Vec<FunctionId> = Vec::new();
    let mut is_open: FxHashSet<FunctionId> = FxHashSet::default();
    let mut frames: Vec<Frame> = Vec::new();
    let mut pending = Some(function);
    loop {
        if let Some(id) = pending.take() {
            let number = order.len();
            order.insert(id, number);
            low.insert(id, number);
            open.push(id);
            is_open.insert(id);
            frames.push(Frame {
                id,
                callees: callees(module, id),
                next: 0,
            });
        }
        let Some(frame) = frames.last_mut() else {
            return groups;
        };
        let id = frame.id;
        if let Some(&callee) = frame.callees.get(frame.next) {
            frame.next += 1;
            if !order.contains_key(&callee) {
                pending = Some(callee);
            } else if is_open.contains(&callee) {
                let reached = order[&callee].min(low[&id]);
                low.insert(id, reached);
            }
            continue;
        }
        frames.pop();
        if let Some(caller) = frames.last() {
            let reached = low[&id].min(low[&caller.id]);
            low.insert(caller.id, reached);
        }
        if low[&id] == order[&id] {
            let at = open
                .iter()
                .rposition(|&other| other == id)
                .expect("an open function is on the stack");
            let mut group = open.split_off(at);
            for member in &group {
                is_open.remove(member);
            }
            group.sort_unstable();
            groups.push(group);
        }
    }
}

/// The functions with bodies that a function calls.
fn callees(module: &Module, id: FunctionId) -> Vec<FunctionId> {
    let function = &module.functions[id];
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for op in ferrozyme_ir::returning_ops(function) {
        let callee = match function.view(op) {
            OpView::Call { callee, .. } => Some(callee),
            OpView::CallIndirect { target, .. } => match function.constant_of(target) {
                Some(Constant::Function(callee)) => Some(*callee),
                _ => None,
            },
            _ => None,
        };
        if let Some(callee) = callee
            && module.functions[callee].body.is_some()
            && seen.insert(callee)
        {
            found.push(callee);
        }
    }
    found
}
