//! The types of generated Rust programs.

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// `f64`.
    Float,
    /// `usize`, always small.
    Count,
    /// `Vec<T>`.
    Vec(Box<Type>),
    /// `Box<T>`.
    Boxed(Box<Type>),
    /// `Option<T>`.
    Option(Box<Type>),
    /// `Result<T, E>`.
    Result(Box<Type>, Box<Type>),
    /// A tuple.
    Tuple(Vec<Type>),
    /// An array.
    Array(Box<Type>, usize),
    /// `[T]`, behind a reference.
    Slice(Box<Type>),
    /// `Rc<RefCell<T>>`.
    Shared(Box<Type>),
    /// A struct of the program, by its position.
    Struct(usize),
    /// An enum of the program, by its position.
    Enum(usize),
    /// `Box<dyn Trait>` of a trait of the program, by its position.
    Dyn(usize),
}

/// A struct of the program.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    /// Its name.
    pub(super) name: String,
    /// Its fields. A field without a type is the next element of a list: `Option<Box<Self>>`.
    pub(super) fields: Vec<(String, Option<Type>)>,
}

/// An enum of the program.
#[derive(Clone, Debug)]
pub(super) struct Enum {
    /// Its name.
    pub(super) name: String,
    /// Its variants and their fields.
    pub(super) variants: Vec<(String, Vec<Type>)>,
}

/// A trait of the program.
#[derive(Clone, Debug)]
pub(super) struct Trait {
    /// Its name.
    pub(super) name: String,
    /// The structs that implement it.
    pub(super) structs: Vec<usize>,
}

/// All types that a program has named.
#[derive(Clone, Debug, Default)]
pub(super) struct Types {
    pub(super) structs: Vec<Struct>,
    pub(super) enums: Vec<Enum>,
    pub(super) traits: Vec<Trait>,
}

impl Types {
    /// How a type is written.
    pub(super) fn print(&self, of: &Type) -> String {
        match of {
            Type::Float => "f64".into(),
            Type::Count => "usize".into(),
            Type::Vec(of) => format!("Vec<{}>", self.print(of)),
            Type::Boxed(of) => format!("Box<{}>", self.print(of)),
            Type::Option(of) => format!("Option<{}>", self.print(of)),
            Type::Result(of, error) => {
                format!("Result<{}, {}>", self.print(of), self.print(error))
            }
            Type::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.print(part)).collect();
                format!("({})", parts.join(", "))
            }
            Type::Array(of, length) => format!("[{}; {length}]", self.print(of)),
            Type::Slice(of) => format!("[{}]", self.print(of)),
            Type::Shared(of) => format!("Rc<RefCell<{}>>", self.print(of)),
            Type::Struct(index) => self.structs[*index].name.clone(),
            Type::Enum(index) => self.enums[*index].name.clone(),
            Type::Dyn(index) => format!("Box<dyn {}>", self.traits[*index].name),
        }
    }

    /// Whether a copy of it takes no `clone`.
    pub(super) fn is_copy(&self, of: &Type) -> bool {
        match of {
            Type::Float | Type::Count => true,
            Type::Tuple(parts) => parts.iter().all(|part| self.is_copy(part)),
            Type::Array(of, _) | Type::Option(of) => self.is_copy(of),
            _ => false,
        }
    }
}
