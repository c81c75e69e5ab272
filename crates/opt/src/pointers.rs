//! Underlying objects of pointers: every pointer is a root plus a number of bytes.
//!
//! The root of a pointer is what remains when `offset`s are stripped: a parameter, the result of `stack` or `alloc`, the
//! address of a global, or a pointer of unknown origin (loaded, returned by a call, made from an integer). Where the
//! branches of a `select` or `if`, or the iterations of a loop, agree on the root, so does their result; its offset is
//! then a variable of its own. Where they disagree, the result is a root itself, and its [`Bases`] list the objects it
//! may point into.
//!
//! An object whose address is stored, passed to a call or turned into an integer has escaped: pointers of unknown origin may
//! point into it, but not those that are loaded from an object of which all contents are known (`pointers/contents.rs`). The analysis ignores the order of execution, except that an object that escapes only on the way to a trap
//! does not alias pointers elsewhere.

mod contents;

use crate::behaviour::handling;
use crate::carried::{carried_at, sources_of_carried, sources_of_result};
use crate::indices::Indices;
use crate::recurrence::even_step;
use crate::symbolic::Symbolic;
use ferrozyme_ir::entity::packed_option::PackedOption;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Constant, Flags, Function, IntPredicate, Module, Op, OpView, Opcode, Payload, Region, Value,
    ValueDef,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The roots, offsets and possible objects of a function's pointers.
pub struct Pointers {
    roots: SecondaryMap<Value, PackedOption<Value>>,
    offsets: SecondaryMap<Value, Option<Symbolic>>,
    bases: FxHashMap<Value, Bases>,
    choices: FxHashMap<Value, Choices>,
    escaped: EntitySet<Value>,
    everything_escaped: bool,
    /// Objects that escape in code that returns.
    escaped_for_good: EntitySet<Value>,
    everything_escaped_for_good: bool,
    /// Pointers that are defined in code that does not return.
    doomed: EntitySet<Value>,
}

/// The offsets that a pointer has by different branches of an `if`, each with where its branch ends.
pub(crate) type Choices = SmallVec<[(Symbolic, Op); 2]>;

/// The objects that a root may point into.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bases {
    /// The objects, by the value of their address: parameters, results of `stack` and `alloc`, globals; sorted.
    pub objects: SmallVec<[Value; 2]>,
    /// Also anything that other code can reach: globals, memory of parameters without `noalias`, escaped objects.
    pub unknown: bool,
    /// Anything at all.
    pub anything: bool,
    /// The `exclusive` pointers that all ways to these objects go through, if they do, and are exclusive because of one test.
    pub exclusive: Option<Exclusive>,
}

/// Pointers that are exclusive because of the same test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exclusive {
    /// The test; it is made once, outside of all loops.
    pub tested: Value,
    /// Results of `exclusive`; sorted.
    pub pointers: SmallVec<[Value; 2]>,
}

impl Exclusive {
    /// Whether memory that is written through one of some pointers is not accessed through others.
    fn is_apart_from(&self, other: &Exclusive) -> bool {
        self.tested == other.tested
            && self
                .pointers
                .iter()
                .all(|pointer| !other.pointers.contains(pointer))
    }
}

/// The kind of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// Memory that the function made itself, new in each execution of `stack` or `alloc`.
    Local,
    /// What a `noalias` parameter points to.
    Exclusive,
    /// What another parameter points to.
    Shared,
    /// A global.
    Global,
}

/// More possible objects than this count as anything.
const MAX_BASES: usize = 8;
/// No memory lies at addresses below this.
const FIRST_ADDRESS: u128 = 4096;
/// How often the walk over merging pointers is repeated before it gives up.
const MAX_PASSES: usize = 16;

/// A definition of a pointer in terms of others, in the order of the text.
enum Definition {
    Offset {
        result: Value,
        base: Value,
    },
    /// One of several pointers: the result of `select` or `if`, or a value that a loop carries.
    Merge {
        result: Value,
        inputs: SmallVec<[Value; 4]>,
        /// Roots from within its regions mean nothing outside.
        holder: Op,
    },
    /// The same address, with a promise: a root of its own.
    Exclusive {
        result: Value,
        pointer: Value,
        /// The test, if there is one for all executions.
        tested: Option<Value>,
    },
}

