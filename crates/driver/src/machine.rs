//! Replaces x86 vector intrinsics by generic LLVM IR.
//!
//! ```text
//! %m = call <2 x double> @llvm.x86.sse2.min.pd(%a, %b)    ⇒    %c = fcmp olt <2 x double> %a, %b
//!                                                              %m = select <2 x i1> %c, <2 x double> %a, <2 x double> %b
//! ```
//!
//! Each intrinsic is replaced by a function with that body, which LLVM inlines. Operands that select a variant of an instruction are constants at each call, so
//! the selection is folded. Approximations (`rcp`, `rsqrt`) and instructions that only move integers stay, and so do conversions to integers:
//! what is converted may have been rounded by adding and subtracting a large number, whose derivative is not that of rounding.

use ferrozyme_llvm::{Context, Linkage, Module};
use std::fmt::Write;

/// Gives a body to all vector instructions in use that are known.
pub(crate) fn spell_out_instructions<'c>(context: &'c Context, module: Module<'c>) {
    for instruction in module.functions().collect::<Vec<_>>() {
        let name = instruction.name();
        let Some(known) = name.strip_prefix("llvm.x86.") else {
            continue;
        };
        if instruction.users().is_empty() {
            continue;
        }
        let body = format!("ferrozyme.{known}");
        let Some(text) = definition(known, &body) else {
            continue;
        };
        let Ok(source) = context.parse_text(&body, &text) else {
            continue;
        };
        source.set_data_layout(&module.data_layout());
        source.set_triple(&module.triple());
        if module.link(source).is_ok()
            && let Some(function) = module.function(&body)
            && function.value_type() == instruction.value_type()
        {
            function.set_linkage(Linkage::Internal);
            instruction.replace_uses_with(function);
        }
    }
}

/// The vectors that an instruction works on.
#[derive(Clone, Copy)]
struct Shape {
    lanes: usize,
    float: &'static str,
    bits: usize,
    /// Only the first lane is computed; the others are those of the first operand.
    single: bool,
}

impl Shape {
    /// By the end of the instruction's name.
    fn of(name: &str) -> Option<(&str, Shape)> {
        const SHAPES: &[(&str, usize, &str, usize, bool)] = &[
            (".pd.256", 4, "double", 64, false),
            (".ps.256", 8, "float", 32, false),
            (".pd", 2, "double", 64, false),
            (".ps", 4, "float", 32, false),
            (".sd", 2, "double", 64, true),
            (".ss", 4, "float", 32, true),
        ];
        SHAPES
            .iter()
            .find_map(|&(end, lanes, float, bits, single)| {
                let base = name.strip_suffix(end)?;
                let shape = Shape {
                    lanes,
                    float,
                    bits,
                    single,
                };
                Some((base, shape))
            })
    }

    fn vector(self) -> String {
        format!("<{} x {}>", self.lanes, self.float)
    }

    fn integers(self) -> String {
        format!("<{} x i{}>", self.lanes, self.bits)
    }

    /// The suffix of LLVM's own functions.
    fn suffix(self) -> String {
        format!("v{}f{}", self.lanes, self.bits)
    }

    /// Takes the first lane of `%all`, and the others of the first operand, where only one is computed.
    fn end(self) -> String {
        let vector = self.vector();
        match self.single {
            false => format!("ret {vector} %all"),
            true => {
                let mask: Vec<String> = (0..self.lanes)
                    .map(|lane| format!("i32 {}", if lane == 0 { 0 } else { self.lanes + lane }))
                    .collect();
                let lanes = self.lanes;
                format!(
                    "%one = shufflevector {vector} %all, {vector} %a, <{lanes} x i32> <{}>\n ret {vector} %one",
                    mask.join(", ")
                )
            }
        }
    }
}

/// The text of a module with the function that an instruction stands for.
fn definition(name: &str, function: &str) -> Option<String> {
    let rest = name.split_once('.')?.1;
    // Some names have the shape in their middle: `blendvpd`, `blendv.pd.256`.
    if let Some(name) = rest.strip_prefix("blendv") {
        let (_, shape) = Shape::of(&format!(".{}", name.trim_start_matches('.')))?;
        return Some(blend(function, shape));
    }
    if let Some(text) = comparison_of_first(rest, function) {
        return Some(text);
    }
    let (base, shape) = Shape::of(rest)?;
    match base {
        "min" => Some(selection(function, shape, "olt")),
        "max" => Some(selection(function, shape, "ogt")),
        "cmp" => Some(comparison(function, shape)),
        "hadd" if !shape.single => Some(horizontal(function, shape, "fadd")),
        "hsub" if !shape.single => Some(horizontal(function, shape, "fsub")),
        "addsub" if !shape.single => Some(alternating(function, shape)),
        "round" => Some(rounding(function, shape)),
        "movmsk" if !shape.single => Some(signs(function, shape)),
        _ => None,
    }
}

