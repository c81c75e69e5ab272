//! The acyclic graph of one level: the body of a loop, or of the function, with the loops inside taken as single nodes.
//!
//! For each element of the level: which ways lead on from it (its *arms*), which element dominates it, and whether control
//! can get from there to the end of the level at all.

use super::flow::Flow;
use super::graph::{End, Graph};

/// The graph of one level. The first element is where it is entered; the order is topological.
pub(super) struct Level {
    /// The loop whose body this is; none for the function itself.
    pub(super) around: Option<u32>,
    pub(super) elements: Vec<Element>,
}

/// A block, a dispatch, or a loop inside.
pub(super) struct Element {
    pub(super) what: What,
    /// The ways on.
    pub(super) arms: Vec<Arm>,
    /// How many arms lead here.
    pub(super) arrivals: u32,
    /// The elements that this one dominates immediately and that several arms lead to, in order.
    pub(super) merges: Vec<u32>,
    /// Whether control can get from here to the end of the level, or to a merge, rather than end in a trap or go on forever.
    pub(super) completes: bool,
    /// Whether this is a merge that does not lead to the function's end, but is placed as if it did.
    before_end: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Block(u32),
    Dispatch(u32),
    Loop(u32),
}

/// A way on from an element.
pub(super) struct Arm {
    pub(super) way: Way,
    /// The node that it leads to.
    pub(super) node: u32,
    /// Which edge of the block this is; none for loops and dispatches, whose edges were gone before.
    pub(super) edge: Option<u32>,
    /// The blocks that are meant.
    pub(super) meant: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To another element.
    Element(u32),
    /// To the header of the loop around the level.
    Back,
    /// Out of the loop around the level.
    Leave,
    /// To a copy of a block that ends in a trap.
    Trap(u32),
}

impl Level {
    /// The graph of a loop's body, or of the function, whose first node is given.
    pub(super) fn new(graph: &Graph, flow: &Flow, around: Option<u32>, entry: u32) -> Level {
        let mut level = Level {
            around,
            elements: Vec::new(),
        };
        level.find_elements(graph, flow, entry);
        level.find_completing(graph);
        level.find_merges();
        level
    }

    /// Fills in the elements in topological order, with their arms.
    fn find_elements(&mut self, graph: &Graph, flow: &Flow, entry: u32) {
        const UNSEEN: u32 = u32::MAX;
        let mut position: rustc_hash::FxHashMap<u32, u32> = rustc_hash::FxHashMap::default();
        let mut finished: Vec<(u32, Element)> = Vec::new();
        let mut path: Vec<(u32, Element, usize)> = Vec::new();
        position.insert(entry, UNSEEN);
        path.push((entry, self.element(graph, flow, entry), 0));
        while let Some((_, element, next)) = path.last_mut() {
            // The last arm first, so that in the end the first one comes first.
            let index = element.arms.len().checked_sub(*next + 1);
            *next += 1;
            match index.map(|index| element.arms[index].way) {
                Some(Way::Element(node)) => {
                    if position.insert(node, UNSEEN).is_none() {
                        path.push((node, self.element(graph, flow, node), 0));
                    }
                }
                Some(_) => {}
                None => {
                    if let Some((node, element, _)) = path.pop() {
                        finished.push((node, element));
                    }
                }
            }
        }
        // What only returns comes last, so that it need not stand under a test of where to go.
        finished.reverse();
        let returns = finished.iter().position(|(_, element)| match element.what {
            What::Block(block) => matches!(graph.blocks[block as usize].end, End::Return(_)),
            _ => false,
        });
        if let Some(returns) = returns {
            let last = finished.remove(returns);
            finished.push(last);
        }
        for (index, (node, _)) in finished.iter().enumerate() {
            position.insert(*node, index as u32);
        }
        self.elements = finished.into_iter().map(|(_, element)| element).collect();
        for index in 0..self.elements.len() {
            for arm in 0..self.elements[index].arms.len() {
                if let Way::Element(node) = self.elements[index].arms[arm].way {
                    let target = position[&node];
                    self.elements[index].arms[arm].way = Way::Element(target);
                    self.elements[target as usize].arrivals += 1;
                }
            }
        }
    }

