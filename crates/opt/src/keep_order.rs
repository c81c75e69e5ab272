//! Removes the permission to reorder: sums are computed in the order of the program, and nothing is contracted or approximated.
//!
//! ```text
//! %s = fadd nsz reassoc f64 %a, %b        →        %s = fadd nsz f64 %a, %b
//! ```
//!
//! For users who need the same bits on every machine (`--strict`). Derivatives mark the sums that they add as reorderable.

use ferrozyme_ir::{Flags, FunctionId, Module};

/// What lets a result depend on more than the program.
const FREEDOMS: Flags = Flags::REASSOC
    .union(Flags::CONTRACT)
    .union(Flags::ARCP)
    .union(Flags::AFN);

/// Takes the leave back from all operations of a function; says from how many.
pub fn keep_order(module: &mut Module, id: FunctionId) -> usize {
    let mut changes = 0;
    for data in module.functions[id].ops.values_mut() {
        let kept = data.flags.without(FREEDOMS);
        changes += usize::from(kept != data.flags);
        data.flags = kept;
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::keep_order;
    use crate::testing::check;
    use expect_test::expect;

    #[test]
    fn sums_keep_their_order() {
        check(
            keep_order,
            "func @f(%x: f64, %n: i64) -> (f64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %b = fadd nsz contract reassoc f64 %a, %x
                 yield %b
               }
               %r = fdiv fast f64 1.0, %s
               return %r
             }",
            expect![[r#"
                func @f(%x: f64, %n: i64) -> (f64) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd nsz f64 %a, %x
                    yield %b
                  }
                  %r = fdiv nnan ninf nsz f64 1.0, %s
                  return %r
                }
            "#]],
        );
    }
}
