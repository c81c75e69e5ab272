//! Dead-store elimination: removes stores that are overwritten before they are read, stores to memory that the
//! function allocated and never reads, and the last stores to memory of parameters that are `discarded`.
//!
//! ```text
//! store f64 1.0, %p align 8        →      store f64 2.0, %p align 8
//! store f64 2.0, %p align 8
//! ```
//!
//! A backward walk keeps a list of places that will be overwritten, freed or discarded before they are read. A read that
//! may alias such a place removes it from the list; so does an operation that may trap or never end, unless the memory does not
//! escape. The list is short, so that the work stays linear.

use crate::alias::{Access, Aliases, Footprint};
use crate::behaviour::Behaviours;
use crate::memory_order::MemoryOrder;
use crate::pointers::{Object, object_kind};
use crate::with_function::with_function;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{Function, FunctionId, Module, Op, Opcode, Region, Value, all_ops};

/// How many places are kept in mind.
const WINDOW: usize = 32;

/// Removes dead stores, fills and copies; returns the number of operations removed.
pub fn remove_dead_stores(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let dead = find(module, function, body);
        let mut removed = 0;
        sweep(function, body, &dead, &mut removed);
        removed
    })
}

fn find(module: &Module, function: &Function, body: Region) -> EntitySet<Op> {
    let aliases = Aliases::new(module, function);
    let order = MemoryOrder::of(&aliases);
    let dead = never_read(&aliases, &order);
    let mut finder = Finder {
        behaviours: Behaviours::of(module, function),
        aliases: &aliases,
        order,
        pending: Vec::new(),
        dead,
    };
    let mut state = Vec::new();
    for (&argument, param) in function.arguments().iter().zip(&function.params) {
        if param.facts.discarded && state.len() < WINDOW / 2 {
            let access = aliases.access(argument, None);
            finder.expect(function.terminator(body), access, &mut state);
        }
    }
    for &op in &function.regions[body].ops {
        // Stack memory is gone when the function returns.
        if function.ops[op].opcode == Opcode::Stack && state.len() < WINDOW / 2 {
            let access = aliases.access(function.result(op), None);
            if !aliases.is_reachable_from_elsewhere(access.root) {
                finder.expect(op, access, &mut state);
            }
        }
    }
    finder.visit(body, &mut state);
    finder.dead
}

/// The writes to memory that the function made, that did not escape, and that nothing reads.
fn never_read(aliases: &Aliases<'_>, order: &MemoryOrder) -> EntitySet<Op> {
    let function = aliases.function();
    let pointers = aliases.pointers();
    let mut read: EntitySet<Value> = EntitySet::new();
    let mut dead = EntitySet::new();
    let accessed = order.reads().iter().flat_map(|(_, footprint)| {
        let accesses = footprint.accesses.iter();
        accesses.map(|access| access.root)
    });
    // The caller may read memory behind a returned pointer.
    let body = function.body();
    let returned = function.ops[function.terminator(body)]
        .operands
        .iter()
        .filter(|&&value| function.ty(value).is_ptr())
        .map(|&value| pointers.root(value));
    for root in accessed.chain(returned) {
        let bases = pointers.bases(function, root);
        if bases.anything {
            return dead;
        }
        for object in bases.objects {
            read.insert(object);
        }
    }
    for op in all_ops(function) {
        if !is_plain_write(function, op) {
            continue;
        }
        let bases = pointers.bases(function, aliases.writes(op).accesses[0].root);
        let unread = !bases.anything
            && !bases.unknown
            && bases.objects.iter().all(|&object| {
                object_kind(function, object) == Some(Object::Local)
                    && !pointers.is_escaped(object)
                    && !read.contains(object)
            });
        if unread {
            dead.insert(op);
        }
    }
    dead
}

/// Whether an operation only writes one range of memory.
fn is_plain_write(function: &Function, op: Op) -> bool {
    matches!(
        function.ops[op].opcode,
        Opcode::Store | Opcode::Fill | Opcode::Copy | Opcode::Move
    )
}

/// A place that is not read before it is overwritten, released or forgotten; without a size, all of an object.
struct Pending {
    op: Op,
    access: Access,
}

struct Finder<'a, 'm> {
    aliases: &'a Aliases<'m>,
    order: MemoryOrder,
    behaviours: Behaviours,
    pending: Vec<Pending>,
    dead: EntitySet<Op>,
}

