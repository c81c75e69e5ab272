//! Store-to-load forwarding: replaces loads by the value that was last stored to or loaded from the same place.
//!
//! ```text
//! store f64 %x, %p align 8                store f64 %x, %p align 8
//! %c = fmul f64 %x, %x             →      %c = fmul f64 %x, %x
//! %a = load f64 %p align 8                %b = fadd f64 %x, %c
//! %b = fadd f64 %a, %c
//! ```
//!
//! Two accesses have the same place if their roots, symbolic offsets and sizes agree. A known value is dropped at any
//! write that may alias it. It is known in the regions of a branch too, and in those of a loop if the loop does not write
//! there; after a branch, values that none of its regions overwrote are still known. A store of the known value is removed. A copy from a constant counts as stores.
//!
//! Only the last few places are remembered, so that the work stays linear; for memory that the function does not write, all are.

use crate::alias::{Access, Aliases, Footprint};
use crate::memory_order::MemoryOrder;
use crate::substitution::Substitution;
use crate::symbolic::Symbolic;
use crate::with_function::with_function;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Constant, Flags, Function, FunctionId, Global, GlobalId, Module, Op, OpView, Opcode, Payload,
    Region, Symbol, Type, Value, ones,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

/// How many places are kept in mind.
const WINDOW: usize = 32;

/// Forwards stores and loads to loads; returns the number of operations removed or replaced.
pub fn forward_stores(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let found = Forwarder::find(module, function, body);
        let changes = found.values.len() + found.redundant.len();
        if changes > 0 {
            apply(module, function, body, found);
        }
        changes
    })
}

/// The known contents of a place.
#[derive(Clone, Copy)]
enum Content {
    Value(Value),
    /// Copies of one byte, at least over the extent of the access.
    Bytes(u8),
    /// The contents of a constant from this offset on.
    Constant(GlobalId, u64),
}

/// A place whose content is known since some operation ran.
struct Known {
    op: Op,
    access: Access,
    content: Content,
}

/// The result of the analysis: known results of loads, and redundant stores.
#[derive(Default)]
struct Found {
    values: Vec<(Op, Content)>,
    redundant: Vec<Op>,
}

/// How many pairs of roots are compared to find memory that the function does not write.
const MAX_COMPARISONS: usize = 20_000;

/// A place in memory that the function does not write: root, offset and size in bytes.
type SteadyPlace = (Value, Symbolic, u64);

struct Forwarder<'a, 'm> {
    module: &'a Module,
    aliases: &'a Aliases<'m>,
    order: MemoryOrder,
    known: Vec<Known>,
    /// Loads in this region or around it from memory that the function does not write.
    steady: FxHashMap<SteadyPlace, Value>,
    /// Whether the function does not write to a root's object, for queried roots.
    is_steady: FxHashMap<Value, bool>,
    /// The roots of all that the function writes, and whether it writes anything elsewhere.
    written: FxHashSet<Value>,
    written_elsewhere: bool,
    /// How many comparisons of roots are left.
    budget: usize,
    /// The known results of loads.
    substitution: Substitution,
    found: Found,
}

impl Forwarder<'_, '_> {
    fn find(module: &Module, function: &Function, body: Region) -> Found {
        let aliases = Aliases::new(module, function);
        let order = MemoryOrder::of(&aliases);
        let footprints = || order.writes().iter().map(|(_, footprint)| footprint);
        let mut forwarder = Forwarder {
            module,
            written: footprints()
                .flat_map(|footprint| footprint.accesses.iter().map(|access| access.root))
                .collect(),
            written_elsewhere: footprints().any(|footprint| footprint.elsewhere),
            budget: MAX_COMPARISONS,
            order,
            aliases: &aliases,
            known: Vec::new(),
            steady: FxHashMap::default(),
            is_steady: FxHashMap::default(),
            substitution: Substitution::new(),
            found: Found::default(),
        };
        forwarder.visit(body, &mut Vec::new());
        forwarder.found
    }

