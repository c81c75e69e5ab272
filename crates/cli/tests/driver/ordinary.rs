//! Code without derivatives is what cargo makes of it: function by function and byte by byte, but for addresses.

use super::project::{Project, Run, target_folder};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Functions that keep the optimiser busy, and a request that has nothing to do with them.
const PROGRAM: &str = r#"
mod warping {
    fn soft_minimum(values: [f64; 3], gamma: f64) -> f64 {
        let scaled = values.map(|value| -value / gamma);
        let largest = scaled.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        let sum: f64 = scaled.iter().map(|value| (value - largest).exp()).sum();
        -gamma * (largest + sum.ln())
    }

    fn soft_minimum_of_all(values: &[f64], gamma: f64) -> f64 {
        let scaled: Vec<f64> = values.iter().map(|value| -value / gamma).collect();
        let largest = scaled.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        -gamma * (largest + scaled.iter().map(|value| (value - largest).exp()).sum::<f64>().ln())
    }

    #[inline(never)]
    pub fn distance(x: &[f64], y: &[f64], gamma: f64) -> f64 {
        let mut r = vec![vec![f64::INFINITY; y.len() + 1]; x.len() + 1];
        r[0][0] = 0.0;
        for i in 1..=x.len() {
            for j in 1..=y.len() {
                let cost = (x[i - 1] - y[j - 1]).powi(2);
                r[i][j] = cost + soft_minimum([r[i - 1][j], r[i][j - 1], r[i - 1][j - 1]], gamma);
            }
        }
        r[x.len()][y.len()]
    }

    #[inline(never)]
    pub fn distance_with_vectors(x: &[f64], y: &[f64], gamma: f64) -> f64 {
        let width = y.len() + 1;
        let mut r = vec![f64::INFINITY; width * (x.len() + 1)];
        r[0] = 0.0;
        for i in 1..=x.len() {
            for j in 1..=y.len() {
                let before = vec![r[(i - 1) * width + j], r[i * width + j - 1], r[(i - 1) * width + j - 1]];
                r[i * width + j] = (x[i - 1] - y[j - 1]).powi(2) + soft_minimum_of_all(&before, gamma);
            }
        }
        r[x.len() * width + y.len()]
    }
}

