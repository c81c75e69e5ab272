//! The drivers as compilers: what they make without requests, several files, libraries, options, exit status.

use object::{Object, ObjectSection};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

const PLAIN: &str = "
#include <math.h>
static double weights[64];
double dot(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
double total(void) { for (int i = 0; i < 64; i++) weights[i] = sin(i); return dot(weights, weights, 64); }
";

const PLAIN_CPP: &str = r#"
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>
struct Shape { virtual ~Shape() {} virtual double area() const = 0; };
struct Square : Shape { double side = 2; double area() const override { return side * side; } };
static double table[] = {1, 2, 3};
double work(std::vector<double> &values, unsigned at) {
  std::sort(values.begin(), values.end());
  std::unique_ptr<Shape> shape(new Square);
  try {
    return values.at(at) * table[at % 3] + shape->area();
  } catch (std::out_of_range &) {
    return 0;
  }
}
"#;

const MODEL: &str = "
#include <math.h>
static int evaluations;
static double gain = 2;
double model(double x) { evaluations++; return gain * sin(x) * x; }
void set_gain(double value) { gain = value; }
int count(void) { return evaluations; }
";

const MAIN: &str = "
#include <math.h>
double __enzyme_autodiff(void *, ...);
double model(double);
void set_gain(double);
int count(void);
double f(double x) { return model(x) * x; }
int main(void) {
  double x = 1.5, expected = 2 * (2 * x * sin(x) + x * x * cos(x));
  if (fabs(__enzyme_autodiff((void *)f, x) - expected) > 1e-12) return 1;
  set_gain(4);
  if (fabs(__enzyme_autodiff((void *)f, x) - 2 * expected) > 1e-12) return 2;
  return count() == 2 ? 0 : 3;
}
";

/// Nothing can be tried without clang.
fn has_clang() -> bool {
    let version = Command::new("clang-22").arg("--version").output();
    let found = version.is_ok_and(|output| output.status.success());
    if !found {
        // Not by a macro, whose text is shown of tests that fail only.
        let _ = writeln!(
            std::io::stderr(),
            "note: left out, since there is no clang-22"
        );
    }
    found
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the program can be run")
}

fn compile(folder: &Path, arguments: &[&str]) {
    let output = run(folder, env!("CARGO_BIN_EXE_ferrozyme-cc"), arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// All sections with code and constants, by name.
fn code_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(path).expect("an object");
    let file = object::File::parse(bytes.as_slice()).expect("an object file");
    let sections = file.sections().filter_map(|section| {
        let name = section.name().expect("a name").to_owned();
        let wanted = name.starts_with(".text") || name.starts_with(".rodata");
        wanted.then(|| (name, section.data().expect("its bytes").to_vec()))
    });
    sections.collect()
}

#[test]
fn code_without_requests_is_clangs() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[("plain.c", PLAIN), ("plain.cpp", PLAIN_CPP)]);
    for file in ["plain.c", "plain.cpp"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            compile(folder.path(), &[level, "-c", file, "-o", "ours.o"]);
            let arguments = [level, "-c", file, "-o", "clangs.o"];
            assert!(run(folder.path(), "clang-22", &arguments).status.success());
            let [ours, clangs] =
                ["ours.o", "clangs.o"].map(|name| code_of(&folder.path().join(name)));
            assert!(ours == clangs, "the code of {file} differs at {level}");
        }
    }
}

#[test]
fn derivatives_reach_into_other_units_and_their_statics() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[("main.c", MAIN), ("model.c", MODEL)]);
    let at = folder.path();
    for level in ["-O0", "-O2"] {
        compile(at, &[level, "main.c", "model.c", "-o", "at_once", "-lm"]);
        assert_eq!(run(at, "./at_once", &[]).status.code(), Some(0));

        compile(at, &[level, "-c", "main.c"]);
        compile(at, &[level, "-c", "model.c"]);
        compile(at, &["main.o", "model.o", "-o", "objects", "-lm"]);
        assert_eq!(run(at, "./objects", &[]).status.code(), Some(0));

        let archived = run(at, "ar", &["rcs", "libmodel.a", "model.o"]);
        assert!(archived.status.success());
        compile(at, &["main.o", "-L.", "-lmodel", "-o", "library", "-lm"]);
        assert_eq!(run(at, "./library", &[]).status.code(), Some(0));
    }
}

