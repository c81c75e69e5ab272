//! Prints the analysis.

use super::{Class, Contradiction, Kind, Objects, Place, Source, Trace, ValueKind};
use ferrozyme_ir::{Function, Module, Names, Op, Value};
use rustc_hash::FxHashSet;
use std::fmt::{self, Write};

impl Objects {
    /// What was found: each class with where it comes from and its fields, then each pointer, and each integer that is not just one.
    pub fn print(&self, module: &Module) -> String {
        let mut text = String::new();
        self.write(module, &mut text)
            .expect("writing to a string does not fail");
        text
    }

    fn write(&self, module: &Module, out: &mut String) -> fmt::Result {
        let function = &module.functions[self.function];
        let names = Names::of(function);
        writeln!(out, "objects of @{}", function.name)?;
        let known = self.known_classes(&names, function);
        for class in self.classes().filter(|class| known.contains(class)) {
            self.write_class(module, &names, class, out)?;
        }
        for value in function.values.keys() {
            // What has no name is a constant, or no longer part of the function.
            let Some(name) = names.get(value) else {
                continue;
            };
            let kind = self.kind_of_value(function, value);
            match kind {
                ValueKind::Pointer(Some(place)) => writeln!(out, "  {name}: {place}")?,
                ValueKind::CarriesPointer(place) => writeln!(out, "  {name}: carries {place}")?,
                ValueKind::CarriesFloat(scalar) => writeln!(out, "  {name}: carries {scalar}")?,
                ValueKind::Mixed => {
                    write!(out, "  {name}: mixed")?;
                    for part in self.parts_of_value(value) {
                        write!(out, ", {}: {}", part.offset, part.kind)?;
                    }
                    writeln!(out)?;
                }
                ValueKind::Conflict(why) => writeln!(out, "  {name}: conflict, {why}")?,
                ValueKind::Unknown if self.parts_of_value(value).is_empty() => {}
                ValueKind::Unknown => writeln!(out, "  {name}: unknown")?,
                ValueKind::Pointer(None) | ValueKind::Float(_) | ValueKind::Integer => {}
            }
        }
        Ok(())
    }

    /// The classes that the function's values lead to; a group of functions that call each other has more.
    fn known_classes(&self, names: &Names, function: &Function) -> FxHashSet<Class> {
        let mut unseen: Vec<Class> = self.results_and_globals().collect();
        for value in function.values.keys() {
            if names.get(value).is_some() || function.is_constant(value) {
                unseen.extend(self.place_of(function, value).map(|place| place.class));
                for part in self.parts_of_value(value) {
                    if let Kind::Pointer(place) = part.kind {
                        unseen.push(place.class);
                    }
                }
            }
        }
        let mut known = FxHashSet::default();
        while let Some(class) = unseen.pop() {
            if known.insert(class) {
                unseen.extend(self.fields(class).filter_map(|field| match field.kind {
                    Kind::Pointer(place) => Some(place.class),
                    _ => None,
                }));
            }
        }
        known
    }

    fn results_and_globals(&self) -> impl Iterator<Item = Class> {
        let results = self.results.iter().filter_map(|trace| match trace {
            Trace::Pointer(place) => Some(place.class),
            _ => None,
        });
        let globals = self.globals.iter().map(|(_, place)| place.class);
        results.chain(globals)
    }

    fn write_class(
        &self,
        module: &Module,
        names: &Names,
        class: Class,
        out: &mut String,
    ) -> fmt::Result {
        let function = &module.functions[self.function];
        write!(out, "{class}:")?;
        let mut separator = " ";
        for source in self.sources(class) {
            out.push_str(separator);
            separator = ", ";
            match source {
                Source::Param(index) => {
                    let value = function.arguments()[index as usize];
                    write!(out, "parameter {}", name_of(names, value))?;
                }
                Source::Global(id) => write!(out, "global @{}", module.globals[id].name)?,
                Source::Function(id) => write!(out, "code of @{}", module.functions[id].name)?,
                Source::Stack(op) => write!(out, "stack {}", result_of(names, function, op))?,
                Source::Alloc(op) => write!(out, "alloc {}", result_of(names, function, op))?,
                Source::Loaded(op) => write!(out, "loaded as {}", result_of(names, function, op))?,
                Source::Call(op) => {
                    write!(out, "made by {}", call_of(module, names, function, op))?
                }
                Source::External(op) => {
                    write!(out, "result of {}", call_of(module, names, function, op))?;
                }
                Source::Address(op) => write!(out, "address {}", result_of(names, function, op))?,
            }
        }
        for (flag, text) in [
            (self.escapes(class), "escapes"),
            (self.has_unknown_origin(class), "unknown origin"),
        ] {
            if flag {
                write!(out, "{separator}{text}")?;
                separator = ", ";
            }
        }
        if self.period(class) > 0 {
            write!(out, "{separator}every {} bytes", self.period(class))?;
            if let Some(start) = self.repeats_from(class) {
                write!(out, " from {start} on")?;
            }
        }
        out.push('\n');
        self.write_fields(class, out)
    }

    /// The fields; runs of the same kind in a row take one line.
    fn write_fields(&self, class: Class, out: &mut String) -> fmt::Result {
        let fields: Vec<_> = self.fields(class).collect();
        let mut index = 0;
        while let Some(first) = fields.get(index) {
            let run = fields[index..]
                .iter()
                .zip(0..)
                .take_while(|(field, count)| {
                    field.kind == first.kind
                        && field.bytes == first.bytes
                        && field.offset == first.offset + count * first.bytes as i64
                })
                .count();
            write!(out, "  {}: {}", first.offset, first.kind)?;
            if !matches!(first.kind, Kind::Float(_) | Kind::Pointer(_)) {
                let plural = if first.bytes == 1 { "" } else { "s" };
                write!(out, " ({} byte{plural})", first.bytes)?;
            }
            if run > 1 {
                write!(out, " x {run}")?;
            }
            out.push('\n');
            index += run;
        }
        Ok(())
    }
}

fn name_of(names: &Names, value: Value) -> &str {
    names.get(value).unwrap_or("a removed value")
}

fn result_of<'n>(names: &'n Names, function: &Function, op: Op) -> &'n str {
    name_of(names, function.result(op))
}

fn call_of(module: &Module, names: &Names, function: &Function, op: Op) -> String {
    let data = &function.ops[op];
    let mut text = String::from("call");
    if let ferrozyme_ir::Payload::Callee(callee) = data.payload {
        text = format!("call of @{}", module.functions[callee].name);
    }
    if let Some(&result) = data.results.first() {
        text.push_str(" as ");
        text.push_str(name_of(names, result));
    }
    text
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.class, self.span)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Float(scalar) => scalar.fmt(f),
            Kind::Integer => f.write_str("integer"),
            Kind::Pointer(place) => write!(f, "ptr to {place}"),
            Kind::Padding => f.write_str("padding"),
            Kind::Unknown => f.write_str("unknown"),
            Kind::Conflict(why) => write!(f, "conflict, {why}"),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contradiction::Floats(a, b) => write!(f, "both {a} and {b}"),
            Contradiction::FloatAndInteger(scalar) => write!(f, "both {scalar} and integer"),
            Contradiction::FloatAndPointer(scalar) => write!(f, "both {scalar} and pointer"),
            Contradiction::Torn(scalar) => write!(f, "part of {scalar}"),
        }
    }
}
