//! What users are told when something is wrong.

use super::project::{Project, SQUARES, manifest};

/// A derivative through a foreign function of which nothing is known.
const FOREIGN: &str = "\
use ferrozyme::autodiff_reverse;

unsafe extern \"C\" {
    safe fn lgamma(x: f64) -> f64;
    safe fn mystery_of_nature(x: f64) -> f64;
}

#[inline(never)]
fn inner(x: f64) -> f64 {
    mystery_of_nature(x) + lgamma(x)
}

#[autodiff_reverse(d_outer, Active, Active)]
fn outer(x: f64) -> f64 {
    inner(x) * 2.0
}

fn main() {
    println!(\"{:?}\", d_outer(1.5, 1.0));
}
";

#[test]
fn errors_look_like_those_of_rustc() {
    let project = Project::program("foreign", FOREIGN);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["build", "--profile", profile]);
        let errors = run.expect_failure();
        assert!(errors.contains("error[FZ0401]: "), "{errors}");
        assert!(errors.contains("mystery_of_nature"), "{errors}");
        assert!(!errors.contains("linking with"), "{errors}");
        assert!(errors.contains("= help: "), "{errors}");
        assert!(
            errors
                .contains("could not compile `foreign` (bin \"foreign\") due to 1 previous error"),
            "{errors}"
        );
    }
    // With debug information, the place is known.
    let run = project.ferrozyme(&["build"]);
    assert!(
        run.errors.contains("--> src/main.rs:10:5"),
        "{}",
        run.errors
    );
    assert!(
        run.errors
            .contains("10 |     mystery_of_nature(x) + lgamma(x)"),
        "{}",
        run.errors
    );

    let run = project.ferrozyme(&["build", "--message-format=json"]);
    let message = run
        .output
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|value| value["reason"] == "compiler-message" && value["message"]["level"] == "error")
        .expect("a message for editors");
    let span = &message["message"]["spans"][0];
    assert_eq!(message["message"]["code"]["code"], "FZ0401");
    assert_eq!(span["file_name"], "src/main.rs");
    assert_eq!(span["line_start"], 10);
}

#[path = "../../../refusal/tests/examples/mod.rs"]
mod examples;

#[test]
fn examples_of_the_documentation_are_refused_as_it_says() {
    let all = examples::examples("rust");
    assert!(all.len() > 10, "{}", all.len());
    let mut files = vec![(
        "Cargo.toml".to_owned(),
        manifest("refused", "[workspace]\n"),
    )];
    files.extend(all.iter().map(|(code, text)| {
        let name = code.to_lowercase();
        (format!("src/bin/{name}.rs"), text.clone())
    }));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let project = Project::new("refused", &files);
    let run = project.ferrozyme(&["build", "--keep-going", "--message-format=json"]);
    let said: Vec<(String, serde_json::Value)> = run
        .output
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|value| value["reason"] == "compiler-message")
        .map(|value| {
            let program = value["target"]["name"].as_str().unwrap_or_default();
            (program.to_uppercase(), value["message"].clone())
        })
        .collect();
    for (code, _) in &all {
        let message = said
            .iter()
            .find(|(program, message)| program == code && message["level"] == "error");
        let Some((_, message)) = message else {
            panic!("{code}: it is accepted\n{}", run.errors);
        };
        assert_eq!(message["code"]["code"], code.as_str(), "{message}");
        let file = format!("src/bin/{}.rs", code.to_lowercase());
        assert_eq!(message["spans"][0]["file_name"], file, "{message}");
        assert_ne!(message["spans"][0]["line_start"], 0, "{message}");
        let children = message["children"].as_array().expect("notes");
        assert!(
            children.iter().any(|child| child["level"] == "help"),
            "{message}"
        );
    }
}

