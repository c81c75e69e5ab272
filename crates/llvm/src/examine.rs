//! Whether an LLVM that is newer than the one this binding was written for still counts as that one does.
//!
//! The C interface promises to keep its numbers (opcodes, kinds of values and types, predicates), but instructions and kinds come and go. A text with all that matters is read, and what the binding
//! says of each part of it is compared with what LLVM itself prints.

use crate::context::Context;
use crate::opcode::Opcode;
use crate::value::{Value, ValueKind};

const TEXT: &str = r#"
@variable = global i64 1
@alias = alias i64, ptr @variable
@values = constant { [2 x ptr], [2 x i64], i64, double, ptr, { i64, i64 }, ptr, i64, i64 } { [2 x ptr] [ptr @variable, ptr @alias], [2 x i64] [i64 1, i64 2], i64 3, double 1.0, ptr null, { i64, i64 } zeroinitializer, ptr getelementptr (i8, ptr @variable, i64 1), i64 undef, i64 poison }
declare i32 @personality()
declare i64 @other(i64)
define i64 @f(i64 %n, i32 %m, double %x, float %y, ptr %p, <2 x double> %v, { i64, double } %s) personality ptr @personality {
start:
  %i0 = add i64 %n, 1
  %i1 = sub i64 %i0, %n
  %i2 = mul i64 %i1, %n
  %i3 = udiv i64 %i2, %n
  %i4 = sdiv i64 %i3, %n
  %i5 = urem i64 %i4, %n
  %i6 = srem i64 %i5, %n
  %i7 = shl i64 %i6, %n
  %i8 = lshr i64 %i7, %n
  %i9 = ashr i64 %i8, %n
  %ia = and i64 %i9, %n
  %ib = or i64 %ia, %n
  %ic = xor i64 %ib, %n
  %f0 = fadd double %x, 1.0
  %f1 = fsub double %f0, %x
  %f2 = fmul double %f1, %x
  %f3 = fdiv double %f2, %x
  %f4 = frem double %f3, %x
  %f5 = fneg double %f4
  %c0 = trunc i64 %n to i32
  %c1 = zext i32 %m to i64
  %c2 = sext i32 %m to i64
  %c3 = fptoui double %x to i64
  %c4 = fptosi double %x to i64
  %c5 = uitofp i64 %n to double
  %c6 = sitofp i64 %n to double
  %c7 = fptrunc double %x to float
  %c8 = fpext float %y to double
  %c9 = ptrtoint ptr %p to i64
  %ca = inttoptr i64 %n to ptr
  %cb = bitcast double %x to i64
  %m0 = alloca i64
  %m1 = load i64, ptr %p
  store i64 %n, ptr %p
  %m2 = getelementptr i64, ptr %p, i64 %n
  fence seq_cst
  %m4 = atomicrmw add ptr %p, i64 1 seq_cst
  %v0 = extractelement <2 x double> %v, i32 0
  %v1 = insertelement <2 x double> %v, double %x, i32 0
  %v2 = shufflevector <2 x double> %v, <2 x double> %v1, <2 x i32> <i32 0, i32 2>
  %s0 = extractvalue { i64, double } %s, 0
  %s1 = insertvalue { i64, double } %s, i64 %n, 0
  %b0 = icmp eq i64 %n, 0
  %b1 = icmp ne i64 %n, 0
  %b2 = icmp ugt i64 %n, 0
  %b3 = icmp uge i64 %n, 0
  %b4 = icmp ult i64 %n, 0
  %b5 = icmp ule i64 %n, 0
  %b6 = icmp sgt i64 %n, 0
  %b7 = icmp sge i64 %n, 0
  %b8 = icmp slt i64 %n, 0
  %b9 = icmp sle i64 %n, 0
  %d0 = fcmp oeq double %x, 0.0
  %d1 = fcmp ogt double %x, 0.0
  %d2 = fcmp oge double %x, 0.0
  %d3 = fcmp olt double %x, 0.0
  %d4 = fcmp ole double %x, 0.0
  %d5 = fcmp one double %x, 0.0
  %d6 = fcmp ord double %x, 0.0
  %d7 = fcmp uno double %x, 0.0
  %d8 = fcmp ueq double %x, 0.0
  %d9 = fcmp ugt double %x, 0.0
  %da = fcmp uge double %x, 0.0
  %db = fcmp ult double %x, 0.0
  %dc = fcmp ule double %x, 0.0
  %dd = fcmp une double %x, 0.0
  %z0 = select i1 %b0, i64 %n, i64 %m1
  %z1 = freeze i64 %z0
  %z2 = call i64 @other(i64 %z1)
  br i1 %b1, label %then, label %end
then:
  switch i64 %n, label %last [ i64 1, label %end ]
last:
  %z3 = invoke i64 @other(i64 %n) to label %end unwind label %pad
pad:
  %z4 = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %z4
end:
  %z5 = phi i64 [ %z2, %start ], [ 0, %then ], [ %z3, %last ]
  br label %never
never:
  unreachable
}
"#;

/// The kinds of the fields of `@values`.
const KINDS: &[ValueKind] = &[
    ValueKind::ConstantArray,
    ValueKind::ConstantDataArray,
    ValueKind::ConstantInteger,
    ValueKind::ConstantFloat,
    ValueKind::NullPointer,
    ValueKind::ConstantAggregateZero,
    ValueKind::ConstantExpression,
    ValueKind::Undef,
    ValueKind::Poison,
];

/// What is not as the binding takes it to be, if anything.
pub(crate) fn find_difference(context: &Context) -> Option<String> {
    let module = match context.parse_text("examination", TEXT) {
        Ok(module) => module,
        Err(error) => return Some(error.to_string()),
    };
    let difference = (|| {
        let values = module.global("values")?;
        let fields = values.initialiser()?;
        let kinds = [
            (values, ValueKind::GlobalVariable),
            (module.alias("alias")?, ValueKind::Alias),
            (module.function("f")?, ValueKind::Function),
            (module.function("f")?.parameter(0), ValueKind::Argument),
            (fields, ValueKind::ConstantStruct),
        ];
        let of_fields = fields.operands().into_iter().zip(KINDS.iter().copied());
        let wrong_kind = kinds
            .into_iter()
            .chain(of_fields)
            .find(|(value, kind)| value.kind() != *kind);
        let wrong = wrong_kind.map(|(value, _)| value).or_else(|| {
            let mut instructions = module.function("f")?.instructions();
            instructions.find(|instruction| !is_told_right(*instruction))
        });
        Some(wrong.map(|value| value.to_string()))
    })();
    module.dispose();
    difference.unwrap_or_else(|| Some("a symbol is not found by its name".to_owned()))
}

/// Whether opcode and predicate of an instruction are the words that LLVM prints.
fn is_told_right(instruction: Value<'_>) -> bool {
    let text = instruction.to_string();
    let mut words = text.split_whitespace();
    let mut word = words.next();
    if words.clone().next() == Some("=") {
        word = words.nth(1);
    }
    let is = |word: Option<&str>, name: String| word == Some(&name.to_lowercase());
    instruction.is_instruction()
        && instruction.opcode().is_some_and(|opcode| {
            is(word, format!("{opcode:?}"))
                && match opcode {
                    Opcode::ICmp => is(words.next(), format!("{:?}", instruction.int_predicate())),
                    Opcode::FCmp => {
                        is(words.next(), format!("{:?}", instruction.float_predicate()))
                    }
                    _ => true,
                }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_llvm_at_hand_is_as_the_binding_takes_it_to_be() {
        let context = Context::new().unwrap();
        assert_eq!(find_difference(&context), None);
    }
}
