//! The condition under which a speculatively computed value is used.
//!
//! ```text
//! %q = fdiv f64 %a, %d                       ; used only where %c holds
//! %r = select f64 %c, %q, 0.0
//! ```
//!
//! Compilers compute both sides of a `select` if that is cheaper than a branch. The adjoint of the side that is not chosen is 0, and 0 times
//! an infinite partial derivative is NaN. So the reverse sweep selects after the product and not before it: the adjoint that leaves the operations of
//! one side becomes an exact zero if that side was not chosen.
//!
//! ```text
//! %t = fdiv f64 %r', %d
//! %a' = select f64 %c, %t, 0.0
//! ```
//!
//! A product whose result is used stays as it is: there 0 times infinity is NaN because the program has no derivative.
//!
//! What a region ends with is used where the results of its operation are; a value that a loop hands on to the next iteration only, where there is one, and
//! one that no next iteration looks at, where there is none.
//! Values that are used in inner regions only (an invariant that was computed ahead of its loop) are used where one of the region's operations used them,
//! which the reverse of the region finds out beside their adjoints.
//!
//! Assumes: the conditions of active `select`s and reversed `if`s are at hand in the reverse of their region. Guarantees: the condition found holds wherever
//! the value is used; where conditions are nested too deep, it may hold elsewhere, too.

use crate::activity::Activities;
use crate::plan::{active_operands, live_regions};
use crate::step::Step;
use ferrozyme_ir::{Effect, Function, Op, OpView, Opcode, Region, Structure, Type, Value, all_ops};
use ferrozyme_opt::{Speculation, speculation};
use rustc_hash::{FxHashMap, FxHashSet};

/// When a value is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Usage {
    /// Wherever it is computed.
    Always,
    /// Where this holds.
    When(Condition),
}

/// How deep conditions may be nested. A deeper one is not asked, as if it held.
const DEPTH: u32 = 32;

/// The place of a [`Test`] among all.
pub(crate) type Condition = u32;

/// What a condition consists of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Test {
    /// A choice, where what was chosen is used itself.
    Chosen {
        /// What decides.
        by: Choice,
        /// How it must turn out.
        holds: bool,
        /// When the result of the choice is used.
        within: Usage,
    },
    /// One of two conditions.
    Either(Condition, Condition),
}

/// What decides whether a value is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Choice {
    /// A value of the forward sweep.
    Value(Value),
    /// Whether this is the iteration whose [`Step::Update`] was the last one.
    LastUpdate(Op),
    /// Whether one of the operation's regions ran and used the value.
    Inside(Op, Value),
    /// Whether another iteration of the loop followed.
    Followed(Op),
}

/// When the values of a function are used, and where the reverse sweep has to select because of it.
pub(crate) struct Usages {
    of: FxHashMap<Value, Usage>,
    tests: Vec<Test>,
    types: Vec<Type>,
    depths: Vec<u32>,
    at_hand: Vec<bool>,
    places: FxHashMap<Test, Condition>,
    /// When values from outside a region are used in it.
    inside: FxHashMap<(Region, Value), Usage>,
    /// The values of which the reverse of an operation with regions has to find out whether it used them.
    tracked: FxHashMap<Op, Vec<Value>>,
    /// The loops of which it is asked which of their iterations is the last.
    followed: FxHashSet<Op>,
    /// What an operation adds to the adjoint of an operand counts only where its results are used.
    selected: FxHashSet<(Op, usize)>,
    /// The adjoint of a `select` goes to this operand whole: it is selected after the products that follow.
    postponed: FxHashSet<(Op, usize)>,
}

