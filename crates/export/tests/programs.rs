//! Whole programs, compiled, do what the interpreter does: the text files with `; run:` lines, random programs, and the derivatives of random programs.

mod native;

use ferrozyme_diff::{Request, differentiate_reverse};
use ferrozyme_export::ExportOptions;
use ferrozyme_filetest::arguments::place_arguments;
use ferrozyme_filetest::scan::Scanner;
use ferrozyme_filetest::value::{Cell, Written, read_level, read_threads, read_value, size_of};
use ferrozyme_gen::inputs::Argument;
use ferrozyme_gen::program::ARRAY_LENGTH;
use ferrozyme_gen::{Inputs, Profile, Random, generate};
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{FunctionId, Module, ProcessorLevel, Scalar, Type, all_ops};
use ferrozyme_llvm::compile::OptimisationLevel;
use native::{Native, agrees, close};

const LEVELS: [OptimisationLevel; 3] = [
    OptimisationLevel::O0,
    OptimisationLevel::O2,
    OptimisationLevel::O3,
];

/// Arguments in this process's memory. Blocks live as long as this does.
#[derive(Default)]
struct Memory {
    blocks: Vec<(Vec<u128>, Vec<Cell>)>,
}

impl Memory {
    fn place(
        &mut self,
        starts: &mut Vec<Option<u64>>,
        ty: Type,
        written: &Written,
    ) -> Option<Datum> {
        let pointer = |address: u64| Datum::ptr(Pointer(address));
        match written {
            Written::Memory(cells) => {
                // Words of sixteen bytes, so that it is aligned as the interpreter's is.
                let mut words = vec![0u128; (size_of(cells) as usize).div_ceil(16).max(1)];
                let address = words.as_mut_ptr() as u64;
                let position = self.blocks.len();
                self.blocks.push((words, cells.clone()));
                for cell in cells {
                    let datum = self.place(&mut Vec::new(), cell.ty, &cell.value)?;
                    let bytes = native::bytes_of(&datum);
                    let words = &mut self.blocks[position].0;
                    for (index, &byte) in bytes[..cell.ty.bytes() as usize].iter().enumerate() {
                        let at = cell.offset as usize + index;
                        words[at / 16] |= u128::from(byte) << (8 * (at % 16));
                    }
                }
                starts.push(Some(address));
                Some(pointer(address))
            }
            Written::Alias { argument, offset } => {
                let start = starts.get(*argument).copied().flatten()?;
                let address = start.wrapping_add_signed(*offset);
                starts.push(Some(address));
                Some(pointer(address))
            }
            // Addresses of functions are not known here.
            Written::Symbol(_) => None,
            _ => {
                starts.push(None);
                let module = Module::new();
                ferrozyme_filetest::arguments::datum_of(&Machine::new(&module), ty, written).ok()
            }
        }
    }

    fn read(&self, block: usize, cell: &Cell) -> Datum {
        let words = &self.blocks[block].0;
        let bytes: Vec<u8> = (0..cell.ty.bytes() as usize)
            .map(|index| cell.offset as usize + index)
            .map(|at| (words[at / 16] >> (8 * (at % 16))) as u8)
            .collect();
        native::datum_of(cell.ty, &bytes)
    }
}

