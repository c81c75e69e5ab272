//! No source file has more than 800 lines, no function more than 120. Tests are not counted: they are lists of cases.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FILE: usize = 800;
const FUNCTION: usize = 120;

/// Where the product's packages are.
const PACKAGES: &[&str] = &["crates", "models", "bench", "examples", "tests/perturb"];

#[test]
fn files_and_functions_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in PACKAGES {
        collect(&root.join(folder), &mut files).unwrap_or_else(|error| panic!("{folder}: {error}"));
    }
    assert!(files.len() > 500, "only {} source files found", files.len());
    let mut sources = Vec::new();
    let mut tests = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a source file that was listed");
        // Data of tests about errors of parsing is not Rust.
        let Ok(syntax) = syn::parse_file(&text) else {
            panic!("{} cannot be parsed", path.display());
        };
        tests.extend(modules_of_tests(&path, &syntax));
        sources.push((path, text, syntax));
    }
    let mut long = String::new();
    for (path, text, syntax) in &sources {
        if tests.iter().any(|test| path.starts_with(test)) {
            continue;
        }
        let name = path.strip_prefix(&root).unwrap_or(path).display();
        let lines = text.lines().count();
        if lines > FILE {
            let _ = writeln!(long, "{name} has {lines} lines");
        }
        let mut functions = Functions(Vec::new());
        functions.visit_file(syntax);
        for (function, line, lines) in functions.0 {
            let _ = writeln!(long, "{name}:{line}: `{function}` has {lines} lines");
        }
    }
    assert!(
        long.is_empty(),
        "files may have {FILE} lines, and functions {FUNCTION}; split what does more than one thing:\n{long}"
    );
}

/// The source files of packages, but for those of their tests and what is built.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !matches!(&*name, "tests" | "target") && !name.starts_with('.') {
                collect(&path, files)?;
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    Ok(())
}

/// The files and folders of the modules that a file declares for tests.
fn modules_of_tests(path: &Path, syntax: &syn::File) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default();
    let folder = match stem.to_str() {
        Some("lib" | "main" | "mod") => path.with_file_name(""),
        _ => path.with_extension(""),
    };
    let mut found = Vec::new();
    for item in &syntax.items {
        if let syn::Item::Mod(module) = item
            && module.content.is_none()
            && is_for_tests(&module.attrs)
        {
            let name = module.ident.to_string();
            found.push(folder.join(format!("{name}.rs")));
            found.push(folder.join(name));
        }
    }
    found
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.parse_args::<syn::Path>();
        let is_cfg = attribute.path().is_ident("cfg");
        attribute.path().is_ident("test")
            || is_cfg && condition.is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Functions that are too long: name, line, and how many lines they have.
struct Functions(Vec<(String, usize, usize)>);

impl Functions {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let start = signature.span().start().line;
        let lines = block.span().end().line + 1 - start;
        if lines > FUNCTION {
            self.0.push((signature.ident.to_string(), start, lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.measure(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}
