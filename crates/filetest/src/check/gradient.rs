//! The gradient check as a directive.

use super::{Output, Session};
use crate::file::Directive;
use crate::gradcheck::{Point, check_point, differentiate_all};
use crate::scan::Scanner;
use crate::signature::parse_signature;
use crate::value::{Written, read_values};

/// `gradcheck @f (dup, const) -> (active)`: at each `; args:`, with the `; seed:` and `; gradient:` that follow it.
pub(super) fn gradcheck(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let module = session.module()?;
    let request = parse_signature(directive.arguments())?.request(module)?;
    let mut points: Vec<(usize, Point)> = Vec::new();
    for detail in &directive.details {
        let values =
            read_all(detail.text).map_err(|error| format!("line {}: {error}", detail.line))?;
        if detail.keyword == "args" {
            let point = Point {
                arguments: values,
                ..Point::default()
            };
            points.push((detail.line, point));
            continue;
        }
        let Some((_, point)) = points.last_mut() else {
            return Err(format!("line {}: `; args:` comes first", detail.line));
        };
        let slot = match detail.keyword {
            "seed" => &mut point.seed,
            _ => &mut point.gradient,
        };
        if slot.replace(values).is_some() {
            return Err(format!(
                "line {}: a second `; {}:` for the same arguments",
                detail.line, detail.keyword
            ));
        }
    }
    if points.is_empty() {
        return Err("no `; args:` line belongs to it".to_owned());
    }
    let derivatives = differentiate_all(module, &request)?;
    for (line, point) in &points {
        check_point(module, &request, &derivatives, point)
            .map_err(|error| format!("line {line}: {error}"))?;
    }
    Ok(Output::Passed)
}

fn read_all(text: &str) -> Result<Vec<Written>, String> {
    let mut scanner = Scanner::new(text);
    let values = read_values(&mut scanner)?;
    scanner.finish()?;
    Ok(values)
}
