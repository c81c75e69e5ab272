//! Chooses by name what runs a tensor graph.
//!
//! ```
//! use ferrozyme_device::compile;
//! use ferrozyme_graph::Graph;
//! let mut g = Graph::new();
//! let x = g.feed("x", [3]);
//! let y = g.exp(x);
//! g.receive("y", &[y]);
//! let mut program = compile(&g, "cpu")?;
//! program.feeder("x", || vec![0.0f32; 3]);
//! program.receiver("y", |tensors| assert_eq!(tensors[0].elements[..], [1.0; 3]));
//! program.run()?;
//! # Ok::<(), ferrozyme_device::Error>(())
//! ```
//!
//! A name is `cpu`, `opencl` or `cuda`; the last two take the number of a device: `opencl:1`. Drivers are loaded when they are asked for, so that a program that is built with this crate runs where there is none.

pub use ferrozyme_backend::{Backend, Element, Error, Program, Timeline};

use ferrozyme_cpu::Cpu;
use ferrozyme_cuda::Cuda;
use ferrozyme_graph::Graph;
use ferrozyme_opencl::OpenCl;

/// The names of all backends.
pub const NAMES: [&str; 3] = ["cpu", "opencl", "cuda"];

/// The environment variable that names a folder for the kernels of NVIDIA's GPUs: those that are there need not be made again, nor a Rust toolchain to make them.
pub const KERNELS: &str = "FERROZYME_KERNELS";

/// Takes `--device NAME` out of a program's arguments. Without it, the device is `cpu`.
pub fn take_device(arguments: &mut Vec<String>) -> Result<String, Error> {
    let Some(position) = arguments.iter().position(|argument| argument == "--device") else {
        return Ok("cpu".to_owned());
    };
    arguments.remove(position);
    match position < arguments.len() {
        true => Ok(arguments.remove(position)),
        false => Err(Error::Unknown {
            name: String::new(),
            known: all_names(),
        }),
    }
}

/// Compiles a graph for the device of this name.
pub fn compile(graph: &Graph, device: &str) -> Result<Program, Error> {
    compile_within(graph, device, None)
}

/// As [`compile`], with an arena of no more bytes than a budget, if there is one: values are computed again where they are needed instead of being kept. The report says what that costs, the error what the least is.
pub fn compile_within(
    graph: &Graph,
    device: &str,
    budget: Option<usize>,
) -> Result<Program, Error> {
    let outcome = ferrozyme_backend::compile_within(&*backend_named(device)?, graph, budget);
    outcome.map_err(|error| match error {
        Error::Missing { backend, reason } => Error::Missing {
            backend,
            reason: format!("{reason}; {}", all_names()),
        },
        error => error,
    })
}

/// The backend of this name.
pub fn backend_named(name: &str) -> Result<Box<dyn Backend>, Error> {
    let unknown = || Error::Unknown {
        name: name.to_owned(),
        known: all_names(),
    };
    let (kind, number) = match name.split_once(':') {
        Some((kind, number)) => (kind, Some(number.parse().map_err(|_| unknown())?)),
        None => (name, None),
    };
    match (kind, number) {
        ("cpu", None) => Ok(Box::new(Cpu)),
        ("opencl", device) => Ok(Box::new(OpenCl { device })),
        ("cuda", number) => Ok(Box::new(Cuda {
            device: number.unwrap_or(0),
            kernels: std::env::var_os(KERNELS).map(Into::into),
        })),
        _ => Err(unknown()),
    }
}

fn all_names() -> String {
    let names = NAMES.map(|name| format!("`{name}`"));
    format!("the devices are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str) -> String {
        let outcome = backend_named(name).map(|backend| backend.name());
        outcome.expect_err("there is none").to_string()
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let known = "the devices are `cpu`, `opencl`, `cuda`";
        assert_eq!(problem("tpu"), format!("there is no device `tpu`: {known}"));
        assert_eq!(
            problem("cpu:1"),
            format!("there is no device `cpu:1`: {known}")
        );
        assert_eq!(
            problem("cuda:x"),
            format!("there is no device `cuda:x`: {known}")
        );
    }

    #[test]
    fn all_names_are_those_of_backends() {
        for name in NAMES {
            assert_eq!(
                backend_named(name).map(|backend| backend.name()).unwrap(),
                name
            );
        }
    }

    /// Whether there is a driver or not: a graph runs, or the message says what was looked for.
    #[test]
    fn without_a_driver_the_message_says_what_was_looked_for() {
        let mut g = Graph::new();
        let x = g.feed("x", [2]);
        g.receive("x", &[x]);
        for name in ["cuda", "opencl"] {
            if let Err(error) = compile(&g, name) {
                let text = error.to_string();
                assert!(
                    text.starts_with(&format!("cannot use the device `{name}`: ")),
                    "{text}"
                );
                assert!(
                    text.ends_with("the devices are `cpu`, `opencl`, `cuda`"),
                    "{text}"
                );
            }
        }
        assert!(compile(&g, "cpu").is_ok());
    }
}
