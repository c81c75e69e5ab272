//! What a build script writes about a graph, and what makes a program of it.

use crate::code::{Code, Run};
use crate::nested::{Entry, Nested, Tensor};
use ferrozyme_backend::{Element, Error, Executable, Session};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::user::Number;
use ferrozyme_graph::{Shape, TensorType, UserFunction, element_from_name, lower};

/// A type of tensors: the name of the element, and the shape.
type Type = (&'static str, &'static [usize]);

/// What is known of a graph.
#[derive(Debug)]
pub struct Parts {
    /// All parameters.
    pub parameters: &'static [Parameter],
    /// What is exchanged with the host, by number.
    pub exchanges: &'static [Exchange],
    /// The Rust functions that are called, by number.
    pub calls: &'static [Call],
    /// The size of the arena in bytes.
    pub arena: usize,
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// How many bytes it has.
    pub bytes: usize,
    /// Its value before the first run.
    pub initial: Initial,
}

/// The bytes of a parameter before the first run.
#[derive(Debug)]
pub enum Initial {
    /// The same element everywhere.
    Splat(&'static [u8]),
    /// All of them.
    Bytes(&'static [u8]),
}

/// A `feed` or `receive`.
#[derive(Debug)]
pub struct Exchange {
    /// Its name.
    pub name: &'static str,
    /// Whether the host feeds it.
    pub feeds: bool,
    /// The types of the tensors.
    pub types: &'static [Type],
}

/// A call of a Rust function.
#[derive(Debug)]
pub struct Call {
    /// The name of the function.
    pub name: &'static str,
    /// Whether its derivative is called.
    pub derivative: bool,
    /// The types of the operands.
    pub operands: &'static [Type],
    /// The types of the results.
    pub results: &'static [Type],
    /// The line of the build script that made the call.
    pub location: Option<&'static str>,
}

fn tensor_type(&(element, shape): &Type) -> TensorType {
    let element = element_from_name(element).expect("the build script wrote it");
    TensorType::new(element, Shape::from(shape))
}

fn tensor_types(types: &[Type]) -> Vec<TensorType> {
    types.iter().map(tensor_type).collect()
}

/// Whether this processor has all that code for a level of x86-64 needs: 1, 3 or 4.
pub fn has_level(level: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let third = || {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("movbe")
        };
        let fourth = || {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        };
        level <= 1 || (level == 3 && third()) || (level == 4 && third() && fourth())
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        level <= 1
    }
}

/// A graph that was linked in, with the memory of its parameters.
pub struct Linked {
    session: Session,
    parts: &'static Parts,
}

impl Linked {
    /// Of the function that runs the graph, and the Rust functions that it calls.
    ///
    /// # Panics
    /// If one of the functions takes or gives other elements than the one that the graph was compiled with.
    ///
    /// # Safety
    /// The build script wrote the parts together with the function.
    #[track_caller]
    #[allow(unsafe_code, reason = "compiled code is called by its address")]
    pub unsafe fn new(run: Run, parts: &'static Parts, functions: &[&UserFunction]) -> Linked {
        let sizes = parts.parameters.iter().map(|data| data.bytes);
        // SAFETY: as for this function.
        let mut code = unsafe { Code::new(run, sizes, parts.arena) };
        for (number, data) in parts.parameters.iter().enumerate() {
            match data.initial {
                Initial::Splat(element) => code.fill_parameter(number, element),
                Initial::Bytes(bytes) => {
                    let written = code.write_parameter(number, 0, bytes);
                    written.expect("memory of the process can be written to");
                }
            }
        }
        let exchanges = parts.exchanges.iter().map(|exchange| lower::Exchange {
            name: exchange.name.into(),
            feeds: exchange.feeds,
            types: tensor_types(exchange.types),
        });
        let calls = parts.calls.iter().map(|call| lower::Call {
            name: call.name.into(),
            derivative: call.derivative,
            operands: tensor_types(call.operands),
            results: tensor_types(call.results),
            location: call.location.map(str::to_owned),
        });
        let calls: Vec<lower::Call> = calls.collect();
        let functions: Vec<UserFunction> = functions.iter().map(|&one| one.clone()).collect();
        for call in &calls {
            let function = functions.iter().find(|one| *one.name() == *call.name);
            if let Some(Err(message)) = function.map(|function| function.check_call(call)) {
                panic!("{message}");
            }
        }
        let session = Session::new(Box::new(code), exchanges.collect(), &calls, &functions);
        let session = session.unwrap_or_else(|error| panic!("{error}"));
        Linked { session, parts }
    }

    /// What `feed` of this name gives. The function writes to a tensor that holds what was fed before.
    pub fn feed<T: Nested>(&mut self, name: &str, mut next: impl FnMut(&mut T) + Send + 'static)
    where
        T::Element: Send,
    {
        let mut tensor: Tensor<T> = Tensor::zeros();
        self.session.feeder(name, move || {
            next(&mut tensor);
            tensor.elements().to_vec()
        });
    }

    /// What is done with the tensors that `receive` of this name hands over.
    pub fn receive(&mut self, name: &str, mut receive: impl FnMut(&[Array]) + Send + 'static) {
        self.session
            .receiver(name, move |tensors| receive(&tensors));
    }

    /// A tensor that was received.
    pub fn tensor<T: Nested>(array: &Array) -> Tensor<T> {
        Tensor::with(
            array
                .elements
                .iter()
                .map(|&value| T::Element::from_f64(value)),
        )
    }

    /// Runs the graph once.
    pub fn run(&mut self) -> Result<(), Error> {
        self.session.run()
    }

    /// The names of all parameters, in their order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.parts.parameters.iter().map(|data| data.name)
    }

    /// The bytes of a parameter, by its position.
    pub fn bytes(&self, number: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.parts.parameters[number].bytes];
        let executable = self.session.executable();
        executable.read_parameter(number, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Gives a parameter other bytes.
    ///
    /// # Panics
    /// If they are more or fewer than the parameter has.
    #[track_caller]
    pub fn set_bytes(&mut self, number: usize, bytes: &[u8]) -> Result<(), Error> {
        let data = &self.parts.parameters[number];
        assert_eq!(bytes.len(), data.bytes, "bytes of \"{}\"", data.name);
        let executable = self.session.executable_mut();
        executable.write_parameter(number, 0, bytes)
    }

    /// The value of a parameter.
    pub fn value<T: Nested>(&self, number: usize) -> Result<Tensor<T>, Error> {
        let bytes = self.bytes(number)?;
        let elements = bytes.chunks_exact(size_of::<T::Element>());
        Ok(Tensor::with(elements.map(T::Element::from_bytes)))
    }

    /// Gives a parameter another value.
    pub fn set_value<T: Nested>(&mut self, number: usize, value: &T) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for &element in T::flat(std::slice::from_ref(value)) {
            element.append_to(&mut bytes);
        }
        debug_assert!(T::Element::SCALAR.bytes() as usize * T::COUNT == bytes.len());
        self.set_bytes(number, &bytes)
    }
}