impl Pointers {
    /// Computes them, in a few linear walks.
    pub fn of(module: &Module, indices: &Indices) -> Pointers {
        let function = indices.function();
        let mut definitions = Vec::new();
        if let Some(body) = function.body {
            collect(indices, body, &mut definitions);
        }
        let mut pointers = Pointers {
            roots: SecondaryMap::with_default(None.into()),
            offsets: SecondaryMap::new(),
            bases: FxHashMap::default(),
            choices: FxHashMap::default(),
            escaped: EntitySet::new(),
            everything_escaped: false,
            escaped_for_good: EntitySet::new(),
            everything_escaped_for_good: false,
            doomed: EntitySet::new(),
        };
        pointers.find_roots(indices, &definitions);
        pointers.find_offsets(indices, &definitions);
        pointers.find_bases(function, &definitions);
        if let Some(body) = function.body {
            pointers.find_escapes(module, function, body, false);
            pointers.find_contents(function);
        }
        pointers
    }

    /// The root of a pointer.
    pub fn root(&self, pointer: Value) -> Value {
        self.roots[pointer].expand().unwrap_or(pointer)
    }

    /// How many bytes a pointer lies behind its root.
    pub fn offset(&self, pointer: Value) -> Symbolic {
        self.offsets[pointer].clone().unwrap_or_default()
    }

    /// The offsets that may stand behind a variable called after a pointer, if it is known between which it was chosen.
    pub(crate) fn choices(&self, variable: Value) -> Option<&Choices> {
        self.choices.get(&variable)
    }

    /// The objects that a root may point into.
    pub fn bases(&self, function: &Function, root: Value) -> Bases {
        match self.bases.get(&root) {
            Some(bases) => bases.clone(),
            None => own_bases(function, root),
        }
    }

    /// Whether pointers of unknown origin may point into an object.
    pub fn is_escaped(&self, object: Value) -> bool {
        self.everything_escaped || self.escaped.contains(object)
    }

    /// Whether two roots may point into the same object.
    pub fn may_share(&self, function: &Function, a: Value, b: Value) -> bool {
        // The common cases need no sets.
        if a == b {
            return true;
        }
        let roots = (a, b);
        let (a, b) = (self.bases(function, a), self.bases(function, b));
        if let (Some(a), Some(b)) = (&a.exclusive, &b.exclusive)
            && a.is_apart_from(b)
        {
            return false;
        }
        if a.anything || b.anything {
            return true;
        }
        if a.unknown && b.unknown {
            return true;
        }
        let reaches = |root: Value, object: Value| match object_kind(function, object) {
            Some(Object::Local | Object::Exclusive) if !self.doomed.contains(root) => {
                self.everything_escaped_for_good || self.escaped_for_good.contains(object)
            }
            _ => self.is_reachable(function, object),
        };
        if a.unknown && b.objects.iter().any(|&object| reaches(roots.0, object))
            || b.unknown && a.objects.iter().any(|&object| reaches(roots.1, object))
        {
            return true;
        }
        a.objects.iter().any(|&one| {
            b.objects
                .iter()
                .any(|&other| may_be_same(function, one, other))
        })
    }

    /// Whether code elsewhere, or a pointer of unknown origin, can access the object of a root.
    pub fn is_reachable_from_elsewhere(&self, function: &Function, root: Value) -> bool {
        let bases = self.bases(function, root);
        bases.anything
            || bases.unknown
            || bases
                .objects
                .iter()
                .any(|&object| self.is_reachable(function, object))
    }

    /// Whether a pointer of unknown origin may point into an object.
    pub fn is_reachable(&self, function: &Function, object: Value) -> bool {
        match object_kind(function, object) {
            Some(Object::Local | Object::Exclusive) => self.is_escaped(object),
            _ => true,
        }
    }

    // ---- roots

