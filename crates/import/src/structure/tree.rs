//! The structured form: sequences of items, some of which hold sequences.
//!
//! Here the form of control flow is decided; what values it carries is found afterwards ([`carry`](super::carry)).
//!
//! Every way to a place that several ways lead to is written as a [`Item::Go`], which notes where control is to go and hands
//! over the arguments. Where the place comes next anyway, nothing else happens; where control may also want to go elsewhere,
//! the place stands under a test ([`Test::At`]).

use super::flow::Flow;
use super::graph::{End, Graph, Operand};
use super::level::{Arm, Element, Level, Way, What};
use std::cell::Cell;

/// How deep sequences may nest. The IR allows 1000, and passes add levels of their own.
const DEEPEST: u32 = 900;

/// The structured form of a function.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) sequences: Vec<Sequence>,
}

/// A list of items.
pub(super) struct Sequence {
    pub(super) items: Vec<Item>,
    /// The sequence and the item that hold it.
    pub(super) holder: Option<(u32, u32)>,
    depth: u32,
    /// Whether control gets to its end.
    pub(super) completes: bool,
}

pub(super) enum Item {
    /// The operations of a block.
    Block(u32),
    /// The trap at the end of a block. The last item.
    Trap(u32),
    /// The return at the end of a block. The last item of the outermost sequence.
    Return(u32),
    /// Notes where control is to go.
    Go(Go),
    /// One of two sequences.
    If { test: Test, arms: [u32; 2] },
    /// One of several sequences; the last is the default.
    Switch {
        on: Selector,
        cases: Vec<Vec<i128>>,
        arms: Vec<u32>,
    },
    /// A loop.
    Loop {
        /// The block whose parameters it carries; none for a dispatch, which carries whatever its body changes.
        header: Option<u32>,
        body: u32,
        again: Again,
    },
}

impl Item {
    /// The sequences that it holds, in order.
    pub(super) fn sequences(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let inner = match self {
            Item::If { arms, .. } => &arms[..],
            Item::Switch { arms, .. } => arms,
            Item::Loop { body, .. } => std::slice::from_ref(body),
            Item::Block(_) | Item::Trap(_) | Item::Return(_) | Item::Go(_) => &[],
        };
        inner.iter().copied()
    }
}

/// Where control is to go.
pub(super) struct Go {
    /// The node that control goes to: the block that is meant, or the dispatch before it.
    pub(super) node: u32,
    /// The block that is meant; none where it was noted before.
    pub(super) to: Option<u32>,
    /// The block and edge whose arguments are handed over; none where they were before.
    pub(super) by: Option<(u32, u32)>,
    /// The header of the loop that is left, whose parameters no longer matter.
    pub(super) leaves: Option<u32>,
}

/// What an `if` depends on.
#[derive(Clone, Copy)]
pub(super) enum Test {
    /// The condition of a block.
    Condition(Operand),
    /// Whether control is to go to this node.
    At(u32),
}

/// What a `switch` depends on.
#[derive(Clone, Copy)]
pub(super) enum Selector {
    /// The value of a block.
    Value(Operand),
    /// Where control is to go.
    Next,
}

/// Whether a loop runs again.
#[derive(Clone, Copy)]
pub(super) enum Again {
    Always,
    /// If this node, the header, is where control is to go.
    At(u32),
    /// If the condition has this value.
    If(Operand, bool),
}

/// Regions would nest too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// The elements of the level where control may want to go at the end of a sequence, and [`END`].
type Pending = Vec<u32>;

/// The end of the level: back to the loop's header, or out of the loop.
const END: u32 = u32::MAX;

impl Tree {
    /// Brings a graph into structured form. The first sequence is the outermost.
    pub(super) fn of(graph: &Graph, flow: &Flow) -> Result<Tree, TooDeep> {
        let mut tree = Tree::default();
        let body = tree.new_sequence(None)?;
        let place = Place {
            graph,
            flow,
            level: &Level::new(graph, flow, None, 0),
            body,
            turn: Cell::new(None),
        };
        place.place(&mut tree, 0, body)?;
        Ok(tree)
    }

    fn new_sequence(&mut self, holder: Option<(u32, u32)>) -> Result<u32, TooDeep> {
        let depth = holder.map_or(0, |(sequence, _)| {
            self.sequences[sequence as usize].depth + 1
        });
        if depth > DEEPEST {
            return Err(TooDeep);
        }
        let id = self.sequences.len() as u32;
        self.sequences.push(Sequence {
            items: Vec::new(),
            holder,
            depth,
            completes: true,
        });
        Ok(id)
    }

    /// A sequence for the item that comes next in another one.
    fn new_inner(&mut self, outer: u32) -> Result<u32, TooDeep> {
        let position = self.sequences[outer as usize].items.len() as u32;
        self.new_sequence(Some((outer, position)))
    }

    fn push(&mut self, sequence: u32, item: Item) {
        self.sequences[sequence as usize].items.push(item);
    }
}