/// All `; run:` lines of a file, or why one is wrong. Gives how many could be run.
fn run_file(text: &str) -> Result<usize, String> {
    let file = ferrozyme_filetest::file::read(text)?;
    let lines: Vec<&str> = file
        .directives
        .iter()
        .flat_map(|directive| &directive.details)
        .filter(|detail| detail.keyword == "run")
        .map(|detail| detail.text)
        .collect();
    if lines.is_empty() {
        return Ok(0);
    }
    let module = ferrozyme_ir::parse_module(file.source).map_err(|error| error.to_string())?;
    let mut count = 0;
    for line in lines {
        let mut scanner = Scanner::new(line);
        let name = scanner.symbol()?.trim_start_matches('@').to_owned();
        scanner.expect("(")?;
        let written = scanner.list(")", read_value)?;
        let processor = read_level(&mut scanner)?;
        let threads = read_threads(&mut scanner)?;
        if scanner.eat_word("faults") || !this_processor_has(processor) {
            continue;
        }
        let function = module.function_named(&name).ok_or("no such function")?;
        let types: Vec<Type> = module.functions[function]
            .params
            .iter()
            .map(|param| param.ty)
            .collect();
        let mut memory = Memory::default();
        let mut starts = Vec::new();
        let arguments: Option<Vec<Datum>> = types
            .iter()
            .zip(&written)
            .map(|(&ty, value)| memory.place(&mut starts, ty, value))
            .collect();
        let Some(arguments) = arguments else { continue };
        let mut machine = Machine::new(&module);
        machine.set_processor_level(processor);
        machine.set_threads(threads);
        let options = ExportOptions {
            highest_level: Some(processor.map_or(0, ProcessorLevel::number)),
            ..ExportOptions::default()
        };
        let placed = place_arguments(&mut machine, &types, &written)?;
        let expected = machine
            .call(function, &placed.data)
            .map_err(|fault| fault.to_string())?;
        for level in [OptimisationLevel::O2] {
            let native = Native::with(&module, &[function], level, &options)?;
            let found = native.call(function, &arguments)?;
            count += 1;
            for (found, expected) in found.iter().zip(&expected) {
                if !expected.ty.is_ptr() && !agrees(found, expected, 1e-12) {
                    return Err(format!("{line}: {found} instead of {expected}"));
                }
            }
            // Both place blocks in the same order.
            for (number, block) in placed.blocks.iter().enumerate() {
                for cell in &block.cells {
                    let Ok(expected) =
                        machine.read_datum(block.at.offset(cell.offset as i64), cell.ty)
                    else {
                        continue;
                    };
                    let found = memory.read(number, cell);
                    if !cell.ty.is_ptr() && !agrees(&found, &expected, 1e-12) {
                        return Err(format!(
                            "{line}: memory {number} at {} holds {found} instead of {expected}",
                            cell.offset
                        ));
                    }
                }
            }
        }
    }
    Ok(count)
}

/// Whether code for a level can be run here.
fn this_processor_has(level: Option<ProcessorLevel>) -> bool {
    match level {
        None => true,
        Some(ProcessorLevel::V2) => is_x86_feature_detected!("sse4.2"),
        Some(ProcessorLevel::V3) => is_x86_feature_detected!("avx2"),
        Some(ProcessorLevel::V4) => is_x86_feature_detected!("avx512bw"),
    }
}

#[test]
fn text_files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/run");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match run_file(&std::fs::read_to_string(&path).unwrap()) {
            Ok(lines) => count += lines,
            Err(error) => wrong.push(format!(
                "{}: {error}",
                path.file_name().unwrap_or_default().display()
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} files are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 20, "only {count} lines were run");
}

/// How far compiled and interpreted numbers may be apart: C's library and the interpreter's differ in the last bits.
fn tolerance(module: &Module) -> f64 {
    let narrow = |scalar| matches!(scalar, Scalar::F32 | Scalar::F16 | Scalar::Bf16);
    let single = module.functions.values().any(|function| {
        all_ops(function).into_iter().any(|op| {
            function.ops[op]
                .results
                .iter()
                .any(|&value| narrow(function.ty(value).scalar()))
        })
    });
    if single { 2e-4 } else { 1e-9 }
}

/// Whether it could be run at all, or what is wrong.
fn check_program(seed: u64) -> Result<bool, String> {
    let program = generate(seed, Profile::of_seed(seed));
    let inputs = Inputs::new(&program.module, program.main, seed)?;
    let Ok(outputs) = inputs.run(&program.module, program.main, &inputs.state) else {
        return Ok(false);
    };
    let native = Native::new(&program.module, &[program.main], LEVELS[seed as usize % 3])?;
    let mut blocks = inputs.state.blocks.clone();
    let arguments: Vec<Datum> = inputs
        .arguments
        .iter()
        .map(|argument| match *argument {
            Argument::Array { block, offset } => {
                Datum::ptr(Pointer(blocks[block][offset..].as_mut_ptr() as u64))
            }
            Argument::Int(bits, value) => Datum::int(bits, i128::from(value)),
            Argument::Float(scalar, position) => {
                Datum::float(scalar, inputs.state.floats[position]).expect("a float type")
            }
        })
        .collect();
    let results = native.call(program.main, &arguments)?;
    let distance = tolerance(&program.module);
    let floats = results
        .iter()
        .filter(|datum| datum.ty.is_float())
        .map(|datum| datum.as_float().unwrap_or(f64::NAN));
    for (position, (found, expected)) in floats.zip(&outputs.state.floats).enumerate() {
        if !close(found, *expected, distance) {
            return Err(format!(
                "result {position} is {found} instead of {expected}"
            ));
        }
    }
    for (block, (found, expected)) in blocks.iter().zip(&outputs.state.blocks).enumerate() {
        for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
            if !close(*found, *expected, distance) {
                return Err(format!(
                    "memory {block}[{position}] is {found} instead of {expected}"
                ));
            }
        }
    }
    Ok(true)
}

