//! Memory of the caller that the function frees, and the gradient in its shadow.
//!
//! A `Vec` behind `&mut` that grows is reallocated, and the old memory is freed. The reverse sweep runs back to before that: the gradient
//! of the old elements ends up in the shadow of the old memory, which the caller cannot reach any more. So, after the reverse sweep,
//! it is added to the shadow of the memory that replaced the old: where it would be had the capacity been sufficient. Seeds are moved there
//! before, when the memory is reallocated. If no memory replaced the old, the program stops if a nonzero gradient would be lost.
//!
//! ```text
//! v: [3.0]   →  v: [3.0, 9.0]        forward sweep: new' ← old';  old' ← 0;  old memory, new memory, bytes are noted
//!                                    reverse sweep: gradient of the old elements arrives in the shadow of the old memory
//!                                    at the end:    new' += old';  old' is all zeros, or the program stops
//! ```
//!
//! The same code frees memory that was allocated inside the derivative, whose shadow does not matter. The two are distinguished at run time:
//! a *register* has the addresses of all shadows that the forward sweep allocates. It is kept only for functions that may
//! free memory of their caller ([`is_needed`]).
//!
//! The register is 48 bytes: a hash table of addresses (where it is, how many slots were used, how many there are), then notes about released
//! memory (where they are, how many, for how many there is room). Slots hold 0 if they are free, 1 if an address was taken out, and else the
//! complement of an address, which nobody takes for a pointer. A note
//! has four words: a shadow; the shadow of what took its place, or null; how many bytes; and the number of their layout.

use crate::deferral::runtime_functions;
use crate::memory::{self, Cells};
use crate::objects::{Class, Kind, Objects};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, IntPredicate, MemoryEffect, Module, Opcode, Payload,
    Type, Value,
};
use ferrozyme_refusal::Refusal;

/// How many bytes a register has.
pub(crate) const REGISTER_BYTES: i64 = 48;

/// Whether a function may release memory with floats that it did not make.
pub(crate) fn is_needed(objects: &Objects) -> bool {
    let may_hold_floats = |class: Class| {
        let mut fields = objects.fields(class).peekable();
        fields.peek().is_none()
            || fields.any(|field| {
                matches!(
                    field.kind,
                    Kind::Float(_) | Kind::Unknown | Kind::Conflict(_)
                )
            })
    };
    objects.classes().any(|class| {
        objects.is_released(class) && !objects.is_made_here(class) && may_hold_floats(class)
    })
}

/// Something that is done to a register.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// `(register, shadow)`: the shadow was made by the derivative.
    Add,
    /// `(register, shadow)`: what is in the shadow is of interest all the same.
    Remove,
    /// `(register, shadow) -> i1`: whether the derivative did not make the shadow.
    IsGiven,
    /// `(register, shadow, successor, bytes, layout)`: puts a note down.
    Note,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Add => "ferrozyme.register.add",
            Action::Remove => "ferrozyme.register.remove",
            Action::IsGiven => "ferrozyme.register.is_given",
            Action::Note => "ferrozyme.register.note",
        }
    }

    /// The function that does it.
    pub(crate) fn function(self, module: &mut Module) -> FunctionId {
        if let Some(id) = module.function_named(self.name()) {
            return id;
        }
        runtime_functions(module, RUNTIME);
        module
            .function_named(self.name())
            .expect("the text defines the function")
    }
}

