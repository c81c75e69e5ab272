//! Splits kernels where their parts need not run in one launch.
//!
//! Each operation of a kernel's body that is not pure is a stage, with the pure operations that it needs; those that use values of each other are one stage. Between two launches all memory is up to date, so a
//! later stage may read what an earlier one wrote anywhere.

use crate::accumulate::accumulate;
use crate::columns::columns_first;
use crate::dependencies::buffer_uses;
use crate::index_space::over_index_space;
use crate::items::Items;
use crate::merge_loops::merge_loops;
use crate::parallel::{independent_loops, is_pure};
use crate::schedule::Step;
use crate::tiles::{TILE_ITEMS, constant_contraction, over_tiles};
use crate::traffic::count_traffic;
use crate::traps::report_traps;
use crate::{Abilities, Kernel};
use ferrozyme_backend::Error;
use ferrozyme_graph::lower::Lowered;
use ferrozyme_ir::{
    Alignment, Function, FunctionId, Module, Op, Opcode, Param, Type, Value, all_ops,
};
use ferrozyme_opt::{expand_contractions, merge_common_subexpressions, remove_dead_code};
use rustc_hash::FxHashMap;

/// What the addresses of all tensors are multiples of, at least.
const ALIGNMENT: usize = 16;

/// How many groups and items a kernel has, and how much local memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) groups: u32,
    pub(crate) items: u32,
    pub(crate) local: usize,
    /// Whether one item does all of it, although there is a loop in it.
    pub(crate) alone: bool,
}

/// Makes the kernels of all launches, in a module of their own, and the schedule that launches them.
pub(crate) fn make_kernels(
    lowered: Lowered,
    steps: Vec<Step<FunctionId>>,
    abilities: &Abilities,
) -> Result<(Module, Vec<Kernel>, Vec<Step>), Error> {
    let mut module = lowered.module;
    let mut into = Module::new();
    into.globals = module.globals.clone();
    let mut maker = Maker {
        items: Items::declare(&mut into),
        into,
        abilities,
        sizes: &lowered.sizes,
        kernels: Vec::new(),
        stages: FxHashMap::default(),
    };
    let steps = maker.steps(&mut module, steps)?;
    Ok((maker.into, maker.kernels, steps))
}

struct Maker<'a> {
    /// The module of the new kernels.
    into: Module,
    items: Items,
    abilities: &'a Abilities,
    /// The bytes of the tensors behind each function's parameters.
    sizes: &'a FxHashMap<FunctionId, Vec<usize>>,
    kernels: Vec<Kernel>,
    /// The kernels that each function has become, by number.
    stages: FxHashMap<FunctionId, Vec<usize>>,
}

impl Maker<'_> {
    fn steps(
        &mut self,
        module: &mut Module,
        steps: Vec<Step<FunctionId>>,
    ) -> Result<Vec<Step>, Error> {
        let mut all = Vec::new();
        for step in steps {
            all.push(match step {
                Step::Launch { kernel, places } => {
                    // Kernels rely on it.
                    if places.iter().any(|place| place.offset % ALIGNMENT != 0) {
                        let problem = "a tensor is not aligned (a bug in Ferrozyme)";
                        return Err(Error::Compile(problem.to_owned()));
                    }
                    for kernel in self.stages_of(module, kernel)? {
                        let places = places.clone();
                        all.push(Step::Launch { kernel, places });
                    }
                    continue;
                }
                Step::For { count, body } => Step::For {
                    count,
                    body: self.steps(module, body)?,
                },
                Step::Again { condition, body } => Step::Again {
                    condition,
                    body: self.steps(module, body)?,
                },
                Step::If {
                    condition,
                    then,
                    otherwise,
                } => Step::If {
                    condition,
                    then: self.steps(module, then)?,
                    otherwise: self.steps(module, otherwise)?,
                },
                Step::Copy { to, from, bytes } => Step::Copy { to, from, bytes },
                Step::Feed { number, to } => Step::Feed { number, to },
                Step::Receive {
                    number,
                    position,
                    from,
                } => Step::Receive {
                    number,
                    position,
                    from,
                },
                Step::Call { number, places } => Step::Call { number, places },
                Step::Count { to } => Step::Count { to },
            });
        }
        Ok(all)
    }

    fn stages_of(&mut self, module: &mut Module, id: FunctionId) -> Result<Vec<usize>, Error> {
        if let Some(known) = self.stages.get(&id) {
            return Ok(known.clone());
        }
        let function = &module.functions[id];
        let has_others = all_ops(function).into_iter().any(|op| {
            function.ops[op].opcode == Opcode::Contract && !is_stage(function, op, self.abilities)
        });
        if has_others {
            expand_contractions(module, id);
        }
        // Equal addresses become one value.
        merge_common_subexpressions(module, id);
        columns_first(module, id);
        merge_loops(module, id);
        accumulate(&mut module.functions[id], self.abilities);
        let function = &module.functions[id];
        let independent = independent_loops(module, function);
        let mut numbers = Vec::new();
        for (number, ops) in split(function).into_iter().enumerate() {
            let mut kernel = function.clone();
            kernel.name = format!("{}_{number}", function.name);
            for param in kernel.params.iter_mut().filter(|param| param.ty.is_ptr()) {
                param.facts.align = Alignment::new(ALIGNMENT as u64).unwrap_or_default();
            }
            let status = add_status(&mut kernel);
            let contraction = ops
                .iter()
                .copied()
                .find(|&op| is_stage(&kernel, op, self.abilities));
            if contraction.is_some() && ops.iter().any(|&op| !stands_beside(&kernel, op)) {
                return Err(Error::Compile(format!(
                    "a contraction of @{} is one stage with something else (a bug in Ferrozyme)",
                    function.name
                )));
            }
            let traffic = count_traffic(&kernel, &ops);
            let sizes = self.sizes.get(&id).map(Vec::as_slice);
            let buffers = buffer_uses(&kernel, &ops, function.arguments(), sizes);
            let body = kernel.body();
            kernel.regions[body].ops.clear();
            let (items, abilities) = (self.items, self.abilities);
            let (extent, product) = match contraction {
                Some(op) => over_tiles(&mut kernel, &ops, op, items, abilities),
                None => {
                    let extent = over_index_space(&mut kernel, ops, &independent, items, abilities);
                    (extent, None)
                }
            };
            report_traps(&mut kernel, status)?;
            let name = kernel.name.clone();
            let function = self.into.functions.push(kernel);
            remove_dead_code(&mut self.into, function);
            numbers.push(self.kernels.len());
            self.kernels.push(Kernel {
                name,
                function,
                groups: extent.groups,
                items: extent.items,
                local: extent.local,
                buffers,
                alone: extent.alone,
                product,
                traffic,
            });
        }
        self.stages.insert(id, numbers.clone());
        Ok(numbers)
    }
}

