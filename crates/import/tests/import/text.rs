//! LLVM text files with the Loop IR that is expected of them: `text/*.ll` and `text/*.fz` beside them.
//!
//! `FERROZYME_BLESS=1` rewrites what is expected.

use ferrozyme_export::{ExportOptions, export};
use ferrozyme_import::outline::outline_cold_code;
use ferrozyme_import::{ImportOptions, import};
use ferrozyme_ir::{parse_module, print_module, verify_module};
use ferrozyme_llvm::{Context, Linkage, Place, Value};
use std::path::{Path, PathBuf};

fn imported_text(path: &Path) -> String {
    let source = std::fs::read_to_string(path).expect("the file can be read");
    let context = Context::new().expect("rustc brings its LLVM");
    let module = context
        .parse_text("text", &source)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_opaque = |function: Value<'_>| function.has_attribute(Place::Function, "noreturn");
    outline_cold_code(&context, module, &|function| is_opaque(function));
    let roots: Vec<String> = module
        .functions()
        .filter(|function| !function.is_declaration() && function.linkage() == Linkage::External)
        .map(|function| function.name())
        .collect();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let options = ImportOptions {
        is_opaque: &is_opaque,
        is_inactive: &|name| name.starts_with("print"),
    };
    let mut text = String::new();
    match import(&context, module, &roots, &options) {
        Ok(imported) => {
            verify_module(&imported.module).unwrap_or_else(|errors| panic!("{errors:?}"));
            text.push_str(&print_module(&imported.module));
            let mut opaque: Vec<String> =
                imported.opaque.values().map(ToString::to_string).collect();
            opaque.sort();
            for reason in opaque {
                text.push_str(&format!(
                    "\n; not imported: {}",
                    reason.replace('\n', "\n; ")
                ));
            }
        }
        Err(error) => text.push_str(&format!(
            "; error: {}",
            error.to_string().replace('\n', "\n; ")
        )),
    }
    module
        .verify()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.push('\n');
    text
}

#[test]
fn texts_are_imported_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/text");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("its files can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ll"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let text = imported_text(&path);
        if !text.starts_with("; error") {
            parse_module(&text)
                .unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        }
        let expected = path.with_extension("fz");
        if std::env::var_os("FERROZYME_BLESS").is_some() {
            std::fs::write(&expected, &text).expect("what is expected can be written");
        } else if std::fs::read_to_string(&expected).ok().as_deref() != Some(&text) {
            wrong.push(format!("{}:\n{text}", path.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "set FERROZYME_BLESS=1 to accept:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn cleanups_become_landing_pads_again() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/text/unwinding.ll");
    let source = std::fs::read_to_string(path).expect("the file can be read");
    let context = Context::new().expect("rustc brings its LLVM");
    let module = context.parse_text("text", &source).expect("LLVM reads it");
    let is_opaque = |function: Value<'_>| function.has_attribute(Place::Function, "noreturn");
    outline_cold_code(&context, module, &|function| is_opaque(function));
    let options = ImportOptions {
        is_opaque: &is_opaque,
        is_inactive: &|_| false,
    };
    let mut loops = import(&context, module, &["drops"], &options)
        .expect("it can be imported")
        .module;
    // A copy under another name, whose callee is inlined, so that what it calls unwinds through both.
    let drops = loops.function_named("drops").expect("it was imported");
    let mut copy = loops.functions[drops].clone();
    copy.name = "again".to_owned();
    let copy = loops.functions.push(copy);
    ferrozyme_opt::optimise(&mut loops, copy);
    export(&loops, &[copy], module, &ExportOptions::default()).expect("it can be exported");
    module
        .verify()
        .expect("landing pads are where they have to be");
    let text = module
        .function("again")
        .expect("it was exported")
        .definition_text();
    let count = |part: &str| text.matches(part).count();
    assert_eq!(count("invoke double @other"), 2, "{text}");
    assert_eq!(count("landingpad"), 2, "{text}");
    assert_eq!(count("call void @drops.cleanup"), 2, "{text}");
    assert!(text.contains("personality ptr @personality"), "{text}");
}

/// What cannot be imported at all says so, with its code.
#[test]
fn roots_are_refused() {
    let message = |text: &str, root: &str| {
        let context = Context::new().expect("rustc brings its LLVM");
        let module = context.parse_text("text", text).expect("LLVM reads it");
        let options = ImportOptions {
            is_opaque: &|_| false,
            is_inactive: &|_| false,
        };
        let imported = import(&context, module, &[root], &options);
        imported.expect_err("it is refused").to_string()
    };
    let missing = message("declare void @f()", "f");
    assert!(missing.contains("[FZ0106]"), "{missing}");
    // Each loop holds the next.
    let depth = 2000;
    let mut text = String::from("define void @f(i1 %c) {\nentry:\n  br label %head0\n");
    for level in 0..depth {
        text += &format!("head{level}:\n  br label %head{}\n", level + 1);
    }
    text += &format!("head{depth}:\n  br label %tail{}\n", depth - 1);
    for level in (0..depth).rev() {
        let next = match level {
            0 => "end".to_owned(),
            _ => format!("tail{}", level - 1),
        };
        text += &format!("tail{level}:\n  br i1 %c, label %head{level}, label %{next}\n");
    }
    text += "end:\n  ret void\n}\n";
    let deep = message(&text, "f");
    assert!(deep.contains("[FZ0515]"), "{deep}");
}