/// What needs threads, or is made for them: the program, the line of its source that is shown, the error and the remedy.
const SHARING: [(&str, &str, &str, &str); 4] = [
    (
        "\
use ferrozyme::autodiff_reverse;

#[autodiff_reverse(d_joined, Active, Active)]
fn joined(x: f64) -> f64 {
    std::thread::spawn(move || x * x).join().unwrap()
}

fn main() {
    println!(\"{:?}\", d_joined(1.5, 1.0));
}
",
        "5 |     std::thread::spawn(move || x * x).join().unwrap()",
        "error[FZ0501]: cannot differentiate code that starts a thread",
        "differentiate the computation of each thread, and add up the gradients",
    ),
    (
        "\
use ferrozyme::autodiff_reverse;

#[autodiff_reverse(d_spawned, Duplicated, Active)]
fn spawned(x: &[f64]) -> f64 {
    std::thread::scope(|scope| {
        let half = scope.spawn(|| x[0] * x[0]);
        x[1] * half.join().unwrap()
    })
}

fn main() {
    println!(\"{}\", d_spawned(&[1.5, 2.5], &mut [0.0; 2], 1.0));
}
",
        "6 |         let half = scope.spawn(|| x[0] * x[0]);",
        "error[FZ0501]: cannot differentiate code that starts a thread",
        "differentiate the computation of each thread, and add up the gradients",
    ),
    (
        "\
use std::sync::atomic::{AtomicU64, Ordering};

fn counted(x: &[f64]) -> f64 {
    let sum = AtomicU64::new(0f64.to_bits());
    for x in x {
        let add = |old| Some((f64::from_bits(old) + x * x).to_bits());
        sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap();
    }
    f64::from_bits(sum.into_inner())
}

fn main() {
    println!(\"{:?}\", ferrozyme::grad(counted, &[1.5, 2.5]));
}
",
        "7 |         sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap();",
        "error[FZ0502]: cannot differentiate an atomic operation on active values",
        "keep active values out of atomic variables",
    ),
    (
        "\
fn sent(x: &[f64]) -> f64 {
    let (sender, receiver) = std::sync::mpsc::channel();
    for x in x {
        sender.send(x * x).unwrap();
    }
    drop(sender);
    receiver.iter().sum()
}

fn main() {
    println!(\"{:?}\", ferrozyme::grad(sent, &[1.5, 2.5]));
}
",
        "4 |         sender.send(x * x).unwrap();",
        "error[FZ0502]: cannot differentiate an atomic operation on active values",
        "instead of sharing them between threads, differentiate the computation of each thread",
    ),
];

#[test]
fn threads_are_refused_at_the_line_that_needs_them() {
    for (program, line, message, help) in SHARING {
        let project = Project::program("sharing", program);
        for profile in ["dev", "release"] {
            let run = project.ferrozyme(&["build", "--profile", profile]);
            let errors = run.expect_failure();
            for part in [line, message, help] {
                assert!(errors.contains(part), "{profile}: {part}\n{errors}");
            }
            // Nothing of the compiler's own language.
            for part in [" load ", " store ", "@_", "moved_", "__ferrozyme"] {
                assert!(!errors.contains(part), "{profile}: {part}\n{errors}");
            }
        }
    }
}

/// A macro of another file makes the function of what it is given here.
#[test]
fn lines_that_macros_are_given_are_shown_in_their_own_file() {
    let project = Project::program(
        "given",
        "\
#[macro_use]
mod macros;

gradient! {
    d_joined: fn joined(x) {
        std::thread::spawn(move || x * x).join().unwrap()
    }
}

fn main() {
    println!(\"{:?}\", d_joined(1.5, 1.0));
}
",
    );
    project.write(
        "src/macros.rs",
        "\
macro_rules! gradient {
    ($derivative:ident: fn $name:ident($x:ident) $body:block) => {
        #[ferrozyme::autodiff_reverse($derivative, Active, Active)]
        fn $name($x: f64) -> f64 $body
    };
}
",
    );
    let run = project.ferrozyme(&["build"]);
    let errors = run.expect_failure();
    for part in [
        "--> src/main.rs:6:",
        "6 |         std::thread::spawn(move || x * x).join().unwrap()",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
}

#[test]
fn plain_cargo_says_what_to_use() {
    let project = Project::program("plainly", SQUARES);
    let run = project.cargo(&["build"]);
    let errors = run.expect_failure();
    assert!(
        errors.contains(
            "this program contains derivatives, which Ferrozyme's driver makes when it is linked: use `cargo ferrozyme build`"
        ),
        "{errors}"
    );
    // Checking needs no driver, in optimised libraries neither, whose functions are prepared for other crates.
    project.write(
        "src/lib.rs",
        "#[ferrozyme::autodiff_reverse(dtwice, Active, Active)]\npub fn twice(x: f64) -> f64 {\n    2.0 * x\n}\n",
    );
    project.cargo(&["check"]).expect_success();
    project.cargo(&["check", "--release"]).expect_success();
}

#[test]
fn unsupported_targets_are_refused_at_once() {
    let project = Project::program("elsewhere", SQUARES);
    let run = project.ferrozyme(&["build", "--target", "wasm32-unknown-unknown"]);
    let errors = run.expect_failure();
    assert!(
        errors
            .starts_with("error: Ferrozyme does not support the target `wasm32-unknown-unknown`\n"),
        "{errors}"
    );
    let run = project.ferrozyme(&["build", "--target", "no-such-target"]);
    let errors = run.expect_failure();
    assert!(
        errors.starts_with("error: `rustc` does not report its target\n"),
        "{errors}"
    );
    let several = [
        "build",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--target",
        "aarch64-unknown-linux-gnu",
    ];
    let run = project.ferrozyme(&several);
    let errors = run.expect_failure();
    assert!(
        errors.starts_with("error: Ferrozyme cannot build for several targets at once\n"),
        "{errors}"
    );
}

#[test]
fn misplaced_toolchains_are_explained() {
    let run = Project::program("elsewhere", SQUARES).ferrozyme(&["+nightly", "build"]);
    let errors = run.expect_failure();
    assert!(
        errors.starts_with("error: the toolchain `+nightly` must come before `ferrozyme`\n"),
        "{errors}"
    );
    assert!(
        errors.contains("write `cargo +nightly ferrozyme …`"),
        "{errors}"
    );
}

#[test]
fn errors_of_the_real_linker_come_through() {
    let project = Project::program(
        "unresolved",
        "unsafe extern \"C\" {\n    safe fn nobody_defines_this();\n}\n\nfn main() {\n    nobody_defines_this();\n}\n",
    );
    let run = project.ferrozyme(&["build"]);
    let errors = run.expect_failure();
    assert!(
        errors.contains("undefined symbol: nobody_defines_this"),
        "{errors}"
    );
}

#[test]
fn maps_of_arguments_are_refused_with_a_way_out() {
    let project = Project::program(
        "maps",
        "use ferrozyme::autodiff_reverse;\nuse std::collections::HashMap;\n\n\
         #[autodiff_reverse(df, Duplicated, Duplicated, Active)]\n\
         fn f(x: &[f64], sums: &mut HashMap<usize, f64>) -> f64 {\n    \
         for (i, x) in x.iter().enumerate() {\n        *sums.entry(i % 3).or_insert(0.0) += x * x;\n    }\n    \
         sums[&0] * sums[&1]\n}\n\n\
         fn main() {\n    let (mut sums, mut shadow) = (HashMap::new(), HashMap::new());\n    \
         df(&[1.0, 2.0], &mut [0.0, 0.0], &mut sums, &mut shadow, 1.0);\n}\n",
    );
    let run = project.ferrozyme(&["build"]);
    let errors = run.expect_failure();
    assert!(
        errors.contains("help: keep active values in a `Vec`, and only their indices in the `HashMap` or `BTreeMap`"),
        "{errors}"
    );
}

/// Programs, and what is said of them.
const CONSTANT_MEMORY: [(&str, &[&str]); 2] = [
    (
        "use ferrozyme::grad;
use std::cell::RefCell;
use std::rc::Rc;

fn main() {
    let written = Rc::new(RefCell::new(vec![0.0]));
    let read = written.clone();
    let f = |x: f64| {
        written.borrow_mut()[0] = x * x;
        read.borrow()[0] * x
    };
    println!(\"{}\", grad(f, 2.0));
}
",
        &[
            "error[FZ0203]: active values are stored in memory that the closure captures",
            "src/main.rs:9:",
            "help: allocate that memory (`Cell`, `RefCell`, the target of a `&mut`) inside the function",
        ],
    ),
    (
        "use ferrozyme::autodiff_reverse;
use std::cell::Cell;

#[autodiff_reverse(df, Duplicated, Const, Const, Active)]
fn f(x: &[f64], written: &Cell<f64>, read: &Cell<f64>) -> f64 {
    written.set(x[0] * x[0]);
    read.get() * x[0]
}

fn main() {
    let cell = Cell::new(0.0);
    println!(\"{}\", df(&[2.0], &mut [0.0], &cell, &cell, 1.0));
}
",
        &[
            "error[FZ0201]: derivatives would flow through the memory of the argument `read`, which is declared `Const`",
            "src/main.rs:6:",
            "help: declare the argument `read` `Duplicated` (in forward mode `Dual`) and give it a shadow",
        ],
    ),
];

#[test]
fn constant_memory_that_is_written_and_read_is_refused() {
    for (program, parts) in CONSTANT_MEMORY {
        let project = Project::program("constant", program);
        for profile in ["dev", "release"] {
            let run = project.ferrozyme(&["build", "--profile", profile]);
            let errors = run.expect_failure();
            for part in parts {
                assert!(errors.contains(part), "{profile}: {part}\n{errors}");
            }
        }
    }
}

/// A text that measures itself: `write!` runs code of the program, where nobody sees it.
const FORMATTING: &str = "use ferrozyme::grad;
use std::fmt::Write;

struct Weighed {
    sum: f64,
    weight: f64,
}

impl Write for Weighed {
    #[inline(never)]
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.sum += text.len() as f64 * self.weight;
        Ok(())
    }
}

fn f(x: &[f64]) -> f64 {
    let mut text = Weighed { sum: 0.0, weight: x[0] };
    write!(text, \"{:?}\", Some(x.len())).unwrap();
    text.sum * x[1]
}

fn main() {
    println!(\"{:?}\", grad(f, &[1.3, 0.7]));
}
";

/// The same with a copy of several numbers.
const FORMATTING_COPIES: &str = "use ferrozyme::grad;
use std::cell::Cell;
use std::fmt;

struct Moving {
    now: Cell<[f64; 5]>,
    next: [f64; 5],
}

impl fmt::Display for Moving {
    #[inline(never)]
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now.set(self.next);
        text.write_str(\"moved\")
    }
}

fn f(x: &[f64]) -> f64 {
    let moving = Moving { now: Cell::new([x[0]; 5]), next: [x[1]; 5] };
    let text = format!(\"{moving}\");
    moving.now.get()[2] * x[1] * text.len() as f64
}

fn main() {
    println!(\"{:?}\", grad(f, &[1.3, 0.7]));
}
";

#[test]
fn copies_that_formatting_makes_are_refused() {
    let project = Project::program("copying", FORMATTING_COPIES);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["build", "--profile", profile]);
        let errors = run.expect_failure();
        let message = "error[FZ0511]: a number is changed during formatting";
        assert!(errors.contains(message), "{profile}: {errors}");
    }
}

#[test]
fn numbers_that_change_while_formatting_are_refused() {
    let project = Project::program("formatting", FORMATTING);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["build", "--profile", profile]);
        let errors = run.expect_failure();
        for part in [
            "error[FZ0511]: a number is changed during formatting, which is not differentiated",
            "src/main.rs:12:9",
            "note: formatting in a differentiated function may run `<formatting::Weighed as core::fmt::Write>::write_str`",
            "help: format outside the differentiated function",
        ] {
            assert!(errors.contains(part), "{profile}: {part}\n{errors}");
        }
    }
}

const TEXT: &str = "
use ferrozyme::grad;

fn round(x: &[f64]) -> f64 {
    let text = format!(\"{:.3}\", x[0]);
    text.parse::<f64>().unwrap() * x[1]
}

fn main() {
    println!(\"{:?}\", grad(round, &[1.3, 0.7]));
}
";

const TEXT_ONE_WAY: &str = "
use ferrozyme::grad;

fn printed(x: &[f64]) -> f64 {
    println!(\"{:.3}\", x[0]);
    x[0] * x[1]
}

fn parsed(x: &[f64]) -> f64 {
    let text = std::hint::black_box(\"2.5\");
    text.parse::<f64>().unwrap() * x[1]
}

fn main() {
    println!(\"{:?} {:?}\", grad(printed, &[1.5, 0.5]), grad(parsed, &[1.5, 0.5]));
}
";

#[test]
fn numbers_that_go_through_text_are_refused() {
    let project = Project::program("text", TEXT);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["build", "--profile", profile]);
        let errors = run.expect_failure();
        for part in [
            "error[FZ0512]: this function both prints and parses numbers, and a number that is parsed from its own text would have no derivative",
            "src/main.rs:6:",
            "note: a number is written as text at",
            "src/main.rs:5",
            "help: pass numbers as floats",
        ] {
            assert!(errors.contains(part), "{profile}: {part}\n{errors}");
        }
    }
    let project = Project::program("one_way", TEXT_ONE_WAY);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["run", "--profile", profile]);
        let output = run.expect_success();
        assert!(
            output.contains("[0.5, 1.5] [0.0, 2.5]"),
            "{profile}: {output}"
        );
    }
}

#[test]
fn types_that_attributes_cannot_serve_are_refused() {
    let programs = [
        (
            "use ferrozyme::autodiff_reverse;\nuse std::num::NonZeroU32;\n\nstruct Scaled {\n    x: f64,\n    n: NonZeroU32,\n}\n\n\
             #[autodiff_reverse(df, Active, Active)]\nfn f(scaled: Scaled) -> f64 {\n    scaled.x * f64::from(scaled.n.get())\n}\n\n\
             fn main() {\n    println!(\"{}\", df(Scaled { x: 1.0, n: NonZeroU32::MIN }, 1.0).0);\n}\n",
            "Active can not be used for this type: its gradient starts from zero bytes",
        ),
        (
            "use ferrozyme::autodiff_reverse;\nuse std::cell::Cell;\n\n\
             #[autodiff_reverse(df, 2, Duplicated, Duplicated)]\nfn f(x: &Cell<f64>, y: &mut [f64]) {\n    y[0] = x.get();\n}\n\n\
             fn main() {\n    let (x, mut a, mut b) = (Cell::new(1.0), Cell::new(0.0), Cell::new(0.0));\n    \
             df(&x, &mut a, &mut b, &mut [0.0], &mut [1.0], &mut [1.0]);\n}\n",
            "reverse mode with a width can not be used with this reference",
        ),
        (
            "use ferrozyme::autodiff_reverse;\nuse std::cell::Cell;\n\n\
             #[autodiff_reverse(df, 2, Duplicated, Duplicated)]\nfn f(x: &Vec<Cell<f64>>, y: &mut [f64]) {\n    y[0] = x[0].get();\n}\n\n\
             fn main() {\n    let (x, mut a, mut b) = (vec![Cell::new(1.0)], vec![Cell::new(0.0)], vec![Cell::new(0.0)]);\n    \
             df(&x, &mut a, &mut b, &mut [0.0], &mut [1.0], &mut [1.0]);\n}\n",
            "reverse mode with a width can not be used with this reference",
        ),
    ];
    for (program, message) in programs {
        let project = Project::program("unserved", program);
        let run = project.ferrozyme(&["build"]);
        let errors = run.expect_failure();
        assert!(errors.contains(message), "{errors}");
    }
}

/// A package without dependencies.
fn alone(name: &str, main: &str) -> Project {
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n"
    );
    Project::new(name, &[("Cargo.toml", &manifest), ("src/main.rs", main)])
}

#[test]
fn requests_in_machine_code_are_explained() {
    let project = alone(
        "machine-code",
        "unsafe extern \"C\" {\n    fn __ferrozyme_request(primal: *const (), descriptor: *const u8, ...);\n}\n\n\
         fn main() {\n    unsafe { __ferrozyme_request(main as *const (), std::ptr::null()) }\n}\n",
    );
    let run = project.ferrozyme(&["build"]);
    let errors = run.expect_failure();
    assert!(
        errors.contains("asks for a derivative, but holds machine code instead of bitcode\n"),
        "{errors}"
    );
    assert!(
        errors.contains("help: packages that request derivatives must depend on `ferrozyme`"),
        "{errors}"
    );
}

#[test]
fn missing_linkers_are_named() {
    let project = alone("no-linker", "fn main() {}\n");
    let run = project.ferrozyme_with(&["build"], |command| {
        command.env("RUSTFLAGS", "-Clinker=no-such-linker");
    });
    let errors = run.expect_failure();
    assert!(
        errors.contains("error: linker `no-such-linker` not found\n"),
        "{errors}"
    );
    assert!(!errors.contains("linking with"), "{errors}");
}

#[test]
fn help_and_version() {
    let project = Project::program("elsewhere", SQUARES);
    let run = project.ferrozyme(&["--help"]);
    let help = run.expect_success();
    assert!(
        help.contains("Usage: cargo ferrozyme <command of cargo> [--strict] [--no-multiversion] [arguments of cargo]"),
        "{help}"
    );
    let run = project.ferrozyme(&["--version"]);
    let version = concat!("cargo-ferrozyme ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(run.expect_success(), version);
    let run = project.ferrozyme(&["explain", "--help"]);
    assert!(run.expect_success().contains("--stage <stage>"));
}

/// Two closures and a function; the second closure has no derivative.
const CLOSURES: &str = "\
unsafe extern \"C\" {
    safe fn mystery_of_nature(x: f64) -> f64;
}

fn main() {
    let scale = std::env::args().count() as f64;
    println!(\"{}\", ferrozyme::grad(|x: f64| x * scale, 3.0));
    println!(\"{}\", ferrozyme::grad(|x: f64| mystery_of_nature(x) * scale, 3.0));
}
";

#[test]
fn closures_are_named_and_found() {
    let project = Project::program("closures", CLOSURES);
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["build", "--profile", profile]);
        let errors = run.expect_failure();
        assert!(errors.contains("--> src/main.rs:8:"), "{errors}");
        assert!(
            errors.contains(
                "needed for a derivative of `closures::main::{{closure}}` (src/main.rs:8)"
            ),
            "{errors}"
        );
        assert!(!errors.contains("crates/ferrozyme/src"), "{errors}");
    }
}