#[test]
fn objects_with_their_derivatives_need_no_driver_to_link() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[(
        "both.c",
        &format!("{MODEL}{}", MAIN.replace("double model(double);", "")),
    )]);
    compile(folder.path(), &["-O2", "-c", "both.c"]);
    let linked = run(
        folder.path(),
        "clang-22",
        &["both.o", "-o", "program", "-lm"],
    );
    assert!(linked.status.success());
    assert_eq!(run(folder.path(), "./program", &[]).status.code(), Some(0));
}

#[test]
fn objects_without_their_derivatives_say_how_to_link() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[("main.c", MAIN), ("model.c", MODEL)]);
    let at = folder.path();
    compile(at, &["-O2", "-c", "main.c"]);
    compile(at, &["-O2", "-c", "model.c"]);
    let linked = run(at, "clang-22", &["main.o", "model.o", "-o", "it", "-lm"]);
    let said = String::from_utf8_lossy(&linked.stderr).into_owned();
    assert!(!linked.status.success() && said.contains("link_with_ferrozyme_cc"));
}

#[test]
fn objects_that_were_put_together_are_units_still() {
    if !has_clang() {
        return;
    }
    let model = "double model(double x) { return x * x; }";
    let main = "double __enzyme_autodiff(void *, ...);
        double model(double);
        double f(double x) { return model(x) * x; }
        int main(void) { return __enzyme_autodiff((void *)f, 2.0) == 12.0 ? 0 : 1; }";
    let files = [
        ("main.c", main),
        ("model.c", model),
        ("statics.c", MODEL),
        ("uses.c", MAIN),
    ];
    let folder = folder_with(&files);
    let at = folder.path();
    for file in ["main.c", "model.c", "statics.c", "uses.c"] {
        compile(at, &["-O2", "-c", file]);
    }
    let merge = ["-r", "main.o", "model.o", "-o", "merged.o"];
    assert!(run(at, "ld", &merge).status.success());
    compile(at, &["merged.o", "-o", "merged"]);
    assert_eq!(run(at, "./merged", &[]).status.code(), Some(0));

    // Memory that is not visible from outside would need its object again.
    let merge = ["-r", "uses.o", "statics.o", "-o", "merged.o"];
    assert!(run(at, "ld", &merge).status.success());
    let driver = env!("CARGO_BIN_EXE_ferrozyme-cc");
    let linked = run(at, driver, &["merged.o", "-o", "merged", "-lm"]);
    let said = String::from_utf8_lossy(&linked.stderr).into_owned();
    assert!(said.contains("link the objects themselves"), "{said}");
}

#[test]
fn archives_are_made_by_the_driver_too() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[("main.c", MAIN), ("model.c", MODEL)]);
    let at = folder.path();
    compile(at, &["-O2", "-flto", "-c", "model.c"]);
    let archiver =
        Path::new(env!("CARGO_BIN_EXE_ferrozyme-cc")).with_file_name("ferrozyme-llvm-ar");
    let archiver = archiver.to_str().expect("a path");
    assert!(
        run(at, archiver, &["rcs", "libmodel.a", "model.o"])
            .status
            .success()
    );
    compile(
        at,
        &["-O2", "-flto", "main.c", "libmodel.a", "-o", "it", "-lm"],
    );
    assert_eq!(run(at, "./it", &[]).status.code(), Some(0));
}

#[test]
fn options_are_clangs() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[
        ("plain.c", PLAIN),
        ("arguments", "-O1 -c 'plain.c' -o \"with space.o\""),
    ]);
    let at = folder.path();
    compile(at, &["@arguments"]);
    assert!(at.join("with space.o").exists());

    compile(at, &["-MMD", "-c", "plain.c", "-o", "other.o"]);
    let dependencies = std::fs::read_to_string(at.join("other.d")).expect("dependencies");
    assert!(
        dependencies.starts_with("other.o: plain.c"),
        "{dependencies}"
    );

    compile(at, &["-S", "plain.c"]);
    let assembly = std::fs::read_to_string(at.join("plain.s")).expect("assembly");
    assert!(assembly.contains("dot:") && !assembly.contains(".incbin"));

    compile(
        at,
        &["-shared", "-fPIC", "plain.c", "-o", "libplain.so", "-lm"],
    );
    compile(at, &["-fsyntax-only", "plain.c"]);
}