/// Places the elements of one level.
struct Place<'a> {
    graph: &'a Graph,
    flow: &'a Flow,
    level: &'a Level,
    /// The outermost sequence of the level.
    body: u32,
    /// The condition at the end of the body on which alone the loop runs again, if there is one.
    turn: Cell<Option<Again>>,
}

/// How it goes on behind an element.
enum On {
    /// With this element, in the same sequence.
    To(u32),
    /// With one of these.
    Pending(Pending),
}

impl Place<'_> {
    /// Places an element and everything that it dominates at the end of a sequence.
    fn place(&self, tree: &mut Tree, first: u32, sequence: u32) -> Result<Pending, TooDeep> {
        // The merges that are still to be placed in this sequence, inner ones last, each list backwards.
        let mut waiting: Vec<Vec<u32>> = Vec::new();
        let mut element = first;
        'row: loop {
            let mut pending = loop {
                self.place_own(tree, element, sequence)?;
                let merges = &self.level.elements[element as usize].merges;
                if !merges.is_empty() {
                    waiting.push(merges.iter().rev().copied().collect());
                }
                match self.place_arms(tree, element, sequence)? {
                    On::To(next) => element = next,
                    On::Pending(pending) => break pending,
                }
            };
            while let Some(list) = waiting.last_mut() {
                let Some(merge) = list.pop() else {
                    waiting.pop();
                    continue;
                };
                if pending == [merge] {
                    element = merge;
                    continue 'row;
                }
                if let Some(position) = pending.iter().position(|&other| other == merge) {
                    pending.swap_remove(position);
                    let next = list.last().copied();
                    self.place_under_test(tree, merge, next, sequence, &mut pending)?;
                }
            }
            tree.sequences[sequence as usize].completes = !pending.is_empty();
            return Ok(pending);
        }
    }

    /// Places what an element itself does.
    fn place_own(&self, tree: &mut Tree, element: u32, sequence: u32) -> Result<(), TooDeep> {
        match self.level.elements[element as usize].what {
            What::Block(block) => {
                tree.push(sequence, Item::Block(block));
                match self.graph.blocks[block as usize].end {
                    End::Return(_) => tree.push(sequence, Item::Return(block)),
                    End::Trap => tree.push(sequence, Item::Trap(block)),
                    _ => {}
                }
            }
            What::Dispatch(_) => {}
            What::Loop(id) => {
                let header = self.flow.loops[id as usize].header;
                let body = tree.new_inner(sequence)?;
                let inner = Place {
                    graph: self.graph,
                    flow: self.flow,
                    level: &Level::new(self.graph, self.flow, Some(id), header),
                    body,
                    turn: Cell::new(None),
                };
                inner.place(tree, 0, body)?;
                let again = match inner.turn.get() {
                    Some(again) => again,
                    None if self.flow.loops[id as usize].exits.is_empty() => Again::Always,
                    None => Again::At(header),
                };
                let item = Item::Loop {
                    header: self.block_of(header),
                    body,
                    again,
                };
                tree.push(sequence, item);
            }
        }
        Ok(())
    }

    /// The block that a node is; none for a dispatch.
    fn block_of(&self, node: u32) -> Option<u32> {
        ((node as usize) < self.graph.blocks.len()).then_some(node)
    }

    /// Places the ways on from an element.
    fn place_arms(&self, tree: &mut Tree, element: u32, sequence: u32) -> Result<On, TooDeep> {
        let data = &self.level.elements[element as usize];
        if data.arms.is_empty() {
            return Ok(On::Pending(Pending::new()));
        }
        if let [only] = &data.arms[..] {
            return Ok(self.follow(tree, data.what, only, sequence));
        }
        let mut open = (0..data.arms.len()).filter(|&arm| !self.is_closed(&data.arms[arm]));
        let single = open.next().filter(|_| open.next().is_none());
        if self.place_turn(tree, data, sequence) {
            return Ok(On::Pending(vec![END]));
        }
        let mut pending = Pending::new();
        let mut arms = Vec::with_capacity(data.arms.len());
        for (index, arm) in data.arms.iter().enumerate() {
            let inner = tree.new_inner(sequence)?;
            arms.push(inner);
            // Where all other ways end in a trap, the one that does not need not be inside.
            if Some(index) != single {
                let after = self.place_arm(tree, data.what, arm, inner)?;
                join(&mut pending, &after);
            }
        }
        let item = self.choice(data, arms);
        tree.push(sequence, item);
        match single {
            Some(single) => Ok(self.follow(tree, data.what, &data.arms[single], sequence)),
            None => Ok(On::Pending(pending)),
        }
    }

    /// Whether an arm ends in a trap or goes on forever, without a place that others lead to as well.
    fn is_closed(&self, arm: &Arm) -> bool {
        match arm.way {
            Way::Trap(_) => true,
            Way::Element(target) => !self.level.elements[target as usize].completes,
            Way::Back | Way::Leave => false,
        }
    }

    fn place_arm(
        &self,
        tree: &mut Tree,
        from: What,
        arm: &Arm,
        inner: u32,
    ) -> Result<Pending, TooDeep> {
        match self.follow(tree, from, arm, inner) {
            On::To(target) => self.place(tree, target, inner),
            On::Pending(pending) => {
                tree.sequences[inner as usize].completes = !pending.is_empty();
                Ok(pending)
            }
        }
    }

    /// Places the way itself, but not what it leads to.
    fn follow(&self, tree: &mut Tree, from: What, arm: &Arm, sequence: u32) -> On {
        let mut go = Go {
            node: arm.node,
            to: match arm.meant[..] {
                [only] => Some(only),
                _ => None,
            },
            by: match (from, arm.edge) {
                (What::Block(block), Some(edge)) => Some((block, edge)),
                _ => None,
            },
            leaves: None,
        };
        let on = match arm.way {
            Way::Element(target) if self.level.elements[target as usize].arrivals == 1 => {
                On::To(target)
            }
            Way::Element(target) => On::Pending(vec![target]),
            Way::Back => On::Pending(vec![END]),
            Way::Leave => {
                let around = self
                    .level
                    .around
                    .map(|id| self.flow.loops[id as usize].header);
                go.leaves = around.and_then(|header| self.block_of(header));
                On::Pending(vec![END])
            }
            Way::Trap(block) => {
                tree.push(sequence, Item::Go(go));
                tree.push(sequence, Item::Block(block));
                tree.push(sequence, Item::Trap(block));
                return On::Pending(Pending::new());
            }
        };
        tree.push(sequence, Item::Go(go));
        on
    }

    /// Places a branch at the very end of a loop's body, of which one way leads back and the other out, without an `if`.
    fn place_turn(&self, tree: &mut Tree, data: &Element, sequence: u32) -> bool {
        let (What::Block(block), [first, second]) = (data.what, &data.arms[..]) else {
            return false;
        };
        let End::Branch(condition, _) = self.graph.blocks[block as usize].end else {
            return false;
        };
        let (back, leave) = match (first.way, second.way) {
            (Way::Back, Way::Leave) => (first, second),
            (Way::Leave, Way::Back) => (second, first),
            _ => return false,
        };
        if sequence != self.body {
            return false;
        }
        for arm in [back, leave] {
            let go = Go {
                node: arm.node,
                to: arm.meant.first().copied(),
                by: arm.edge.map(|edge| (block, edge)),
                leaves: None,
            };
            tree.push(sequence, Item::Go(go));
        }
        self.turn
            .set(Some(Again::If(condition, back.edge == Some(0))));
        true
    }

    /// The item that chooses between the arms of an element.
    fn choice(&self, data: &Element, arms: Vec<u32>) -> Item {
        if let What::Block(block) = data.what {
            match &self.graph.blocks[block as usize].end {
                &End::Branch(condition, _) => {
                    return Item::If {
                        test: Test::Condition(condition),
                        arms: [arms[0], arms[1]],
                    };
                }
                End::Switch(value, cases, _) => {
                    return Item::Switch {
                        on: Selector::Value(*value),
                        cases: cases.clone(),
                        arms,
                    };
                }
                _ => {}
            }
        }
        if let (What::Loop(_), [first, second]) = (data.what, &arms[..]) {
            return Item::If {
                test: Test::At(data.arms[0].node),
                arms: [*first, *second],
            };
        }
        let meant = |arm: &Arm| arm.meant.iter().map(|&block| i128::from(block)).collect();
        Item::Switch {
            on: Selector::Next,
            cases: data.arms[..data.arms.len() - 1].iter().map(meant).collect(),
            arms,
        }
    }

    /// Places a merge where control may also want to go elsewhere. If that is only the next merge, it goes into the other arm.
    fn place_under_test(
        &self,
        tree: &mut Tree,
        merge: u32,
        next: Option<u32>,
        sequence: u32,
        pending: &mut Pending,
    ) -> Result<(), TooDeep> {
        let node = match self.level.elements[merge as usize].what {
            What::Block(node) | What::Dispatch(node) => node,
            What::Loop(id) => self.flow.loops[id as usize].header,
        };
        let inner = tree.new_inner(sequence)?;
        let after = self.place(tree, merge, inner)?;
        let other = tree.new_inner(sequence)?;
        match next {
            Some(next) if *pending == [next] && !after.is_empty() && !after.contains(&next) => {
                *pending = self.place(tree, next, other)?;
            }
            _ => {}
        }
        join(pending, &after);
        let item = Item::If {
            test: Test::At(node),
            arms: [inner, other],
        };
        tree.push(sequence, item);
        Ok(())
    }
}

fn join(pending: &mut Pending, more: &[u32]) {
    for element in more {
        if !pending.contains(element) {
            pending.push(*element);
        }
    }
}