mod statistics {
    #[inline(never)]
    pub fn median(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    #[inline(never)]
    pub fn largest_distance(values: &[f64], centre: f64) -> f64 {
        values.iter().map(|value| (value - centre).abs() / centre).fold(0.0, f64::max)
    }

    #[inline(never)]
    pub fn words(text: &str) -> Vec<(String, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        for word in text.split_whitespace() {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }
}

mod matrices {
    pub trait Operator {
        fn apply(&self, x: &[f64]) -> Vec<f64>;
    }
    pub struct Dense(pub Vec<f64>);
    pub struct Scaled(pub f64);
    impl Operator for Dense {
        fn apply(&self, x: &[f64]) -> Vec<f64> {
            self.0.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
        }
    }
    impl Operator for Scaled {
        fn apply(&self, x: &[f64]) -> Vec<f64> {
            x.iter().map(|value| self.0 * value).collect()
        }
    }

    #[inline(never)]
    pub fn compose(operators: &[Box<dyn Operator>], x: &[f64]) -> Vec<f64> {
        operators.iter().fold(x.to_vec(), |x, operator| operator.apply(&x))
    }
}

fn main() {
    let x = [0.0, 0.5, 1.0, 0.5, 0.1];
    let y = [0.1, 0.4, 0.9, 0.6];
    println!("{:.6}", warping::distance(&x, &y, 1.0));
    println!("{:.6}", warping::distance_with_vectors(&x, &y, 1.0));
    println!("{:.6} {:.6}", statistics::median(&x), statistics::largest_distance(&x, 0.5));
    println!("{:?}", statistics::words("a b a"));
    let operators: Vec<Box<dyn matrices::Operator>> =
        vec![Box::new(matrices::Dense(vec![1.0, 2.0, 3.0, 4.0])), Box::new(matrices::Scaled(0.5))];
    println!("{:?}", matrices::compose(&operators, &[1.0, 2.0]));
    println!("{}", ferrozyme::grad(|x: f64| x * x, 3.0));
}
"#;

const OUTPUT: &str =
    "-3.790199\n-3.790199\n0.500000 1.000000\n[(\"a\", 2), (\"b\", 1)]\n[2.5, 5.5]\n6\n";

/// The target is named, so that the flags are not meant for macros.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Machine code by the names of functions.
type Functions = BTreeMap<String, Vec<Vec<u8>>>;

/// Code for vectors of four numbers. All calls are direct: in code for any address, only the linker knows which can be. It keeps the places of addresses, and changes nothing.
const FOR_COMPARISON: &str = "-Ctarget-cpu=x86-64-v3 -Crelocation-model=static -Clink-arg=-Wl,--emit-relocs -Clink-arg=-Wl,--no-relax";

#[test]
fn code_without_derivatives_is_what_cargo_makes_of_it() {
    let project = Project::program("ordinary", PROGRAM);
    for level in ["0", "2", "3"] {
        let build = |ours: bool| {
            let folder = target_folder().join(if ours { "ours" } else { "plain" });
            let flags = match ours {
                true => FOR_COMPARISON.to_owned(),
                // The same source without us: what requests call is nowhere.
                false => format!(
                    "{FOR_COMPARISON} --cfg=ferrozyme -Clink-arg=-Wl,--defsym=__ferrozyme_request=0,--defsym=__ferrozyme_request_shape=0,--defsym=__ferrozyme_request_tag=0"
                ),
            };
            let driver = env!("CARGO_BIN_EXE_cargo-ferrozyme");
            let program = if ours { driver } else { env!("CARGO") };
            let mut command = project.command(program.as_ref());
            if ours {
                command.arg("ferrozyme");
            }
            command
                .args(["build", "--release", "--quiet", "--target", TARGET])
                .env("CARGO_TARGET_DIR", &folder)
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)
                // We ask for debug information ourselves where the profile has none, and LLVM's code is not quite the same with it.
                .env("CARGO_PROFILE_RELEASE_DEBUG", "full")
                .env("RUSTFLAGS", flags);
            Run::of(command).expect_success();
            folder.join(TARGET).join("release/ordinary")
        };
        let (plain, ours) = (build(false), build(true));
        compare(&functions(&plain), &functions(&ours), level);
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            assert_eq!(Run::of(project.command(&ours)).expect_success(), OUTPUT);
        }
    }
}

fn compare(plain: &Functions, ours: &Functions, level: &str) {
    let names = |functions: &Functions| functions.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(plain), names(ours), "at level {level}");
    assert!(
        plain.len() >= 6,
        "too little to compare: {:?}",
        names(plain)
    );
    for (name, code) in plain {
        assert!(*code == ours[name], "{name} is other code at level {level}");
    }
}

/// The functions of the program's modules, by name, with zeros in the place of addresses.
fn functions(program: &Path) -> Functions {
    let bytes = std::fs::read(program).expect("the program is built");
    let file = object::File::parse(bytes.as_slice()).expect("a program");
    let text = file.section_by_name(".text").expect("code");
    let mut code = text.data().expect("code").to_vec();
    for (address, relocation) in text.relocations() {
        let offset = usize::try_from(address - text.address()).expect("in the code");
        let size = match relocation.size() {
            64 => 8,
            _ => 4,
        };
        code[offset..offset + size].fill(0);
    }
    let mut found = BTreeMap::new();
    for symbol in file.symbols() {
        let Ok(name) = symbol.name() else { continue };
        let name = format!("{:#}", rustc_demangle::demangle(name));
        let wanted = ["warping", "statistics", "matrices"]
            .iter()
            .any(|module| name.contains(&format!("ordinary::{module}::")));
        if symbol.kind() == SymbolKind::Text && wanted {
            let start = usize::try_from(symbol.address() - text.address()).expect("in the code");
            let end = start + usize::try_from(symbol.size()).expect("small");
            let code = code[start..end].to_vec();
            found.entry(name).or_insert_with(Vec::new).push(code);
        }
    }
    // Instances for different types may have one name.
    found
        .values_mut()
        .for_each(|instances: &mut Vec<_>| instances.sort());
    found
}
