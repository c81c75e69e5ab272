//! Random graphs do the same in both forms.

use super::*;
use proptest::prelude::*;

/// A random graph: for each block a kind of end, and numbers from which everything else is drawn.
#[derive(Clone, Debug)]
struct Plan {
    blocks: Vec<BlockPlan>,
}

#[derive(Clone, Debug)]
struct BlockPlan {
    end: u8,
    params: u8,
    small: bool,
    targets: Vec<u16>,
    draws: Vec<u16>,
}

fn plan(most: usize) -> impl Strategy<Value = Plan> {
    let block = (
        0..12u8,
        0..3u8,
        any::<bool>(),
        prop::collection::vec(any::<u16>(), 4),
        prop::collection::vec(any::<u16>(), 12),
    );
    let block = block.prop_map(|(end, params, small, targets, draws)| BlockPlan {
        end,
        params,
        small,
        targets,
        draws,
    });
    prop::collection::vec(block, 2..most).prop_map(|blocks| Plan { blocks })
}

/// Draws numbers from a list, again from the start when it is used up.
struct Draws<'a> {
    numbers: &'a [u16],
    next: usize,
}

impl Draws<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.next += 1;
        (usize::from(self.numbers[self.next % self.numbers.len()]) + self.next) % limit.max(1)
    }
}

/// The graph of a plan. `near` makes edges lead mostly to blocks close by, as in real programs.
fn build(plan: &Plan, near: bool) -> Graph {
    let count = plan.blocks.len();
    let mut sketch = Sketch::default();
    for (index, block) in plan.blocks.iter().enumerate() {
        let params = if index == 0 {
            0
        } else {
            usize::from(block.params)
        };
        let id = sketch.block(params);
        sketch.graph.blocks[id as usize].small = block.small;
    }
    // First only where edges lead, since what can be handed over depends on who dominates whom.
    let target = |index: usize, choice: u16| {
        let choice = usize::from(choice);
        let target = if near {
            let low = index.saturating_sub(3);
            low + choice % 7
        } else {
            choice
        };
        (1 + target % (count - 1).max(1)) as u32
    };
    let mut shape: Vec<(u8, Vec<u32>)> = Vec::new();
    for (index, block) in plan.blocks.iter().enumerate() {
        let targets: Vec<u32> = block
            .targets
            .iter()
            .map(|&choice| target(index, choice))
            .collect();
        let wanted = match block.end {
            0..=2 => 1,
            3..=7 => 2,
            8..=9 => 3 + usize::from(block.draws[0] % 2),
            _ => 0,
        };
        shape.push((block.end, targets[..wanted].to_vec()));
    }
    let dominators = dominators(&shape);
    for (index, block) in plan.blocks.iter().enumerate() {
        let own = index as u32;
        let mut draws = Draws {
            numbers: &block.draws,
            next: 0,
        };
        let mut visible: Vec<Name> = Vec::new();
        for other in 0..count {
            if other != index && dominators[index].contains(&other) {
                let data = &sketch.graph.blocks[other];
                visible.extend(data.params.iter().copied());
                visible.push(data.defines[0]);
            }
        }
        if !visible.is_empty() {
            for _ in 0..draws.below(3) {
                let name = visible[draws.below(visible.len())];
                sketch.graph.blocks[index].uses.push(name);
            }
        }
        visible.push(sketch.mixture(own));
        visible.extend(sketch.graph.blocks[index].params.clone());
        let ways: Vec<(u32, Vec<Name>)> = shape[index]
            .1
            .iter()
            .map(|&to| {
                let params = sketch.graph.blocks[to as usize].params.len();
                let args = (0..params)
                    .map(|_| visible[draws.below(visible.len())])
                    .collect();
                (to, args)
            })
            .collect();
        let ways: Vec<(u32, &[Name])> = ways.iter().map(|(to, args)| (*to, &args[..])).collect();
        match ways[..] {
            [] if block.end == 10 => {
                let value = visible[draws.below(visible.len())];
                sketch.ret(own, &[value]);
            }
            [] => {}
            [(to, args)] => sketch.jump(own, to, args),
            [first, second] => sketch.branch(own, first, second),
            _ => sketch.switch(own, &ways),
        }
    }
    sketch.graph
}

/// Which blocks dominate each block, by the definition; unreached blocks have none.
fn dominators(shape: &[(u8, Vec<u32>)]) -> Vec<Vec<usize>> {
    let count = shape.len();
    let reach = |without: Option<usize>| {
        let mut reached = vec![false; count];
        let mut work = Vec::new();
        if without != Some(0) {
            work.push(0);
        }
        while let Some(block) = work.pop() {
            if !reached[block] {
                reached[block] = true;
                let next = shape[block].1.iter().map(|&to| to as usize);
                work.extend(next.filter(|&to| Some(to) != without));
            }
        }
        reached
    };
    let all = reach(None);
    let mut dominators = vec![Vec::new(); count];
    for candidate in 0..count {
        let rest = reach(Some(candidate));
        for block in 0..count {
            if all[block] && !rest[block] {
                dominators[block].push(candidate);
            }
        }
    }
    dominators
}

fn check(plan: &Plan, near: bool, answers: &[u8]) {
    let graph = build(plan, near);
    let module = structured(&graph, 1).expect("so few blocks do not nest too deep");
    let answers: Vec<i64> = answers
        .iter()
        .map(|&answer| i64::from(answer % 4))
        .collect();
    for skip in 0..4.min(answers.len()) {
        check_same(&graph, &module, &answers[skip..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_graphs(plan in plan(7), answers in prop::collection::vec(any::<u8>(), 1..40)) {
        check(&plan, false, &answers);
    }

    #[test]
    fn graphs_with_near_edges(plan in plan(30), answers in prop::collection::vec(any::<u8>(), 1..120)) {
        check(&plan, true, &answers);
    }

    #[test]
    fn tangled_graphs(plan in plan(25), answers in prop::collection::vec(any::<u8>(), 1..120)) {
        check(&plan, false, &answers);
    }
}