    /// Walks a region; `state` lists known places, the latest last, and is updated to the region's end.
    fn visit(&mut self, region: Region, state: &mut Vec<usize>) {
        let function = self.aliases.function();
        // Loads of this region are not visible after its end.
        let mut entered = Vec::new();
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            match data.opcode {
                Opcode::Load => self.visit_load(op, state, &mut entered),
                Opcode::Store => self.visit_store(op, state),
                Opcode::Fill | Opcode::Alloc => {
                    self.forget(op, &self.aliases.writes(op), state);
                    if let Some((access, byte)) = self.filled(op) {
                        self.learn(op, access, Content::Bytes(byte), state);
                    }
                }
                Opcode::Copy | Opcode::Move => {
                    self.forget(op, &self.aliases.writes(op), state);
                    if let Some((access, content)) = self.copied(op) {
                        self.learn(op, access, content, state);
                    }
                }
                Opcode::For | Opcode::Loop => {
                    for (write, footprint) in self.order.writes_within(op) {
                        if state.is_empty() {
                            break;
                        }
                        self.forget(*write, footprint, state);
                    }
                    self.visit(data.regions[0], &mut state.clone());
                }
                Opcode::If | Opcode::Switch => {
                    let before = state.clone();
                    for &inner in &data.regions {
                        let mut after = before.clone();
                        self.visit(inner, &mut after);
                        if !function.ends_in_trap(inner) {
                            state.retain(|index| after.contains(index));
                        }
                    }
                }
                _ => {
                    let written = self.aliases.writes(op);
                    if !written.is_empty() {
                        self.forget(op, &written, state);
                    }
                }
            }
        }
        for place in entered {
            self.steady.remove(&place);
        }
    }

    fn visit_load(&mut self, op: Op, state: &mut Vec<usize>, entered: &mut Vec<SteadyPlace>) {
        let function = self.aliases.function();
        let result = function.result(op);
        let footprint = self.aliases.reads(op);
        let access = &footprint.accesses[0];
        if let Some(content) = self.look_up(access, function.ty(result), state) {
            return self.replace(op, content);
        }
        if !self.is_steady(access.root) {
            return self.learn(op, access.clone(), Content::Value(result), state);
        }
        let bytes = function.ty(result).bytes();
        let place = (access.root, access.offset.clone(), bytes);
        match self.steady.get(&place) {
            Some(&value) if is_castable(function.ty(value), function.ty(result)) => {
                self.replace(op, Content::Value(value));
            }
            Some(_) => {}
            None => {
                self.steady.insert(place.clone(), result);
                entered.push(place);
            }
        }
    }

    /// Whether the function writes nothing behind a root.
    fn is_steady(&mut self, root: Value) -> bool {
        if let Some(&known) = self.is_steady.get(&root) {
            return known;
        }
        let aliases = self.aliases;
        let elsewhere = self.written_elsewhere && aliases.is_reachable_from_elsewhere(root);
        let steady = aliases.is_never_written(root)
            || !elsewhere
                && self.written.len() <= self.budget
                && !self
                    .written
                    .iter()
                    .any(|&other| aliases.may_share(root, other));
        self.budget = self.budget.saturating_sub(self.written.len());
        self.is_steady.insert(root, steady);
        steady
    }

    /// Records the result of a load.
    fn replace(&mut self, load: Op, content: Content) {
        let function = self.aliases.function();
        let result = function.result(load);
        if let Content::Value(value) = content
            && function.ty(value) == function.ty(result)
        {
            self.substitution.replace(result, value);
        }
        self.found.values.push((load, content));
    }

    fn visit_store(&mut self, op: Op, state: &mut Vec<usize>) {
        let function = self.aliases.function();
        let value = self.substitution.resolve(function.ops[op].value());
        let footprint = self.aliases.writes(op);
        let access = &footprint.accesses[0];
        if let Some(Content::Value(there)) = self.look_up(access, function.ty(value), state)
            && self.substitution.resolve(there) == value
        {
            self.found.redundant.push(op);
            return;
        }
        self.forget(op, &footprint, state);
        self.learn(op, access.clone(), Content::Value(value), state);
    }

    /// The contents of a place, if they can be expressed as a value of this type.
    fn look_up(&self, access: &Access, ty: Type, state: &[usize]) -> Option<Content> {
        let function = self.aliases.function();
        state.iter().rev().find_map(|&index| {
            let known = &self.known[index];
            if known.access.root != access.root {
                return None;
            }
            match known.content {
                Content::Value(value) => {
                    let same = known.access.offset == access.offset
                        && known.access.size == access.size
                        && is_castable(function.ty(value), ty);
                    same.then_some(known.content)
                }
                Content::Bytes(_) => (distance_within(&known.access, access).is_some()
                    && !ty.is_vector())
                .then_some(known.content),
                Content::Constant(global, start) => {
                    let at = start.checked_add(distance_within(&known.access, access)?)?;
                    let is_read = constant_bits(&self.module.globals[global], at, ty).is_some();
                    is_read.then_some(Content::Constant(global, at))
                }
            }
        })
    }

    fn learn(&mut self, op: Op, access: Access, content: Content, state: &mut Vec<usize>) {
        if state.len() == WINDOW {
            state.remove(0);
        }
        state.push(self.known.len());
        self.known.push(Known {
            op,
            access,
            content,
        });
    }

    fn forget(&self, op: Op, written: &Footprint, state: &mut Vec<usize>) {
        state.retain(|&index| {
            let known = &self.known[index];
            let elsewhere =
                written.elsewhere && self.aliases.is_reachable_from_elsewhere(known.access.root);
            !elsewhere
                && !written.accesses.iter().any(|access| {
                    self.aliases
                        .may_alias_at((known.op, &known.access), (op, access))
                })
        });
    }

    /// A stretch of memory that is copied from a constant.
    fn copied(&self, op: Op) -> Option<(Access, Content)> {
        let first = |footprint: Footprint| footprint.accesses.into_iter().next();
        let (written, read) = (
            first(self.aliases.writes(op))?,
            first(self.aliases.reads(op))?,
        );
        written.size.as_ref()?.is_constant()?;
        let from = self.aliases.function().constant_of(read.root)?;
        let &Constant::Global(global) = from else {
            return None;
        };
        let start = u64::try_from(read.offset.is_constant()?).ok()?;
        let is_known = self.module.globals[global].constant;
        is_known.then_some((written, Content::Constant(global, start)))
    }

    /// Memory that an operation sets to copies of one byte: a constant stretch, or all of an object (no size).
    fn filled(&self, op: Op) -> Option<(Access, u8)> {
        let function = self.aliases.function();
        match function.view(op) {
            OpView::Alloc { zeroed: true, .. } => {
                Some((self.aliases.access(function.result(op), None), 0))
            }
            OpView::Fill { byte, .. } => {
                let byte = function.int_of(byte)? as u8;
                let written = self.aliases.writes(op).accesses.into_iter().next()?;
                written.size.as_ref()?.is_constant()?;
                Some((written, byte))
            }
            _ => None,
        }
    }
}

