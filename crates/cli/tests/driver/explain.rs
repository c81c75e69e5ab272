//! `cargo ferrozyme explain`, and the memory of derivatives.

use super::project::{Project, SQUARES, target_folder};

#[test]
fn explains_also_what_is_up_to_date() {
    let project = Project::program("explained", SQUARES);
    project.ferrozyme(&["build"]).expect_success();
    for _ in 0..2 {
        let run = project.ferrozyme(&["explain", "squares"]);
        let output = run.expect_success();
        let head = "derivative `d_squares` of `explained::squares` (reverse) at src/main.rs:3:1\n";
        assert!(output.starts_with(head), "{output}");
        assert!(output.contains("nothing is saved"), "{output}");
        assert!(output.contains("real linker"), "{output}");
    }
    let run = project.ferrozyme(&["explain", "--stage", "derivative"]);
    let output = run.expect_success();
    assert!(
        output.contains("stage derivative:") && output.contains("func @"),
        "{output}"
    );
}

#[test]
fn says_what_cannot_be_explained() {
    // A package of its own: tests run side by side, and `explain` links again.
    let project = Project::program("unexplained", SQUARES);
    let run = project.ferrozyme(&["explain", "cubes"]);
    let expected = "error: there is no derivative of `cubes`\n |\n = note: there are: `d_squares` of `unexplained::squares`\n";
    assert!(run.expect_failure().contains(expected), "{}", run.errors);
    let run = project.ferrozyme(&["explain", "--stage", "machine"]);
    let errors = run.expect_failure();
    assert!(
        errors.starts_with("error: there is no stage `machine`\n"),
        "{errors}"
    );
    assert!(
        errors.contains(
            "the stages are: import, optimised, activity, plan, derivative, llvm, assembly"
        ),
        "{errors}"
    );
    let none = Project::program("nothing-to-explain", "fn main() {}\n");
    let run = none.ferrozyme(&["explain"]);
    let errors = run.expect_failure();
    assert!(
        errors.contains("error: nothing that was built has a derivative"),
        "{errors}"
    );
}

#[test]
fn unchanged_derivatives_are_remembered() {
    // A change in another codegen unit leaves the derivative alone.
    let main = SQUARES.replace(
        "fn main() {",
        "mod other;\n\nfn main() {\n    other::greet();",
    );
    let project = Project::program("remembered", &main);
    let greet = |text: &str| {
        let text = format!("#[inline(never)]\npub fn greet() {{\n    println!(\"{text}\");\n}}\n");
        project.write("src/other.rs", &text);
    };
    greet("hello");
    project.ferrozyme(&["explain"]).expect_success();
    greet("hello again");
    let run = project.ferrozyme(&["explain"]);
    let output = run.expect_success();
    assert!(output.contains("take remembered derivatives"), "{output}");
    let run = project.ferrozyme(&["run"]);
    assert_eq!(run.expect_success(), "hello again\n14 [2.0, 4.0, 6.0]\n");
}

#[test]
fn another_driver_links_again() {
    let project = Project::program("relinked", SQUARES);
    project.ferrozyme(&["build"]).expect_success();
    let fresh = project.ferrozyme(&["build"]);
    assert!(!fresh.errors.contains("Compiling"), "{}", fresh.errors);
    // As if what is there had been made by another driver.
    let links = target_folder().join("ferrozyme/links");
    for entry in std::fs::read_dir(links).expect("records").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a record");
        if text.contains("relinked") {
            let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            record["driver"] = "another".into();
            std::fs::write(entry.path(), record.to_string()).expect("writable");
        }
    }
    let again = project.ferrozyme(&["build"]);
    again.expect_success();
    assert!(
        again.errors.contains("Compiling relinked"),
        "{}",
        again.errors
    );
    assert!(
        !again.errors.contains("Compiling ferrozyme "),
        "{}",
        again.errors
    );
}

#[test]
fn closures_are_told_apart() {
    let project = Project::program(
        "apart",
        "fn square(x: f64) -> f64 {\n    x * x\n}\n\nfn main() {\n    println!(\"{}\", ferrozyme::grad(square, 3.0));\n    println!(\"{}\", ferrozyme::grad(|x: f64| x * 2.0, 3.0));\n    println!(\"{}\", ferrozyme::grad(|x: f64| x * x * 2.0, 3.0));\n}\n",
    );
    let run = project.ferrozyme(&["explain"]);
    let output = run.expect_success();
    for text in [
        "of `apart::square` (reverse) at src/main.rs:",
        "of `apart::main::{{closure}}` (reverse) at src/main.rs:7",
        "of `apart::main::{{closure}}` (reverse) at src/main.rs:8",
    ] {
        assert!(output.contains(text), "{text}: {output}");
    }
    let run = project.ferrozyme(&["explain", "square"]);
    let output = run.expect_success();
    assert!(output.contains("apart::square"), "{output}");
    assert!(!output.contains("{{closure}}"), "{output}");
}
