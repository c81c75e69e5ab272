//! How directives and command lines write arguments, results and memory.
//!
//! ```text
//! 1.5   -3   true   inf   -inf   nan   0x7ff8000000000000   null   undef   @f      scalars, typed by what takes them
//! <1.0, 2.0>                                                                       a vector
//! [1.0, 2.0, 3.0]          [1.0, 2.0]: f32          [0.0; 100]                      the address of new memory
//! [1.5, 7: i32, [1.0, 2.0]]                         memory that holds a float, an integer and an address
//! &0          &0+16                                  the memory of argument 0, and the same 16 bytes further on
//! _                                                  anything (only where a result is expected)
//! ```
//!
//! In memory a number with a point is an `f64` and one without an `i64`, unless a type follows it or the brackets around
//! it. Cells follow each other at their natural alignment.

use crate::scan::Scanner;
use ferrozyme_ir::{ProcessorLevel, Scalar, Type};

/// An argument, a result or the content of a cell, as written.
#[derive(Clone, PartialEq, Debug)]
pub enum Written {
    /// A whole number.
    Int(i128),
    /// A number with a point, `inf` or `nan`.
    Float(f64),
    /// Raw bits, for floats that have no other spelling.
    Bits(u128),
    /// The address 0.
    Null,
    /// No value in particular; in memory, bytes never written.
    Undef,
    /// Anything.
    Any,
    /// The address of a function or global.
    Symbol(String),
    /// A vector.
    Lanes(Vec<Written>),
    /// The address of memory.
    Memory(Vec<Cell>),
    /// An address within the memory of another argument.
    Alias {
        /// Which argument.
        argument: usize,
        /// How many bytes further on.
        offset: i64,
    },
}

/// A piece of memory with a type.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Its kind.
    pub ty: Type,
    /// Where it starts, in bytes from the start of its memory.
    pub offset: u64,
    /// Its contents.
    pub value: Written,
}

/// Reads one value that is the whole text.
pub fn parse_value(text: &str) -> Result<Written, String> {
    let mut scanner = Scanner::new(text);
    let value = read_value(&mut scanner)?;
    scanner.finish()?;
    Ok(value)
}

/// Reads `(value, value, …)`, or one value without parentheses.
pub fn read_values(scanner: &mut Scanner) -> Result<Vec<Written>, String> {
    if scanner.eat("(") {
        scanner.list(")", read_value)
    } else {
        Ok(vec![read_value(scanner)?])
    }
}

/// Reads `at v3`, the level of the processor, if it is there.
pub fn read_level(scanner: &mut Scanner) -> Result<Option<ProcessorLevel>, String> {
    if !scanner.eat_word("at") {
        return Ok(None);
    }
    let mut levels = ProcessorLevel::ALL.into_iter();
    let found = levels.find(|level| scanner.eat_word(level.name()));
    match found {
        Some(level) => Ok(Some(level)),
        None => Err(scanner.complain("`v2`, `v3` or `v4`")),
    }
}

/// Reads `on 3 threads`, how many there are, if it is there; otherwise there is one.
pub fn read_threads(scanner: &mut Scanner) -> Result<usize, String> {
    if !scanner.eat_word("on") {
        return Ok(1);
    }
    let threads = scanner.number()?;
    match scanner.eat_word("threads") {
        true => Ok(threads),
        false => Err(scanner.complain("`threads`")),
    }
}

/// Reads a value.
pub fn read_value(scanner: &mut Scanner) -> Result<Written, String> {
    if scanner.eat("[") {
        return scanner.nested(read_memory);
    }
    if scanner.eat("<") {
        let lanes = scanner.nested(|scanner| scanner.list(">", read_value))?;
        return Ok(Written::Lanes(lanes));
    }
    if scanner.eat("&") {
        let mut ahead = *scanner;
        let word = ahead.word().unwrap_or("");
        let (argument, offset) = match word.split_once('+') {
            Some((argument, offset)) => (argument.parse(), offset.parse()),
            None => (word.parse(), Ok(0)),
        };
        return match (argument, offset) {
            (Ok(argument), Ok(offset)) => {
                *scanner = ahead;
                Ok(Written::Alias { argument, offset })
            }
            _ => Err(scanner.complain("the number of an argument, as in `&0` or `&0+8`")),
        };
    }
    if scanner.rest().starts_with('@') {
        return Ok(Written::Symbol(scanner.symbol()?.to_owned()));
    }
    let mut ahead = *scanner;
    let value = ahead.word().and_then(read_number);
    match value {
        Some(value) => {
            *scanner = ahead;
            Ok(value)
        }
        None => Err(scanner.complain("a value such as `1.5`, `3`, `null`, `@f` or `[1.0, 2.0]`")),
    }
}

fn read_number(word: &str) -> Option<Written> {
    Some(match word {
        "_" => Written::Any,
        "null" => Written::Null,
        "undef" => Written::Undef,
        "true" => Written::Int(1),
        "false" => Written::Int(0),
        "inf" => Written::Float(f64::INFINITY),
        "-inf" => Written::Float(f64::NEG_INFINITY),
        "nan" => Written::Float(f64::NAN),
        _ => {
            if let Some(digits) = word.strip_prefix("0x") {
                Written::Bits(u128::from_str_radix(digits, 16).ok()?)
            } else if let Ok(int) = word.parse() {
                Written::Int(int)
            } else if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                Written::Float(word.parse().ok()?)
            } else {
                return None;
            }
        }
    })
}