/// The smaller or the larger: the second operand where the two are equal or not comparable.
fn selection(function: &str, shape: Shape, predicate: &str) -> String {
    let (vector, lanes, end) = (shape.vector(), shape.lanes, shape.end());
    format!(
        "define {vector} @\"{function}\"({vector} %a, {vector} %b) alwaysinline {{
 %c = fcmp {predicate} {vector} %a, %b
 %all = select <{lanes} x i1> %c, {vector} %a, {vector} %b
 {end}
}}\n"
    )
}

/// A mask of ones where a comparison holds. The number says which; the upper sixteen differ only in what they signal.
fn comparison(function: &str, shape: Shape) -> String {
    const PREDICATES: [&str; 16] = [
        "oeq", "olt", "ole", "uno", "une", "uge", "ugt", "ord", "ueq", "ult", "ule", "false",
        "one", "oge", "ogt", "true",
    ];
    let (vector, integers, lanes) = (shape.vector(), shape.integers(), shape.lanes);
    let mut text = format!(
        "define {vector} @\"{function}\"({vector} %a, {vector} %b, i8 %which) alwaysinline {{
 %low = and i8 %which, 15
 %r0 = fcmp false {vector} %a, %b\n"
    );
    for (number, predicate) in PREDICATES.iter().enumerate() {
        let after = number + 1;
        let _ = writeln!(
            text,
            " %c{number} = fcmp {predicate} {vector} %a, %b
 %i{number} = icmp eq i8 %low, {number}
 %r{after} = select i1 %i{number}, <{lanes} x i1> %c{number}, <{lanes} x i1> %r{number}"
        );
    }
    let _ = write!(
        text,
        " %mask = sext <{lanes} x i1> %r16 to {integers}
 %all = bitcast {integers} %mask to {vector}
 {}
}}\n",
        shape.end()
    );
    text
}

/// A comparison of the first lanes, as a number.
fn comparison_of_first(name: &str, function: &str) -> Option<String> {
    let name = name.strip_prefix('u').unwrap_or(name);
    let (base, shape) = Shape::of(name)?;
    let predicate = match base.strip_prefix("comi")? {
        "eq" => "oeq",
        "lt" => "olt",
        "le" => "ole",
        "gt" => "ogt",
        "ge" => "oge",
        "neq" => "une",
        _ => return None,
    };
    let (vector, float) = (shape.vector(), shape.float);
    Some(format!(
        "define i32 @\"{function}\"({vector} %a, {vector} %b) alwaysinline {{
 %x = extractelement {vector} %a, i64 0
 %y = extractelement {vector} %b, i64 0
 %c = fcmp {predicate} {float} %x, %y
 %r = zext i1 %c to i32
 ret i32 %r
}}\n"
    ))
}

/// The second operand where the sign of the third is set.
fn blend(function: &str, shape: Shape) -> String {
    let (vector, integers, lanes) = (shape.vector(), shape.integers(), shape.lanes);
    format!(
        "define {vector} @\"{function}\"({vector} %a, {vector} %b, {vector} %mask) alwaysinline {{
 %m = bitcast {vector} %mask to {integers}
 %c = icmp slt {integers} %m, zeroinitializer
 %all = select <{lanes} x i1> %c, {vector} %b, {vector} %a
 ret {vector} %all
}}\n"
    )
}

/// Sums or differences of neighbours, alternately from both operands in each part of 128 bits.
fn horizontal(function: &str, shape: Shape, operation: &str) -> String {
    let (vector, lanes) = (shape.vector(), shape.lanes);
    let part = 128 / shape.bits;
    let mask = |odd: usize| {
        let places: Vec<String> = (0..lanes)
            .map(|lane| {
                let (start, within) = (lane - lane % part, lane % part);
                let from_second = within >= part / 2;
                let pair = 2 * (within % (part / 2)) + odd;
                format!("i32 {}", start + pair + if from_second { lanes } else { 0 })
            })
            .collect();
        format!("<{lanes} x i32> <{}>", places.join(", "))
    };
    format!(
        "define {vector} @\"{function}\"({vector} %a, {vector} %b) alwaysinline {{
 %x = shufflevector {vector} %a, {vector} %b, {}
 %y = shufflevector {vector} %a, {vector} %b, {}
 %all = {operation} {vector} %x, %y
 ret {vector} %all
}}\n",
        mask(0),
        mask(1)
    )
}