    fn find_roots(&mut self, indices: &Indices, definitions: &[Definition]) {
        let function = indices.function();
        let mut defined: EntitySet<Value> = EntitySet::new();
        for definition in definitions {
            defined.insert(definition.result());
        }
        // None means that nothing is known yet, which agrees with everything.
        let root_of = |roots: &SecondaryMap<Value, PackedOption<Value>>, value: Value| {
            if defined.contains(value) {
                roots[value].expand()
            } else {
                Some(value)
            }
        };
        let mut own: EntitySet<Value> = EntitySet::new();
        for pass in 0.. {
            let give_up = pass >= MAX_PASSES;
            let mut changed = false;
            for definition in definitions {
                let (result, root) = match definition {
                    Definition::Offset { result, base } => (*result, root_of(&self.roots, *base)),
                    Definition::Exclusive { result, .. } => (*result, Some(*result)),
                    Definition::Merge {
                        result,
                        inputs,
                        holder,
                    } => {
                        let mut common = None;
                        let mut agree = !own.contains(*result) && !give_up;
                        for root in inputs
                            .iter()
                            .filter_map(|&input| root_of(&self.roots, input))
                        {
                            agree &= common.is_none_or(|other| other == root)
                                && (function.ops[*holder].regions.is_empty()
                                    || indices.is_defined_outside(root, *holder));
                            common = Some(root);
                        }
                        if !agree {
                            own.insert(*result);
                            common = Some(*result);
                        }
                        (*result, common)
                    }
                };
                if self.roots[result].expand() != root {
                    self.roots[result] = root.into();
                    changed = true;
                }
            }
            // Once all merges are roots of their own, a single walk gives every offset its root.
            if !changed || give_up {
                break;
            }
        }
    }

    // ---- offsets

    fn find_offsets(&mut self, indices: &Indices, definitions: &[Definition]) {
        for definition in definitions {
            let result = definition.result();
            if self.root(result) == result {
                continue;
            }
            let offset = match definition {
                Definition::Offset { base, .. } => self.offset_behind(indices, result, *base),
                Definition::Merge { inputs, holder, .. } => {
                    self.merged_offset(indices, result, inputs, *holder)
                }
                Definition::Exclusive { .. } => None,
            };
            if offset.is_none()
                && let Definition::Merge { inputs, holder, .. } = definition
                && let Some(choices) = self.chosen_offsets(indices, inputs, *holder)
            {
                self.choices.insert(result, choices);
            }
            // What cannot be expressed is a variable, called after the pointer.
            self.offsets[result] = Some(offset.unwrap_or_else(|| Symbolic::of_value(result)));
        }
    }

    fn offset_behind(&self, indices: &Indices, result: Value, base: Value) -> Option<Symbolic> {
        let (op, _) = indices.function().def_op(result)?;
        let data = &indices.function().ops[op];
        let bytes = scaled_index(indices, op)?;
        let sum = self.offset(base).add(&bytes)?;
        let large = |coefficient: i64| coefficient.unsigned_abs() > 1 << 32;
        let wraps = sum.terms().iter().any(|term| large(term.coefficient));
        (data.flags.contains(Flags::INBOUNDS) || !wraps).then_some(sum)
    }

    fn merged_offset(
        &self,
        indices: &Indices,
        result: Value,
        inputs: &[Value],
        holder: Op,
    ) -> Option<Symbolic> {
        let function = indices.function();
        match function.ops[holder].opcode {
            Opcode::Select => {
                let offset = self.offset(inputs[0]);
                inputs
                    .iter()
                    .all(|&input| self.offset(input) == offset)
                    .then_some(offset)
            }
            Opcode::For => self.carried_offset(indices, result, holder),
            Opcode::If => self.branched_offset(indices, inputs, holder),
            _ => None,
        }
    }

    /// The offset that both branches of an `if` agree on, if need be because of what the condition says: where `i` is 0 in one of
    /// them, `8·i` in the other is right for both.
    fn branched_offset(&self, indices: &Indices, inputs: &[Value], holder: Op) -> Option<Symbolic> {
        let &[first, second] = inputs else {
            return (inputs.len() == 1)
                .then(|| self.offset(inputs[0]))
                .filter(|offset| {
                    offset
                        .variables()
                        .all(|value| indices.is_defined_outside(value, holder))
                });
        };
        let (first, second) = (self.offset(first), self.offset(second));
        let visible = |offset: &Symbolic| {
            offset
                .variables()
                .all(|value| indices.is_defined_outside(value, holder))
        };
        if first == second {
            return visible(&first).then_some(first);
        }
        let (equal, variable, number) = equality(indices, holder)?;
        let (there, elsewhere) = if equal {
            (first, second)
        } else {
            (second, first)
        };
        let number = Symbolic::constant(number);
        let agree =
            elsewhere.substitute(variable, &number)? == there.substitute(variable, &number)?;
        (agree && visible(&elsewhere)).then_some(elsewhere)
    }

