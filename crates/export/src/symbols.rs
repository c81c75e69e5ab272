//! Functions and globals: found by name in the LLVM module, or made there.

use ferrozyme_ir::{self as ir, MemoryEffect};

use super::{ExportError, Exporter, Team};
use ferrozyme_convention::signature::{function_type, leaves};
use ferrozyme_llvm::{Linkage, Place, ThreadLocalMode, Type, UnnamedAddress, Value, ValueKind};

impl<'c> Exporter<'_, 'c> {
    /// The LLVM function for one of the Loop IR: the one of this name, or a new one. One that has a body in the Loop IR only is defined later.
    pub(super) fn function(&mut self, id: ir::FunctionId) -> Result<Value<'c>, ExportError> {
        if let Some(&known) = self.functions.get(&id) {
            return Ok(known);
        }
        let code = &self.module.functions[id];
        let params: Vec<ir::Type> = code.params.iter().map(|param| param.ty).collect();
        let value = match self.into.symbol(&code.name) {
            Some(found) => {
                self.check_signature(found, code, &params)?;
                found
            }
            None if code.name == ir::PROCESSOR_LEVEL && code.body.is_none() => {
                self.define_processor_level()?
            }
            None if [ir::THREADS, ir::TEAM].contains(&code.name.as_str())
                && code.body.is_none()
                && self.options.team != Team::OfProgram =>
            {
                self.define_team(&code.name)?
            }
            None => {
                let made = self.into.add_function(
                    &code.name,
                    function_type(self.context, &params, &code.results),
                );
                if code.body.is_some() {
                    made.set_linkage(Linkage::Internal);
                    self.pending.push(id);
                } else {
                    self.describe(made, code);
                }
                made
            }
        };
        self.functions.insert(id, value);
        Ok(value)
    }

    /// What LLVM's function takes and gives must be, leaf by leaf, what the Loop IR's does.
    fn check_signature(
        &self,
        found: Value<'c>,
        code: &ir::Function,
        params: &[ir::Type],
    ) -> Result<(), ExportError> {
        let of: Type<'c> = match found.kind() {
            ValueKind::Function | ValueKind::Alias => found.value_type(),
            _ => return Err(self.problem(code, "the name belongs to a variable")),
        };
        let parameters: Option<Vec<ir::Type>> = of
            .parameters()
            .into_iter()
            .map(leaves)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.concat());
        let fits = parameters.is_some_and(|known| {
            params.starts_with(&known) && (known.len() == params.len() || of.is_variadic())
        }) && leaves(of.result()).is_some_and(|known| known == code.results);
        if fits {
            Ok(())
        } else {
            Err(self.problem(code, format!("LLVM's function of this name has another signature, `{of}` (a bug in Ferrozyme)")))
        }
    }

    fn problem(&self, code: &ir::Function, problem: impl Into<String>) -> ExportError {
        ExportError {
            function: code.name.clone(),
            place: None,
            problem: problem.into(),
        }
    }

    /// Gives a new function the attributes that follow from what is known of it.
    pub(super) fn describe(&self, value: Value<'c>, code: &ir::Function) {
        let attribute = |name: &str, number: u64| self.context.attribute(name, number);
        for (index, param) in code.params.iter().enumerate() {
            let place = Place::Parameter(index as u32);
            let facts = &param.facts;
            if param.ty == ir::Type::PTR {
                let flags = [
                    (facts.noalias, "noalias"),
                    (facts.readonly && facts.writeonly, "readnone"),
                ];
                for (holds, name) in flags {
                    if holds {
                        value.add_attribute(place, attribute(name, 0));
                    }
                }
                match (facts.readonly, facts.writeonly) {
                    (true, false) => drop(value.add_attribute(place, attribute("readonly", 0))),
                    (false, true) => drop(value.add_attribute(place, attribute("writeonly", 0))),
                    _ => {}
                }
                if facts.nocapture {
                    value.add_attribute(place, attribute("captures", CAPTURES_NOTHING));
                }
                if facts.align.bytes() > 1 {
                    value.add_attribute(place, attribute("align", facts.align.bytes()));
                }
            }
        }
        if code.facts.noreturn {
            value.add_attribute(Place::Function, attribute("noreturn", 0));
        }
        if code.facts.noinline {
            value.add_attribute(Place::Function, attribute("noinline", 0));
        }
        if code.facts.willreturn {
            value.add_attribute(Place::Function, attribute("willreturn", 0));
            // What always returns never unwinds.
            value.add_attribute(Place::Function, attribute("nounwind", 0));
        }
        let memory = match code.facts.memory {
            MemoryEffect::None => Some(MEMORY_NONE),
            MemoryEffect::Read => Some(MEMORY_READ),
            MemoryEffect::Args => Some(MEMORY_ARGUMENTS),
            MemoryEffect::Any => None,
        };
        // Memory that a function allocates for itself is nobody's business in the Loop IR, but LLVM counts it, so the bodies' effects are left to LLVM to find.
        if let Some(memory) = memory
            && code.body.is_none()
        {
            value.add_attribute(Place::Function, attribute("memory", memory));
        }
        if code.body.is_some() {
            self.adopt(value);
            if let Some(level) = code.facts.level {
                self.set_level(value, level);
            }
        }
    }

    /// Gives a new function with a body the attributes that all of the program's have.
    pub(super) fn adopt(&self, value: Value<'c>) {
        // Panics pass through: the unwinder needs the tables.
        let tables = self.context.attribute("uwtable", ASYNCHRONOUS_TABLES);
        value.add_attribute(Place::Function, tables);
        if let Some(like) = self.options.like {
            value.adopt_processor(self.context, like);
        }
    }

    /// The LLVM variable for one of the Loop IR: the one of this name, or a new one.
    pub(super) fn global(&mut self, id: ir::GlobalId) -> Result<Value<'c>, ExportError> {
        if let Some(&known) = self.globals.get(&id) {
            return Ok(known);
        }
        let global = &self.module.globals[id];
        if let Some(found) = self.into.symbol(&global.name) {
            self.globals.insert(id, found);
            return Ok(found);
        }
        let byte = self.context.integer(8);
        let Some(bytes) = &global.bytes else {
            let made = self.into.add_global(&global.name, byte.array(global.size));
            made.set_global_constant(global.constant);
            set_thread_local(made, global);
            self.globals.insert(id, made);
            return Ok(made);
        };
        // Pieces between addresses, as a packed structure: its type is known before the addresses are, which may lead back here.
        let mut pieces = Vec::new();
        let mut position = 0;
        for &(offset, symbol) in &global.relocations {
            pieces.push(Piece::Bytes(position, offset));
            pieces.push(Piece::Address(symbol));
            position = offset + 8;
        }
        pieces.push(Piece::Bytes(position, global.size));
        let types: Vec<Type<'c>> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Bytes(from, to) => byte.array(to - from),
                Piece::Address(_) => self.context.pointer(),
            })
            .collect();
        let of = self.context.structure(&types, true);
        let made = self.into.add_global(&global.name, of);
        made.set_linkage(Linkage::Internal)
            .set_alignment(global.align.bytes().min(1 << 30) as u32);
        made.set_unnamed_address(UnnamedAddress::Local);
        made.set_global_constant(global.constant);
        set_thread_local(made, global);
        self.globals.insert(id, made);
        let mut constants = Vec::new();
        for (piece, of) in pieces.iter().zip(types) {
            constants.push(match *piece {
                Piece::Bytes(from, to) => {
                    let start = (from as usize).min(bytes.len());
                    let end = (to as usize).min(bytes.len());
                    let known = &bytes[start..end];
                    if known.iter().all(|byte| *byte == 0) {
                        of.zero()
                    } else {
                        let mut all = known.to_vec();
                        all.resize((to - from) as usize, 0);
                        self.context.bytes(&all)
                    }
                }
                Piece::Address(ir::Symbol::Function(function)) => self.function(function)?,
                Piece::Address(ir::Symbol::Global(other)) => self.global(other)?,
            });
        }
        made.set_initialiser(Some(self.context.struct_constant(&constants, true)));
        Ok(made)
    }
}

fn set_thread_local(made: Value<'_>, global: &ir::Global) {
    if global.thread_local {
        made.set_thread_local_mode(ThreadLocalMode::GeneralDynamic);
    }
}

/// A part of a global: bytes from one offset to another, or an address.
enum Piece {
    Bytes(u64, u64),
    Address(ir::Symbol),
}

/// `captures(none)`.
const CAPTURES_NOTHING: u64 = 0;
/// `uwtable(async)`.
const ASYNCHRONOUS_TABLES: u64 = 2;
/// `memory(none)`.
pub(super) const MEMORY_NONE: u64 = 0;
/// `memory(read)`: LLVM keeps two bits (read 1, write 2) for each kind of memory.
const MEMORY_READ: u64 = 0x5555;
/// `memory(argmem: readwrite)`.
const MEMORY_ARGUMENTS: u64 = 3;
