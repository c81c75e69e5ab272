//! Checks of everything but bodies: names, signatures, globals, layouts, rules, locations.

use super::operation::check_alignment;
use super::{VerifyError, check_range, check_type};
use crate::facts::Layout;
use crate::function::{Function, Param};
use crate::module::{Global, Module, Rule, Symbol};
use crate::types::{Scalar, Type};
use crate::{FunctionId, entity::EntityRef};
use rustc_hash::FxHashSet;

/// The result of a check: the error, if any.
type Check = Result<(), String>;

/// Checks what belongs to the module as a whole.
pub(super) fn check_module(module: &Module, errors: &mut Vec<VerifyError>) {
    let mut report = |check: Check| {
        if let Err(message) = check {
            errors.push(VerifyError {
                message,
                function: None,
                op: None,
                operation: None,
                location: None,
            });
        }
    };
    report(check_names(module));
    report(check_locations(module));
    for global in module.globals.values() {
        report(
            check_global(module, global).map_err(|what| format!("global @{}: {what}", global.name)),
        );
    }
    let mut rules: Vec<_> = module.rules.iter().collect();
    rules.sort_by_key(|(id, _)| **id);
    for (&id, rule) in rules {
        report(check_rule(module, id, rule));
    }
}

/// Checks parameters, results and their facts.
pub(super) fn check_signature(function: &Function) -> Check {
    for (index, param) in function.params.iter().enumerate() {
        check_param(param).map_err(|what| format!("parameter {index}: {what}"))?;
    }
    function.results.iter().try_for_each(|&ty| check_type(ty))
}

fn check_param(param: &Param) -> Check {
    check_type(param.ty)?;
    let facts = &param.facts;
    let about_pointers = facts.noalias
        || facts.readonly
        || facts.writeonly
        || facts.nocapture
        || facts.discarded
        || facts.align.bytes() > 1
        || facts.layout.is_some();
    if about_pointers && !param.ty.is_ptr() {
        return Err(format!("facts about pointers stand on type {}", param.ty));
    }
    check_alignment(facts.align)?;
    if let Some(range) = &facts.range {
        check_range(param.ty, range)?;
    }
    facts.layout.as_ref().map_or(Ok(()), check_layout)
}

fn check_layout(layout: &Layout) -> Check {
    let mut end = 0;
    for field in &layout.fields {
        check_type(Type::scalar_of(field.scalar))?;
        if field.offset < end {
            return Err(format!(
                "layout {layout}: the field at {} overlaps the one before or stands before it",
                field.offset
            ));
        }
        end = field.offset.saturating_add(field.scalar.bytes());
        if let Some(pointee) = &field.pointee {
            if field.scalar != Scalar::Ptr {
                return Err(format!(
                    "layout {layout}: {} points to nothing",
                    field.scalar
                ));
            }
            check_layout(pointee)?;
        }
    }
    if layout.stride == 0 {
        return Err(format!("layout {layout}: the stride is zero"));
    }
    if end > layout.stride {
        return Err(format!("layout {layout}: a field ends behind the stride"));
    }
    Ok(())
}

fn check_names(module: &Module) -> Check {
    let functions = module.functions.values().map(|function| &function.name);
    let globals = module.globals.values().map(|global| &global.name);
    let mut seen = FxHashSet::default();
    for name in functions.chain(globals) {
        if name.is_empty() {
            return Err("a function or global has no name".to_owned());
        }
        if !seen.insert(name) {
            return Err(format!("the name @{name} is given twice"));
        }
    }
    Ok(())
}

fn check_locations(module: &Module) -> Check {
    for (location, data) in &module.locations {
        if data.file as usize >= module.files.len() {
            return Err(format!("{location}: there is no file {}", data.file));
        }
        if let Some(outer) = data.inlined_at
            && outer.index() >= location.index()
        {
            return Err(format!(
                "{location} is inlined at {outer}, which does not come before it"
            ));
        }
    }
    Ok(())
}