/// How far into a stretch of known bytes an access lies that it holds all of.
fn distance_within(stretch: &Access, access: &Access) -> Option<u64> {
    let Some(size) = &stretch.size else {
        // All of the object; an access outside it is an error anyway.
        return Some(0);
    };
    let distance = access.offset.sub(&stretch.offset)?.is_constant()?;
    let wanted = access.size.as_ref()?.is_constant()?;
    let end = distance.checked_add(wanted)?;
    let is_within = distance >= 0 && end <= size.is_constant()?;
    is_within.then_some(distance.try_into().ok()?)
}

/// A scalar of a constant, other than an address.
fn constant_bits(global: &Global, at: u64, ty: Type) -> Option<u128> {
    let bytes = global.bytes.as_ref().filter(|_| global.constant)?;
    let end = at.checked_add(ty.bytes())?;
    let pointer = Type::PTR.bytes();
    let holds_address = |&(place, _): &(u64, Symbol)| place < end && at < place + pointer;
    let is_known = !ty.is_vector()
        && !ty.is_ptr()
        && end <= global.size
        && !global.relocations.iter().any(holds_address);
    // Bytes that are not listed are zero.
    let byte = |place: u64| bytes.get(place as usize).copied().unwrap_or(0);
    let bits = (at..end)
        .rev()
        .fold(0, |bits, place| bits << 8 | u128::from(byte(place)));
    is_known.then_some(bits & ones(ty.scalar().bits()))
}

/// Whether a value of one type in memory can be read as another by a bit cast, or is of that type.
fn is_castable(from: Type, to: Type) -> bool {
    let whole = |ty: Type| u64::from(ty.scalar().bits()) == 8 * ty.scalar().bytes();
    from == to
        || (from.bytes() == to.bytes()
            && !from.is_ptr()
            && !to.is_ptr()
            && whole(from)
            && whole(to))
}

