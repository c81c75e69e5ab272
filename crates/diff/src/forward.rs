//! Forward mode: the primal program with tangents computed beside it.
//!
//! Each float that carries a derivative gets `width` tangents, each pointer into shadowed memory `width` shadow pointers, one
//! for each direction; together they are called its *companions*. The primal is computed once for all directions, and so
//! is what the formulas of an operation share.
//!
//! ```text
//! func @f(%x: f64) -> (f64) {           func @f.fwd(%x: f64, %x': f64) -> (f64, f64) {
//!   %y = fmul f64 %x, %x                  %y = fmul f64 %x, %x
//!   return %y                       →     %0 = fadd f64 %x', %x'
//! }                                       %y' = fmul f64 %0, %x
//!                                         return %y, %y'
//!                                       }
//! ```
//!
//! Assumes: the module verifies. Guarantees: so does the derivative; it does to memory what the primal does, and the same
//! again to each shadow; it returns, traps and releases memory where the primal does.
//!
//! A tangent has the type of its value, also where that is an integer that transports the bits of floats: then the
//! integer transports those of their tangents. A tangent that is zero for certain does not exist, unless a region, a call or
//! memory needs it.
//!
//! What has companions, and how shadows are made, `shadows.rs` says.
//!
//! - `forward/sweep.rs`: tangents in one function,
//! - `forward/memory.rs`: stores, copies and fills,
//! - `forward/numbers.rs`: parts of words that have to be numbers,
//! - `forward/calls.rs`: calls, and rules that users give.

mod calls;
mod memory;
mod numbers;
mod sweep;

use crate::contractions::see_loops;
use crate::differentiate::see_words;
use crate::error::Error;
use crate::globals::{self, Use};
use crate::request::{Activity, Request};
use crate::resolved_calls::with_resolved_calls;
use crate::search::{Search, follows_rules, forget_accesses};
use crate::shadows::{Derivatives, Findings, Signature};
use crate::statics::{Assumption, assume_constants};
use ferrozyme_ir::{
    Function, FunctionId, GlobalId, MemoryEffect, Module, Opcode, Param, Symbol, Type, Value,
    verify_function,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashMap;
use sweep::Tangents;

/// Makes the forward derivative of a function, called `<function>.fwd`.
///
/// Its parameters are those of the function, each that is not constant followed by its `width` tangents (shadow pointers,
/// for a pointer). Its results are those of the function, if `primal` is set, then for each that is not constant its
/// `width` tangents.
///
/// # Errors
/// If something active in it cannot be differentiated, or the request does not fit the function. The module may then hold
/// declarations that nothing uses.
pub fn differentiate_forward(module: &mut Module, request: &Request) -> Result<FunctionId, Error> {
    let Some(function) = module.functions.get(request.function) else {
        let name = request.function.to_string();
        return Err(Error::of(&name.clone(), Refusal::NoFunction { name }));
    };
    request.check(function, false)?;
    see_loops(module);
    see_words(module);
    if module.functions[request.function].body.is_some() {
        ferrozyme_opt::infer_facts(module, request.function);
    }
    with_resolved_calls(module, request, |module, resolved| {
        assume_constants(module, |module, assumption| {
            make(module, request, assumption, resolved)
        })
    })
}

/// Makes the derivative that a request asks for, which fits the function.
fn make(
    module: &mut Module,
    request: &Request,
    assumption: &mut Assumption,
    resolved: bool,
) -> Result<FunctionId, Error> {
    let mut session = Session {
        suffix: globals::fresh_suffix(module, &format!("forward.{}.shadow", request.width)),
        module,
        assumption,
        width: request.width,
        findings: Findings::new(resolved),
        derivatives: Vec::new(),
        current: 0,
        by_key: FxHashMap::default(),
        by_function: FxHashMap::default(),
        calls_pointers: Search::default(),
        may_stop: false,
        looks_at_addresses: false,
        follows_rules: Search::default(),
        layouts_matter: Search::default(),
    };
    let mut call = Signature::of_request::<Tangents<'_, '_>>(session.module, request);
    call.unions.fill(false);
    let primal = request.primal;
    let key = Key { call, primal };
    let derivative = session.derivative(key, None);
    session.fill_all()?;
    Ok(derivative)
}

/// What determines a derivative, besides the width.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    /// The function, and what it is given.
    call: Signature,
    /// Whether the results of the function are returned, too.
    primal: bool,
}

