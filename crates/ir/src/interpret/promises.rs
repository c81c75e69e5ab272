//! Checks the facts of functions about memory: which memory of their callers they access, and which pointers they capture.
//!
//! Passes and the differentiator rely on these facts without reading the body again, so a wrong fact makes programs wrong later and
//! elsewhere. With [`Machine::check_promises`], violating one is a fault at the operation that does it.
//!
//! Memory that a call allocates is its own; all memory that existed before is the caller's. Pointers have no provenance here, so a fact that
//! depends on how memory is reached is checked only if there is one way: no pointer in memory leads there when the call begins,
//! and it is not a global. `noalias`, `discarded` and `willreturn` are not checked.

use super::Machine;
use super::datum::{Bits, Pointer};
use super::fault::FaultKind;
use super::memory::piece_index;
use crate::FunctionId;
use crate::facts::MemoryEffect;
use crate::types::Type;
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// The promises of an active call.
pub(super) struct Promises {
    memory: MemoryEffect,
    /// Pieces of memory from this one on were made by the call.
    first_own: usize,
    given: SmallVec<[Given; 4]>,
}

/// An object that pointer arguments point to.
struct Given {
    piece: usize,
    readonly: bool,
    writeonly: bool,
    nocapture: bool,
    /// Whether the arguments are the only way to reach it.
    sole: bool,
}

/// A memory access of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// An atomic addition.
    Add,
}

impl Machine<'_> {
    /// From now on functions are held to what their facts say of memory: `memory(…)`, `readonly`, `writeonly`, `nocapture`.
    pub fn check_promises(&mut self) {
        self.checks_promises = true;
    }

    /// Records the promises of the call that has just been entered; its arguments are in place.
    pub(super) fn note_promises(&mut self, function: FunctionId, base: usize) {
        if !self.checks_promises {
            return;
        }
        let code = &self.module.functions[function];
        let of_params = code.params.iter().any(|param| {
            param.ty == Type::PTR
                && (param.facts.readonly || param.facts.writeonly || param.facts.nocapture)
        });
        if code.facts.memory == MemoryEffect::Any && !of_params {
            return;
        }
        let mut given: SmallVec<[Given; 4]> = SmallVec::new();
        for (&argument, param) in code.arguments().iter().zip(&code.params) {
            let Bits::Scalar(raw) = self.slots[base + argument.index()] else {
                continue;
            };
            let Some(piece) = piece_index(raw as u64).filter(|_| param.ty == Type::PTR) else {
                continue;
            };
            let facts = &param.facts;
            match given.iter_mut().find(|other| other.piece == piece) {
                Some(other) => {
                    other.readonly &= facts.readonly;
                    other.writeonly &= facts.writeonly;
                    other.nocapture &= facts.nocapture;
                }
                None => given.push(Given {
                    piece,
                    readonly: facts.readonly,
                    writeonly: facts.writeonly,
                    nocapture: facts.nocapture,
                    sole: false,
                }),
            }
        }
        for given in &mut given {
            given.sole = !self.memory.is_global(given.piece)
                && (given.readonly || given.writeonly || given.nocapture)
                && self.memory.pointer_to(given.piece).is_none();
        }
        let promises = Promises {
            memory: code.facts.memory,
            first_own: self.memory.pieces_so_far(),
            given,
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.promises = Some(Box::new(promises));
        }
    }

    /// Checks that no active call has promised not to do this.
    pub(super) fn check_touch(&self, address: u64, touch: Touch) -> Result<(), FaultKind> {
        if !self.checks_promises {
            return Ok(());
        }
        let Some(piece) = piece_index(address) else {
            return Ok(());
        };
        for frame in self.frames.iter().rev() {
            let Some(promises) = &frame.promises else {
                continue;
            };
            if let Some(broken) =
                promises.broken_by(piece, touch, || self.memory.is_constant(piece))
            {
                return Err(self.broken(frame.function, broken, address));
            }
        }
        Ok(())
    }

    /// Checks, at the end of a call whose stack is gone, that it has kept no pointer that it promised not to keep.
    pub(super) fn check_kept(
        &self,
        function: FunctionId,
        promises: &Promises,
        results: &[Bits],
    ) -> Result<(), FaultKind> {
        for given in &promises.given {
            if !given.nocapture || !given.sole {
                continue;
            }
            let returned = results.iter().zip(&self.module.functions[function].results);
            let returned = returned.filter(|(_, ty)| ty.is_ptr()).any(|(bits, _)| {
                matches!(bits, Bits::Scalar(raw) if piece_index(*raw as u64) == Some(given.piece))
            });
            let kept = self.memory.pointer_to(given.piece);
            if returned || kept.is_some() {
                let address = kept.unwrap_or(Pointer::NULL);
                return Err(self.broken(function, "nocapture", address.0));
            }
        }
        Ok(())
    }

    fn broken(&self, function: FunctionId, promise: &'static str, address: u64) -> FaultKind {
        FaultKind::PromiseBroken {
            function: self.module.functions[function].name.as_str().into(),
            promise,
            address: Pointer(address),
        }
    }
}

impl Promises {
    /// Which promise is broken by touching a piece of memory, if one is.
    fn broken_by(
        &self,
        piece: usize,
        touch: Touch,
        is_constant: impl Fn() -> bool,
    ) -> Option<&'static str> {
        if piece >= self.first_own {
            return None;
        }
        let given = self.given.iter().find(|given| given.piece == piece);
        match (self.memory, touch) {
            (MemoryEffect::None, _) if !is_constant() => return Some("memory(none)"),
            (MemoryEffect::Read, Touch::Write) => return Some("memory(read)"),
            (MemoryEffect::Args, _) if given.is_none() && !is_constant() => {
                return Some("memory(args)");
            }
            _ => {}
        }
        let given = given.filter(|given| given.sole || self.memory == MemoryEffect::Args)?;
        match touch {
            Touch::Write if given.readonly => Some("readonly"),
            Touch::Read if given.writeonly => Some("writeonly"),
            _ => None,
        }
    }
}
