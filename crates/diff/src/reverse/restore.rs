//! Restores values of the forward sweep: recomputed, reloaded, or read from the tape.

use super::{Mirror, alignment};
use crate::plan::{Decision, Reload, offset_chain};
use crate::tape::linear_index;
use ferrozyme_ir::{Alignment, FloatPredicate, Op, OpData, Opcode, Region, Type, Value};
use ferrozyme_opt::symbolic::Symbolic;
use smallvec::SmallVec;

impl Mirror<'_, '_> {
    /// Makes available, at the start of the reverse of a region, what it needs of the region's values.
    pub(super) fn restore(&mut self, region: Region) {
        if self.is_complete(region) {
            return;
        }
        for index in 0..self.source.regions[region].args.len() {
            let arg = self.source.regions[region].args[index];
            self.restore_value(arg, None);
        }
        for position in 0..self.source.regions[region].ops.len() {
            let op = self.source.regions[region].ops[position];
            for index in 0..self.source.ops[op].results.len() {
                self.restore_value(self.source.ops[op].results[index], Some(op));
            }
        }
    }

    pub(super) fn restore_value(&mut self, value: Value, op: Option<Op>) {
        self.b.location = op.and_then(|op| self.source.ops[op].location);
        if let Some(restored) = self.read_slot(value) {
            self.known.insert(value, restored);
            return;
        }
        match (self.forward.plan.decisions[value], op) {
            (Decision::Recompute, Some(op)) => self.recompute(op),
            (Decision::FromRange(range), Some(op)) => self.read_range(op, range),
            (Decision::Stored, _) => self.read_stored(value),
            // Counters were set when the loop was entered; what is saved outside loops is found by `lookup`.
            _ => {}
        }
    }

    pub(super) fn recompute(&mut self, op: Op) {
        let data = &self.source.ops[op];
        let operands: SmallVec<[Value; 4]> =
            data.operands.iter().map(|&v| self.lookup(v)).collect();
        let types: SmallVec<[Type; 2]> = data.results.iter().map(|&v| self.source.ty(v)).collect();
        let copy = self.b.function.new_op(
            OpData {
                operands,
                results: SmallVec::new(),
                regions: SmallVec::new(),
                ..data.clone()
            },
            &types,
        );
        self.b.insert(copy);
        for (index, &result) in data.results.iter().enumerate() {
            let again = self.b.function.ops[copy].results[index];
            self.name_after(again, result);
            self.known.insert(result, again);
        }
    }

    pub(super) fn name_after(&mut self, value: Value, original: Value) {
        if let Some(name) = &self.source.values[original].name {
            self.b.function.set_name(value, name.clone());
        }
    }

    pub(super) fn read_range(&mut self, op: Op, range: u32) {
        let data = &self.source.ops[op];
        let result = data.results[0];
        let saved = self.forward.tape.ranges[&range];
        let mut address = self.lookup(saved.root);
        if let Some(offset) = self.forward.plan.range_offsets.get(&result) {
            let bytes = self.evaluate(offset);
            address = self.b.offset(address, bytes, 1);
        } else {
            for (index, scale) in offset_chain(self.source, data.address()).offsets {
                let index = self.lookup(index);
                address = self.b.offset(address, index, scale);
            }
        }
        // The copy need not lie like the original.
        let value = self.b.load(self.source.ty(result), address, Alignment::ONE);
        self.name_after(value, result);
        self.known.insert(result, value);
    }

    /// Reads a value from where the program stored it.
    pub(super) fn read_stored(&mut self, value: Value) {
        let Reload { store, times } = self.forward.plan.reloads[&value];
        let data = &self.source.ops[store];
        let chain = offset_chain(self.source, data.address());
        let mut address = self.lookup(chain.root);
        for (index, scale) in chain.offsets {
            let index = self.lookup(index);
            address = self.b.offset(address, index, scale);
        }
        let mut read = self.b.load(self.source.ty(value), address, alignment(data));
        if let Some(times) = times {
            // Divided by infinity, everything is zero, and depends on nothing.
            let times = self.lookup(times);
            let ty = self.b.ty(times);
            let product = self.b.binary(Opcode::Fmul, read, times);
            let magnitude = self.b.unary(Opcode::Fabs, times);
            let infinity = self.b.float(ty, f64::INFINITY);
            let infinite = self.b.fcmp(FloatPredicate::Oeq, magnitude, infinity);
            let zero = self.b.zero(ty);
            read = self.b.select(infinite, zero, product);
        }
        self.name_after(read, value);
        self.known.insert(value, read);
    }

    /// Builds the value of an index expression over values of the forward sweep.
    pub(super) fn evaluate(&mut self, expression: &Symbolic) -> Value {
        let mut sum = self.b.i64(expression.constant_part());
        for term in expression.terms() {
            let mut product = self.b.i64(term.coefficient);
            for &variable in &term.monomial {
                let factor = self.lookup(variable);
                let factor = match self.b.ty(factor) {
                    Type::I64 => factor,
                    _ => self.b.cast(Opcode::Sext, factor, Type::I64),
                };
                product = self.b.binary(Opcode::Mul, product, factor);
            }
            sum = self.b.binary(Opcode::Add, sum, product);
        }
        sum
    }

    /// Reads a saved value of the present iteration, if it is one.
    pub(super) fn read_slot(&mut self, value: Value) -> Option<Value> {
        let tape = self.forward.tape;
        let region = self.structure.region_of_value(self.source, value)?;
        let around = self.structure.loop_around(self.source, region)?;
        let storage = tape.loops.get(&around)?;
        if !storage.slots.contains_key(&value) {
            return None;
        }
        let memory = self.lookup(storage.memory);
        let numbers: Vec<Value> = storage.nest.iter().map(|op| self.numbers[op]).collect();
        let extents: Vec<Value> = storage
            .extents
            .iter()
            .map(|&extent| self.lookup(extent))
            .collect();
        let total = storage.total.map(|total| self.lookup(total));
        let mut index = linear_index(&mut self.b, &numbers, &extents);
        if storage.rows.is_some() {
            index = self.b.binary(Opcode::Add, self.row_starts[&around], index);
        }
        let ty = self.source.ty(value);
        let address = storage.address(&mut self.b, value, ty, memory, index, total);
        let loaded = self.b.load(ty, address, Alignment::natural(ty));
        self.name_after(loaded, value);
        Some(loaded)
    }
}
