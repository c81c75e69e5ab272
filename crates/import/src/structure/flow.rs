//! Which blocks form loops, and where each loop is entered and left.
//!
//! Loops are the strongly connected parts of the graph, and within each of them, once the ways back to its header are
//! taken away, the parts that are still strongly connected. A part that is entered in several places (irreducible control
//! flow) gets a header of its own, a *dispatch*: all ways to one of its entries lead there, and it goes on to the entry that was
//! meant.
//!
//! Small blocks that end in a trap do not take part: whoever goes there gets a copy, so that a check that fails inside a
//! loop is not an exit of the loop.

use super::graph::{End, Graph};

/// The graph with its loops.
pub(super) struct Flow {
    /// The blocks, then the dispatches.
    pub(super) nodes: Vec<Node>,
    /// All loops; outer ones come first.
    pub(super) loops: Vec<Loop>,
}

/// A block or a dispatch.
#[derive(Default)]
pub(super) struct Node {
    /// Where it leads. For blocks, one for each edge.
    pub(super) arrows: Vec<Arrow>,
    /// The innermost loop that it belongs to.
    pub(super) within: Option<u32>,
    /// Whether the entry leads there.
    pub(super) reached: bool,
}

/// A way from one node to another.
#[derive(Clone, Copy)]
pub(super) struct Arrow {
    /// Where it leads: the block that is meant, or the dispatch before it.
    pub(super) target: u32,
    /// The block that is meant.
    pub(super) meant: u32,
    /// Whether it leads to its own copy of a block that ends in a trap.
    pub(super) traps: bool,
}

/// A loop.
pub(super) struct Loop {
    /// The only node through which it is entered.
    pub(super) header: u32,
    /// The loop around it.
    pub(super) parent: Option<u32>,
    /// The nodes outside to which it leads, and for each of them the blocks that are meant.
    pub(super) exits: Vec<(u32, Vec<u32>)>,
}

impl Flow {
    /// Finds the loops of a graph.
    pub(super) fn of(graph: &Graph) -> Flow {
        let nodes = graph.blocks.iter().map(|block| Node {
            arrows: block
                .end
                .edges()
                .iter()
                .map(|edge| arrow(graph, edge.target))
                .collect(),
            ..Node::default()
        });
        let mut flow = Flow {
            nodes: nodes.collect(),
            loops: Vec::new(),
        };
        let reached = flow.mark_reached();
        flow.find_loops(reached);
        flow.find_exits();
        flow
    }

    /// Whether a loop, or one inside, holds this node.
    pub(super) fn holds(&self, holder: Option<u32>, node: u32) -> bool {
        let mut within = self.nodes[node as usize].within;
        loop {
            match within {
                _ if within == holder => return true,
                Some(inner) => within = self.loops[inner as usize].parent,
                None => return false,
            }
        }
    }

    fn mark_reached(&mut self) -> Vec<u32> {
        let mut found = vec![0];
        self.nodes[0].reached = true;
        let mut next = 0;
        while let Some(&node) = found.get(next) {
            next += 1;
            for index in 0..self.nodes[node as usize].arrows.len() {
                let arrow = self.nodes[node as usize].arrows[index];
                if !arrow.traps && !self.nodes[arrow.target as usize].reached {
                    self.nodes[arrow.target as usize].reached = true;
                    found.push(arrow.target);
                }
            }
        }
        found
    }

    fn find_loops(&mut self, members: Vec<u32>) {
        let mut search = Search::default();
        let mut work = vec![(members, None)];
        while let Some((members, around)) = work.pop() {
            let mut parts = search.strong_parts(self, &members, around);
            let headers = self.make_headers(&members, &mut parts);
            for (part, header) in parts.into_iter().zip(headers) {
                let id = self.loops.len() as u32;
                self.loops.push(Loop {
                    header,
                    parent: around,
                    exits: Vec::new(),
                });
                for &node in &part {
                    self.nodes[node as usize].within = Some(id);
                }
                work.push((part, Some(id)));
            }
        }
    }