/// Shadows are taken as numbers here, which are kept: nothing is read or written through them, but nothing says so, since an optimiser that believes that no pointer is
/// kept may move what the release of the memory must come after. What only knows addresses has no derivative.
const RUNTIME: &str = "
    func @ferrozyme.register.find(%register: ptr nocapture, %key: i64) -> (ptr) inactive noinline {
      %room_at = offset %register, 2 * 8
      %table = load ptr %register align 8
      %room = load i64 %room_at align 8
      %mask = sub i64 %room, 1
      %product = mul i64 %key, -7046029254386353131
      %hash = lshr i64 %product, 32
      %start = and i64 %hash, %mask
      %slot, %last = loop with (%before: ptr = %table, %at: i64 = %start) {
        %place = offset %table, %at * 8
        %found = load i64 %place align 8
        %other = icmp ne i64 %found, %key
        %used = icmp ne i64 %found, 0
        %more = and i1 %other, %used
        %after = add i64 %at, 1
        %wrapped = and i64 %after, %mask
        again %more, %place, %wrapped
      }
      return %slot
    }
    func @ferrozyme.register.grow(%register: ptr nocapture) inactive noinline {
      %used_at = offset %register, 1 * 8
      %room_at = offset %register, 2 * 8
      %old = load ptr %register align 8
      %room = load i64 %room_at align 8
      %twice = mul i64 %room, 2
      %more = smax i64 %twice, 16
      %bytes = mul i64 %more, 8
      %new = alloc %bytes align 8 zeroed
      store ptr %new, %register align 8
      store i64 %more, %room_at align 8
      %count = for %i: i64 = 0 to %room step 1 with (%used: i64 = 0) {
        %place = offset %old, %i * 8
        %key = load i64 %place align 8
        %is_address = icmp ugt i64 %key, 1
        %next = if %is_address -> (i64) {
          %slot = call @ferrozyme.register.find(%register, %key)
          store i64 %key, %slot align 8
          %one_more = add i64 %used, 1
          yield %one_more
        } else {
          yield %used
        }
        yield %next
      }
      store i64 %count, %used_at align 8
      free %old
      return
    }
    func @ferrozyme.register.add(%register: ptr nocapture, %shadow: ptr) inactive noinline {
      %used_at = offset %register, 1 * 8
      %room_at = offset %register, 2 * 8
      %used = load i64 %used_at align 8
      %room = load i64 %room_at align 8
      %twice = mul i64 %used, 2
      %full = icmp sge i64 %twice, %room
      if %full {
        call @ferrozyme.register.grow(%register)
        yield
      }
      %address = ptrtoint ptr %shadow to i64
      %key = xor i64 %address, -1
      %slot = call @ferrozyme.register.find(%register, %key)
      %found = load i64 %slot align 8
      %new = icmp eq i64 %found, 0
      if %new {
        store i64 %key, %slot align 8
        %now = load i64 %used_at align 8
        %next = add i64 %now, 1
        store i64 %next, %used_at align 8
        yield
      }
      return
    }
    func @ferrozyme.register.is_given(%register: ptr nocapture, %shadow: ptr) -> (i1) inactive noinline {
      %room_at = offset %register, 2 * 8
      %room = load i64 %room_at align 8
      %any = icmp ne i64 %room, 0
      %given = if %any -> (i1) {
        %address = ptrtoint ptr %shadow to i64
        %key = xor i64 %address, -1
        %slot = call @ferrozyme.register.find(%register, %key)
        %found = load i64 %slot align 8
        %other = icmp ne i64 %found, %key
        yield %other
      } else {
        yield 1
      }
      return %given
    }
    func @ferrozyme.register.remove(%register: ptr nocapture, %shadow: ptr) inactive noinline {
      %given = call @ferrozyme.register.is_given(%register, %shadow)
      if %given {
        yield
      } else {
        %address = ptrtoint ptr %shadow to i64
        %key = xor i64 %address, -1
        %slot = call @ferrozyme.register.find(%register, %key)
        store i64 1, %slot align 8
        yield
      }
      return
    }
    func @ferrozyme.register.note(%register: ptr nocapture, %shadow: ptr, %successor: ptr, %bytes: i64, %layout: i64) noinline {
      %notes_at = offset %register, 3 * 8
      %len_at = offset %register, 4 * 8
      %room_at = offset %register, 5 * 8
      %notes = load ptr %notes_at align 8
      %len = load i64 %len_at align 8
      %room = load i64 %room_at align 8
      %full = icmp eq i64 %len, %room
      %space = if %full -> (ptr) {
        %twice = mul i64 %room, 2
        %more = smax i64 %twice, 8
        %size = mul i64 %more, 32
        %new = alloc %size align 8
        %used = mul i64 %len, 32
        copy %new, %notes, %used align 8
        free %notes
        store ptr %new, %notes_at align 8
        store i64 %more, %room_at align 8
        yield %new
      } else {
        yield %notes
      }
      %slot = offset %space, %len * 32
      store ptr %shadow, %slot align 8
      %successor_at = offset %slot, 1 * 8
      store ptr %successor, %successor_at align 8
      %bytes_at = offset %slot, 2 * 8
      store i64 %bytes, %bytes_at align 8
      %layout_at = offset %slot, 3 * 8
      store i64 %layout, %layout_at align 8
      %next = add i64 %len, 1
      store i64 %next, %len_at align 8
      return
    }
";

/// The function `(shadow, successor)` that is told which memory took the place of which, by their addresses, if the module declares it: the program compares the places of memory
/// before and after a derivative.
pub const MOVED: &str = "__ferrozyme_moved";

/// Declares it.
pub fn declare_moved(module: &mut Module) -> FunctionId {
    let mut function = Function::declare(MOVED, vec![Type::I64.into(); 2], Vec::new());
    function.facts.inactive = true;
    function.facts.willreturn = true;
    module.functions.push(function)
}

