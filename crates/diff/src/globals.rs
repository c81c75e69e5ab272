//! Shadows of globals.
//!
//! The shadow of a global has its size and alignment. Its floats start as zeros, for what a program starts with has no
//! derivative; where the primal holds the address of a global, the shadow holds the address of that one's shadow, and where
//! it holds the address of a function, that of the function's shadow: a table of derivatives.
//!
//! ```text
//! global @weights: 24 bytes align 8 = x"000000000000f03f" { 8: @next, 16: @step }
//! global @weights.shadow: 24 bytes align 8 = zero { 8: @next.shadow, 16: @step.shadow }
//! ```
//!
//! A constant global whose bytes are copied to union words has a second shadow, `<global>.shape.<suffix>`, which equals the global except for its addresses.
//!
//! The shadow of a global that is declared inactive is all zeros: following a pointer there stops the program, since by the
//! declaration no derivative needs it.
//!
//! A shadow is known by its name, so that every derivative in a module uses the same one.

use crate::error::Error;
use ferrozyme_ir::{Alignment, FunctionId, Global, GlobalId, Module, Scalar, Symbol, Type};
use ferrozyme_refusal::Refusal;

/// The address of a function in a shadow that is to become the address of the function's own shadow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FunctionSlot {
    /// The shadow that holds it.
    pub shadow: GlobalId,
    /// Which of its relocations it is.
    pub relocation: usize,
    /// The function of the primal.
    pub function: FunctionId,
}

/// What a derivative does to the shadows of memory that the primal only reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It reads them too: forward mode does to shadows what the primal does to memory.
    Read,
    /// It adds to what is no address: reverse mode.
    Add,
    /// It looks there to tell floats from pointers and numbers, in reverse mode: see `unions.rs`. A constant that is no address counts as a number, which is its own shadow.
    Tell,
}

const SHAPE: &str = ".shape.";

/// The constant that a shadow starts as a copy of, but for the addresses in it; none for those that start as zeros.
pub fn constant_in_shadow(module: &Module, shadow: GlobalId) -> Option<GlobalId> {
    let (primal, _) = module.globals[shadow].name.rsplit_once(SHAPE)?;
    module.global_named(primal)
}

/// A suffix for shadows of globals that no variable of the module has yet.
///
/// The shadow that one differentiation writes to is a global like any other to the next, which needs a shadow of it.
pub(crate) fn fresh_suffix(module: &Module, wanted: &str) -> String {
    let taken = |suffix: &str| {
        let end = format!(".{suffix}");
        let mut globals = module.globals.values();
        globals.any(|global| !global.constant && global.name.ends_with(&end))
    };
    let numbered = (1..).map(|number| format!("{wanted}.{number}"));
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|suffix| !taken(suffix))
        .expect("some number is free")
}

/// The shadow of a global, called `<global>.<suffix>`, as are those of the globals whose addresses it holds.
///
/// The addresses of functions in what is new are listed; the caller replaces them by [`fill_slot`].
///
/// # Errors
/// If a global has no shadow.
pub(crate) fn add_shadow_global(
    module: &mut Module,
    global: GlobalId,
    suffix: &str,
    purpose: Use,
) -> Result<(GlobalId, Vec<FunctionSlot>), Error> {
    let mut slots = Vec::new();
    let mut unfinished = Vec::new();
    let shadow = find_or_add(module, global, suffix, purpose, &mut unfinished)?;
    while let Some((primal, shadow)) = unfinished.pop() {
        let primal = module.globals[primal].relocations.clone();
        let mut relocations = Vec::with_capacity(primal.len());
        for (offset, symbol) in primal {
            let symbol = match symbol {
                Symbol::Global(other) => {
                    let other = find_or_add(module, other, suffix, purpose, &mut unfinished)?;
                    Symbol::Global(other)
                }
                Symbol::Function(function) => {
                    slots.push(FunctionSlot {
                        shadow,
                        relocation: relocations.len(),
                        function,
                    });
                    symbol
                }
            };
            relocations.push((offset, symbol));
        }
        module.globals[shadow].relocations = relocations;
    }
    Ok((shadow, slots))
}

/// A constant global of zeros, as aligned as a pointer.
pub(crate) fn zeros(name: impl Into<String>, size: u64) -> Global {
    Global {
        name: name.into(),
        size,
        align: Alignment::natural(Type::PTR),
        constant: true,
        bytes: Some(Vec::new()),
        relocations: Vec::new(),
        inactive: false,
        shared: false,
        thread_local: false,
        parts: Vec::new(),
        layout: None,
    }
}

/// Puts the shadow of a function where its address is.
pub(crate) fn fill_slot(module: &mut Module, slot: FunctionSlot, symbol: Symbol) {
    module.globals[slot.shadow].relocations[slot.relocation].1 = symbol;
}

