//! Tests of the rules: the table as text, what is needed, what is emitted, and numbers against finite differences.

use super::*;
use expect_test::{Expect, expect};

fn check_table(expected: Expect) {
    let width = Opcode::ALL
        .iter()
        .map(|opcode| opcode.name().len())
        .max()
        .unwrap_or(0);
    let rows = Opcode::ALL
        .iter()
        .filter(|&&opcode| *rule(opcode) != Rule::Structural);
    let text: String = rows
        .map(|&opcode| format!("{:width$}  {}\n", opcode.name(), rule(opcode)))
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn the_whole_table() {
    check_table(expect![[r#"
        add            none: whole numbers
        sub            none: whole numbers
        mul            none: whole numbers
        sdiv           none: whole numbers
        udiv           none: whole numbers
        srem           none: whole numbers
        urem           none: whole numbers
        shl            none: whole numbers
        lshr           none: whole numbers
        ashr           none: whole numbers
        and            none: whole numbers
        or             none: whole numbers
        xor            none: whole numbers
        smin           none: whole numbers
        smax           none: whole numbers
        umin           none: whole numbers
        umax           none: whole numbers
        ctpop          none: whole numbers
        ctlz           none: whole numbers
        cttz           none: whole numbers
        bswap          none: whole numbers
        bitreverse     none: whole numbers
        icmp           none: whole numbers
        fadd           ∂x = 1, ∂y = 1
        fsub           ∂x = 1, ∂y = -1
        fmul           ∂x = y, ∂y = x
        fdiv           ∂x = 1/y, ∂y = (1/y)·-r
        frem           ∂x = 1, ∂y = (r - x)/y
        fneg           ∂x = -1
        fma            ∂x = y, ∂y = x, ∂z = 1
        fcmp           0 almost everywhere
        fmin           ∂x = where(x < y or is_nan(y), 1, 0), ∂y = where(x < y or is_nan(y), 0, 1)
        fmax           ∂x = where(x ≥ y or is_nan(y), 1, 0), ∂y = where(x ≥ y or is_nan(y), 0, 1)
        fminimum       ∂x = where(x < y, 1, 0), ∂y = where(x < y, 0, 1)
        fmaximum       ∂x = where(x ≥ y, 1, 0), ∂y = where(x ≥ y, 0, 1)
        fabs           ∂x = where(x < 0, -1, 1)
        copysign       ∂x = copysign(where(x < 0, -1, 1), y), ∂y = 0
        fdim           ∂x = where(x > y, 1, 0), ∂y = where(x > y, -1, 0)
        remainder      ∂x = 1, ∂y = (r - x)/y
        floor          0 almost everywhere
        ceil           0 almost everywhere
        trunc          0 almost everywhere
        round          0 almost everywhere
        round_even     0 almost everywhere
        sqrt           ∂x = where(r = 0, 0, 0.5/r)
        cbrt           ∂x = 1/(3·r·r)
        hypot          ∂x = where(r = 0, 0, 1/r)·x, ∂y = where(r = 0, 0, 1/r)·y
        exp            ∂x = r
        exp2           ∂x = r·ln(2)
        exp10          ∂x = r·ln(10)
        expm1          ∂x = exp(x)
        log            ∂x = 1/x
        log2           ∂x = log2(e)/x
        log10          ∂x = log10(e)/x
        log1p          ∂x = 1/(1 + x)
        pow            ∂x = where(y = 0, 0, y·pow(x, y - 1)), ∂y = where(x = 0 and y ≥ 0, 0, r·log(x))
        powi           ∂x = where(n = 0, 0, n·powi(x, n - 1))
        sin            ∂x = cos(x)
        cos            ∂x = -sin(x)
        sincos         ∂r/∂x = s, ∂s/∂x = -r
        tan            ∂x = 1 + r·r
        asin           ∂x = 1/sqrt((1 - x)·(1 + x))
        acos           ∂x = -1/sqrt((1 - x)·(1 + x))
        atan           ∂x = 1/(1 + x·x)
        atan2          ∂x = (1/(x·x + y·y))·y, ∂y = (1/(x·x + y·y))·-x
        sinh           ∂x = cosh(x)
        cosh           ∂x = sinh(x)
        tanh           ∂x = 1 - r·r
        asinh          ∂x = 1/sqrt(x·x + 1)
        acosh          ∂x = 1/sqrt((x - 1)·(x + 1))
        atanh          ∂x = 1/((1 - x)·(1 + x))
        erf            ∂x = (2/√π)·exp(-(x·x))
        erfc           ∂x = -(2/√π)·exp(-(x·x))
        tgamma         ∂x = r·polygamma(x, 0)
        lgamma         ∂x = polygamma(x, 0)
        polygamma      ∂x = polygamma(x, n + 1)
        jn             ∂x = 0.5·(jn(x, n - 1) - jn(x, n + 1))
        yn             ∂x = 0.5·(yn(x, n - 1) - yn(x, n + 1))
        ldexp          ∂x = ldexp(1, n)
        frexp          ∂r/∂x = ldexp(1, -e), ∂s/∂x = 0
        modf           ∂r/∂x = 1, ∂s/∂x = 0
        ilogb          0 almost everywhere
        logb           0 almost everywhere
        nextafter      ∂x = 1, ∂y = 0
        trunc_int      none: whole numbers
        zext           none: whole numbers
        sext           none: whole numbers
        fptrunc        x' = fpext(r')
        fpext          x' = fptrunc(r')
        fptosi         0 almost everywhere
        fptoui         0 almost everywhere
        fptosi_sat     0 almost everywhere
        fptoui_sat     0 almost everywhere
        sitofp         none: whole numbers
        uitofp         none: whole numbers
        bitcast        x' = r', floats of one width on both sides
        select         x' = select(c, r', 0), y' = select(c, 0, r')
        splat          x' = reduce_fadd(r')
        extract        v' = insert(0, r', i)
        insert         v' = insert(r', 0, i), x' = extract(r', i)
        shuffle        each lane of x' and y' is the sum of the lanes of r' that it went to
        reduce_fadd    x' = splat(r')
    "#]]);
}
