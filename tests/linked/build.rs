//! Compiles the graphs.

#[path = "src/graphs.rs"]
mod graphs;

use ferrozyme_graph::UserFunction;

fn main() -> Result<(), ferrozyme_cpu::Error> {
    println!("cargo:rerun-if-changed=src/graphs.rs");
    // The function is the program's: here its type is enough, and that it has a derivative.
    let law = UserFunction::new("law", |_: &[f32], _: &mut [f32]| {})
        .with_derivative(|_: &[f32], _: &mut [f32], _: &mut [f32], _: &mut [f32]| {});
    ferrozyme_cpu::build("training", &graphs::training())?;
    ferrozyme_cpu::build("kinds", &graphs::kinds())?;
    ferrozyme_cpu::build("calling", &graphs::calling(&law))
}
