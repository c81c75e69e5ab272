//! What values are called in the text form.

use super::INFALLIBLE;
use crate::function::{Function, Region, Value};
use crate::literal::write_name;
use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// The names of a function's values in the text form, when this was computed.
#[derive(Clone, Debug)]
pub struct Names {
    names: SecondaryMap<Value, Option<Box<str>>>,
}

impl Names {
    /// Computes the names of all values that the function's body defines.
    pub fn of(function: &Function) -> Names {
        let mut naming = Naming {
            function,
            names: SecondaryMap::with_capacity(function.values.len()),
            taken: FxHashSet::default(),
            next_suffix: FxHashMap::default(),
            next_number: 0,
            visited: SecondaryMap::new(),
        };
        if let Some(body) = function.body {
            naming.region(body);
        }
        Names {
            names: naming.names,
        }
    }

    /// The name with its `%`; none for constants and for values that the body does not define.
    pub fn get(&self, value: Value) -> Option<&str> {
        self.names[value].as_deref()
    }
}

struct Naming<'a> {
    function: &'a Function,
    names: SecondaryMap<Value, Option<Box<str>>>,
    taken: FxHashSet<Box<str>>,
    /// From which suffix on to look for a free one, for each name that occurs more than once.
    next_suffix: FxHashMap<&'a str, u32>,
    next_number: u32,
    /// In a malformed function a region may be held twice.
    visited: SecondaryMap<Region, bool>,
}

impl<'a> Naming<'a> {
    fn region(&mut self, region: Region) {
        let Some(data) = self.function.regions.get(region) else {
            return;
        };
        if std::mem::replace(&mut self.visited[region], true) {
            return;
        }
        for &argument in &data.args {
            self.value(argument);
        }
        for &op in &data.ops {
            if let Some(data) = self.function.ops.get(op) {
                for &result in &data.results {
                    self.value(result);
                }
                for &inner in &data.regions {
                    self.region(inner);
                }
            }
        }
    }

    fn value(&mut self, value: Value) {
        let function = self.function;
        let Some(data) = function.values.get(value) else {
            return;
        };
        let mut text = String::new();
        match data.name.as_deref() {
            Some(name) if !is_number(name) => {
                let unique = self.unique(name);
                write_name(&mut text, '%', &unique).expect(INFALLIBLE);
            }
            _ => {
                write!(text, "%{}", self.next_number).expect(INFALLIBLE);
                self.next_number += 1;
            }
        }
        self.names[value] = Some(text.into());
    }

    fn unique(&mut self, name: &'a str) -> Box<str> {
        let mut unique: Box<str> = name.into();
        if self.taken.contains(&unique) {
            let suffix = self.next_suffix.entry(name).or_insert(1);
            while self.taken.contains(&unique) {
                unique = format!("{name}_{suffix}").into();
                *suffix += 1;
            }
        }
        self.taken.insert(unique.clone());
        unique
    }
}

/// Whether a name is a number, which denotes a value without a name.
pub(crate) fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}