/// A derivative that is declared, and filled in its turn.
struct Derivative {
    key: Key,
    id: FunctionId,
    /// The derivative that asked for this one first.
    caller: Option<usize>,
}

/// One request, with all the derivatives of callees that it takes.
struct Session<'m> {
    module: &'m mut Module,
    assumption: &'m mut Assumption,
    /// What shadows of globals are called behind the global's name.
    suffix: String,
    width: u32,
    findings: Findings,
    /// In the order in which they are filled. They are not filled one within the other, so that long chains of calls need no
    /// deep stack.
    derivatives: Vec<Derivative>,
    /// The one that is being filled.
    current: usize,
    by_key: FxHashMap<Key, usize>,
    by_function: FxHashMap<FunctionId, Vec<usize>>,
    calls_pointers: Search,
    /// Whether some derivative stops the program where its primal does not.
    may_stop: bool,
    /// Whether some derivative looks at addresses as numbers where its primal does not.
    looks_at_addresses: bool,
    /// Which functions run code of rules.
    follows_rules: Search,
    layouts_matter: Search,
}

impl Derivatives for Session<'_> {
    fn module(&self) -> &Module {
        self.module
    }

    fn parts(&mut self) -> (&mut Module, &mut Findings) {
        (self.module, &mut self.findings)
    }

    fn shadow_in(&self, _: GlobalId, lane: usize, _: bool) -> (String, Use) {
        let suffix = match self.width {
            1 => self.suffix.clone(),
            _ => format!("{lane}.{}", self.suffix),
        };
        (suffix, Use::Read)
    }

    /// The table that stands for a function's derivative where its address is used: one pointer to it.
    ///
    /// All floats and pointers of the function have tangents there, since nobody knows who calls it.
    fn function_table(&mut self, function: FunctionId) -> Result<GlobalId, Error> {
        let name = format!(
            "{}.forward.{}.shadow",
            self.module.functions[function].name, self.width
        );
        let found = self.module.global_named(&name);
        if let Some(table) = found
            && let [(0, Symbol::Function(made))] = self.module.globals[table].relocations[..]
        {
            let of_this_session = self.derivatives.iter().any(|other| other.id == made);
            // A request that failed may have left a declaration behind.
            if of_this_session || self.module.functions[made].body.is_some() {
                return Ok(table);
            }
        }
        let key = Key {
            call: Signature::behind_pointer::<Tangents<'_, '_>>(self.module, function)?,
            primal: true,
        };
        let derivative = self.derivative(key, Some(self.current));
        let relocations = vec![(0, Symbol::Function(derivative))];
        let new = || globals::zeros(name, Type::PTR.bytes());
        let table = found.unwrap_or_else(|| self.module.globals.push(new()));
        self.module.globals[table].relocations = relocations;
        Ok(table)
    }
}