/// A reverse derivative of a random program on arrays of random numbers: whatever it means, both must do the same.
fn check_derivative(seed: u64) -> Result<bool, String> {
    let program = generate(seed, Profile::of_seed(seed));
    let mut module = program.module;
    let request = Request::usual(&module, program.main);
    // What cannot be differentiated is another test's business.
    let Ok(derivative) = differentiate_reverse(&mut module, &request) else {
        return Ok(false);
    };
    if seed.is_multiple_of(2) {
        let defined: Vec<FunctionId> = module
            .functions
            .iter()
            .filter(|(_, function)| function.body.is_some())
            .map(|(id, _)| id)
            .collect();
        for function in defined {
            ferrozyme_opt::optimise(&mut module, function);
        }
    }
    let mut random = Random::new(seed);
    let mut machine = Machine::new(&module);
    machine.set_step_limit(5_000_000);
    let (mut interpreted, mut compiled) = (Vec::new(), Vec::new());
    let mut blocks: Vec<(Pointer, Vec<f64>)> = Vec::new();
    for param in &module.functions[derivative].params {
        match (param.ty, param.ty.scalar()) {
            (Type::PTR, _) => {
                let mut numbers: Vec<f64> =
                    (0..ARRAY_LENGTH).map(|_| random.float(-2.0, 2.0)).collect();
                let at = machine.allocate_f64s(&numbers);
                interpreted.push(Datum::ptr(at));
                compiled.push(Datum::ptr(Pointer(numbers.as_mut_ptr() as u64)));
                blocks.push((at, numbers));
            }
            (_, Scalar::Int(bits)) => {
                interpreted.push(Datum::int(bits, i128::from(random.between(0, 6))));
                compiled.push(interpreted[interpreted.len() - 1].clone());
            }
            (_, scalar) => {
                interpreted.push(
                    Datum::float(scalar, (random.float(-2.0, 2.0) * 8.0).round() / 8.0)
                        .ok_or("no float")?,
                );
                compiled.push(interpreted[interpreted.len() - 1].clone());
            }
        }
    }
    let Ok(expected) = machine.call(derivative, &interpreted) else {
        return Ok(false);
    };
    let native = Native::new(&module, &[derivative], LEVELS[seed as usize % 3])?;
    let found = native.call(derivative, &compiled)?;
    let distance = tolerance(&module);
    for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if !agrees(found, expected, distance) {
            return Err(format!(
                "result {position} is {found} instead of {expected}"
            ));
        }
    }
    for (number, (at, found)) in blocks.iter().enumerate() {
        let expected = machine
            .read_f64s(*at, ARRAY_LENGTH)
            .map_err(|fault| fault.to_string())?;
        for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
            if !close(*found, expected, distance) {
                return Err(format!(
                    "memory {number}[{position}] is {found} instead of {expected}"
                ));
            }
        }
    }
    Ok(true)
}

/// Checks the seeds from `FERROZYME_SEED` on (1 by default), `FERROZYME_COUNT` of them.
fn check_seeds(count: u64, check: fn(u64) -> Result<bool, String>) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("FERROZYME_SEED").unwrap_or(1);
    let count = number("FERROZYME_COUNT").unwrap_or(count);
    let (mut ran, mut wrong) = (0, Vec::new());
    for seed in first..first + count {
        match check(seed) {
            Ok(could_run) => ran += u64::from(could_run),
            Err(error) => wrong.push(format!("seed {seed}: {error}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(ran * 10 >= count * 8, "only {ran} of {count} could be run");
}

#[test]
fn random_programs() {
    check_seeds(150, check_program);
}

#[test]
fn derivatives_of_random_programs() {
    check_seeds(100, check_derivative);
}
