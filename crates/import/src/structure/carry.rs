//! Which values the structured form passes through regions as results and carried values.
//!
//! In the graph, a value may be used wherever its definition dominates. In the structured form it is visible only inside the
//! region that defines it, so that `if`, `switch` and `loop` must give it as a result where it is used behind them, and a
//! loop must carry what its header takes. What is handed through follows from each use backwards: to the last item before it
//! that assigns the value; if that item holds regions, to the ends of those; and from the start of a region to what holds it.
//!
//! *Variables* are the values of the graph (assigned where they are defined), what blocks are about to take as parameters (assigned
//! by every [`Item::Go`] there), the block where control is to go, and whether that is a certain one.

use super::graph::{Graph, Name, Operand};
use super::tree::{Again, Item, Selector, Test, Tree};
use rustc_hash::{FxHashMap, FxHashSet};

/// A variable of the structured form, see [`Variables`].
pub(super) type Variable = u32;

/// How variables are numbered.
#[derive(Clone, Copy)]
pub(super) struct Variables {
    names: u32,
}

/// What a variable is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value of the graph.
    Named(Name),
    /// What the block that takes this parameter is given next.
    Given(Name),
    /// The block where control is to go.
    Next,
    /// Whether control is to go to this node.
    At(u32),
}

impl Variables {
    pub(super) fn of(graph: &Graph) -> Variables {
        Variables {
            names: graph.types.len() as u32,
        }
    }

    pub(super) fn given(self, name: Name) -> Variable {
        self.names + name
    }

    pub(super) fn next(self) -> Variable {
        2 * self.names
    }

    pub(super) fn at(self, node: u32) -> Variable {
        2 * self.names + 1 + node
    }

    pub(super) fn kind(self, variable: Variable) -> Kind {
        match variable {
            _ if variable < self.names => Kind::Named(variable),
            _ if variable < 2 * self.names => Kind::Given(variable - self.names),
            _ if variable == 2 * self.names => Kind::Next,
            _ => Kind::At(variable - 2 * self.names - 1),
        }
    }

    /// The variable whose assignments decide this one: all of [`Kind::At`] change together.
    fn assigned_as(self, variable: Variable) -> Variable {
        match self.kind(variable) {
            Kind::At(_) => self.at(0),
            _ => variable,
        }
    }
}

/// What is handed through regions.
#[derive(Default)]
pub(super) struct Carry {
    /// For items that hold sequences, by sequence and position: the variables that are read behind them.
    results: FxHashMap<(u32, u32), Vec<Variable>>,
    /// The variables whose value from before is read in a sequence.
    read_at_start: FxHashSet<(u32, Variable)>,
}

impl Carry {
    /// Finds what is handed through the regions of a tree.
    pub(super) fn of(graph: &Graph, tree: &Tree) -> Carry {
        let mut search = Search {
            graph,
            tree,
            variables: Variables::of(graph),
            assigned: FxHashMap::default(),
            defined_at: vec![None; graph.types.len()],
            escaping: FxHashSet::default(),
            carry: Carry::default(),
            is_result: FxHashSet::default(),
        };
        search.note_assignments();
        search.follow_uses();
        let mut carry = search.carry;
        for results in carry.results.values_mut() {
            results.sort_unstable();
        }
        carry
    }

    /// The variables that an item gives to what comes behind it.
    pub(super) fn results(&self, sequence: u32, position: u32) -> &[Variable] {
        self.results
            .get(&(sequence, position))
            .map_or(&[], Vec::as_slice)
    }

    /// Whether a loop's body reads the value that a variable had before, in the first turn or from the turn before.
    pub(super) fn is_read_at_start(&self, body: u32, variable: Variable) -> bool {
        self.read_at_start.contains(&(body, variable))
    }
}