    /// For each strongly connected part the node through which alone it is entered from the other members.
    fn make_headers(&mut self, members: &[u32], parts: &mut [Vec<u32>]) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut part_of = vec![NONE; self.nodes.len()];
        for (index, part) in parts.iter().enumerate() {
            for &node in part {
                part_of[node as usize] = index as u32;
            }
        }
        let mut entries: Vec<Vec<u32>> = vec![Vec::new(); parts.len()];
        let mut is_entry = vec![false; self.nodes.len()];
        for &node in members {
            for arrow in &self.nodes[node as usize].arrows {
                let part = part_of[arrow.target as usize];
                let inside = part == part_of[node as usize];
                if !arrow.traps && part != NONE && !inside && !is_entry[arrow.target as usize] {
                    is_entry[arrow.target as usize] = true;
                    entries[part as usize].push(arrow.target);
                }
            }
        }
        let mut dispatch_of = vec![NONE; self.nodes.len()];
        let mut headers = Vec::with_capacity(parts.len());
        for (entries, part) in entries.iter().zip(parts) {
            if let [only] = entries[..] {
                headers.push(only);
                continue;
            }
            let dispatch = self.nodes.len() as u32;
            let arrows = entries.iter().map(|&entry| Arrow {
                target: entry,
                meant: entry,
                traps: false,
            });
            self.nodes.push(Node {
                arrows: arrows.collect(),
                within: None,
                reached: true,
            });
            for &entry in entries {
                dispatch_of[entry as usize] = dispatch;
            }
            part.push(dispatch);
            headers.push(dispatch);
        }
        for &node in members {
            for arrow in &mut self.nodes[node as usize].arrows {
                let dispatch = dispatch_of[arrow.target as usize];
                if !arrow.traps && dispatch != NONE {
                    arrow.target = dispatch;
                }
            }
        }
        headers
    }

    fn find_exits(&mut self) {
        for node in 0..self.nodes.len() {
            if !self.nodes[node].reached {
                continue;
            }
            for index in 0..self.nodes[node].arrows.len() {
                let arrow = self.nodes[node].arrows[index];
                if arrow.traps {
                    continue;
                }
                let mut within = self.nodes[node].within;
                while let Some(id) = within
                    && !self.holds(within, arrow.target)
                {
                    add_exit(&mut self.loops[id as usize].exits, arrow);
                    within = self.loops[id as usize].parent;
                }
            }
        }
    }
}

fn add_exit(exits: &mut Vec<(u32, Vec<u32>)>, arrow: Arrow) {
    match exits.iter_mut().find(|(target, _)| *target == arrow.target) {
        Some((_, meant)) if meant.contains(&arrow.meant) => {}
        Some((_, meant)) => meant.push(arrow.meant),
        None => exits.push((arrow.target, vec![arrow.meant])),
    }
}

fn arrow(graph: &Graph, target: u32) -> Arrow {
    let block = &graph.blocks[target as usize];
    Arrow {
        target,
        meant: target,
        traps: block.small && matches!(block.end, End::Trap),
    }
}

/// Tarjan's search for strongly connected parts, with the stack made explicit.
#[derive(Default)]
struct Search {
    /// For each node: which search saw it last, its number there, the lowest number it reaches, whether it still waits for its part.
    seen: Vec<Seen>,
    round: u32,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    /// The round for which the node is a member.
    member: u32,
    /// From 1 on; 0 before it is visited.
    number: u32,
    lowest: u32,
    waiting: bool,
}

impl Search {
    /// The parts with a cycle among the members, the ways to the header of the loop around them aside.
    fn strong_parts(&mut self, flow: &Flow, members: &[u32], around: Option<u32>) -> Vec<Vec<u32>> {
        self.round += 1;
        self.seen.resize(flow.nodes.len(), Seen::default());
        for &node in members {
            self.seen[node as usize] = Seen {
                member: self.round,
                ..Seen::default()
            };
        }
        let header = around.map(|id| flow.loops[id as usize].header);
        let mut parts = Vec::new();
        let mut next = 0;
        let mut waiting = Vec::new();
        let mut path: Vec<(u32, usize)> = Vec::new();
        for &start in members {
            if self.seen[start as usize].number == 0 {
                self.visit(start, &mut next, &mut waiting, &mut path);
            }
            while let Some(&mut (node, ref mut index)) = path.last_mut() {
                let arrows = &flow.nodes[node as usize].arrows;
                if let Some(arrow) = arrows.get(*index) {
                    *index += 1;
                    let target = arrow.target as usize;
                    if arrow.traps
                        || Some(arrow.target) == header
                        || self.seen[target].member != self.round
                    {
                        continue;
                    }
                    if self.seen[target].number == 0 {
                        self.visit(arrow.target, &mut next, &mut waiting, &mut path);
                    } else if self.seen[target].waiting {
                        let number = self.seen[target].number;
                        let seen = &mut self.seen[node as usize];
                        seen.lowest = seen.lowest.min(number);
                    }
                    continue;
                }
                path.pop();
                let seen = self.seen[node as usize];
                if let Some(&(above, _)) = path.last() {
                    let above = &mut self.seen[above as usize];
                    above.lowest = above.lowest.min(seen.lowest);
                }
                if seen.lowest == seen.number {
                    let from = waiting
                        .iter()
                        .rposition(|&other| other == node)
                        .unwrap_or(0);
                    let part = waiting.split_off(from);
                    for &member in &part {
                        self.seen[member as usize].waiting = false;
                    }
                    let cyclic = part.len() > 1
                        || (Some(node) != header
                            && arrows
                                .iter()
                                .any(|arrow| !arrow.traps && arrow.target == node));
                    if cyclic {
                        parts.push(part);
                    }
                }
            }
        }
        parts
    }

    fn visit(
        &mut self,
        node: u32,
        next: &mut u32,
        waiting: &mut Vec<u32>,
        path: &mut Vec<(u32, usize)>,
    ) {
        *next += 1;
        let seen = &mut self.seen[node as usize];
        seen.number = *next;
        seen.lowest = *next;
        seen.waiting = true;
        waiting.push(node);
        path.push((node, 0));
    }
}