impl Finder<'_, '_> {
    /// Walks a region backwards; `state` holds the pending places at the region's end, and is updated to its start.
    fn visit(&mut self, region: Region, state: &mut Vec<usize>) {
        let function = self.aliases.function();
        for &op in function.regions[region].ops.iter().rev() {
            let data = &function.ops[op];
            if self.dead.contains(op) {
                continue;
            }
            match data.opcode {
                Opcode::Store | Opcode::Fill | Opcode::Copy | Opcode::Move => {
                    let written = self.aliases.writes(op).accesses;
                    if state.iter().any(|&index| self.covers(index, &written[0])) {
                        self.dead.insert(op);
                        continue;
                    }
                    if is_constant_size(&written[0]) {
                        self.expect(op, written[0].clone(), state);
                    }
                    self.read(op, &self.aliases.reads(op), state);
                }
                Opcode::Free => {
                    let access = self.aliases.access(data.address(), None);
                    if self.is_own(access.root) && access.offset.is_constant() == Some(0) {
                        self.expect(op, access, state);
                    }
                }
                Opcode::Stack | Opcode::Alloc => {
                    let made = function.result(op);
                    state.retain(|&index| self.pending[index].access.root != made);
                }
                Opcode::For | Opcode::Loop => {
                    for (read, footprint) in self.order.reads_within(op) {
                        if state.is_empty() {
                            break;
                        }
                        self.read(*read, footprint, state);
                    }
                    if self.behaviours.op(op).stops {
                        self.stop(state);
                    }
                    self.visit(data.regions[0], &mut state.clone());
                }
                Opcode::If | Opcode::Switch => {
                    let after = state.clone();
                    for &inner in &data.regions {
                        let mut before = after.clone();
                        self.visit(inner, &mut before);
                        state.retain(|index| before.contains(index));
                    }
                }
                _ => {
                    let read = self.aliases.reads(op);
                    if !read.is_empty() {
                        self.read(op, &read, state);
                    }
                    if self.behaviours.op(op).stops {
                        self.stop(state);
                    }
                }
            }
        }
    }

    fn expect(&mut self, op: Op, access: Access, state: &mut Vec<usize>) {
        if state.len() == WINDOW {
            state.remove(0);
        }
        state.push(self.pending.len());
        self.pending.push(Pending { op, access });
    }

    fn read(&self, op: Op, read: &Footprint, state: &mut Vec<usize>) {
        state.retain(|&index| {
            let pending = &self.pending[index];
            let elsewhere = read.elsewhere
                && self
                    .aliases
                    .is_reachable_from_elsewhere(pending.access.root);
            !elsewhere
                && !read.accesses.iter().any(|access| {
                    self.aliases
                        .may_alias_at((op, access), (pending.op, &pending.access))
                })
        });
    }

    /// Whoever called may see memory as it is now; what the function made for itself, nobody sees, and at what is discarded
    /// nobody looks.
    fn stop(&self, state: &mut Vec<usize>) {
        state.retain(|&index| {
            let root = self.pending[index].access.root;
            self.is_own(root) || self.is_discarded(root)
        });
    }

    fn is_discarded(&self, root: Value) -> bool {
        let function = self.aliases.function();
        let mut params = function.arguments().iter().zip(&function.params);
        params.any(|(&argument, param)| argument == root && param.facts.discarded)
    }

    /// Whether a root is memory that the function allocated and that does not escape.
    fn is_own(&self, root: Value) -> bool {
        object_kind(self.aliases.function(), root) == Some(Object::Local)
            && !self.aliases.is_reachable_from_elsewhere(root)
    }

    /// Whether a pending place holds all of an access.
    fn covers(&self, index: usize, access: &Access) -> bool {
        let pending = &self.pending[index].access;
        if pending.root != access.root {
            return false;
        }
        let Some(size) = &pending.size else {
            return true;
        };
        let distance = access
            .offset
            .sub(&pending.offset)
            .and_then(|distance| distance.is_constant());
        let wanted = access.size.as_ref().and_then(|size| size.is_constant());
        match (distance, wanted, size.is_constant()) {
            (Some(distance), Some(wanted), Some(size)) => {
                distance >= 0 && distance.checked_add(wanted).is_some_and(|end| end <= size)
            }
            _ => false,
        }
    }
}

fn is_constant_size(access: &Access) -> bool {
    access
        .size
        .as_ref()
        .is_some_and(|size| size.is_constant().is_some())
}

