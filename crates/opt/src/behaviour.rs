//! The effects of each operation, including its regions: whether it reads or writes memory, and
//! whether control may not leave it (a trap, an endless loop).
//!
//! Coarse on purpose: one bit each, for the whole of memory. Alias analysis answers which memory.

use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Effect, Function, MemoryEffect, Module, Op, Opcode, Payload, Region};

/// The effects of an operation, its regions included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Behaviour {
    /// It may read memory that other operations see.
    pub reads: bool,
    /// It may write or release memory that other operations see.
    pub writes: bool,
    /// It may trap, or never end, so that what follows does not run.
    pub stops: bool,
    /// It makes new memory that may outlive the function.
    pub allocates: bool,
}

impl Behaviour {
    /// Whether the operation has no observable effect apart from its results.
    pub fn is_removable(self) -> bool {
        !self.writes && !self.stops
    }

    fn join(self, other: Behaviour) -> Behaviour {
        Behaviour {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            stops: self.stops || other.stops,
            allocates: self.allocates || other.allocates,
        }
    }
}

/// Whether an operation is a `for` that does nothing in its body but compute, load and store.
pub fn is_plain_loop(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    data.opcode == Opcode::For
        && function.regions[data.regions[0]].ops.iter().all(|&inner| {
            let opcode = function.ops[inner].opcode;
            matches!(opcode, Opcode::Load | Opcode::Store | Opcode::Yield)
                || matches!(opcode.effect(), Effect::Pure | Effect::Partial)
        })
}

/// The behaviour of every operation in a function's body.
#[derive(Clone, Debug)]
pub struct Behaviours {
    of_op: SecondaryMap<Op, Behaviour>,
}

impl Behaviours {
    /// Computes it, in one walk.
    pub fn of(module: &Module, function: &Function) -> Behaviours {
        let mut behaviours = Behaviours {
            of_op: SecondaryMap::new(),
        };
        if let Some(body) = function.body {
            behaviours.visit(module, function, body);
        }
        behaviours
    }

    /// What one operation does.
    pub fn op(&self, op: Op) -> Behaviour {
        self.of_op[op]
    }

    fn visit(&mut self, module: &Module, function: &Function, region: Region) -> Behaviour {
        let mut all = Behaviour::default();
        for &op in &function.regions[region].ops {
            let mut own = behaviour_of(module, function, op);
            for &inner in &function.ops[op].regions {
                own = own.join(self.visit(module, function, inner));
            }
            self.of_op[op] = own;
            all = all.join(own);
        }
        all
    }
}

/// What a call may do with what one of its arguments points to, and with the pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handling {
    /// It may read what is there.
    pub reads: bool,
    /// It may write there.
    pub writes: bool,
    /// It may keep a copy of the pointer: in memory, or as a result.
    pub keeps: bool,
}

/// What a call of a function may do with an argument, as the function declares; with none, of a function that is not known.
pub fn handling(callee: Option<&Function>, index: usize) -> Handling {
    let Some(callee) = callee else {
        return Handling {
            reads: true,
            writes: true,
            keeps: true,
        };
    };
    let facts = callee.params.get(index).map(|param| &param.facts);
    // A function that writes nothing can keep a pointer only in its results.
    let silent = !callee.may_write() && callee.results.iter().all(|ty| ty.is_float());
    Handling {
        reads: callee.facts.memory != MemoryEffect::None
            && facts.is_none_or(|facts| !facts.writeonly),
        writes: callee.facts.memory.writes() && facts.is_none_or(|facts| !facts.readonly),
        keeps: !silent && facts.is_none_or(|facts| !facts.nocapture),
    }
}

/// The effects of an operation without its regions.
pub fn behaviour_of(module: &Module, function: &Function, op: Op) -> Behaviour {
    let data = &function.ops[op];
    let none = Behaviour::default();
    match data.opcode.effect() {
        Effect::Pure | Effect::Partial => none,
        Effect::Read => Behaviour {
            reads: true,
            ..none
        },
        Effect::Write => Behaviour {
            reads: matches!(
                data.opcode,
                Opcode::Copy | Opcode::Move | Opcode::AtomicAdd | Opcode::Contract
            ),
            writes: true,
            ..none
        },
        Effect::Allocate => Behaviour {
            allocates: data.opcode == Opcode::Alloc,
            ..none
        },
        Effect::Release => Behaviour {
            writes: true,
            ..none
        },
        Effect::Call => match data.payload {
            Payload::Callee(callee) => {
                let callee = &module.functions[callee];
                let facts = &callee.facts;
                Behaviour {
                    reads: facts.memory != MemoryEffect::None,
                    writes: callee.may_write(),
                    stops: !facts.willreturn,
                    // A function that allocates memory which its caller sees is declared to write.
                    allocates: facts.memory.writes(),
                }
            }
            _ => Behaviour {
                reads: true,
                writes: true,
                stops: true,
                allocates: true,
            },
        },
        // A general loop may run for ever; a counted one ends.
        Effect::Regions => Behaviour {
            stops: data.opcode == Opcode::Loop,
            ..none
        },
        Effect::Ends => Behaviour {
            // A trap may call a function that reads memory.
            reads: matches!(data.payload, Payload::Callee(_)),
            stops: data.opcode == Opcode::Trap,
            ..none
        },
    }
}