fn apply(module: &Module, function: &mut Function, body: Region, found: Found) {
    let mut gone: EntitySet<Op> = EntitySet::new();
    let mut substitution = Substitution::new();
    for op in found.redundant {
        gone.insert(op);
    }
    for (op, content) in found.values {
        let result = function.result(op);
        let ty = function.ty(result);
        let value = match content {
            Content::Value(value) => value,
            Content::Bytes(byte) => {
                let raw = u128::from_ne_bytes([byte; 16]) & ones(ty.scalar().bits());
                function.constant(ty, Constant::Bits(raw))
            }
            Content::Constant(global, at) => {
                let bits = constant_bits(&module.globals[global], at, ty).expect("found there");
                function.constant(ty, Constant::Bits(bits))
            }
        };
        if function.ty(value) == ty {
            substitution.replace(result, value);
            gone.insert(op);
        } else {
            let data = &mut function.ops[op];
            data.opcode = Opcode::Bitcast;
            data.operands = smallvec![value];
            data.payload = Payload::None;
            data.flags = Flags::NONE;
        }
    }
    rewrite(function, body, &gone, &substitution);
}

fn rewrite(
    function: &mut Function,
    region: Region,
    gone: &EntitySet<Op>,
    substitution: &Substitution,
) {
    function.retain_ops(region, |function, op| {
        substitution.apply(function, op);
        for inner in function.ops[op].regions.clone() {
            rewrite(function, inner, gone, substitution);
        }
        !gone.contains(op)
    });
}