impl Usages {
    /// Finds both for the forward sweep of a function.
    pub(crate) fn of(
        function: &Function,
        structure: &Structure,
        steps: &FxHashMap<Op, Step>,
        activities: &Activities,
        at_once: &FxHashSet<Op>,
    ) -> Usages {
        let mut search = Search {
            function,
            structure,
            steps,
            activities,
            at_once,
            usages: Usages {
                of: FxHashMap::default(),
                tests: Vec::new(),
                types: Vec::new(),
                depths: Vec::new(),
                at_hand: Vec::new(),
                places: FxHashMap::default(),
                inside: FxHashMap::default(),
                tracked: FxHashMap::default(),
                followed: FxHashSet::default(),
                selected: FxHashSet::default(),
                postponed: FxHashSet::default(),
            },
            tainted: FxHashSet::default(),
            looked_at: all_ops(function)
                .into_iter()
                .flat_map(|op| function.ops[op].operands.iter().copied())
                .collect(),
        };
        search.find_usages(function.body());
        if !search.usages.tests.is_empty() {
            search.find_places(function.body());
            search.usages.find_tracked(function);
        }
        search.usages
    }

    /// The values of which the reverse of an operation with regions has to find out whether it used them.
    pub(crate) fn tracked(&self, op: Op) -> &[Value] {
        self.tracked.get(&op).map_or(&[], Vec::as_slice)
    }

    /// Whether it is asked of a loop which of its iterations is the last.
    pub(crate) fn asks_what_follows(&self, op: Op) -> bool {
        self.followed.contains(&op)
    }

    /// When a value from outside a region is used in it; never if there is none.
    pub(crate) fn inside(&self, region: Region, value: Value) -> Option<Usage> {
        self.inside.get(&(region, value)).copied()
    }

    /// The condition under which what an operation adds to the adjoint of an operand counts, where it has to be asked.
    pub(crate) fn selected(
        &self,
        function: &Function,
        op: Op,
        operand: usize,
    ) -> Option<Condition> {
        if !self.selected.contains(&(op, operand)) {
            return None;
        }
        match self.of_op(function, op)? {
            Usage::When(condition) => Some(condition),
            Usage::Always => None,
        }
    }

    /// Whether the adjoint of a `select` goes to an operand as it is.
    pub(crate) fn is_postponed(&self, op: Op, operand: usize) -> bool {
        self.postponed.contains(&(op, operand))
    }

    /// What a condition consists of.
    pub(crate) fn test(&self, condition: Condition) -> Test {
        self.tests[condition as usize]
    }

    /// Finds what conditions that are asked for ask of inner regions.
    fn find_tracked(&mut self, function: &Function) {
        let asked = self.selected.iter();
        let mut pending: Vec<Condition> = asked
            .filter_map(|&(op, operand)| self.selected(function, op, operand))
            .collect();
        pending.sort_unstable();
        let mut seen: FxHashSet<Condition> = FxHashSet::default();
        while let Some(condition) = pending.pop() {
            if !seen.insert(condition) {
                continue;
            }
            match self.test(condition) {
                Test::Either(first, second) => pending.extend([first, second]),
                Test::Chosen { by, within, .. } => {
                    if let Usage::When(within) = within {
                        pending.push(within);
                    }
                    if let Choice::Followed(op) = by {
                        self.followed.insert(op);
                    }
                    let Choice::Inside(op, value) = by else {
                        continue;
                    };
                    self.tracked.entry(op).or_default().push(value);
                    for &region in &function.ops[op].regions {
                        if let Some(Usage::When(inner)) = self.inside(region, value) {
                            pending.push(inner);
                        }
                    }
                }
            }
        }
    }

    fn of_op(&self, function: &Function, op: Op) -> Option<Usage> {
        let mut all: Option<Usage> = None;
        for result in &function.ops[op].results {
            let Some(&usage) = self.of.get(result) else {
                continue;
            };
            all = Some(match all {
                None => usage,
                Some(before) if before == usage => usage,
                Some(_) => Usage::Always,
            });
        }
        all
    }

