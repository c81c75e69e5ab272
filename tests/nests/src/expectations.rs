//! Expectations in the source, compared with what `explain` says of the derivatives.
//!
//! ```text
//! // raised: 3
//! #[autodiff_reverse(d_dot_order, …)]
//! fn dot_order(…) { … }
//!
//! // loops: the sum is used for something else
//! #[autodiff_reverse(d_running_sums, …)]
//! fn running_sums(…) { … }
//! ```
//!
//! `raised` gives the number of contractions in the derivative, and `loops` a reason why one of its sums of products stays a loop; such a derivative has no contraction, unless `raised` is said, too.

use std::collections::BTreeMap;

/// What is expected of the derivative of a function, or found.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Products {
    /// The number of contractions.
    pub raised: usize,
    /// Why other sums stay loops.
    pub loops: Vec<String>,
}

/// Compares the expectations of sources with a report of all derivatives.
///
/// # Errors
/// The functions whose derivatives are not as expected, one in each line.
pub fn compare(sources: &[&str], report: &str) -> Result<(), String> {
    let found = read_report(report);
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, expected) in sources.iter().flat_map(|source| read_source(source)) {
        compared += 1;
        let Some(found) = found.get(&name) else {
            wrong.push(format!("{name}: there is no derivative of it"));
            continue;
        };
        let reasons = |reason: &String| found.loops.contains(reason);
        if found.raised != expected.raised || !expected.loops.iter().all(reasons) {
            wrong.push(format!("{name}: expected {expected:?}, found {found:?}"));
        }
    }
    match (compared, wrong.is_empty()) {
        (0, _) => Err("the sources expect nothing".to_owned()),
        (_, true) => Ok(()),
        (_, false) => Err(wrong.join("\n")),
    }
}

/// The expectations of a source, by function.
fn read_source(source: &str) -> Vec<(String, Products)> {
    let mut all = Vec::new();
    let mut expected: Option<Products> = None;
    for line in source.lines() {
        if let Some(number) = line.strip_prefix("// raised: ") {
            let number = number.parse();
            expected.get_or_insert_default().raised = number.expect("a number of contractions");
        } else if let Some(reason) = line.strip_prefix("// loops: ") {
            let expected = expected.get_or_insert_default();
            expected.loops.push(reason.to_owned());
        } else if let Some(name) = function_name(line)
            && let Some(expected) = expected.take()
        {
            all.push((name.to_owned(), expected));
        }
    }
    all
}

/// The name of the function that a line begins, in Rust, C or C++.
fn function_name(line: &str) -> Option<&str> {
    if line.starts_with(['/', '#', ' ', '}']) {
        return None;
    }
    let head = &line[..line.find(['(', '<'])?];
    let name = head.rsplit([' ', '*']).next()?;
    (head.len() > name.len()).then_some(name)
}

/// What a report says of each function: all derivatives of one together.
fn read_report(report: &str) -> BTreeMap<String, Products> {
    let mut all: BTreeMap<String, Products> = BTreeMap::new();
    let mut current = None;
    for line in report.lines() {
        if let Some(name) = name_in_head(line) {
            current = Some(all.entry(name.to_owned()).or_default());
        } else if let Some(products) = &mut current {
            if line.starts_with("  raised ") {
                products.raised += 1;
            } else if let Some(reason) = line.strip_prefix("  loops ") {
                let reason = reason.trim_start();
                let end = reason.find(": ").unwrap_or(reason.len());
                products.loops.push(reason[..end].to_owned());
            }
        }
    }
    all
}

/// The function whose derivative a line introduces: "derivative `d` of `path::f` (reverse) at …", or "derivative of f (reverse)" of a C unit, where C++ has symbols for names.
fn name_in_head(line: &str) -> Option<&str> {
    let (_, path) = line.strip_prefix("derivative ")?.split_once("of ")?;
    let path = path.trim_start_matches('`');
    let path = &path[..path.find(['`', '(', ' '])?];
    if let Some(symbol) = path.strip_prefix("_Z") {
        let digits = symbol.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = symbol[..digits].parse().ok()?;
        return symbol[digits..].get(..length);
    }
    path.rsplit("::").next()
}

#[cfg(test)]
mod tests {
    use super::compare;

    const SOURCE: &str = "\
// raised: 2
fn product(a: &[f64]) {}

// loops: too small for a kernel
static void *small(const double *a) {}
";

    #[test]
    fn expectations_and_reports() {
        let report = "\
derivative `gradient` of `nests::product::product` (reverse) at tests/nests.rs:1:1
sums of products:
  raised    contract …
  raised    contract …
derivative of _Z5smallPKd (reverse)

  loops     too small for a kernel: %1 = load …
    in      store …
";
        assert_eq!(compare(&[SOURCE], report), Ok(()));
        let one_less = report.replacen("  raised    contract …\n", "", 1);
        let wrong = compare(&[SOURCE], &one_less).expect_err("one is missing");
        assert!(wrong.starts_with("product: expected"), "{wrong}");
    }
}