impl Session<'_> {
    fn width(&self) -> usize {
        self.width as usize
    }

    /// The derivative for a key; where it is new, it is declared, to be filled later.
    fn derivative(&mut self, key: Key, caller: Option<usize>) -> FunctionId {
        if let Some(&index) = self.by_key.get(&key) {
            return self.derivatives[index].id;
        }
        let follows_rules = follows_rules(&mut self.follows_rules, self.module, key.call.function);
        let other_code = follows_rules || self.calls_pointers(key.call.function);
        let checks_pointers = self.checks_pointers();
        let primal = &self.module.functions[key.call.function];
        let width = self.width();
        let mut params = Vec::new();
        for (param, &activity) in primal.params.iter().zip(&key.call.args) {
            params.push(param.clone());
            if activity != Activity::Const {
                params.extend(std::iter::repeat_n(companion_param(param), width));
            }
        }
        let mut results = Vec::new();
        if key.primal {
            results.extend(&primal.results);
        }
        for (&ty, &activity) in primal.results.iter().zip(&key.call.results) {
            if activity != Activity::Const {
                results.extend(std::iter::repeat_n(ty, width));
            }
        }
        let name = self.module.fresh_name(&format!("{}.fwd", primal.name));
        let mut declared = Function::declare(name, params, results);
        declared.facts = primal.facts.clone();
        declared.facts.inactive = false;
        if other_code {
            declared.facts.memory = MemoryEffect::Any;
            declared.facts.willreturn = false;
        }
        // The program may stop where the primal does not.
        declared.facts.willreturn &= !checks_pointers;
        if follows_rules {
            declared.params.iter_mut().for_each(forget_accesses);
        }
        let id = self.module.functions.push(declared);
        let index = self.derivatives.len();
        self.by_key.insert(key.clone(), index);
        self.by_function
            .entry(key.call.function)
            .or_default()
            .push(index);
        self.derivatives.push(Derivative { key, id, caller });
        id
    }

    /// The derivative of a callee as one call of the derivative that is being filled needs it.
    fn derivative_for_call(&mut self, mut key: Key) -> FunctionId {
        let caller = self.current;
        if !self.do_layouts_matter(key.call.function) {
            key.call.layouts.fill(None);
        }
        if let Some(&index) = self.by_key.get(&key) {
            return self.derivatives[index].id;
        }
        let alike: Vec<usize> = self
            .by_function
            .get(&key.call.function)
            .into_iter()
            .flatten()
            .copied()
            .filter(|&index| {
                let other = &self.derivatives[index].key;
                other.primal && other.call.serves(&key.call)
            })
            .collect();
        let mut around = (!alike.is_empty()).then_some(caller);
        while let Some(index) = around {
            if alike.contains(&index) {
                return self.derivatives[index].id;
            }
            around = self.derivatives[index].caller;
        }
        self.derivative(key, Some(caller))
    }

    fn fill_all(&mut self) -> Result<(), Error> {
        let mut next = 0;
        while next < self.derivatives.len() {
            self.fill(next).map_err(|error| self.trace(next, error))?;
            let id = self.derivatives[next].id;
            debug_assert_eq!(
                verify_function(self.module, id).map_err(|error| error.to_string()),
                Ok(())
            );
            next += 1;
        }
        for derivative in &self.derivatives {
            let function = &mut self.module.functions[derivative.id];
            function.facts.willreturn &= !self.may_stop;
            for param in &mut function.params {
                param.facts.nocapture &= !self.looks_at_addresses;
            }
        }
        Ok(())
    }

    fn fill(&mut self, index: usize) -> Result<(), Error> {
        self.current = index;
        let Derivative { key, id, .. } = &self.derivatives[index];
        let (primal, id) = (&self.module.functions[key.call.function], *id);
        if primal.body.is_none() {
            return Err(Error::no_body(primal));
        }
        self.module.functions[id] = sweep::differentiate(self, index)?;
        Ok(())
    }

    /// Adds to an error how the code it is about came to be differentiated.
    fn trace(&self, index: usize, mut error: Error) -> Error {
        let mut caller = self.derivatives[index].caller;
        while let Some(index) = caller {
            let Derivative {
                key, caller: next, ..
            } = &self.derivatives[index];
            error = error.called_from(&self.module.functions[key.call.function].name, None);
            caller = *next;
        }
        error
    }

    /// Whether a function may run code behind a pointer, of whose derivative the facts about the function say nothing.
    fn calls_pointers(&mut self, function: FunctionId) -> bool {
        let search = &mut self.calls_pointers;
        search.reaches(self.module, function, |_, op| {
            op.opcode == Opcode::CallIndirect
        })
    }

    /// Whether the derivative of a function depends on what the memory behind its arguments holds, beyond what the types of
    /// its own loads and stores say.
    fn do_layouts_matter(&mut self, function: FunctionId) -> bool {
        self.layouts_matter
            .reaches(self.module, function, |id, op| {
                let function = &self.module.functions[id];
                let moves_integer =
                    |value: Option<&Value>| value.is_some_and(|&value| function.ty(value).is_int());
                match op.opcode {
                    Opcode::Copy | Opcode::Move | Opcode::Fill | Opcode::CallIndirect => true,
                    Opcode::Load => moves_integer(op.results.first()),
                    Opcode::Store => moves_integer(op.operands.first()),
                    _ => false,
                }
            })
    }
}

/// What a float or pointer of a function whose caller is unknown is taken for.
fn usual_activity(ty: Type) -> Activity {
    match ty {
        _ if ty.is_ptr() => Activity::Duplicated,
        _ if ty.is_float() => Activity::Active,
        _ => Activity::Const,
    }
}

/// What is known of a companion, given its primal: forward mode does to shadows what the primal does to its memory, no more.
fn companion_param(primal: &Param) -> Param {
    let mut param = primal.clone();
    param.facts.range = None;
    param.facts.discarded = false;
    param
}