    /// The offsets that the branches of an `if` choose between.
    fn chosen_offsets(&self, indices: &Indices, inputs: &[Value], holder: Op) -> Option<Choices> {
        let function = indices.function();
        let data = &function.ops[holder];
        if data.opcode != Opcode::If {
            return None;
        }
        let ends = data
            .regions
            .iter()
            .map(|&region| function.terminator(region));
        let ends: SmallVec<[Op; 2]> = ends
            .filter(|&end| function.ops[end].opcode == Opcode::Yield)
            .collect();
        let offsets = inputs.iter().map(|&input| self.offset(input));
        (ends.len() == inputs.len()).then(|| offsets.zip(ends).collect())
    }

    /// A pointer that a `for` moves by the same distance in each iteration, in terms of the counter.
    fn carried_offset(&self, indices: &Indices, argument: Value, op: Op) -> Option<Symbolic> {
        let function = indices.function();
        let ValueDef::Argument { index, .. } = function.values[argument].def else {
            return None;
        };
        let carried = carried_at(function, op, (index as usize).checked_sub(1)?)?;
        let initial = self.offset(carried.initial);
        if carried.next == argument {
            return Some(initial);
        }
        let step = even_step(function, indices.structure(), op, &carried)?;
        initial.add(&step.elapsed(indices, op)?)
    }

    // ---- bases

    fn find_bases(&mut self, function: &Function, definitions: &[Definition]) {
        type Merge<'a> = (Value, &'a [Value], Option<Exclusive>);
        let merges: Vec<Merge<'_>> = definitions
            .iter()
            .filter_map(|definition| match definition {
                Definition::Merge { result, inputs, .. } if self.root(*result) == *result => {
                    Some((*result, inputs.as_slice(), None))
                }
                Definition::Exclusive {
                    result,
                    pointer,
                    tested,
                } => {
                    let exclusive = tested.map(|tested| Exclusive {
                        tested,
                        pointers: smallvec::smallvec![*result],
                    });
                    Some((*result, std::slice::from_ref(pointer), exclusive))
                }
                _ => None,
            })
            .collect();
        for &(result, ..) in &merges {
            self.bases.insert(result, Bases::default());
        }
        for _ in 0..MAX_PASSES {
            let mut changed = false;
            for (result, inputs, exclusive) in &merges {
                let (result, inputs) = (*result, *inputs);
                let mut bases = self.bases[&result].clone();
                for &input in inputs {
                    let mut others = self.bases(function, self.root(input));
                    if exclusive.is_some() {
                        others.exclusive.clone_from(exclusive);
                    }
                    bases.join(&others);
                }
                if bases != self.bases[&result] {
                    self.bases.insert(result, bases);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
        for &(result, ..) in &merges {
            let anything = Bases {
                anything: true,
                ..Bases::default()
            };
            self.bases.insert(result, anything);
        }
    }

    // ---- escapes

    /// Finds objects that escape in a region; `ends` says that the region does not return.
    fn find_escapes(&mut self, module: &Module, function: &Function, region: Region, ends: bool) {
        let ends = ends || function.ends_in_trap(region);
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            for (index, &operand) in data.operands.iter().enumerate() {
                if function.ty(operand).is_ptr() && captures(module, function, op, index) {
                    self.escape(function, operand, ends);
                }
            }
            if ends {
                for &result in &data.results {
                    self.doomed.insert(result);
                }
            }
            for &inner in &data.regions {
                if ends {
                    for &argument in &function.regions[inner].args {
                        self.doomed.insert(argument);
                    }
                }
                self.find_escapes(module, function, inner, ends);
            }
        }
    }

    fn escape(&mut self, function: &Function, pointer: Value, ends: bool) {
        let bases = self.bases(function, self.root(pointer));
        self.everything_escaped |= bases.anything;
        self.everything_escaped_for_good |= bases.anything && !ends;
        for object in bases.objects {
            self.escaped.insert(object);
            if !ends {
                self.escaped_for_good.insert(object);
            }
        }
    }
}

impl Bases {
    /// Whether there is no object at all.
    fn is_nothing(&self) -> bool {
        self.objects.is_empty() && !self.unknown && !self.anything
    }

