//! Writes the formulas of the Loop IR's derivatives as operations on tensors.

use crate::graph::{Graph, OpData, Tensor};
use crate::payload::Function;
use crate::types::{CONDITION, INDEX};
use ferrozyme_ir::Opcode as Loop;
use ferrozyme_ir::formula::{Formula, ONE, Place};

/// Writes formulas about one operation, each part once.
pub(super) struct FormulaWriter<'o> {
    data: &'o OpData,
    written: Vec<(Formula, Tensor)>,
}

impl<'o> FormulaWriter<'o> {
    pub(super) fn new(data: &'o OpData) -> FormulaWriter<'o> {
        FormulaWriter {
            data,
            written: Vec::new(),
        }
    }

    /// An adjoint times a formula; none where that is zero. Where the formula makes a choice, the adjoint is chosen, so that an infinite part that is not chosen does no harm.
    pub(super) fn times(
        &mut self,
        g: &mut Graph,
        adjoint: Tensor,
        formula: &Formula,
    ) -> Option<Tensor> {
        if formula.is_zero() {
            return None;
        }
        if *formula == ONE {
            return Some(adjoint);
        }
        if *formula == -ONE {
            return Some(g.neg(adjoint));
        }
        if let Formula::Where(parts) = formula {
            let condition = self.write(g, &parts[0]);
            let [then, otherwise] = [1, 2].map(|part| {
                let product = self.times(g, adjoint, &parts[part]);
                product.unwrap_or_else(|| g.constant_like(adjoint, 0.0))
            });
            return Some(g.select(condition, then, otherwise));
        }
        let factor = self.write(g, formula);
        Some(g.mul(adjoint, factor))
    }

    /// The value of a formula.
    fn write(&mut self, g: &mut Graph, formula: &Formula) -> Tensor {
        if let Some((_, tensor)) = self.written.iter().find(|(other, _)| other == formula) {
            return *tensor;
        }
        let parts: Vec<Tensor> = formula
            .parts()
            .iter()
            .map(|part| self.write(g, part))
            .collect();
        let ty = g.ty(self.data.results[0]).clone();
        let tensor = match formula {
            Formula::Variable(variable) => match variable.place() {
                Place::Operand(index) => self.data.operands[index],
                Place::Result(index) => self.data.results[index],
            },
            Formula::Constant(value) => g.constant(ty, *value),
            Formula::Integer(value) => g.constant(ty.with_element(INDEX), *value as f64),
            Formula::Truth(value) => g.constant(ty.with_element(CONDITION), f64::from(*value)),
            Formula::Apply(Loop::Sitofp, _) => g.cast(parts[0], ty.element),
            Formula::Apply(opcode, _) => g.apply(*opcode, &parts),
            Formula::Compare(predicate, _) => {
                g.elementwise(Function::FloatCompare(*predicate), &parts)
            }
            Formula::CompareIntegers(predicate, _) => {
                g.elementwise(Function::IntCompare(*predicate), &parts)
            }
            Formula::Where(_) => g.select(parts[0], parts[1], parts[2]),
        };
        self.written.push((formula.clone(), tensor));
        tensor
    }
}