    fn place(&mut self, test: Test, ty: Type) -> Usage {
        let depth = match test {
            Test::Chosen { within, .. } => 1 + self.depth_of(within),
            Test::Either(a, b) => {
                1 + self
                    .depth_of(Usage::When(a))
                    .max(self.depth_of(Usage::When(b)))
            }
        };
        if depth > DEPTH {
            return Usage::Always;
        }
        let at_hand = match test {
            Test::Chosen { by, within, .. } => {
                !matches!(by, Choice::Inside(..)) && self.is_at_hand(within)
            }
            Test::Either(a, b) => {
                self.is_at_hand(Usage::When(a)) && self.is_at_hand(Usage::When(b))
            }
        };
        let next = Condition::try_from(self.tests.len()).expect("fewer than 2^32 conditions");
        let place = *self.places.entry(test).or_insert(next);
        if place == next {
            self.tests.push(test);
            self.types.push(ty);
            self.depths.push(depth);
            self.at_hand.push(at_hand);
        }
        Usage::When(place)
    }

    /// Whether a condition asks nothing of inner regions.
    fn is_at_hand(&self, usage: Usage) -> bool {
        match usage {
            Usage::Always => true,
            Usage::When(condition) => self.at_hand[condition as usize],
        }
    }

    fn depth_of(&self, usage: Usage) -> u32 {
        match usage {
            Usage::Always => 0,
            Usage::When(condition) => self.depths[condition as usize],
        }
    }

    fn type_of(&self, usage: Usage) -> Option<Type> {
        match usage {
            Usage::Always => None,
            Usage::When(condition) => Some(self.types[condition as usize]),
        }
    }

    fn chosen(&mut self, by: Choice, holds: bool, within: Usage, ty: Type) -> Usage {
        // Conditions on lanes and on whole vectors do not mix: what is left out makes the condition hold more often.
        let mixed = self.type_of(within).is_some_and(|other| other != ty);
        let within = match mixed || self.depth_of(within) >= DEPTH {
            true => Usage::Always,
            false => within,
        };
        self.place(Test::Chosen { by, holds, within }, ty)
    }

    fn either(&mut self, a: Usage, b: Usage) -> Usage {
        let (Usage::When(first), Usage::When(second)) = (a, b) else {
            return Usage::Always;
        };
        if first == second {
            return a;
        }
        if let (
            Test::Chosen { by, holds, within },
            Test::Chosen {
                by: other,
                holds: otherwise,
                within: around,
            },
        ) = (self.test(first), self.test(second))
            && (by, within) == (other, around)
            && holds != otherwise
        {
            return within;
        }
        match self.types[first as usize] {
            ty if ty == self.types[second as usize] => {
                self.place(Test::Either(first.min(second), first.max(second)), ty)
            }
            _ => Usage::Always,
        }
    }
}

struct Search<'a> {
    function: &'a Function,
    structure: &'a Structure,
    steps: &'a FxHashMap<Op, Step>,
    activities: &'a Activities,
    /// Operations whose reverse stands in their own regions, where nothing is known of what follows.
    at_once: &'a FxHashSet<Op>,
    usages: Usages,
    /// Values whose adjoint may be anything where they are not used.
    tainted: FxHashSet<Value>,
    /// The operands of all operations.
    looked_at: FxHashSet<Value>,
}