#[test]
fn failures_are_a_compilers() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[
        ("bad.c", "int main(void) { return x; }\n"),
        ("plain.c", PLAIN),
    ]);
    let driver = env!("CARGO_BIN_EXE_ferrozyme-cc");
    let output = run(folder.path(), driver, &["-c", "bad.c"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("bad.c:1:25: error:"), "{said}");

    let output = Command::new(driver)
        .current_dir(folder.path())
        .env("FERROZYME_CLANG", "no-such-clang")
        .args(["-c", "plain.c"])
        .output()
        .expect("the program can be run");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("FERROZYME_CLANG names 'no-such-clang', which is no clang"),
        "{said}"
    );
}

#[path = "../../refusal/tests/examples/mod.rs"]
mod examples;

#[test]
fn examples_of_the_documentation_are_refused_as_it_says() {
    if !has_clang() {
        return;
    }
    let driver = env!("CARGO_BIN_EXE_ferrozyme-cc");
    let all = examples::examples("c");
    assert!(all.len() > 10, "{}", all.len());
    for (code, text) in all {
        let folder = folder_with(&[("example.c", &text)]);
        for level in ["-O0", "-O2"] {
            let output = run(folder.path(), driver, &[level, "example.c"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{code}: {said}");
            let mut lines = said.lines();
            let message = lines.find(|line| line.ends_with(&format!("[{code}]")));
            let at = message.and_then(|message| message.split_once(": error: "));
            assert!(
                at.is_some_and(|(at, _)| at.contains("example.c")),
                "{code}: {said}"
            );
            assert!(said.contains("note: help: "), "{code}: {said}");
        }
    }
}

#[test]
fn other_platforms_are_refused() {
    if !has_clang() {
        return;
    }
    let text = "double __enzyme_autodiff(void *, ...);
        double square(double x) { return x * x; }
        double slope(double x) { return __enzyme_autodiff((void *)square, x); }";
    let folder = folder_with(&[("square.c", text)]);
    let driver = env!("CARGO_BIN_EXE_ferrozyme-cc");
    for (option, triple) in [
        ("-m32", "i386-pc-linux-gnu"),
        ("--target=aarch64-linux-gnu", "aarch64-unknown-linux-gnu"),
    ] {
        let output = run(folder.path(), driver, &[option, "-c", "square.c"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let message = format!("error: there are no derivatives for `{triple}` yet [FZ0111]");
        assert!(said.contains(&message), "{said}");
    }
}

/// A gradient of a sum of whole numbers, which is the same in any order.
const SUM: &str = "\
double __enzyme_autodiff(void *, ...);
extern int enzyme_const, enzyme_dup;
float sum(const float *x, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
int main(void) {
  float x[100], dx[100];
  for (int i = 0; i < 100; i++) { x[i] = i; dx[i] = 0; }
  __enzyme_autodiff((void *)sum, enzyme_dup, x, dx, enzyme_const, 100);
  for (int i = 0; i < 100; i++) if (dx[i] != 2 * i) return 1;
  return 0;
}
";

#[test]
fn derivatives_exist_for_several_processors() {
    if !has_clang() {
        return;
    }
    let folder = folder_with(&[("sum.c", SUM)]);
    let at = folder.path();
    let vectors_of = |options: &[&str]| {
        compile(at, &[options, &["-S", "sum.c", "-o", "sum.s"]].concat());
        let text = std::fs::read_to_string(at.join("sum.s")).expect("assembly");
        (text.contains("%ymm"), text.contains("%zmm"))
    };
    for level in ["-O0", "-O2"] {
        assert_eq!(vectors_of(&[level]), (true, true), "{level}");
        let single = ["--no-multiversion", "-march=x86-64", "-msse3"];
        for option in single {
            assert_eq!(vectors_of(&[level, option]), (false, false), "{option}");
        }
        for forced in ["baseline", "v3", "v4"] {
            let compiled = Command::new(env!("CARGO_BIN_EXE_ferrozyme-cc"))
                .current_dir(at)
                .env("FERROZYME_PERTURB", format!("level={forced}"))
                .args([level, "sum.c", "-o", "sum"])
                .status();
            assert!(compiled.expect("the driver runs").success());
            assert_eq!(run(at, "./sum", &[]).status.code(), Some(0), "{forced}");
        }
    }
    // clang knows nothing of the option, also where it works alone.
    compile(at, &["--no-multiversion", "-fsyntax-only", "sum.c"]);
}