#[cfg(test)]
mod tests {
    use super::forward_stores;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn stored_and_loaded_values_serve_later_loads() {
        check(
            forward_stores,
            "func @f(%p: ptr noalias, %q: ptr noalias, %x: f64, %i: i64) -> (f64, f64, f64, i64) {
               %a = offset %p, %i * 8
               store f64 %x, %a align 8
               store f64 1.0, %q align 8
               %b = offset %p, %i * 8
               %u = load f64 %b align 8
               %j = add i64 %i, 1
               %c = offset %p, %j * 8
               %v = load f64 %c align 8
               store f64 %v, %c align 8
               %w = load f64 %c align 8
               %z = load i64 %a align 8
               return %u, %v, %w, %z
             }",
            expect![[r#"
                func @f(%p: ptr noalias, %q: ptr noalias, %x: f64, %i: i64) -> (f64, f64, f64, i64) {
                  %a = offset %p, %i * 8
                  store f64 %x, %a align 8
                  store f64 1.0, %q align 8
                  %b = offset %p, %i * 8
                  %j = add i64 %i, 1
                  %c = offset %p, %j * 8
                  %v = load f64 %c align 8
                  %z = bitcast f64 %x to i64
                  return %x, %v, %v, %z
                }
            "#]],
        );
    }

    #[test]
    fn what_is_copied_from_a_constant_is_known() {
        check(
            forward_stores,
            "global @order: 24 bytes align 8 const = x\"0100000000000000feffffff070000000000000000000000\"
             func @f(%q: ptr noalias, %i: i64) -> (i64, i32, i64, i64, i64) {
               %p = stack 24 align 8
               %from = offset @order, 0
               copy %p, %from, 20 align 8
               store i64 7, %q align 8
               %a = load i64 %p align 8
               %b = offset %p, 8
               %c = load i32 %b align 8
               %d = offset %p, 12
               %e = load i64 %d align 4
               %g = offset %p, 16
               %h = load i64 %g align 8
               store i64 5, %p align 8
               %j = load i64 %b align 8
               return %a, %c, %e, %h, %j
             }",
            expect![[r#"
                global @order: 24 bytes align 8 const = x"0100000000000000feffffff070000000000000000000000"

                func @f(%q: ptr noalias, %i: i64) -> (i64, i32, i64, i64, i64) {
                  %p = stack 24 align 8
                  %from = offset @order, 0
                  copy %p, %from, 20 align 8
                  store i64 7, %q align 8
                  %b = offset %p, 8
                  %d = offset %p, 12
                  %g = offset %p, 16
                  %h = load i64 %g align 8
                  store i64 5, %p align 8
                  %j = load i64 %b align 8
                  return 1, -2, 7, %h, %j
                }
            "#]],
        );
    }

    #[test]
    fn what_is_known_holds_in_regions_that_write_elsewhere() {
        check(
            forward_stores,
            "func @f(%p: ptr noalias, %q: ptr noalias, %n: i64, %c: i1) -> (f64, f64, f64) {
               %x = load f64 %p align 8
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %y = load f64 %p align 8
                 %b = fadd f64 %a, %y
                 %r = offset %q, %i * 8
                 store f64 %b, %r align 8
                 yield %b
               }
               if %c {
                 store f64 1.0, %q align 8
                 yield
               }
               %z = load f64 %p align 8
               %w = load f64 %q align 8
               return %s, %z, %w
             }",
            expect![[r#"
                func @f(%p: ptr noalias, %q: ptr noalias, %n: i64, %c: i1) -> (f64, f64, f64) {
                  %x = load f64 %p align 8
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, %x
                    %r = offset %q, %i * 8
                    store f64 %b, %r align 8
                    yield %b
                  }
                  if %c {
                    store f64 1.0, %q align 8
                    yield
                  }
                  %w = load f64 %q align 8
                  return %s, %x, %w
                }
            "#]],
        );
    }

    #[test]
    fn of_memory_that_is_not_written_nothing_is_forgotten() {
        let loads = |name: &str| -> String {
            let load = |i: usize| {
                format!(
                    "%{name}p{i} = offset %p, {i} * 8\n%{name}{i} = load f64 %{name}p{i} align 8\nstore f64 %{name}{i}, %q align 8\n"
                )
            };
            (0..100).map(load).collect()
        };
        let text = format!(
            "func @f(%p: ptr noalias readonly, %q: ptr, %c: i1) {{ {}\n if %c {{ %y = offset %p, 800\n %z = load f64 %y align 8\n yield }}\n {} %v = offset %p, 800\n %w = load f64 %v align 8\n return }}",
            loads("a"),
            loads("b")
        );
        let mut module = ferrozyme_ir::parse_module(&text).expect("it parses");
        let id = module.functions.keys().next().expect("one function");
        // All loads of the second half, but not the one of what was loaded in the branch.
        assert_eq!(forward_stores(&mut module, id), 100);
    }

    #[test]
    fn filled_memory_is_known() {
        check(
            forward_stores,
            "func @f(%p: ptr) -> (f64, f32, f64) {
               fill %p, 0, 64 align 8
               %a = offset %p, 24
               %x = load f64 %a align 8
               %q = alloc 80 align 8 zeroed
               %b = offset %q, 4
               %y = load f32 %b align 4
               store f64 2.0, %q align 8
               %z = load f64 %q align 8
               free %q
               return %x, %y, %z
             }",
            expect![[r#"
                func @f(%p: ptr) -> (f64, f32, f64) {
                  fill %p, 0, 64 align 8
                  %a = offset %p, 24
                  %q = alloc 80 align 8 zeroed
                  %b = offset %q, 4
                  store f64 2.0, %q align 8
                  free %q
                  return 0.0, 0.0, 2.0
                }
            "#]],
        );
    }

    #[test]
    fn writes_that_may_touch_forget() {
        check_unchanged(
            forward_stores,
            "declare @unknown()
             func @f(%p: ptr, %q: ptr, %x: f64, %i: i64, %n: i64, %c: i1) -> (f64, f64, f64, f64) {
               store f64 %x, %p align 8
               store f64 1.0, %q align 8
               %a = load f64 %p align 8
               call @unknown()
               %b = load f64 %p align 8
               %s = for %k: i64 = 0 to %n step 1 with (%y: f64 = 0.0) {
                 %d = load f64 %p align 8
                 %r = offset %p, %k * 8
                 store f64 3.0, %r align 8
                 yield %d
               }
               if %c {
                 store f64 4.0, %q align 8
                 yield
               }
               %e = load f64 %p align 8
               return %a, %b, %s, %e
             }",
        );
    }

    #[test]
    fn results_stay_the_same() {
        check_same_results(
            forward_stores,
            "func @main(%n: i64, %x: f64) -> (f64, f64) {
               %p = alloc 80 align 8 zeroed
               for %i: i64 = 1 to %n step 1 {
                 %q = offset %p, %i * 8
                 %r = offset %q, -8
                 %a = load f64 %r align 8
                 %b = fadd f64 %a, %x
                 store f64 %b, %q align 8
                 %c = load f64 %r align 8
                 %d = load f64 %q align 8
                 %e = fmul f64 %c, %d
                 store f64 %e, %r align 8
                 yield
               }
               %s = load f64 %p align 8
               %o = offset %p, 16
               %t = load f64 %o align 8
               free %p
               return %s, %t
             }",
            &[
                &[Datum::i64(0), Datum::f64(1.5)],
                &[Datum::i64(2), Datum::f64(1.5)],
                &[Datum::i64(10), Datum::f64(1.5)],
            ],
        );
    }
}