/// Whether an operation is a contraction of known extent in the kernel's body, and a group has enough items for a tile.
fn is_stage(function: &Function, op: Op, abilities: &Abilities) -> bool {
    function.ops[op].opcode == Opcode::Contract
        && abilities.group >= TILE_ITEMS
        && function.regions[function.body()].ops.contains(&op)
        && constant_contraction(function, op).is_some()
}

/// Whether an operation may stand before a contraction in its stage.
fn stands_beside(function: &Function, op: Op) -> bool {
    is_pure(function, op) || matches!(function.ops[op].opcode, Opcode::Load | Opcode::Contract)
}

/// One more parameter: the address of the status.
fn add_status(function: &mut Function) -> Value {
    let mut param = Param::from(Type::PTR);
    param.facts.noalias = true;
    param.facts.nocapture = true;
    function.params.push(param);
    let body = function.body();
    let status = function.add_argument(body, Type::PTR);
    function.set_name(status, "status");
    status
}

/// The operations of each stage, in order; pure ones are in all of them.
fn split(function: &Function) -> Vec<Vec<Op>> {
    let mut top = function.regions[function.body()].ops.clone();
    top.pop();
    // For each value, the first stage that it comes from; each stage, the first one that it is joined with.
    let mut origins: FxHashMap<Value, usize> = FxHashMap::default();
    let mut joined: Vec<(Op, usize)> = Vec::new();
    for &op in &top {
        let mut first: Option<usize> = None;
        crate::parallel::visit_all(function, &[op], &mut |inner| {
            for operand in &function.ops[inner].operands {
                let origin = origins.get(operand).copied();
                first = match (first, origin) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        });
        if !is_pure(function, op) {
            let number = joined.len();
            let first = *first.get_or_insert(number);
            // What stands between is joined too.
            for (_, other) in &mut joined[first..] {
                *other = (*other).min(first);
            }
            let start = joined.get(first).map_or(first, |&(_, start)| start);
            joined.push((op, start));
        }
        if let Some(first) = first {
            for &result in &function.ops[op].results {
                origins.insert(result, first);
            }
        }
    }
    let mut stages: Vec<Vec<Op>> = Vec::new();
    let mut number = 0;
    while number < joined.len() {
        let start = joined[number].1;
        let end = (number + 1..joined.len())
            .find(|&other| joined[other].1 > start)
            .unwrap_or(joined.len());
        let own: Vec<Op> = joined[number..end].iter().map(|&(op, _)| op).collect();
        let is_of_stage = |op: &Op| is_pure(function, *op) || own.contains(op);
        stages.push(top.iter().copied().filter(is_of_stage).collect());
        number = end;
    }
    stages
}