impl Search<'_> {
    /// Goes backwards, so that all users of a value are known when its operation is reached.
    fn find_usages(&mut self, region: Region) {
        let function = self.function;
        for &op in function.regions[region].ops.iter().rev() {
            let data = &function.ops[op];
            match self.steps.get(&op) {
                Some(Step::Rule) => self.pass_on(region, op),
                Some(Step::Update {
                    replacement, kept, ..
                }) => {
                    let Some(usage) = self.usages.of_op(function, op) else {
                        continue;
                    };
                    let last = Choice::LastUpdate(op);
                    let replaced = self.usages.chosen(last, true, usage, Type::I1);
                    self.note(region, *replacement, replaced);
                    self.note(region, *kept, usage);
                }
                Some(Step::Regions) => {
                    self.note_all(region, op);
                    for &inner in &data.regions {
                        if !function.ends_in_trap(inner) {
                            self.find_usages(inner);
                        }
                    }
                }
                Some(Step::Call(call)) => {
                    for &value in &call.gradients {
                        self.note(region, value, Usage::Always);
                    }
                }
                Some(_) => self.note_all(region, op),
                None if data.opcode.effect() == Effect::Ends && data.opcode != Opcode::Trap => {
                    self.note_end(region, op);
                }
                None => {}
            }
        }
    }

    /// What a region ends with is used where the results of its operation are, or where a next iteration is.
    fn note_end(&mut self, region: Region, end: Op) {
        let holder = self.structure.op_of(region);
        let Some(holder) = holder.filter(|holder| !self.at_once.contains(holder)) else {
            return self.note_all(region, end);
        };
        let data = &self.function.ops[holder];
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        let values = self.function.ops[end].values();
        for (&operand, result) in values.iter().zip(&data.results) {
            let usage = match (is_loop, self.usages.of.get(result)) {
                (false, None) => continue,
                // A loop that would have to find out whether it used the result costs more than a guard that the program has anyway is worth.
                (false, Some(&usage)) if self.usages.is_at_hand(usage) => usage,
                (true, Some(_)) if !self.hands_on(holder, result) => {
                    let followed = Choice::Followed(holder);
                    self.usages.chosen(followed, false, Usage::Always, Type::I1)
                }
                (_, Some(_)) => Usage::Always,
                (true, None) => {
                    let followed = Choice::Followed(holder);
                    self.usages.chosen(followed, true, Usage::Always, Type::I1)
                }
            };
            self.note(region, operand, usage);
        }
    }

    /// Whether an iteration of a loop looks at what the one before left for a result.
    fn hands_on(&self, holder: Op, result: &Value) -> bool {
        let data = &self.function.ops[holder];
        let arguments = &self.function.regions[data.regions[0]].args;
        let skip = arguments.len() - data.results.len();
        let position = data.results.iter().position(|other| other == result);
        position.is_none_or(|position| self.looked_at.contains(&arguments[skip + position]))
    }

    fn note_all(&mut self, region: Region, op: Op) {
        for &operand in &self.function.ops[op].operands {
            self.note(region, operand, Usage::Always);
        }
    }

    /// Operands are used where results are.
    fn pass_on(&mut self, region: Region, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        let Some(mut usage) = self.usages.of_op(function, op) else {
            return;
        };
        if let OpView::Select {
            condition,
            then,
            otherwise,
        } = data.view()
        {
            let ty = function.ty(condition);
            for (operand, holds) in [(then, true), (otherwise, false)] {
                let chosen = self
                    .usages
                    .chosen(Choice::Value(condition), holds, usage, ty);
                self.note(region, operand, chosen);
            }
            return;
        }
        let lanes = |ty: Type| ty.lanes();
        let mut types = data.operands.iter().map(|&operand| function.ty(operand));
        if let Some(ty) = self.usages.type_of(usage)
            && ty != Type::I1
            && (!types.all(|other| lanes(other) == lanes(ty)) || moves_lanes(data.opcode))
        {
            usage = Usage::Always;
        }
        for &operand in &data.operands {
            self.note(region, operand, usage);
        }
    }

    /// Notes that a value is used in a region.
    fn note(&mut self, region: Region, value: Value, usage: Usage) {
        if !self.activities.is_active(value) {
            return;
        }
        let Some(home) = self.structure.region_of_value(self.function, value) else {
            return;
        };
        // Where the value is computed, only conditions of that place are known.
        let mut usage = usage;
        let mut here = region;
        while here != home {
            let Some(holder) = self.structure.op_of(here) else {
                break;
            };
            if self.usages.type_of(usage).is_some_and(|ty| ty != Type::I1) {
                usage = Usage::Always;
            }
            let before = self.usages.inside(here, value);
            let inside = before.map_or(usage, |before| self.usages.either(before, usage));
            self.usages.inside.insert((here, value), inside);
            usage = self.around(holder, here, value, usage);
            match self.structure.region_of(holder) {
                Some(outer) => here = outer,
                None => break,
            }
        }
        let all = match self.usages.of.get(&value) {
            None => usage,
            Some(&before) => self.usages.either(before, usage),
        };
        self.usages.of.insert(value, all);
    }

    /// When a value is used, seen from outside an operation whose region uses it.
    fn around(&mut self, holder: Op, region: Region, value: Value, usage: Usage) -> Usage {
        let data = &self.function.ops[holder];
        let runs = match data.opcode {
            Opcode::Loop => true,
            Opcode::For => false,
            _ => live_regions(self.function, holder).len() == 1,
        };
        let (by, holds) = match data.opcode {
            _ if runs && usage == Usage::Always => return Usage::Always,
            Opcode::If if usage == Usage::Always => {
                (Choice::Value(data.condition()), region == data.regions[0])
            }
            _ => (Choice::Inside(holder, value), true),
        };
        self.usages.chosen(by, holds, Usage::Always, Type::I1)
    }

    /// Finds where to select: where adjoints leave the operations that are used under one condition, and may be anything where it does not hold.
    fn find_places(&mut self, region: Region) {
        let function = self.function;
        for &op in function.regions[region].ops.iter().rev() {
            let data = &function.ops[op];
            for &inner in &data.regions {
                self.find_places(inner);
            }
            if !matches!(self.steps.get(&op), Some(Step::Rule)) {
                continue;
            }
            let Some(usage) = self.usages.of_op(function, op) else {
                continue;
            };
            if data.opcode == Opcode::Select {
                self.postpone(region, op);
            }
            if usage == Usage::Always {
                continue;
            }
            let tainted = |result| self.tainted.contains(result);
            if !is_unbounded(function, op) && !data.results.iter().any(tainted) {
                continue;
            }
            let active = active_operands(function, self.activities, op);
            for (index, &operand) in data.operands.iter().enumerate() {
                if active >> index & 1 == 0 || self.usages.is_postponed(op, index) {
                    continue;
                }
                let maker = self.rule_here(region, operand);
                if maker.is_some_and(|maker| self.usages.of_op(function, maker) == Some(usage)) {
                    self.tainted.insert(operand);
                } else {
                    self.usages.selected.insert((op, index));
                }
            }
        }
    }

    /// Where an operand of a `select` is the result of a product that is needed for nothing else, the product is what is selected.
    fn postpone(&mut self, region: Region, op: Op) {
        let function = self.function;
        for operand in [1, 2] {
            let value = function.ops[op].operands[operand];
            let Some(maker) = self.rule_here(region, value) else {
                continue;
            };
            let Some(&Usage::When(condition)) = self.usages.of.get(&value) else {
                continue;
            };
            let Test::Chosen { by, holds, within } = self.usages.test(condition) else {
                continue;
            };
            if by == Choice::Value(function.ops[op].condition())
                && holds == (operand == 1)
                && Some(within) == self.usages.of_op(function, op)
                && function.ops[maker].results.len() == 1
                && is_unbounded(function, maker)
            {
                self.usages.postponed.insert((op, operand));
            }
        }
    }

    /// The operation of a region that makes a value by a rule.
    fn rule_here(&self, region: Region, value: Value) -> Option<Op> {
        let (op, _) = self.function.def_op(value)?;
        let here = self.structure.region_of(op) == Some(region);
        (here && matches!(self.steps.get(&op), Some(Step::Rule))).then_some(op)
    }
}

/// Whether a partial derivative of an operation may be infinite or NaN.
fn is_unbounded(function: &Function, op: Op) -> bool {
    speculation(function, op) != Speculation::Anywhere
}

fn moves_lanes(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Splat | Opcode::ReduceFadd | Opcode::Extract | Opcode::Insert | Opcode::Shuffle
    )
}