fn check_global(module: &Module, global: &Global) -> Check {
    let given = global.bytes.as_ref().map_or(0, Vec::len) as u64;
    if given > global.size {
        return Err(format!(
            "{given} bytes are given for a size of {}",
            global.size
        ));
    }
    check_alignment(global.align)?;
    if global.bytes.is_none() && !global.relocations.is_empty() {
        return Err("memory that is defined elsewhere has relocations here".to_owned());
    }
    let mut end = 0;
    for &(offset, symbol) in &global.relocations {
        if offset < end {
            return Err(format!(
                "the relocation at {offset} overlaps the one before or stands before it"
            ));
        }
        end = offset.saturating_add(Scalar::Ptr.bytes());
        let exists = match symbol {
            Symbol::Function(function) => module.functions.is_valid(function),
            Symbol::Global(other) => module.globals.is_valid(other),
        };
        if !exists {
            return Err(format!(
                "the relocation at {offset} names nothing: {symbol:?}"
            ));
        }
    }
    if end > global.size {
        return Err("a relocation ends behind the last byte".to_owned());
    }
    global.layout.as_ref().map_or(Ok(()), check_layout)
}

fn check_rule(module: &Module, id: FunctionId, rule: &Rule) -> Check {
    let Some(primal) = module.functions.get(id) else {
        return Err(format!("a rule is given for {id}, which does not exist"));
    };
    let name = &primal.name;
    if primal.params.len() > 64 {
        return Err(format!(
            "rule of @{name}: the mask of 64 bits has no room for its arguments"
        ));
    }
    let params = || primal.params.iter().map(|param| param.ty);
    let results = || primal.results.iter().copied();
    let carries = |ty: &Type| ty.is_float() || ty.is_ptr();
    let with_shadows = |shadowed: fn(&Type) -> bool| {
        params().flat_map(move |ty| std::iter::repeat_n(ty, if shadowed(&ty) { 2 } else { 1 }))
    };
    let is_ptr: fn(&Type) -> bool = |ty| ty.is_ptr();
    let is_float: fn(&Type) -> bool = |ty| ty.is_float();
    if let Some(forward) = rule.forward {
        let takes = with_shadows(carries).chain([Type::I64]);
        let gives = results().chain(results().filter(carries));
        check_rule_function(module, forward, takes.collect(), gives.collect())
            .map_err(|what| format!("forward rule of @{name}: {what}"))?;
    }
    if let Some(augment) = rule.augment {
        let takes = with_shadows(is_ptr).chain([Type::I64]);
        let gives = results().chain(results().filter(is_ptr)).chain([Type::PTR]);
        check_rule_function(module, augment, takes.collect(), gives.collect())
            .map_err(|what| format!("augmented forward rule of @{name}: {what}"))?;
    }
    if let Some(reverse) = rule.reverse {
        let takes = with_shadows(is_ptr)
            .chain(results().filter(is_float))
            .chain(rule.augment.map(|_| Type::PTR))
            .chain([Type::I64]);
        let gives = params().filter(is_float);
        check_rule_function(module, reverse, takes.collect(), gives.collect())
            .map_err(|what| format!("reverse rule of @{name}: {what}"))?;
    }
    Ok(())
}

fn check_rule_function(
    module: &Module,
    id: FunctionId,
    takes: Vec<Type>,
    gives: Vec<Type>,
) -> Check {
    let Some(function) = module.functions.get(id) else {
        return Err(format!("there is no function {id}"));
    };
    let params: Vec<Type> = function.params.iter().map(|param| param.ty).collect();
    if params == takes && function.results == gives {
        return Ok(());
    }
    Err(format!(
        "@{} is {}, but should be {}",
        function.name,
        signature(&params, &function.results),
        signature(&takes, &gives)
    ))
}

fn signature(params: &[Type], results: &[Type]) -> String {
    let list = |types: &[Type]| {
        types
            .iter()
            .map(Type::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    format!("({}) -> ({})", list(params), list(results))
}
