//! Registrations of C and C++ programs about functions and globals: globals with special names, or attributes.
//!
//! ```text
//! void *__enzyme_register_gradient_f[] = {f, augmented, reverse};
//! void *__enzyme_register_derivative_f[] = {f, derivative};
//! void *__enzyme_inactivefn_f[] = {f};                       __attribute__((enzyme_inactive))
//! void *__enzyme_inactive_global_g[] = {&g};
//! void *__enzyme_function_like_f[] = {f, "log1p"};           __attribute__((enzyme_function_like("log1p")))
//! void *__enzyme_allocation_like_f[] = {f, (void *)0, "", release};
//! ```
//!
//! `__enzyme_nofree_f` has no effect: frees are deferred in any case.

use super::entries::PREFIX;
use crate::locals::promoted_name;
use crate::registrations::{
    Convention, Registration, RegistrationKind, RuleFunction, refused_at_variable,
};
use crate::report::{Diagnostic, Location};
use crate::trace::trace;
use ferrozyme_llvm::{Context, Linkage, Module, Value, ValueKind};
use ferrozyme_refusal::{C, Refusal};

/// The registrations of a module, which is this input.
pub(crate) fn read_enzyme_registrations<'c>(
    context: &'c Context,
    module: Module<'c>,
    source: usize,
    identity: &str,
) -> Result<Vec<Registration>, Diagnostic> {
    let mut found = Vec::new();
    read_annotations(module, source, &mut found);
    for global in module.globals() {
        let name = global.name();
        let Some(start) = name.find(PREFIX).filter(|_| !global.is_declaration()) else {
            continue;
        };
        let what = &name[start + PREFIX.len()..];
        let unreadable = |problem: &str| {
            let refusal = Refusal::Registration {
                name: name.clone(),
                problem: problem.to_owned(),
            };
            let mut refused = refused_at_variable(context, global, &refusal, &C);
            // Without `-g`, clang says of variables only which file they are in.
            refused.location.get_or_insert_with(|| Location {
                file: module.source_file(),
                line: 0,
                column: 0,
            });
            refused
        };
        let element = |index| element_of(global, index);
        let function = |index: u32| {
            let function = element(index).filter(|element| element.is_function());
            function
                .map(|function| function.name())
                .ok_or_else(|| unreadable(&format!("has no function as its element {}", index + 1)))
        };
        let rule = |index: u32| {
            function(index).map(|symbol| {
                Some(RuleFunction {
                    symbol,
                    results: String::new(),
                    convention: Convention::Enzyme,
                })
            })
        };
        let (primal, kind) = if what.starts_with("register_gradient") {
            let kind = RegistrationKind::Rule {
                forward: None,
                augment: rule(1)?,
                reverse: rule(2)?,
            };
            (function(0)?, kind)
        } else if what.starts_with("register_derivative") {
            let kind = RegistrationKind::Rule {
                forward: rule(1)?,
                augment: None,
                reverse: None,
            };
            (function(0)?, kind)
        } else if what.starts_with("inactivefn") {
            (function(0)?, RegistrationKind::Inactive)
        } else if what.starts_with("inactive_global") {
            let variable = element(0)
                .filter(|element| element.kind() == ValueKind::GlobalVariable)
                .ok_or_else(|| unreadable("has no global variable as its element"))?;
            let local = matches!(variable.linkage(), Linkage::Internal | Linkage::Private);
            let symbol = match local && !variable.is_global_constant() {
                true => promoted_name(module, identity, &variable.name()),
                false => variable.name(),
            };
            (symbol, RegistrationKind::InactiveGlobal)
        } else if what.starts_with("function_like") {
            let like = element(1)
                .and_then(text_of)
                .ok_or_else(|| unreadable("has no name of a function as its element 2"))?;
            (function(0)?, RegistrationKind::Like(like))
        } else if what.starts_with("allocation_like") {
            let size = element(1)
                .and_then(|size| match size.is_zero() {
                    true => Some(0),
                    false => size.as_unsigned(),
                })
                .and_then(|size| u32::try_from(size).ok())
                .ok_or_else(|| unreadable("has no number of an argument as its element 2"))?;
            let release = function(3).ok();
            (function(0)?, RegistrationKind::Allocation { size, release })
        } else if what.starts_with("nofree") || !is_registration(&name) {
            continue;
        } else {
            return Err(unreadable("is of no known kind"));
        };
        found.push(Registration {
            primal,
            source,
            kind,
        });
    }
    Ok(found)
}

/// Whether a global is named as one that registers something: C++ puts its namespace and type around the name, and makes others of it.
fn is_registration(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with("_ZL") || name.starts_with("_ZN")
}

/// An element of an array, or the value itself where there is only one.
fn element_of(global: Value<'_>, index: u32) -> Option<Value<'_>> {
    let initial = global.initialiser()?;
    let element = match initial.element(index) {
        Some(element) => element,
        None if index == 0 => initial,
        None => return None,
    };
    Some(trace(element))
}

/// A text that ends in zero.
fn text_of(value: Value<'_>) -> Option<String> {
    if value.kind() != ValueKind::GlobalVariable {
        return None;
    }
    let initial = value.initialiser()?;
    let bytes = initial.raw_bytes()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// The global in which clang leaves attributes.
const ANNOTATIONS: &str = "llvm.global.annotations";

/// An attribute of a module that has become an annotation.
pub(super) struct Annotation<'c> {
    /// The function or variable that it belongs to.
    pub(super) subject: Value<'c>,
    /// What it is called.
    pub(super) name: String,
    pub(super) argument: Option<Value<'c>>,
    pub(super) location: Option<Location>,
}

/// The attributes of a module that have become annotations.
pub(super) fn annotations_of(module: Module<'_>) -> impl Iterator<Item = Annotation<'_>> {
    let all = module
        .global(ANNOTATIONS)
        .and_then(|annotations| annotations.initialiser());
    // Function or variable, text, file, line, arguments.
    let entries = (0..).map_while(move |index| all?.element(index));
    entries.filter_map(|entry| {
        let part = |part: u32| entry.element(part).map(trace);
        let argument = part(4)
            .filter(|given| given.kind() == ValueKind::GlobalVariable)
            .and_then(|given| element_of(given, 0));
        let line = part(3).and_then(|line| u32::try_from(line.as_unsigned()?).ok());
        let location = part(2).and_then(text_of).zip(line);
        Some(Annotation {
            subject: part(0)?,
            name: part(1).and_then(text_of)?,
            argument,
            location: location.map(|(file, line)| Location {
                file,
                line,
                column: 0,
            }),
        })
    })
}

fn read_annotations(module: Module<'_>, source: usize, found: &mut Vec<Registration>) {
    for Annotation {
        subject,
        name,
        argument,
        ..
    } in annotations_of(module)
    {
        let kind = match name.as_str() {
            "enzyme_inactive" | "enzyme_inactive_noblock" => match subject.is_function() {
                true => RegistrationKind::Inactive,
                false => RegistrationKind::InactiveGlobal,
            },
            "enzyme_function_like" => match argument.and_then(text_of) {
                Some(like) => RegistrationKind::Like(like),
                None => continue,
            },
            _ => continue,
        };
        found.push(Registration {
            primal: subject.name(),
            source,
            kind,
        });
    }
}