    fn join(&mut self, other: &Bases) {
        self.join_exclusive(other);
        self.unknown |= other.unknown;
        self.anything |= other.anything;
        for &object in &other.objects {
            if let Err(position) = self.objects.binary_search(&object) {
                self.objects.insert(position, object);
            }
        }
        if self.objects.len() > MAX_BASES {
            self.anything = true;
        }
        if self.anything {
            self.objects.clear();
            self.unknown = false;
        }
    }
}

impl Bases {
    /// Keeps the promises of `exclusive` that hold for both.
    fn join_exclusive(&mut self, other: &Bases) {
        if other.is_nothing() {
            return;
        }
        if self.is_nothing() {
            self.exclusive.clone_from(&other.exclusive);
            return;
        }
        let joined = match (self.exclusive.take(), &other.exclusive) {
            (Some(mut own), Some(other)) if own.tested == other.tested => {
                for &pointer in &other.pointers {
                    if let Err(position) = own.pointers.binary_search(&pointer) {
                        own.pointers.insert(position, pointer);
                    }
                }
                Some(own)
            }
            _ => None,
        };
        self.exclusive = joined;
    }
}

impl Definition {
    fn result(&self) -> Value {
        match self {
            Definition::Offset { result, .. }
            | Definition::Merge { result, .. }
            | Definition::Exclusive { result, .. } => *result,
        }
    }
}

/// The kind of an object; none for pointers of unknown origin.
pub fn object_kind(function: &Function, root: Value) -> Option<Object> {
    match &function.values[root].def {
        ValueDef::Argument { region, index } if Some(*region) == function.body => {
            let exclusive = function
                .params
                .get(*index as usize)
                .is_some_and(|param| param.facts.noalias);
            Some(if exclusive {
                Object::Exclusive
            } else {
                Object::Shared
            })
        }
        ValueDef::Argument { .. } => None,
        ValueDef::Result { op, .. } => match function.ops[*op].opcode {
            Opcode::Stack | Opcode::Alloc => Some(Object::Local),
            _ => None,
        },
        ValueDef::Constant(Constant::Global(_)) => Some(Object::Global),
        ValueDef::Constant(_) => None,
    }
}

/// Whether an object is a global that is never written.
pub fn is_constant_object(module: &Module, function: &Function, object: Value) -> bool {
    match function.constant_of(object) {
        Some(Constant::Global(global)) => module.globals[*global].constant,
        _ => false,
    }
}

/// Whether two named objects may be one.
fn may_be_same(function: &Function, a: Value, b: Value) -> bool {
    if a == b {
        return true;
    }
    matches!(
        (object_kind(function, a), object_kind(function, b)),
        (Some(Object::Shared), Some(Object::Shared | Object::Global))
            | (Some(Object::Global), Some(Object::Shared))
    )
}

/// The bases of a root that merges nothing.
fn own_bases(function: &Function, root: Value) -> Bases {
    if !function.ty(root).is_ptr() {
        return Bases {
            anything: true,
            ..Bases::default()
        };
    }
    if object_kind(function, root).is_some() {
        return Bases {
            objects: smallvec::smallvec![root],
            ..Bases::default()
        };
    }
    // There is no object behind `null` and `undef`, nor behind the small integers that are addresses of empty slices.
    let nothing = match function.constant_of(root) {
        Some(Constant::Bits(address)) => *address < FIRST_ADDRESS,
        Some(Constant::Undef) => true,
        _ => false,
    };
    Bases {
        unknown: !nothing,
        ..Bases::default()
    }
}

/// For an `if` that asks whether a variable is a number: whether its first branch is where it is, the variable, the number.
fn equality(indices: &Indices, holder: Op) -> Option<(bool, Value, i64)> {
    let function = indices.function();
    let (comparison, _) = function.def_op(*function.ops[holder].operands.first()?)?;
    let comparison = &function.ops[comparison];
    let Payload::IntPredicate(predicate) = &comparison.payload else {
        return None;
    };
    let equal = match predicate {
        IntPredicate::Eq => true,
        IntPredicate::Ne => false,
        _ => return None,
    };
    let &[left, right] = comparison.operands.as_slice() else {
        return None;
    };
    let variable = indices.expression(left).is_value()?;
    let number = indices.expression(right).is_constant()?;
    Some((equal, variable, number))
}

/// Index times scale of an `offset`.
fn scaled_index(indices: &Indices, op: Op) -> Option<Symbolic> {
    let data = &indices.function().ops[op];
    let Payload::Scale(scale) = data.payload else {
        return None;
    };
    indices.expression(*data.operands.get(1)?).scale(scale)
}

/// Whether an operation may keep a copy of one of its operands where pointers of unknown origin come from.
fn captures(module: &Module, function: &Function, op: Op, index: usize) -> bool {
    let data = &function.ops[op];
    match data.opcode {
        Opcode::Load
        | Opcode::Copy
        | Opcode::Move
        | Opcode::Fill
        | Opcode::Contract
        | Opcode::Free
        | Opcode::Offset
        | Opcode::Exclusive
        | Opcode::Icmp
        | Opcode::If
        | Opcode::Switch
        | Opcode::For
        | Opcode::Loop
        | Opcode::Again
        | Opcode::Yield
        | Opcode::Return
        | Opcode::Trap => false,
        // A vector of pointers is of unknown origin as a whole.
        Opcode::Select => function.ty(data.operands[index]).is_vector(),
        Opcode::Store | Opcode::AtomicAdd => data.opcode.operand_names()[index] == "value",
        Opcode::Call => {
            let Payload::Callee(callee) = data.payload else {
                return true;
            };
            handling(Some(&module.functions[callee]), index).keeps
        }
        Opcode::CallIndirect => index > 0,
        _ => true,
    }
}

fn is_pointer(function: &Function, value: Value) -> bool {
    let ty = function.ty(value);
    ty.is_ptr() && !ty.is_vector()
}

fn collect(indices: &Indices<'_>, region: Region, definitions: &mut Vec<Definition>) {
    let function = indices.function();
    for &op in &function.regions[region].ops {
        let data = &function.ops[op];
        match data.view() {
            OpView::Offset { base, .. } => definitions.push(Definition::Offset {
                result: data.results[0],
                base,
            }),
            OpView::Select {
                then, otherwise, ..
            } if is_pointer(function, data.results[0]) => {
                definitions.push(Definition::Merge {
                    result: data.results[0],
                    inputs: SmallVec::from_slice(&[then, otherwise]),
                    holder: op,
                });
            }
            OpView::Exclusive { pointer, tested } => definitions.push(Definition::Exclusive {
                result: data.results[0],
                pointer,
                tested: (!function.is_constant(tested) && !indices.varies(tested))
                    .then_some(tested),
            }),
            OpView::For { .. } | OpView::Loop { .. } => {
                collect_carried(function, op, definitions, true);
            }
            _ => {}
        }
        for &inner in &data.regions {
            collect(indices, inner, definitions);
        }
        match data.opcode {
            Opcode::For | Opcode::Loop => collect_carried(function, op, definitions, false),
            Opcode::If | Opcode::Switch => {
                for (index, &result) in data.results.iter().enumerate() {
                    if is_pointer(function, result) {
                        let inputs = sources_of_result(function, op, index);
                        definitions.push(Definition::Merge {
                            result,
                            inputs,
                            holder: op,
                        });
                    }
                }
            }
            _ => {}
        }
    }
}

/// The carried pointers of a loop: as arguments of its region, or as its results.
fn collect_carried(
    function: &Function,
    op: Op,
    definitions: &mut Vec<Definition>,
    arguments: bool,
) {
    for (index, &result) in function.ops[op].results.iter().enumerate() {
        if !is_pointer(function, result) {
            continue;
        }
        let (result, inputs) = match arguments {
            true => (
                function.carried(op)[index],
                sources_of_carried(function, op, index),
            ),
            false => (result, sources_of_result(function, op, index)),
        };
        definitions.push(Definition::Merge {
            result,
            inputs,
            holder: op,
        });
    }
}
