//! Calls: arguments that satisfy what a function asks for, directly or through a pointer.

use super::helper::{Helper, Outcome, Parameter, Role};
use super::memory::eight;
use super::scope::{Array, Element, Owned, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{FunctionId, Op, Opcode, Payload, Type, Value};

/// How many operations calls at one place may run in all.
const WORK: u64 = 3000;

impl Writer<'_, '_> {
    /// Calls one of the functions, if its cost is bearable here.
    pub(crate) fn call_statement(&mut self) {
        let weight = self.weight;
        let count = self.shared.helpers.len();
        let position = self.random().below(count);
        let helper = self.shared.helpers[position].clone();
        if let Role::Maker(shape) = helper.role {
            return self.make_owner(shape);
        }
        if helper.role != Role::General || !self.affords_call(&helper) {
            return self.new_float();
        }
        let Some(arguments) = self.call_arguments(&helper, None) else {
            return self.new_float();
        };
        self.note(Feature::Call);
        if helper.results.len() > 1 {
            self.note(Feature::SeveralResults);
        }
        let types: Vec<Type> = helper
            .results
            .iter()
            .map(|result| match result {
                Outcome::Float => Type::F64,
                Outcome::Window { .. } | Outcome::Fresh { .. } => Type::PTR,
            })
            .collect();
        self.cost += helper.cost * weight;
        let op = match helper.twin {
            Some(twin) => self.indirect_call(helper.id, twin, &arguments, &types),
            None => self.b().call(helper.id, &arguments, &types),
        };
        let values = self.function.ops[op].results.to_vec();
        for (&value, result) in values.iter().zip(&helper.results) {
            match *result {
                Outcome::Float => {
                    self.add_float(value, SMALL);
                }
                Outcome::Window { length, writable } => self.scope.arrays.push(Array {
                    pointer: value,
                    length,
                    element: Element::Double,
                    writable,
                    object: None,
                }),
                Outcome::Fresh { length } => {
                    self.scope.owned.push(Owned::Memory(value));
                    let object = Some(self.shared.new_object());
                    self.scope.arrays.push(Array {
                        pointer: value,
                        length,
                        element: Element::Double,
                        writable: true,
                        object,
                    });
                }
            }
        }
    }

    /// Whether a function may be called here: its cost is bearable, and it keeps what this one promises.
    pub(crate) fn affords_call(&self, helper: &Helper) -> bool {
        helper.cost * self.weight <= WORK && (!self.reads_only || helper.reads_only)
    }

    /// Calls one of two functions through a pointer that depends on data, or comes from memory.
    fn indirect_call(
        &mut self,
        left: FunctionId,
        right: FunctionId,
        arguments: &[Value],
        types: &[Type],
    ) -> Op {
        self.note(Feature::Indirect);
        let left_address = self.b().function_address(left);
        let right_address = self.b().function_address(right);
        let callee = match self.random().below(3) {
            0 => left_address,
            1 => {
                let condition = self.condition();
                self.b().select(condition, left_address, right_address)
            }
            _ => {
                let size = self.int(16);
                let table = self.b().stack(size, eight());
                self.b().store(left_address, table, eight());
                let second = self.b().offset_bytes(table, 8);
                self.b().store(right_address, second, eight());
                let index = self.index(2);
                let entry = self.b().offset(table, index, 8);
                self.b().load(Type::PTR, entry, eight())
            }
        };
        let mut operands = vec![callee];
        operands.extend_from_slice(arguments);
        let payload = Payload::Results(types.into());
        self.b().op(Opcode::CallIndirect, &operands, payload, types)
    }

    /// Arguments that satisfy what a function asks for, with a slot if it asks for one; none if the scope has no such arrays.
    pub(crate) fn call_arguments(
        &mut self,
        helper: &Helper,
        slot: Option<Value>,
    ) -> Option<Vec<Value>> {
        let mut arguments = Vec::new();
        let mut passed: Vec<Array> = Vec::new();
        for param in &helper.params {
            let value = match *param {
                Parameter::Float => self.small(2),
                Parameter::Int { max } => self.index(max + 1),
                Parameter::Slot => slot?,
                Parameter::Owner { shape } => {
                    let owners = self.scope.owners.iter();
                    let fitting: Vec<Value> = owners
                        .filter(|owner| owner.shape == shape)
                        .map(|owner| owner.slot)
                        .collect();
                    if fitting.is_empty() {
                        return None;
                    }
                    self.random().pick(&fitting)
                }
                Parameter::Kept => return None,
                Parameter::Object { element, length } => {
                    let fits = |array: &Array| array.element == element && array.length >= length;
                    self.pick_array(fits)?.pointer
                }
                Parameter::Array {
                    length,
                    writable,
                    noalias,
                } => {
                    let fits = |array: &Array| {
                        array.element == Element::Double
                            && array.length >= length
                            && (array.writable || !writable)
                    };
                    let array = if noalias {
                        let taken: Vec<Option<u32>> =
                            passed.iter().map(|array| array.object).collect();
                        self.pick_array(|array| {
                            fits(array) && array.object.is_some() && !taken.contains(&array.object)
                        })?
                    } else {
                        match passed.first() {
                            // The same memory twice is what makes alias analysis earn its keep.
                            Some(&first) if fits(&first) && self.random().percent(30) => first,
                            _ => self.pick_array(fits)?,
                        }
                    };
                    let spare = array.length - length;
                    let first = if self.random().percent(30) {
                        self.random().between(0, spare)
                    } else {
                        0
                    };
                    if let Some(other) = passed.first()
                        && (other.pointer == array.pointer
                            || array.object.is_some() && other.object == array.object)
                    {
                        self.note(if first == 0 {
                            Feature::AliasedCall
                        } else {
                            Feature::OverlappingCall
                        });
                    }
                    passed.push(array);
                    if first > 0 {
                        self.b().offset_bytes(array.pointer, 8 * first)
                    } else {
                        array.pointer
                    }
                }
            };
            arguments.push(value);
        }
        Some(arguments)
    }
}
