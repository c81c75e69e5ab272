//! Questions about small programs, with the answers that must be proven and those that must not.

mod bounds;
mod iterations;
mod objects;

use super::*;
use crate::clobbers::Clobbers;
use crate::hull::Hull;
use crate::indices::Counted;
use ferrozyme_ir::{FunctionId, Names, all_ops, parse_module};

struct Program {
    module: Module,
    id: FunctionId,
}

impl Program {
    fn new(text: &str) -> Program {
        let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let id = module.function_named("f").expect("there is @f");
        Program { module, id }
    }

    /// A body with `%x` and `%y` exclusive, `%s` and `%t` shared, and some integers.
    fn body(body: &str) -> Program {
        Program::new(&format!(
            "global @g: 64 bytes align 8 = x\"00\"\n\
             global @h: 64 bytes align 8 = x\"00\"\n\
             global @k: 64 bytes align 8 const = x\"00\"\n\
             declare @any(ptr)\n\
             declare @look(ptr readonly nocapture) -> (f64) memory(read)\n\
             declare @pass(ptr nocapture)\n\
             declare @pure(f64) -> (f64) memory(none)\n\
             func @f(%x: ptr noalias, %y: ptr noalias, %s: ptr, %t: ptr, %n: i64, %m: i64, %c: i1, %v: f64) {{\n\
             {body}\n  return\n}}"
        ))
    }

    fn function(&self) -> &Function {
        &self.module.functions[self.id]
    }

    fn aliases(&self) -> Aliases<'_> {
        Aliases::new(&self.module, self.function())
    }

    fn clobbers(&self) -> Clobbers<'_> {
        Clobbers::compute(&self.module, self.function())
    }

    fn names(&self) -> Names {
        Names::of(self.function())
    }

    fn value(&self, name: &str) -> Value {
        let names = self.names();
        self.function()
            .values
            .keys()
            .find(|&value| names.get(value) == Some(name))
            .unwrap_or_else(|| panic!("there is {name}"))
    }

    /// The operation that defines a value.
    fn op(&self, name: &str) -> Op {
        let value = self.value(name);
        self.function().def_op(value).expect("an operation").0
    }

    /// All operations of a kind, in the order of the text.
    fn all(&self, opcode: Opcode) -> Vec<Op> {
        all_ops(self.function())
            .into_iter()
            .filter(|&op| self.function().ops[op].opcode == opcode)
            .collect()
    }

    /// Whether the first write by `opcode` may later overwrite what `%name` was loaded from.
    fn overwritten(&self, name: &str, opcode: Opcode) -> bool {
        let aliases = self.aliases();
        let read = self.op(name);
        let write = self.all(opcode)[0];
        let written = aliases.writes(write);
        aliases.reads(read).accesses.iter().any(|a| {
            (written.elsewhere && aliases.is_reachable_from_elsewhere(a.root))
                || written
                    .accesses
                    .iter()
                    .any(|b| aliases.may_overwrite_later((read, a), (write, b)))
        })
    }

    /// As `overwritten` by a store, after checking that the two ways to ask agree where there is one store only.
    fn stored_over(&self, name: &str) -> bool {
        let answer = self.overwritten(name, Opcode::Store);
        let clobber = self.clobbers().clobber_of(self.op(name));
        if self.all(Opcode::Store).len() == 1 {
            assert_eq!(answer, clobber.is_some());
        }
        answer
    }

    fn hull(&self, name: &str, loop_index: usize) -> Option<Hull> {
        let aliases = self.aliases();
        let op = self.op(name);
        let loop_op = self.all(Opcode::For)[loop_index];
        aliases.hull(&aliases.reads(op).accesses[0], op, loop_op)
    }

    /// `min, bytes if guards` of a hull, as text.
    fn hull_text(&self, name: &str, loop_index: usize) -> String {
        let names = self.names();
        let Some(hull) = self.hull(name, loop_index) else {
            return "none".to_owned();
        };
        let mut text = format!(
            "{}, {}",
            hull.min.to_text(&names),
            hull.bytes.to_text(&names)
        );
        for guard in hull.guards {
            text += &format!(" if {}", guard.to_text(&names));
        }
        text
    }
}

impl Program {
    /// Whether the first store may overwrite a load, whatever other writes there are.
    fn stored_over_by_first(&self, name: &str) -> bool {
        self.overwritten(name, Opcode::Store)
    }
}

/// A loop over `%i` whose body loads `%a` from one place and stores to another.
fn load_and_store(range: &str, load: &str, store: &str) -> Program {
    Program::body(&format!(
        "for %i: i64 = {range} {{
           {load}
           {store}
           yield
         }}"
    ))
}
