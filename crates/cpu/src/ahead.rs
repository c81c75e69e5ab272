//! Compiles a graph in a build script: an object, and a file of Rust with a type for the graph. `crates/linked` runs it.
//!
//! ```text
//! OUT_DIR/net.rs                         struct Net, with a function for each feed, receive and parameter (wrapper.rs)
//! OUT_DIR/net.bin                        the initial values of parameters that are not one number
//! OUT_DIR/net.txt                        the report
//! OUT_DIR/libferrozyme_CRATE_net.a       the code, once for each level of the processor, of which the program takes the highest that there is (archive.rs)
//! ```

mod archive;
mod wrapper;

use crate::Cpu;
use crate::object::Linkable;
use archive::archive;
use ferrozyme_backend::{Backend, Error, Prepared, prepare_graph};
use ferrozyme_graph::Graph;
use std::path::{Path, PathBuf};
use wrapper::Wrapper;

/// Compiles a graph in a build script. The program includes what this writes by `ferrozyme_linked::include_graph!` with the same name, which is one word in snake case.
///
/// ```ignore
/// fn main() -> Result<(), ferrozyme_cpu::Error> {
///     let mut g = ferrozyme_graph::Graph::new();
///     let x = g.feed("x", [2, 3]);
///     let y = g.exp(x);
///     g.receive("y", &[y]);
///     ferrozyme_cpu::build("curve", &g)
/// }
/// ```
///
/// # Errors
/// If the graph is not well formed, or feeds, receives or calls what Rust has no type or name for, with the line that made it; if the name is no word; if this is not run by cargo as a build script.
pub fn build(name: &str, graph: &Graph) -> Result<(), Error> {
    build_graph(name, graph, None)
}

/// As [`build`], with an arena of no more bytes than a budget, as [`compile_within`](crate::compile_within).
pub fn build_within(name: &str, graph: &Graph, budget: usize) -> Result<(), Error> {
    build_graph(name, graph, Some(budget))
}

fn build_graph(name: &str, graph: &Graph, budget: Option<usize>) -> Result<(), Error> {
    let setting = |name: &str| {
        std::env::var(name).map_err(|_| {
            Error::Compile(format!(
                "{name} is not set: `build` is for build scripts, which cargo runs; `compile` compiles in process"
            ))
        })
    };
    let target = Target {
        folder: PathBuf::from(setting("OUT_DIR")?),
        package: setting("CARGO_PKG_NAME")?,
        triple: setting("TARGET")?,
    };
    write(name, graph, budget, &target)?;
    println!("cargo:rustc-link-search=native={}", target.folder.display());
    Ok(())
}

/// What cargo says of the crate that is built.
struct Target {
    folder: PathBuf,
    package: String,
    triple: String,
}

/// A processor that code is compiled for, with the level of x86-64 by which the program chooses it.
type Level = (u32, &'static str);

fn levels(triple: &str) -> &'static [Level] {
    match triple.starts_with("x86_64") {
        true => &[(1, "x86-64"), (3, "x86-64-v3"), (4, "x86-64-v4")],
        false => &[(1, "generic")],
    }
}

fn write(name: &str, graph: &Graph, budget: Option<usize>, target: &Target) -> Result<(), Error> {
    let Prepared {
        graph: optimised,
        planned,
        report,
    } = prepare_graph(graph, Cpu.repeats(), budget)?;
    let levels = levels(&target.triple);
    let wrapper = Wrapper {
        name,
        package: &target.package,
        levels,
        given: graph,
        graph: &optimised,
        planned: &planned,
    };
    let (source, bytes) = wrapper.write()?;
    let symbols: Vec<String> = levels
        .iter()
        .map(|&(level, _)| wrapper.symbol(level))
        .collect();
    let mut linkable = Linkable::new(planned.lowered.clone(), &symbols[0])?;
    let mut objects = Vec::new();
    for (&(_, processor), symbol) in levels.iter().zip(&symbols) {
        linkable.rename(symbol);
        objects.push(linkable.compile(processor, &target.triple)?);
    }
    let library = format!("lib{}.a", wrapper.library());
    let members = symbols.iter().zip(&objects);
    let members: Vec<(&str, &[u8])> = members
        .map(|(symbol, object)| (symbol.as_str(), object.as_slice()))
        .collect();
    replace(&target.folder.join(library), &archive(&members))?;
    replace(&target.folder.join(format!("{name}.bin")), &bytes)?;
    replace(
        &target.folder.join(format!("{name}.txt")),
        report.as_bytes(),
    )?;
    replace(&target.folder.join(format!("{name}.rs")), source.as_bytes())
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let problem = |error| Error::Compile(format!("cannot write {}: {error}", path.display()));
    std::fs::write(path, bytes).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_graph::{CONDITION, TensorType};

    fn error(name: &str, graph: &Graph) -> String {
        let target = Target {
            folder: PathBuf::from("/nonexistent"),
            package: "tests".to_owned(),
            triple: "x86_64-unknown-linux-gnu".to_owned(),
        };
        write(name, graph, None, &target)
            .expect_err("it is wrong")
            .to_string()
    }

    #[test]
    fn errors_name_what_is_wrong_and_its_line() {
        let mut g = Graph::new();
        assert!(error("two words", &g).contains("`two words` is no name"));
        let line = line!() + 1;
        let x = g.feed_of("x", TensorType::new(CONDITION, [2]));
        g.receive("x", &[x]);
        let message = error("net", &g);
        assert!(
            message.contains("feed \"x\" is i1[2]")
                && message.contains(&format!("ahead.rs:{line}:")),
            "{message}"
        );
        let mut g = Graph::new();
        let a = g.feed("a b", [2]);
        let b = g.feed("a_b", [2]);
        g.receive("both", &[a, b]);
        let message = error("net", &g);
        assert!(
            message.contains("`feed_a_b` would stand for two things"),
            "{message}"
        );
        let mut g = Graph::new();
        let a = g.feed("a", [2]);
        let line = line!() + 1;
        let b = g.feed("a", [3]);
        g.receive("both", &[a, b]);
        let message = error("net", &g);
        assert!(
            message.contains("feed \"a\" is f32[3], but elsewhere f32[2]")
                && message.contains(&format!("ahead.rs:{line}:")),
            "{message}"
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named() {
        let mut g = Graph::new();
        let x = g.feed("x", [2]);
        g.receive("x", &[x]);
        let message = error("net", &g);
        assert!(
            message.contains("cannot write /nonexistent/libferrozyme_tests_net.a"),
            "{message}"
        );
    }

    #[test]
    fn outside_of_a_build_script_there_is_no_place_to_write_to() {
        // Cargo sets it for crates that have build scripts themselves; this one has none.
        let message = build("net", &Graph::new()).unwrap_err().to_string();
        assert!(message.contains("OUT_DIR is not set"), "{message}");
    }
}