    /// The element of a node of the level; arms name nodes, not yet elements.
    fn element(&self, graph: &Graph, flow: &Flow, node: u32) -> Element {
        let data = &flow.nodes[node as usize];
        let way = |target: u32| match self.around {
            Some(around) if flow.loops[around as usize].header == target => Way::Back,
            Some(_) if !flow.holds(self.around, target) => Way::Leave,
            _ => Way::Element(target),
        };
        // A node of the level that belongs to a loop inside is that loop's header: there is no other way in.
        let inside = data.within.filter(|_| data.within != self.around);
        let (what, arms) = if let Some(inner) = inside {
            let exits = flow.loops[inner as usize].exits.iter();
            let arms = exits.map(|(target, meant)| Arm {
                way: way(*target),
                node: *target,
                edge: None,
                meant: meant.clone(),
            });
            (What::Loop(inner), arms.collect())
        } else {
            let block = (node as usize) < graph.blocks.len();
            let arms = data.arrows.iter().enumerate().map(|(index, arrow)| Arm {
                way: if arrow.traps {
                    Way::Trap(arrow.target)
                } else {
                    way(arrow.target)
                },
                node: arrow.target,
                edge: block.then_some(index as u32),
                meant: vec![arrow.meant],
            });
            let what = if block {
                What::Block(node)
            } else {
                What::Dispatch(node)
            };
            (what, arms.collect())
        };
        Element {
            what,
            arms,
            arrivals: 0,
            merges: Vec::new(),
            completes: false,
            before_end: false,
        }
    }

    fn find_completing(&mut self, graph: &Graph) {
        let ends = |element: &Element| match element.what {
            What::Block(block) => matches!(graph.blocks[block as usize].end, End::Return(_)),
            _ => false,
        };
        let returns = self
            .elements
            .last()
            .is_some_and(ends)
            .then(|| self.elements.len() - 1);
        let mut reaches_end = vec![false; self.elements.len()];
        for index in (0..self.elements.len()).rev() {
            let element = &self.elements[index];
            let through = |known: &dyn Fn(usize) -> bool| {
                element.arms.iter().any(|arm| match arm.way {
                    Way::Element(target) => known(target as usize),
                    Way::Back | Way::Leave => true,
                    Way::Trap(_) => false,
                })
            };
            let reaches = ends(element) || through(&|target| reaches_end[target]);
            let merges = element.arrivals > 1;
            let completes = reaches || merges || through(&|target| self.elements[target].completes);
            reaches_end[index] = reaches;
            self.elements[index].completes = completes;
            // A merge that ends in a trap is placed like one that goes on to the function's end, which so stands behind it and
            // under no test.
            if merges
                && !reaches
                && let Some(returns) = returns
            {
                self.elements[index].before_end = true;
                self.elements[returns].arrivals += 1;
            }
        }
    }

    /// Finds who dominates whom, and so where each merge belongs.
    fn find_merges(&mut self) {
        let mut tree = Ancestors::default();
        let count = self.elements.len();
        let mut dominator: Vec<Option<u32>> = vec![None; count];
        for index in 0..count as u32 {
            tree.add(dominator[index as usize]);
            let element = &self.elements[index as usize];
            let mut lead_to = |target: u32| {
                dominator[target as usize] = Some(match dominator[target as usize] {
                    Some(other) => tree.nearest_common(other, index),
                    None => index,
                });
            };
            for arm in &element.arms {
                if let Way::Element(target) = arm.way {
                    lead_to(target);
                }
            }
            if element.before_end {
                lead_to(count as u32 - 1);
            }
        }
        for (index, dominator) in dominator.into_iter().enumerate() {
            if self.elements[index].arrivals > 1
                && let Some(above) = dominator
            {
                self.elements[above as usize].merges.push(index as u32);
            }
        }
    }
}

/// A tree that grows at its leaves and knows the nearest common ancestor of two nodes in logarithmic time.
#[derive(Default)]
struct Ancestors {
    nodes: Vec<Ancestor>,
}

#[derive(Clone, Copy)]
struct Ancestor {
    depth: u32,
    parent: u32,
    /// Some ancestor further up; chosen so that two jumps of equal length are followed by one of twice that length.
    jump: u32,
}

impl Ancestors {
    fn add(&mut self, parent: Option<u32>) {
        let own = self.nodes.len() as u32;
        let Some(parent) = parent else {
            self.nodes.push(Ancestor {
                depth: 0,
                parent: own,
                jump: own,
            });
            return;
        };
        let above = self.nodes[parent as usize];
        let jump = self.nodes[above.jump as usize];
        let further = self.nodes[jump.jump as usize];
        let balanced = above.depth - jump.depth == jump.depth - further.depth;
        self.nodes.push(Ancestor {
            depth: above.depth + 1,
            parent,
            jump: if balanced { jump.jump } else { parent },
        });
    }

    fn nearest_common(&self, a: u32, b: u32) -> u32 {
        let node = |index: u32| self.nodes[index as usize];
        let (mut a, mut b) = if node(a).depth < node(b).depth {
            (b, a)
        } else {
            (a, b)
        };
        while node(a).depth > node(b).depth {
            let jump = node(a).jump;
            a = if node(jump).depth >= node(b).depth {
                jump
            } else {
                node(a).parent
            };
        }
        while a != b {
            if node(a).jump != node(b).jump {
                (a, b) = (node(a).jump, node(b).jump);
            } else {
                (a, b) = (node(a).parent, node(b).parent);
            }
        }
        a
    }
}