fn sweep(function: &mut Function, region: Region, dead: &EntitySet<Op>, removed: &mut usize) {
    function.retain_ops(region, |function, op| {
        if dead.contains(op) {
            *removed += 1;
            return false;
        }
        for inner in function.ops[op].regions.clone() {
            sweep(function, inner, dead, removed);
        }
        true
    });
}

#[cfg(test)]
mod tests {
    use super::remove_dead_stores;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn overwritten_stores_go() {
        check(
            remove_dead_stores,
            "func @f(%p: ptr noalias, %q: ptr noalias, %c: i1, %i: i64) -> (f64) {
               %a = offset %p, %i * 8
               store f64 1.0, %a align 8
               %x = load f64 %q align 8
               if %c {
                 store f64 2.0, %a align 8
                 yield
               }
               store f32 3.0, %a align 8
               store f64 %x, %a align 8
               fill %q, 1, 8 align 8
               fill %q, 0, 64 align 8
               return %x
             }",
            expect![[r#"
                func @f(%p: ptr noalias, %q: ptr noalias, %c: i1, %i: i64) -> (f64) {
                  %a = offset %p, %i * 8
                  %x = load f64 %q align 8
                  if %c {
                    yield
                  }
                  store f64 %x, %a align 8
                  fill %q, 0, 64 align 8
                  return %x
                }
            "#]],
        );
    }

    #[test]
    fn memory_that_is_never_read_or_about_to_go() {
        check(
            remove_dead_stores,
            "func @f(%n: i64, %out: ptr) -> (f64) {
               %p = alloc 80 align 8
               for %i: i64 = 0 to %n step 1 {
                 %q = offset %p, %i * 8
                 store f64 1.0, %q align 8
                 yield
               }
               free %p
               %s = stack 8 align 8
               store f64 2.0, %s align 8
               %x = load f64 %s align 8
               store f64 3.0, %s align 8
               store f64 4.0, %out align 8
               return %x
             }
             func @made(%x: f64) -> (ptr) {
               %p = alloc 8 align 8
               store f64 1.0, %p align 8
               store f64 %x, %p align 8
               return %p
             }",
            expect![[r#"
                func @f(%n: i64, %out: ptr) -> (f64) {
                  %p = alloc 80 align 8
                  for %i: i64 = 0 to %n step 1 {
                    %q = offset %p, %i * 8
                    yield
                  }
                  free %p
                  %s = stack 8 align 8
                  store f64 2.0, %s align 8
                  %x = load f64 %s align 8
                  store f64 4.0, %out align 8
                  return %x
                }

                func @made(%x: f64) -> (ptr) {
                  %p = alloc 8 align 8
                  store f64 %x, %p align 8
                  return %p
                }
            "#]],
        );
    }

    #[test]
    fn what_may_be_read_stays() {
        check_unchanged(
            remove_dead_stores,
            "declare @unknown()
             func @f(%p: ptr, %q: ptr, %n: i64, %c: i1) -> (f64, f64) {
               store f64 1.0, %p align 8
               %x = load f64 %q align 8
               store f64 2.0, %p align 8
               call @unknown()
               store f64 3.0, %p align 8
               if %c {
                 store f64 4.0, %p align 8
                 yield
               }
               %y = load f64 %p align 8
               store f64 5.0, %p align 8
               for %i: i64 = 0 to %n step 1 {
                 store f64 6.0, %p align 8
                 yield
               }
               return %x, %y
             }",
        );
    }

    #[test]
    fn a_trap_in_between_shows_memory() {
        check_unchanged(
            remove_dead_stores,
            r#"func @f(%p: ptr, %c: i1) {
               store f64 1.0, %p align 8
               if %c { trap "look at it" }
               store f64 2.0, %p align 8
               return
             }"#,
        );
    }

    #[test]
    fn loops_see_their_own_reads_in_the_next_turn() {
        check_same_results(
            remove_dead_stores,
            "func @main(%n: i64, %x: f64) -> (f64) {
               %p = alloc 16 align 8 zeroed
               %r = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %b = load f64 %p align 8
                 %c = fadd f64 %b, %x
                 store f64 %c, %p align 8
                 yield %c
               }
               store f64 0.0, %p align 8
               %y = load f64 %p align 8
               %z = fadd f64 %r, %y
               free %p
               return %z
             }",
            &[
                &[Datum::i64(0), Datum::f64(1.5)],
                &[Datum::i64(3), Datum::f64(1.5)],
            ],
        );
    }
}