/// Reads the cells of memory up to `]`, and the type behind it.
fn read_memory(scanner: &mut Scanner) -> Result<Written, String> {
    let mut repeat = None;
    let mut items = Vec::new();
    while !scanner.eat("]") {
        if !items.is_empty() {
            if items.len() == 1 && scanner.eat(";") {
                repeat = Some(scanner.number()?);
                scanner.expect("]")?;
                break;
            }
            scanner.expect(",")?;
        }
        let value = read_value(scanner)?;
        let ty = if scanner.eat(":") {
            Some(read_type(scanner)?)
        } else {
            None
        };
        items.push((value, ty));
    }
    let common = if scanner.eat(":") {
        Some(read_type(scanner)?)
    } else {
        None
    };
    if let Some(count) = repeat {
        let item = items.remove(0);
        let cells = count.saturating_mul(count_cells(&item.0));
        if cells > MOST_CELLS {
            return Err(format!("{cells} cells are more than {MOST_CELLS}"));
        }
        items = vec![item; count];
    }
    let mut cells = Vec::new();
    let mut end = 0u64;
    for (value, own) in items {
        let ty = own.or(common).unwrap_or(match &value {
            Written::Int(_) | Written::Bits(_) => Type::I64,
            Written::Float(_) | Written::Undef | Written::Any | Written::Lanes(_) => Type::F64,
            Written::Null | Written::Symbol(_) | Written::Memory(_) | Written::Alias { .. } => {
                Type::PTR
            }
        });
        let offset = end.next_multiple_of(ty.scalar().bytes());
        end = offset + ty.bytes();
        cells.push(Cell { ty, offset, value });
    }
    Ok(Written::Memory(cells))
}

/// No test needs more, and a slip of the finger must not take all memory.
const MOST_CELLS: usize = 1 << 24;

/// How many cells a value takes, with those that it points to.
fn count_cells(value: &Written) -> usize {
    match value {
        Written::Memory(cells) => {
            let inner = cells.iter().map(|cell| count_cells(&cell.value));
            1 + inner.sum::<usize>()
        }
        Written::Lanes(lanes) => lanes.len(),
        _ => 1,
    }
}

/// Reads a type: `f64`, `i32`, `ptr`, `<4 x f32>`.
pub fn read_type(scanner: &mut Scanner) -> Result<Type, String> {
    let mut ahead = *scanner;
    let ty = if ahead.eat("<") {
        let lanes = ahead.number().ok().and_then(|n| u16::try_from(n).ok());
        ahead.eat_word("x");
        let scalar = ahead.word().and_then(read_scalar);
        match (lanes, scalar, ahead.eat(">")) {
            (Some(lanes), Some(scalar), true) if lanes > 0 => Some(Type::vector_of(scalar, lanes)),
            _ => None,
        }
    } else {
        ahead.word().and_then(read_scalar).map(Type::scalar_of)
    };
    match ty {
        Some(ty) => {
            *scanner = ahead;
            Ok(ty)
        }
        None => Err(scanner.complain("a type such as `f64`, `i32` or `ptr`")),
    }
}

fn read_scalar(word: &str) -> Option<Scalar> {
    Some(match word {
        "f16" => Scalar::F16,
        "bf16" => Scalar::Bf16,
        "f32" => Scalar::F32,
        "f64" => Scalar::F64,
        "ptr" => Scalar::Ptr,
        _ => {
            let bits: u8 = word.strip_prefix('i')?.parse().ok()?;
            if !(1..=128).contains(&bits) {
                return None;
            }
            Scalar::Int(bits)
        }
    })
}

/// How many bytes cells take.
pub fn size_of(cells: &[Cell]) -> u64 {
    cells.last().map_or(0, |cell| cell.offset + cell.ty.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(u64, String)> {
        match parse_value(text).unwrap() {
            Written::Memory(cells) => cells
                .iter()
                .map(|cell| (cell.offset, cell.ty.to_string()))
                .collect(),
            other => panic!("{other:?} is no memory"),
        }
    }

    #[test]
    fn memory_is_laid_out_at_natural_alignment() {
        assert_eq!(
            cells("[1: i32, 2.0, [3.0]]"),
            [(0, "i32".into()), (8, "f64".into()), (16, "ptr".into())]
        );
        assert_eq!(cells("[1.0, 2.0]: f32").last().unwrap().0, 4);
        assert_eq!(cells("[0.0; 100]").len(), 100);
        assert_eq!(cells("[]").len(), 0);
    }

    #[test]
    fn reads_scalars() {
        assert_eq!(parse_value("-3").unwrap(), Written::Int(-3));
        assert_eq!(parse_value("1e-3").unwrap(), Written::Float(1e-3));
        assert_eq!(parse_value("0xff").unwrap(), Written::Bits(255));
        assert_eq!(
            parse_value("&1+16").unwrap(),
            Written::Alias {
                argument: 1,
                offset: 16
            }
        );
    }

    #[test]
    fn says_what_it_expected() {
        assert_eq!(
            parse_value("[1.0, 2.0").unwrap_err(),
            "`[1.0, 2.0`: expected `,`, but it ends here"
        );
        assert!(
            parse_value("1.0.0")
                .unwrap_err()
                .contains("a value such as")
        );
        assert!(parse_value("[1.0]: f63").unwrap_err().contains("a type"));
    }

    #[test]
    fn refuses_what_would_take_all_memory() {
        let deep = "[".repeat(100_000);
        assert!(parse_value(&deep).unwrap_err().contains("nested"));
        let wide = parse_value("[[0.0; 1000000]; 1000000]");
        assert!(wide.unwrap_err().contains("cells are more than"));
        let huge = parse_value("[0.0; 99999999999999999999]");
        assert!(huge.unwrap_err().contains("a whole number"));
    }
}