/// The shadow of this name; if it is new, its relocations are still to be made.
fn find_or_add(
    module: &mut Module,
    global: GlobalId,
    suffix: &str,
    purpose: Use,
    unfinished: &mut Vec<(GlobalId, GlobalId)>,
) -> Result<GlobalId, Error> {
    let primal = &module.globals[global];
    let purpose = match purpose {
        // What is in a global that is defined elsewhere cannot be copied.
        Use::Tell if primal.bytes.is_none() => Use::Add,
        other => other,
    };
    let name = match purpose {
        Use::Tell => format!("{}{SHAPE}{suffix}", primal.name),
        Use::Read | Use::Add => format!("{}.{suffix}", primal.name),
    };
    if let Some(shadow) = module.global_named(&name) {
        return Ok(shadow);
    }
    let holds_pointers = primal
        .layout
        .iter()
        .flat_map(|layout| &layout.fields)
        .any(|field| field.scalar == Scalar::Ptr);
    if primal.bytes.is_none() && holds_pointers && !primal.inactive {
        let global = primal.name.clone();
        return Err(Error::of(&primal.name, Refusal::ForeignGlobal { global }));
    }
    let shadow = Global {
        name,
        bytes: match purpose {
            Use::Tell => primal.bytes.clone(),
            Use::Read | Use::Add => Some(Vec::new()),
        },
        relocations: Vec::new(),
        // A table of addresses stays one; derivatives may be added to anything else.
        constant: primal.constant
            && match purpose {
                Use::Read => true,
                Use::Add => !primal.relocations.is_empty(),
                // A zero counts as a float.
                Use::Tell => false,
            },
        ..primal.clone()
    };
    let inactive = primal.inactive;
    let shadow = module.globals.push(shadow);
    if !inactive {
        unfinished.push((global, shadow));
    }
    Ok(shadow)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shadow of a global, with the addresses of functions replaced.
    fn shadow_global(
        module: &mut Module,
        global: GlobalId,
        suffix: &str,
        shadow_of_function: &mut dyn FnMut(&mut Module, FunctionId) -> Result<Symbol, Error>,
    ) -> Result<GlobalId, Error> {
        let (shadow, slots) = add_shadow_global(module, global, suffix, Use::Add)?;
        for slot in slots {
            let symbol = shadow_of_function(module, slot.function)?;
            fill_slot(module, slot, symbol);
        }
        Ok(shadow)
    }

    use ferrozyme_ir::{parse_module, verify_module};

    fn text(global: &str, module: &Module) -> String {
        let text = ferrozyme_ir::print_module(module);
        let head = format!("global @{global}:");
        let line = text.lines().find(|line| line.starts_with(&head));
        line.unwrap_or_default().to_owned()
    }

    #[test]
    fn shadows_keep_the_shape_and_lose_the_numbers() {
        let mut module = parse_module(
            "global @a: 24 bytes align 8 = x\"000000000000f03f\" { 8: @b, 16: @f }
             global @b: 8 bytes align 8 const = zero { 0: @a }
             declare @f()
             declare @table()",
        )
        .expect("the text is right");
        let a = module.global_named("a").expect("it is there");
        let table = module.function_named("table").expect("it is there");
        let mut asked = Vec::new();
        let shadow = shadow_global(&mut module, a, "shadow", &mut |module, function| {
            asked.push(module.functions[function].name.clone());
            Ok(Symbol::Function(table))
        })
        .expect("it has a shadow");
        assert_eq!(asked, ["f"]);
        assert_eq!(verify_module(&module), Ok(()));
        assert_eq!(
            text("a.shadow", &module),
            "global @a.shadow: 24 bytes align 8 = zero { 8: @b.shadow, 16: @table }"
        );
        assert_eq!(
            text("b.shadow", &module),
            "global @b.shadow: 8 bytes align 8 const = zero { 0: @a.shadow }"
        );
        let again = shadow_global(&mut module, a, "shadow", &mut |_, _| {
            panic!("the shadow is there already")
        });
        assert_eq!(again, Ok(shadow));
    }

    #[test]
    fn what_is_defined_elsewhere_has_a_shadow_of_zeros() {
        let mut module = parse_module(
            "global @table: 16 bytes align 8 const = zero { 0: @type }
             global @type: 16 bytes align 8 const external",
        )
        .expect("the text is right");
        let table = module.global_named("table").expect("it is there");
        let (shadow, _) =
            add_shadow_global(&mut module, table, "shadow", Use::Tell).expect("it has a shadow");
        assert_eq!(module.globals[shadow].name, "table.shape.shadow");
        assert_eq!(
            text("type.shadow", &module),
            "global @type.shadow: 16 bytes align 8 = zero"
        );
    }

    #[test]
    fn unknown_pointers_are_refused() {
        let mut module = parse_module("global @far: 8 bytes align 8 layout [ptr] external")
            .expect("the text is right");
        let far = module.global_named("far").expect("it is there");
        let refused =
            add_shadow_global(&mut module, far, "shadow", Use::Add).expect_err("it has no shadow");
        let global = "far".to_owned();
        assert_eq!(refused.refusal, Refusal::ForeignGlobal { global });
    }
}
