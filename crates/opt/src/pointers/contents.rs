//! What pointers lead to that are loaded from memory which only the function itself reaches.
//!
//! ```text
//! %table = alloc …
//! for %i … { %row = alloc …  store ptr %row, %table[i] }
//! for %i … { %p = load ptr %table[i] … }                      %p points into a %row, and into nothing else that has escaped
//! ```
//!
//! Such an object must not have escaped, and nothing but whole pointers may be stored there: a number, a copy of other memory or a callee could bring any pointer.

use super::{Bases, Object, Pointers, object_kind};
use ferrozyme_ir::{Constant, Function, OpView, Opcode, Value, all_ops};
use rustc_hash::FxHashMap;

/// What is stored in objects of whose contents all is known.
type Contents = FxHashMap<Value, Bases>;

impl Pointers {
    /// Finds the bases of loaded pointers, where the escapes are known.
    pub(super) fn find_contents(&mut self, function: &Function) {
        let Some(contents) = self.contents(function) else {
            return;
        };
        let mut found = Vec::new();
        for op in all_ops(function) {
            let OpView::Load { address, .. } = function.view(op) else {
                continue;
            };
            let result = function.result(op);
            let ty = function.ty(result);
            if !ty.is_ptr() || ty.is_vector() {
                continue;
            }
            let places = self.bases(function, self.root(address));
            if places.unknown || places.anything || places.objects.is_empty() {
                continue;
            }
            let mut bases = Bases::default();
            let all = places.objects.iter().all(|object| {
                let stored = contents.get(object);
                stored.inspect(|stored| bases.join(stored)).is_some()
            });
            // What is promised of the pointers that were stored is not of those that are loaded.
            bases.exclusive = None;
            if all && !bases.anything {
                found.push((result, bases));
            }
        }
        self.bases.extend(found);
    }

    /// What is stored in each object that has not escaped and holds nothing but pointers; none if there is no such object.
    fn contents(&self, function: &Function) -> Option<Contents> {
        let ops = all_ops(function);
        let mut contents = Contents::default();
        for &op in &ops {
            if matches!(function.ops[op].opcode, Opcode::Stack | Opcode::Alloc) {
                let object = function.result(op);
                let is_own = object_kind(function, object) == Some(Object::Local);
                if is_own && !self.is_escaped(object) {
                    contents.insert(object, Bases::default());
                }
            }
        }
        for &op in &ops {
            if contents.is_empty() {
                return None;
            }
            let data = &function.ops[op];
            match data.view() {
                OpView::Store { address, value, .. } => {
                    let ty = function.ty(value);
                    let stored = match ty.is_ptr() && !ty.is_vector() {
                        true => Some(self.bases(function, self.root(value))),
                        false => None,
                    };
                    self.put(function, &mut contents, address, stored.as_ref());
                }
                OpView::Fill {
                    destination, byte, ..
                } => {
                    let is_zero = function.constant_of(byte) == Some(&Constant::Bits(0));
                    let null = Bases::default();
                    self.put(
                        function,
                        &mut contents,
                        destination,
                        is_zero.then_some(&null),
                    );
                }
                _ => match data.opcode {
                    // These only read, compare, move on or end it.
                    Opcode::Load
                    | Opcode::Offset
                    | Opcode::Exclusive
                    | Opcode::Icmp
                    | Opcode::Select
                    | Opcode::If
                    | Opcode::Switch
                    | Opcode::For
                    | Opcode::Loop
                    | Opcode::Again
                    | Opcode::Yield
                    | Opcode::Free => {}
                    _ => {
                        for &operand in &data.operands {
                            if function.ty(operand).is_ptr() {
                                self.put(function, &mut contents, operand, None);
                            }
                        }
                    }
                },
            }
        }
        Some(contents)
    }

    /// Something is stored behind an address: pointers to known objects, or something else.
    fn put(
        &self,
        function: &Function,
        contents: &mut Contents,
        address: Value,
        stored: Option<&Bases>,
    ) {
        let places = self.bases(function, self.root(address));
        if places.anything {
            contents.clear();
        }
        for object in &places.objects {
            match stored {
                Some(stored) => {
                    if let Some(known) = contents.get_mut(object) {
                        known.join(stored);
                    }
                }
                None => {
                    contents.remove(object);
                }
            }
        }
    }
}