/// C's function that says for how many bytes there is room in memory of its heap.
pub(crate) fn measure_function(module: &mut Module) -> FunctionId {
    const NAME: &str = "malloc_usable_size";
    if let Some(id) = module.function_named(NAME) {
        return id;
    }
    let mut function = Function::declare(NAME, vec![Type::PTR.into()], vec![Type::I64]);
    function.params[0].facts.nocapture = true;
    function.params[0].facts.readonly = true;
    function.facts.memory = MemoryEffect::Read;
    function.facts.inactive = true;
    function.facts.willreturn = true;
    module.functions.push(function)
}

/// The bytes of a shadow whose size nobody tells, but the heap: the shadow of memory that C's `free` releases is released by it as well. There may be up to eight bytes more than were asked
/// for, which hold anything: they are set to zero, so that what is there in the end is a gradient. All before must hold no seeds.
pub(crate) fn measure_shadow(
    b: &mut Builder<'_>,
    measure: FunctionId,
    cells: &Cells,
    shadow: Value,
) -> Value {
    let call = b.call(measure, &[shadow], &[Type::I64]);
    let room = b.function.result(call);
    let (rest, zero) = (b.i64(8), b.i64(0));
    let sure = b.binary(Opcode::Sub, room, rest);
    let sure = b.binary(Opcode::Smax, sure, zero);
    memory::stop_unless_zero(b, cells, shadow, sure, &Refusal::LostSeed);
    let unsure = b.binary(Opcode::Sub, room, sure);
    let (at, byte) = (b.offset(shadow, sure, 1), b.zero(Type::I8));
    b.fill(at, byte, unsure, Alignment::ONE);
    room
}

/// Makes the function `(register)` that works off the notes in the order in which they were put down: gradients go to what took the
/// place of the released memory, and the program stops where there is none for them. `layouts` are those that notes name by their position.
pub(crate) fn settle_function(module: &mut Module, layouts: &[Cells]) -> FunctionId {
    let name = module.fresh_name("ferrozyme.register.settle");
    let moved = module.function_named(MOVED);
    let mut function = Function::define(name, vec![Type::PTR.into()], Vec::new());
    function.params[0].facts.nocapture = true;
    function.facts.noinline = true;
    let register = function.arguments()[0];
    function.set_name(register, "register");
    let word = Alignment::natural(Type::PTR);
    let mut b = Builder::at_body(&mut function);
    let notes_at = b.offset_bytes(register, 24);
    let notes = b.load(Type::PTR, notes_at, word);
    let length_at = b.offset_bytes(register, 32);
    let length = b.load(Type::I64, length_at, word);
    let (zero, one) = (b.i64(0), b.i64(1));
    let (_, region) = b.for_loop(zero, length, one, &[]);
    b.inside(region, |b| {
        let index = b.function.regions[region].args[0];
        let note = b.offset(notes, index, 32);
        let mut read = |ty: Type, position: i64| {
            let at = b.offset_bytes(note, 8 * position);
            b.load(ty, at, word)
        };
        let (shadow, successor) = (read(Type::PTR, 0), read(Type::PTR, 1));
        let (bytes, number) = (read(Type::I64, 2), read(Type::I64, 3));
        settle(b, (shadow, successor), bytes, number, layouts);
        if let Some(moved) = moved {
            let both = [shadow, successor].map(|place| b.cast(Opcode::Ptrtoint, place, Type::I64));
            b.call(moved, &both, &[]);
        }
        b.yields(&[]);
    });
    let table = b.load(Type::PTR, register, word);
    b.free(table);
    b.free(notes);
    b.ret(&[]);
    module.functions.push(function)
}

/// Works off one note.
fn settle(
    b: &mut Builder<'_>,
    (shadow, successor): (Value, Value),
    bytes: Value,
    number: Value,
    layouts: &[Cells],
) {
    let null = b.zero(Type::PTR);
    let has_successor = b.icmp(IntPredicate::Ne, successor, null);
    let cases: Vec<Box<[i128]>> = (0..layouts.len() as i128)
        .map(|number| Box::from([number]))
        .collect();
    let choice = b.op(Opcode::Switch, &[number], Payload::Cases(cases.into()), &[]);
    for cells in layouts {
        let region = b.function.new_region(&[]);
        b.function.ops[choice].regions.push(region);
        b.inside(region, |b| {
            let (_, moved, lost) = b.if_else(has_successor, &[]);
            b.inside(moved, |b| {
                memory::return_floats(b, cells, shadow, Some(successor), bytes, false);
                b.yields(&[]);
            });
            b.inside(lost, |b| {
                memory::stop_unless_zero(b, cells, shadow, bytes, &Refusal::LostGradient);
                b.yields(&[]);
            });
            b.yields(&[]);
        });
    }
    let region = b.function.new_region(&[]);
    b.function.ops[choice].regions.push(region);
    b.inside(region, |b| {
        b.trap("a note about released memory names a layout that does not exist");
    });
}
