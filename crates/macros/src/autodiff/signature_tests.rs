//! Compares the signatures of derivatives with those of rustc's own macros.
//!
//! `tests/data/signatures.rs` holds functions, `tests/data/signatures.txt` what a nightly rustc makes of them. The
//! second is made by `rustc +nightly -Zunpretty=expanded`, and checked against it wherever a nightly is installed;
//! `FERROZYME_BLESS=1` rewrites it.
//!
//! Four differences are intended, and removed before the comparison: the derivative is not `const`, its arguments are not
//! `mut`, `()` is not written out as a result, and a trait's method with a shadow of `self` requires `Self: Sized`.
//! A fifth has no case here: `-> ()` is the same as no result, where std returns `()` in front of the gradients.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, ReturnType, Signature, Type, Visibility, WherePredicate};

use super::*;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/signatures.rs");
const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/signatures.txt");

#[test]
fn signatures_are_those_of_std() {
    let source = std::fs::read_to_string(CASES).expect("the cases are there");
    let mut found = Derivatives::default();
    found.visit_file(&syn::parse_file(&source).expect("the cases parse"));
    let expected = std::fs::read_to_string(EXPECTED).expect("the expectations are there");
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort();
    found.lines.sort();
    for (found, expected) in found.lines.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines.len(), expected.len());
}

#[test]
fn expectations_are_those_of_nightly() {
    let cases = std::fs::read_to_string(CASES).expect("the cases are there");
    let program = format!("#![feature(autodiff)]\nuse std::autodiff::*;\n{cases}\nfn main() {{}}");
    let expansion = expand_with_nightly(&program);
    let Some(expansion) = expansion.filter(|output| output.status.success()) else {
        eprintln!("no nightly toolchain with `std::autodiff` here: nothing to compare with");
        return;
    };
    let source = String::from_utf8(expansion.stdout).expect("the expansion is text");
    let mut found = Derivatives::default();
    found.visit_file(&syn::parse_file(&source).expect("the expansion parses"));
    let text = found.lines.join("\n") + "\n";
    if std::env::var_os("FERROZYME_BLESS").is_some() {
        std::fs::write(EXPECTED, text).expect("the expectations can be written");
        return;
    }
    let expected = std::fs::read_to_string(EXPECTED).expect("the expectations are there");
    assert_eq!(text, expected);
}

/// The output of a nightly rustc, if one is installed.
fn expand_with_nightly(program: &str) -> Option<Output> {
    let mut rustc = Command::new("rustc")
        .args(["+nightly", "-Zunpretty=expanded", "--edition=2024", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // rustc stops reading at an error, which its exit status reports.
    let _ = rustc.stdin.take()?.write_all(program.as_bytes());
    rustc.wait_with_output().ok()
}

/// The signatures of all derivatives in a file, one per line: those of functions that carry our attributes, and those
/// that rustc has expanded.
#[derive(Default)]
struct Derivatives {
    lines: Vec<String>,
}

impl Derivatives {
    fn visit(&mut self, place: Place, attributes: &[syn::Attribute], function: impl ToTokens) {
        let function: Function = syn::parse2(function.into_token_stream()).expect("a function");
        for attribute in attributes {
            let mode = match attribute.path() {
                path if path.is_ident("autodiff_forward") => Mode::Forward,
                path if path.is_ident("autodiff_reverse") => Mode::Reverse,
                path if path.is_ident("rustc_autodiff") => {
                    if attribute.meta.require_list().is_ok() {
                        self.push(&function.visibility, function.signature.clone());
                    }
                    continue;
                }
                _ => continue,
            };
            let tokens = attribute
                .meta
                .require_list()
                .expect("a list")
                .tokens
                .clone();
            let arguments = Arguments::parse(mode, tokens).expect("arguments");
            let derivative = Derivative::new(&function, place, &arguments).expect("a derivative");
            self.push(&function.visibility, derivative.signature);
        }
    }

    fn push(&mut self, visibility: &Visibility, mut signature: Signature) {
        signature.constness = None;
        for input in &mut signature.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(pattern) = &mut *typed.pat
            {
                pattern.mutability = None;
            }
        }
        signature.inputs.pop_punct();
        if let ReturnType::Type(_, ty) = &signature.output
            && matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty())
        {
            signature.output = ReturnType::Default;
        }
        if let Some(clause) = signature.generics.where_clause.take() {
            let is_sized = |predicate: &WherePredicate| {
                predicate.to_token_stream().to_string() == "Self : Sized"
            };
            let kept = clause
                .predicates
                .into_iter()
                .filter(|predicate| !is_sized(predicate));
            let kept: Vec<WherePredicate> = kept.collect();
            if !kept.is_empty() {
                signature.generics.make_where_clause().predicates = kept.into_iter().collect();
            }
        }
        let line = quote!(#visibility #signature).to_string();
        self.lines.push(line.trim_start().to_owned());
    }
}

impl<'ast> Visit<'ast> for Derivatives {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.visit(Place::Scope, &item.attrs, item);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.visit(Place::Implementation, &item.attrs, item);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.visit(Place::Trait, &item.attrs, item);
        visit::visit_trait_item_fn(self, item);
    }
}
