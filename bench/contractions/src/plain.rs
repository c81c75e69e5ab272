//! The loops that people write, as Loop IR: what a program has without the kernels, compiled for the same processor.
//!
//! Their parameters are those of the kernels. Each assumes that the strides of its innermost loop are one element, as the loops of a program do; LLVM could not vectorise them otherwise.

use crate::native::Element;
use anyhow::{Result, anyhow};
use ferrozyme_ir::{Module, parse_module};

/// `for i { for k { for j { c[i, j] += a[i, k] * b[k, j] } } }`, for rows of B in consecutive elements.
const ROW_BY_ROW: &str = "
func @row_by_row(%c: ptr noalias, %c_m: i64, %c_n: i64, %a: ptr noalias readonly, %a_m: i64, %a_k: i64, %b: ptr noalias readonly, %b_k: i64, %b_n: i64, %m: i64, %n: i64, %k: i64, %alpha: T, %add: i1) {
  for %i: i64 = 0 to %m step 1 {
    %ci = mul i64 %i, %c_m
    %c_row = offset %c, %ci * 1
    %ai = mul i64 %i, %a_m
    %a_row = offset %a, %ai * 1
    if %add {
      yield
    } else {
      for %cleared: i64 = 0 to %n step 1 {
        %at = offset %c_row, %cleared * S
        store T 0.0, %at align S
        yield
      }
      yield
    }
    for %l: i64 = 0 to %k step 1 {
      %al = mul i64 %l, %a_k
      %pa = offset %a_row, %al * 1
      %x = load T %pa align S
      %factor = fmul T %x, %alpha
      %bl = mul i64 %l, %b_k
      %b_row = offset %b, %bl * 1
      for %j: i64 = 0 to %n step 1 {
        %pb = offset %b_row, %j * S
        %y = load T %pb align S
        %pc = offset %c_row, %j * S
        %before = load T %pc align S
        %xy = fmul contract T %factor, %y
        %after = fadd contract T %before, %xy
        store T %after, %pc align S
        yield
      }
      yield
    }
    yield
  }
  return
}";

/// `for i { for j { c[i, j] += sum(k, a[i, k] * b[k, j]) } }`, for rows of A and columns of B in consecutive elements.
const DOT_PRODUCTS: &str = "
func @dot_products(%c: ptr noalias, %c_m: i64, %c_n: i64, %a: ptr noalias readonly, %a_m: i64, %a_k: i64, %b: ptr noalias readonly, %b_k: i64, %b_n: i64, %m: i64, %n: i64, %k: i64, %alpha: T, %add: i1) {
  for %i: i64 = 0 to %m step 1 {
    %ci = mul i64 %i, %c_m
    %c_row = offset %c, %ci * 1
    %ai = mul i64 %i, %a_m
    %a_row = offset %a, %ai * 1
    for %j: i64 = 0 to %n step 1 {
      %bj = mul i64 %j, %b_n
      %b_column = offset %b, %bj * 1
      %sum = for %l: i64 = 0 to %k step 1 with (%s: T = 0.0) {
        %pa = offset %a_row, %l * S
        %x = load T %pa align S
        %pb = offset %b_column, %l * S
        %y = load T %pb align S
        %xy = fmul contract T %x, %y
        %t = fadd contract T %s, %xy
        yield %t
      }
      %scaled = fmul T %sum, %alpha
      %cj = mul i64 %j, %c_n
      %pc = offset %c_row, %cj * 1
      %result = if %add -> (T) {
        %before = load T %pc align S
        %after = fadd T %before, %scaled
        yield %after
      } else {
        yield %scaled
      }
      store T %result, %pc align S
      yield
    }
    yield
  }
  return
}";

/// Names of the functions.
pub const NAMES: [&str; 2] = ["row_by_row", "dot_products"];

/// A module with all of them.
///
/// # Errors
/// If the text above is wrong.
pub fn loops<T: Element>() -> Result<Module> {
    let element = T::SCALAR.to_string();
    let bytes = size_of::<T>().to_string();
    let mut text = String::new();
    for line in [ROW_BY_ROW, DOT_PRODUCTS].concat().lines() {
        // `T` stands for the type of elements and `S` for their size.
        let words = line.split_inclusive([' ', ',', ')']);
        for word in words {
            let end = word.trim_end_matches([' ', ',', ')']);
            let start = end.trim_start_matches('(');
            text += match start {
                "T" => word.replace('T', &element),
                "S" => word.replace('S', &bytes),
                _ => word.to_owned(),
            }
            .as_str();
        }
        text.push('\n');
    }
    parse_module(&text).map_err(|error| anyhow!("{error}\n{text}"))
}
