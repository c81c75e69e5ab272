//! The table is complete and keeps what it says.

use super::*;
use crate::opcode::Form;
use expect_test::expect_file;
use std::collections::HashSet;

/// Points of an interval, its ends and what is next to them left out.
fn points(interval: Interval) -> Vec<f64> {
    let (low, high) = (interval.0.max(-8.0), interval.1.min(8.0));
    (1..16)
        .map(|k| low + (high - low) * f64::from(k) / 16.0)
        .collect()
}

#[test]
fn rows_and_operations_have_one_order() {
    for (row, &opcode) in ROWS.iter().zip(Opcode::ALL) {
        assert_eq!(row.opcode, opcode);
    }
    let functions = Opcode::ALL.iter().filter(|opcode| opcode.math().is_some());
    assert_eq!(functions.count(), ROWS.len());
}

#[test]
fn names_are_unique() {
    let check = |names: &dyn Fn(&'static MathFunction) -> Vec<&'static str>| {
        let mut seen = HashSet::new();
        for name in ROWS.iter().flat_map(names) {
            assert!(seen.insert(name), "{name} names two functions");
        }
    };
    check(&|row| row.llvm.to_vec());
    check(&|row| [row.c, row.not_reserved].concat());
    check(&|row| row.rust.into_iter().collect());
}

#[test]
fn derivatives_and_domains_fit_the_operands() {
    for row in ROWS {
        let (operands, floats, results) = match row.opcode.form() {
            Form::FloatUnary | Form::FloatToExponent => (1, 1, 1),
            Form::FloatSplit | Form::FloatPair => (1, 1, 2),
            Form::FloatBinary => (2, 2, 1),
            Form::FloatAndInt => (2, 1, 1),
            Form::FloatTernary => (3, 3, 1),
            form => panic!("{} has the form {form:?}", row.opcode),
        };
        if let Derivative::Partials(partials) = row.derivative() {
            assert_eq!(partials.len(), results, "{}", row.opcode);
            for partials in partials {
                assert_eq!(partials.len(), floats, "{}", row.opcode);
            }
        }
        let given = row.domain.len();
        assert!(given == 0 || given == operands, "{}", row.opcode);
    }
}

/// What a library computes and has a derivative is made by random programs, unless its derivative jumps.
#[test]
fn smooth_functions_have_a_domain() {
    use Opcode::*;
    for row in ROWS {
        let smooth = row.cost == MathCost::Call && row.derivative() != Derivative::Steps;
        let jumps = matches!(row.opcode, Frem | Remainder | Frexp | Modf | Nextafter);
        assert!(!smooth || jumps == row.domain.is_empty(), "{}", row.opcode);
    }
}

#[test]
fn values_lie_in_the_image() {
    let check = |row: &MathFunction, at: &[f64]| {
        let value = row.at(at).0;
        let (low, high) = row.image;
        let inside = value.is_nan() || (low <= value && value <= high);
        let zero = value == 0.0 && value.is_sign_negative();
        let positive = low >= 0.0 && low.is_sign_positive();
        assert!(
            inside && !(zero && positive),
            "{} at {at:?} is {value}",
            row.opcode
        );
    };
    let whole = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        3.0,
        -700.0,
        1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for row in ROWS {
        for x in points(ALL).into_iter().chain(whole) {
            match row.opcode.form() {
                Form::FloatBinary => whole.iter().for_each(|&y| check(row, &[x, y])),
                Form::FloatTernary => whole.iter().for_each(|&y| check(row, &[x, y, x])),
                Form::FloatAndInt => (-2..3).for_each(|n| check(row, &[x, f64::from(n)])),
                _ => check(row, &[x]),
            }
        }
    }
}

/// `docs/mathematics.md` is made from the table (`UPDATE_EXPECT=1` rewrites it).
#[test]
fn the_page_of_functions() {
    let mut page = "# Mathematical functions\n\nMade from the table of the compiler \
        (`crates/ir/src/mathematics/rows.rs`). `x`, `y`, `z` are the operands, `n` is an integer, `r` and `s` are the \
        results. Names in single precision end in `f` in C.\n\n\
        | operation | what it computes | Rust | C | derivative | infinite or undefined at |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for row in ROWS {
        let documentation = row.opcode.documentation().trim().replace("\n ", " ");
        let rust = row.rust.map_or(String::new(), |name| format!("`{name}`"));
        let c: Vec<String> = [row.c, row.not_reserved]
            .concat()
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let place = match row.slope {
            Slope::Infinite(place) => place,
            _ => "",
        };
        let (name, derivative) = (row.opcode, row.derivative());
        page += &format!(
            "| `{name}` | {documentation} | {rust} | {} | {derivative} | {place} |\n",
            c.join(", ")
        );
    }
    expect_file!["../../../../docs/mathematics.md"].assert_eq(&page);
}

/// Functions are moderate, and so are their slopes, where tests and random programs apply them.
#[test]
fn functions_are_moderate_in_their_domain() {
    for row in ROWS
        .iter()
        .filter(|row| row.opcode.form() == Form::FloatUnary)
    {
        for x in row.domain.iter().copied().flat_map(points) {
            let [before, after] = [-1e-6, 1e-6].map(|step| row.at(&[x + step]).0);
            let slope = (after - before) / 2e-6;
            let moderate = slope.abs() < 16.0 && before.abs() < 16.0;
            assert!(
                moderate,
                "{} at {x} is {before}, with slope {slope}",
                row.opcode
            );
        }
    }
}