struct Search<'a> {
    graph: &'a Graph,
    tree: &'a Tree,
    variables: Variables,
    /// For each sequence and variable the positions of the items that assign it, or hold an item that does.
    assigned: FxHashMap<(u32, Variable), Vec<u32>>,
    /// Where each value of the graph is defined.
    defined_at: Vec<Option<(u32, u32)>>,
    /// The values that are used where their definition is not visible.
    escaping: FxHashSet<Name>,
    carry: Carry,
    is_result: FxHashSet<(u32, u32, Variable)>,
}

/// A use: of a variable, in a sequence, by the item at a position or by what comes before it.
type Use = (Variable, u32, u32);

impl Search<'_> {
    fn note_assignments(&mut self) {
        let tree = self.tree;
        // Inner sequences have higher numbers than the one that holds them, but their items count before later items of that:
        // going through the items in order, and up from each, keeps the positions sorted.
        let mut path: Vec<(u32, u32)> = vec![(0, 0)];
        while let Some((sequence, position)) = path.last_mut() {
            let (sequence, at) = (*sequence, *position);
            *position += 1;
            match tree.sequences[sequence as usize].items.get(at as usize) {
                None => {
                    path.pop();
                }
                Some(Item::Block(block)) => {
                    let block = &self.graph.blocks[*block as usize];
                    for &name in block.params.iter().chain(&block.defines) {
                        self.defined_at[name as usize] = Some((sequence, at));
                    }
                }
                Some(Item::Go(go)) => {
                    self.note(self.variables.at(0), sequence, at);
                    if go.to.is_some() {
                        self.note(self.variables.next(), sequence, at);
                    }
                    let given = go.by.and(go.to);
                    for block in [given, go.leaves].into_iter().flatten() {
                        for &param in &self.graph.blocks[block as usize].params {
                            self.note(self.variables.given(param), sequence, at);
                        }
                    }
                }
                Some(item) => path.extend(item.sequences().rev().map(|inner| (inner, 0))),
            }
        }
    }

    /// Notes that an item assigns a variable, also with all items around it.
    fn note(&mut self, variable: Variable, mut sequence: u32, mut position: u32) {
        loop {
            let positions = self.assigned.entry((sequence, variable)).or_default();
            match positions.binary_search(&position) {
                Ok(_) => return,
                Err(index) => positions.insert(index, position),
            }
            match self.tree.sequences[sequence as usize].holder {
                Some(holder) => (sequence, position) = holder,
                None => return,
            }
        }
    }

    fn follow_uses(&mut self) {
        let tree = self.tree;
        for (sequence, data) in tree.sequences.iter().enumerate() {
            let sequence = sequence as u32;
            for (position, item) in data.items.iter().enumerate() {
                let here = position as u32;
                match item {
                    Item::Block(block) => {
                        let block = &self.graph.blocks[*block as usize];
                        for &name in &block.uses {
                            self.use_name(name, sequence, here);
                        }
                        for &param in &block.params {
                            self.follow((self.variables.given(param), sequence, here));
                        }
                    }
                    Item::Return(block) => {
                        if let super::graph::End::Return(values) =
                            &self.graph.blocks[*block as usize].end
                        {
                            self.use_operands(values, sequence, here);
                        }
                    }
                    Item::Trap(_) => {}
                    Item::Go(go) => {
                        if let Some((block, edge)) = go.by {
                            let edges = self.graph.blocks[block as usize].end.edges();
                            self.use_operands(&edges[edge as usize].args, sequence, here);
                        }
                    }
                    Item::If { test, .. } => match *test {
                        Test::Condition(operand) => self.use_operands(&[operand], sequence, here),
                        Test::At(node) => self.follow((self.variables.at(node), sequence, here)),
                    },
                    Item::Switch { on, .. } => match *on {
                        Selector::Value(operand) => self.use_operands(&[operand], sequence, here),
                        Selector::Next => self.follow((self.variables.next(), sequence, here)),
                    },
                    Item::Loop { body, again, .. } => {
                        let end = tree.sequences[*body as usize].items.len() as u32;
                        match *again {
                            Again::Always => {}
                            Again::At(node) => self.follow((self.variables.at(node), *body, end)),
                            Again::If(operand, _) => self.use_operands(&[operand], *body, end),
                        }
                    }
                }
            }
        }
    }

    fn use_operands(&mut self, operands: &[Operand], sequence: u32, position: u32) {
        for operand in operands {
            if let &Operand::Named(name) = operand {
                self.use_name(name, sequence, position);
            }
        }
    }

    fn use_name(&mut self, name: Name, sequence: u32, position: u32) {
        let Some((defined_in, defined_at)) = self.defined_at[name as usize] else {
            return;
        };
        if let Some(here) = self.position_in(defined_in, sequence, position)
            && here > defined_at
        {
            return;
        }
        if self.escaping.insert(name) {
            self.note(name, defined_in, defined_at);
        }
        self.follow((name, sequence, position));
    }

    /// The position in `outer` of the item that holds, or is, this one.
    fn position_in(&self, outer: u32, mut sequence: u32, mut position: u32) -> Option<u32> {
        // A sequence is made after the one that holds it.
        while sequence > outer {
            (sequence, position) = self.tree.sequences[sequence as usize].holder?;
        }
        (sequence == outer).then_some(position)
    }

    /// Follows a use back to the assignments that it may see.
    fn follow(&mut self, start: Use) {
        let mut work = vec![start];
        while let Some((variable, sequence, position)) = work.pop() {
            let key = (sequence, self.variables.assigned_as(variable));
            let last = self.assigned.get(&key).and_then(|positions| {
                let behind = positions.partition_point(|&other| other < position);
                behind.checked_sub(1).map(|index| positions[index])
            });
            match last {
                Some(last) => self.follow_into(variable, sequence, last, &mut work),
                None => self.follow_out(variable, sequence, &mut work),
            }
        }
    }

    /// Goes on to the ends of the sequences that an item holds.
    fn follow_into(
        &mut self,
        variable: Variable,
        sequence: u32,
        position: u32,
        work: &mut Vec<Use>,
    ) {
        let item = &self.tree.sequences[sequence as usize].items[position as usize];
        if matches!(item, Item::Block(_) | Item::Go(_)) {
            return;
        }
        if !self.is_result.insert((sequence, position, variable)) {
            return;
        }
        self.carry
            .results
            .entry((sequence, position))
            .or_default()
            .push(variable);
        for inner in item.sequences() {
            let inner_data = &self.tree.sequences[inner as usize];
            if inner_data.completes {
                work.push((variable, inner, inner_data.items.len() as u32));
            }
        }
    }

    /// Goes on from the start of a sequence to what comes before the item that holds it.
    fn follow_out(&mut self, variable: Variable, sequence: u32, work: &mut Vec<Use>) {
        let Some((outer, position)) = self.tree.sequences[sequence as usize].holder else {
            return;
        };
        let item = &self.tree.sequences[outer as usize].items[position as usize];
        if let Item::Loop { header, body, .. } = item {
            let key = (outer, self.variables.assigned_as(variable));
            let changes = self
                .assigned
                .get(&key)
                .is_some_and(|positions| positions.binary_search(&position).is_ok());
            let carried = match (header, self.variables.kind(variable)) {
                (Some(header), Kind::Given(param)) => {
                    self.graph.blocks[*header as usize].params.contains(&param)
                }
                // Everything else that a loop with a block as its header assigns is assigned anew in every turn before it is
                // read there: the definition dominates the use, and the header dominates the definition.
                (Some(_), _) => false,
                (None, _) => changes,
            };
            if changes && !carried {
                return;
            }
            if carried {
                if self.carry.read_at_start.insert((*body, variable)) {
                    if self.is_result.insert((outer, position, variable)) {
                        self.carry
                            .results
                            .entry((outer, position))
                            .or_default()
                            .push(variable);
                    }
                    if self.tree.sequences[*body as usize].completes {
                        let end = self.tree.sequences[*body as usize].items.len() as u32;
                        work.push((variable, *body, end));
                    }
                    work.push((variable, outer, position));
                }
                return;
            }
        }
        if self.carry.read_at_start.insert((sequence, variable)) {
            work.push((variable, outer, position));
        }
    }
}
