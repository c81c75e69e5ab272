//! Minimum cut in a directed graph with capacities, for the caching plan.
//!
//! Dinic's algorithm with explicit stacks, so that long chains of operations do not exhaust the machine's. On the
//! graphs of programs, which are sparse and nearly acyclic, it takes time close to linear.

/// A capacity that no cut can pay.
pub(crate) const INFINITE: u64 = u64::MAX / 4;

/// A graph to be cut between a source and a sink.
pub(crate) struct Graph {
    /// Edges in pairs: edge `e` and its reverse `e ^ 1`.
    edges: Vec<Edge>,
    /// The edges that leave each node.
    leaving: Vec<Vec<u32>>,
}

struct Edge {
    to: u32,
    capacity: u64,
}

/// The node where flow starts.
pub(crate) const SOURCE: u32 = 0;
/// The node where flow ends.
pub(crate) const SINK: u32 = 1;

impl Graph {
    /// A graph with source and sink and no edges.
    pub(crate) fn new() -> Graph {
        Graph {
            edges: Vec::new(),
            leaving: vec![Vec::new(), Vec::new()],
        }
    }

    /// One more node.
    pub(crate) fn node(&mut self) -> u32 {
        self.leaving.push(Vec::new());
        self.leaving.len() as u32 - 1
    }

    /// One more edge.
    pub(crate) fn edge(&mut self, from: u32, to: u32, capacity: u64) {
        let capacity = capacity.min(INFINITE);
        let id = self.edges.len() as u32;
        self.edges.push(Edge { to, capacity });
        self.edges.push(Edge {
            to: from,
            capacity: 0,
        });
        self.leaving[from as usize].push(id);
        self.leaving[to as usize].push(id + 1);
    }

    /// Cuts the graph: for each node, whether it stays on the source's side of a cut of least capacity.
    ///
    /// Among cuts of equal capacity it takes the one nearest to the source.
    pub(crate) fn cut(mut self) -> Vec<bool> {
        let mut next_edge = vec![0usize; self.leaving.len()];
        while let Some(level) = self.levels() {
            next_edge.fill(0);
            self.block_flow(&level, &mut next_edge);
        }
        let mut reached = vec![false; self.leaving.len()];
        reached[SOURCE as usize] = true;
        let mut pending = vec![SOURCE];
        while let Some(node) = pending.pop() {
            for &edge in &self.leaving[node as usize] {
                let Edge { to, capacity } = self.edges[edge as usize];
                if capacity > 0 && !reached[to as usize] {
                    reached[to as usize] = true;
                    pending.push(to);
                }
            }
        }
        reached
    }

    /// Distances from the source along edges with capacity left; none when the sink is out of reach.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut level = vec![u32::MAX; self.leaving.len()];
        level[SOURCE as usize] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.leaving[node as usize] {
                let Edge { to, capacity } = self.edges[edge as usize];
                if capacity > 0 && level[to as usize] == u32::MAX {
                    level[to as usize] = level[node as usize] + 1;
                    queue.push_back(to);
                }
            }
        }
        (level[SINK as usize] != u32::MAX).then_some(level)
    }

    /// Sends flow along shortest paths until none is left.
    fn block_flow(&mut self, level: &[u32], next_edge: &mut [usize]) {
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        loop {
            if node == SINK {
                let amount = path
                    .iter()
                    .map(|&edge| self.edges[edge as usize].capacity)
                    .min()
                    .unwrap_or(0);
                let mut first_full = 0;
                for (index, &edge) in path.iter().enumerate().rev() {
                    let capacity = &mut self.edges[edge as usize].capacity;
                    *capacity -= amount;
                    if *capacity == 0 {
                        first_full = index;
                    }
                    self.edges[edge as usize ^ 1].capacity += amount;
                }
                // Go on from where the path was interrupted, not from the source.
                node = self.edges[path[first_full] as usize ^ 1].to;
                path.truncate(first_full);
                continue;
            }
            let mut advanced = false;
            while let Some(&edge) = self.leaving[node as usize].get(next_edge[node as usize]) {
                let Edge { to, capacity } = self.edges[edge as usize];
                if capacity > 0 && level[to as usize] == level[node as usize] + 1 {
                    path.push(edge);
                    node = to;
                    advanced = true;
                    break;
                }
                next_edge[node as usize] += 1;
            }
            if !advanced {
                let Some(edge) = path.pop() else { return };
                node = self.edges[edge as usize ^ 1].to;
                next_edge[node as usize] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capacity of the cut, and the source's side.
    fn solve(nodes: u32, edges: &[(u32, u32, u64)]) -> (u64, Vec<bool>) {
        let mut graph = Graph::new();
        for _ in 2..nodes {
            graph.node();
        }
        for &(from, to, capacity) in edges {
            graph.edge(from, to, capacity);
        }
        let side = graph.cut();
        let capacity = edges
            .iter()
            .filter(|(from, to, _)| side[*from as usize] && !side[*to as usize])
            .map(|(_, _, capacity)| capacity)
            .sum();
        (capacity, side)
    }

    #[test]
    fn a_chain_is_cut_at_its_weakest_edge() {
        let (capacity, side) = solve(4, &[(0, 2, 5), (2, 3, 2), (3, 1, 7)]);
        assert_eq!(capacity, 2);
        assert_eq!(side, [true, false, true, false]);
    }

    #[test]
    fn a_long_chain_does_not_exhaust_the_stack() {
        let length = 200_000;
        let mut edges = vec![(0, 2, 3)];
        edges.extend((2..length - 1).map(|node| (node, node + 1, 10)));
        edges.push((length - 1, 1, 10));
        assert_eq!(solve(length, &edges).0, 3);
    }

    #[test]
    fn agrees_with_trying_all_cuts() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let nodes = 3 + random(6) as u32;
            let edges: Vec<(u32, u32, u64)> = (0..random(20))
                .map(|_| {
                    let node = |value: u64| value as u32;
                    (
                        node(random(u64::from(nodes))),
                        node(random(u64::from(nodes))),
                        random(9),
                    )
                })
                .filter(|(from, to, _)| from != to)
                .collect();
            let best = (0..1u32 << nodes)
                .filter(|set| set & 1 == 1 && set & 2 == 0)
                .map(|set| {
                    edges
                        .iter()
                        .filter(|(from, to, _)| set >> from & 1 == 1 && set >> to & 1 == 0)
                        .map(|(_, _, capacity)| capacity)
                        .sum::<u64>()
                })
                .min()
                .unwrap();
            assert_eq!(solve(nodes, &edges).0, best, "{edges:?}");
        }
    }
}
