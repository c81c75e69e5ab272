//! `#[accelerate]`: what the driver makes of functions without a derivative, and what it says.

use super::project::Project;

const PRODUCT: &str = "\
use ferrozyme::accelerate;

#[accelerate]
fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    for i in 0..n {
        for j in 0..n {
            let mut sum = 0.0;
            for k in 0..n {
                sum += a[i * n + k] * b[k * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

fn main() {
    let n = 16;
    let a: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32).collect();
    let mut c = vec![0.0; n * n];
    product(&a, &a, &mut c, n);
    println!(\"{}\", c.iter().sum::<f32>());
}
";

#[test]
fn products_run_on_kernels() {
    let project = Project::program("accelerated", PRODUCT);
    let expected = {
        let at = |i: usize| (i % 7) as f32;
        let terms =
            (0..16 * 16 * 16).map(|i| at(i / 256 * 16 + i % 16) * at(i % 16 * 16 + i / 16 % 16));
        format!("{}\n", terms.sum::<f32>())
    };
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["run", "--profile", profile]);
        assert_eq!(run.expect_success(), expected, "{profile}");
        let run = project.ferrozyme(&["explain", "product", "--profile", profile]);
        let output = run.expect_success();
        let head = "function `accelerated::product` (accelerated) at src/main.rs:3:1\n";
        assert!(output.starts_with(head), "{output}");
        // In the other profile an index may overflow in the middle of a product, and stop the program there.
        let raised = output.contains("raised    contract set f32");
        assert_eq!(raised, profile == "release", "{output}");
    }
    // Where sums keep their order, nothing is raised.
    let run = project.ferrozyme(&["run", "--release", "--strict"]);
    assert_eq!(run.expect_success(), expected);
    let run = project.ferrozyme(&["explain", "product", "--release", "--strict"]);
    assert!(!run.expect_success().contains("raised"), "{}", run.output);
}

#[test]
fn plain_cargo_says_what_to_use() {
    let project = Project::program("accelerated-plainly", PRODUCT);
    let run = project.cargo(&["build"]);
    let errors = run.expect_failure();
    assert!(errors.contains("use `cargo ferrozyme build`"), "{errors}");
    project.cargo(&["check"]).expect_success();
}

#[test]
fn what_cannot_be_accelerated_is_refused() {
    let project = Project::program(
        "not-accelerated",
        "\
use ferrozyme::accelerate;

#[accelerate]
fn guarded(x: &[f64], at: usize) -> f64 {
    std::panic::catch_unwind(|| x[at] * x[at]).unwrap_or(x[0])
}

fn main() {
    println!(\"{}\", guarded(&[1.0, 2.0], std::env::args().count()));
}
",
    );
    let run = project.ferrozyme(&["build"]);
    let errors = run.expect_failure();
    for part in [
        "error[FZ0508]: ",
        "--> src/main.rs:5:",
        "needed to accelerate `not_accelerated::guarded`, requested at src/main.rs:3",
        "= help: remove `#[accelerate]`",
    ] {
        assert!(errors.contains(part), "{part}\n{errors}");
    }
}