/// Differences in even lanes, sums in odd ones.
fn alternating(function: &str, shape: Shape) -> String {
    let (vector, lanes) = (shape.vector(), shape.lanes);
    let mask: Vec<String> = (0..lanes)
        .map(|lane| format!("i32 {}", if lane % 2 == 0 { lane } else { lanes + lane }))
        .collect();
    format!(
        "define {vector} @\"{function}\"({vector} %a, {vector} %b) alwaysinline {{
 %x = fsub {vector} %a, %b
 %y = fadd {vector} %a, %b
 %all = shufflevector {vector} %x, {vector} %y, <{lanes} x i32> <{}>
 ret {vector} %all
}}\n",
        mask.join(", ")
    )
}

/// To a whole number. The number says in which direction; where it leaves that to the processor's state, to the nearest.
fn rounding(function: &str, shape: Shape) -> String {
    let (vector, suffix, end) = (shape.vector(), shape.suffix(), shape.end());
    let (parameters, of) = match shape.single {
        true => (format!("{vector} %a, {vector} %b"), "%b"),
        false => (format!("{vector} %a"), "%a"),
    };
    format!(
        "declare {vector} @llvm.roundeven.{suffix}({vector})
declare {vector} @llvm.floor.{suffix}({vector})
declare {vector} @llvm.ceil.{suffix}({vector})
declare {vector} @llvm.trunc.{suffix}({vector})
define {vector} @\"{function}\"({parameters}, i32 %which) alwaysinline {{
 %low = and i32 %which, 7
 %down = icmp eq i32 %low, 1
 %up = icmp eq i32 %low, 2
 %zero = icmp eq i32 %low, 3
 %r0 = call {vector} @llvm.roundeven.{suffix}({vector} {of})
 %r1 = call {vector} @llvm.floor.{suffix}({vector} {of})
 %r2 = call {vector} @llvm.ceil.{suffix}({vector} {of})
 %r3 = call {vector} @llvm.trunc.{suffix}({vector} {of})
 %s1 = select i1 %down, {vector} %r1, {vector} %r0
 %s2 = select i1 %up, {vector} %r2, {vector} %s1
 %all = select i1 %zero, {vector} %r3, {vector} %s2
 {end}
}}\n"
    )
}

/// The signs of all lanes as the bits of a number.
fn signs(function: &str, shape: Shape) -> String {
    let (vector, integers, lanes) = (shape.vector(), shape.integers(), shape.lanes);
    format!(
        "define i32 @\"{function}\"({vector} %a) alwaysinline {{
 %m = bitcast {vector} %a to {integers}
 %c = icmp slt {integers} %m, zeroinitializer
 %bits = bitcast <{lanes} x i1> %c to i{lanes}
 %r = zext i{lanes} %bits to i32
 ret i32 %r
}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_valid() {
        let context = Context::new().expect("LLVM is there");
        let names = [
            "sse.min.ps",
            "sse2.max.sd",
            "avx.min.pd.256",
            "sse2.cmp.pd",
            "sse.cmp.ss",
            "avx.cmp.ps.256",
            "sse3.hadd.pd",
            "avx.hsub.ps.256",
            "sse3.addsub.ps",
            "sse41.round.sd",
            "avx.round.pd.256",
            "sse41.blendvpd",
            "avx.blendv.ps.256",
            "sse2.movmsk.pd",
            "avx.movmsk.ps.256",
            "sse2.comilt.sd",
            "sse.ucomineq.ss",
        ];
        for name in names {
            let text = definition(name, "f").expect(name);
            let module = context.parse_text(name, &text).expect(name);
            module.verify().expect(name);
        }
    }

    #[test]
    fn approximations_are_left_alone() {
        for name in [
            "sse.rcp.ps",
            "sse.rsqrt.ss",
            "sse2.pause",
            "avx2.gather.d.pd",
        ] {
            assert_eq!(definition(name, "f"), None, "{name}");
        }
    }
}
