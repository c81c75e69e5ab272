//! Tests and timings of tensor graphs on a GPU, as one program that needs no Rust toolchain where it runs.
//!
//! ```sh
//! gpu prepare FOLDER        # makes all kernels for the H200's processor, on a machine with a Rust toolchain
//! gpu run FOLDER cuda       # runs all tests and measures, on the machine with the GPU
//! gpu test FOLDER cuda      # runs the tests only
//! gpu time FOLDER cuda      # measures only; a name behind it measures the workloads that have it in theirs
//! gpu kernels FOLDER cuda "GPT-2"   # what each kernel of a workload takes, as text and as a picture in FOLDER
//! gpu print "GPT-2"         # the kernels as Loop IR
//! ```
//! A part of its name stands for a workload; the first one that has it is taken.
//!
//! `bench/gpu/pack` does the first and puts everything that the second needs into one folder. The device may be any that `ferrozyme-device` knows.

mod workloads;

use anyhow::Context;
use ferrozyme_backend::{
    Backend, Error, Executable, Planned, Repeats, compile_within, prepare_graph,
};
use ferrozyme_conformance::Test;
use ferrozyme_cuda::{ABILITIES, stored_ptx};
use ferrozyme_device::{KERNELS, backend_named};
use ferrozyme_gpu::{Traffic, launches, prepare};
use ferrozyme_ir::print_function;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use workloads::{Workload, all_workloads};

/// The processor that kernels are prepared for: that of the H100 and H200.
const PROCESSOR: &str = "sm_90";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["prepare", folder] => prepare_all(folder.into()),
        ["run", _, device] => run_all(device, ferrozyme_conformance::ALL, Some("")),
        ["test", _, device] => run_all(device, ferrozyme_conformance::ALL, None),
        ["time", _, device] => run_all(device, &[], Some("")),
        ["time", _, device, name] => run_all(device, &[], Some(name)),
        ["kernels", folder, device, name] => report(write_timeline(folder.into(), device, name)),
        ["print", name] => report(print_kernels(name)),
        _ => {
            eprintln!(
                "usage: gpu prepare FOLDER | {KERNELS}=FOLDER gpu run FOLDER DEVICE | … test FOLDER DEVICE | … time FOLDER DEVICE [NAME] | … kernels FOLDER DEVICE NAME | print NAME"
            );
            ExitCode::FAILURE
        }
    }
}

fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn workload_named(name: &str) -> anyhow::Result<Workload> {
    let mut all = all_workloads().into_iter();
    all.find(|workload| workload.name.contains(name))
        .with_context(|| format!("no workload has `{name}` in its name"))
}

/// Runs a workload once to warm up and once to measure its kernels.
fn write_timeline(folder: PathBuf, device: &str, name: &str) -> anyhow::Result<()> {
    let workload = workload_named(name)?;
    let mut program = workload.start(&*backend_named(device)?)?;
    program.run()?;
    let timeline = program.timeline()?;
    let timeline = timeline.with_context(|| format!("{device} has no kernels to measure"))?;
    println!("{}, {} steps\n{timeline}", workload.name, workload.steps);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("kernels.svg"), timeline.to_svg())?;
    Ok(())
}

fn only_prepared() -> Error {
    Error::Missing {
        backend: "cuda",
        reason: "kernels are only prepared".to_owned(),
    }
}

/// Prints how a workload is fused, where its tensors are, and its kernels.
fn print_kernels(name: &str) -> anyhow::Result<()> {
    let workload = workload_named(name)?;
    let prepared = prepare_graph(&workload.graph, Repeats::DEVICE, workload.budget)?;
    for line in prepared.report.lines() {
        println!("; {line}");
    }
    let program = prepare(prepared.planned.lowered, &ABILITIES)?;
    let launched = launches(&program.steps);
    let moved = launched
        .iter()
        .map(|&(kernel, _)| program.kernels[kernel].traffic.bytes);
    println!(
        "; {} launches a step move {} bytes",
        launched.len(),
        moved.sum::<f64>()
    );
    for kernel in &program.kernels {
        let Traffic { bytes, operations } = kernel.traffic;
        println!(
            "; {} groups of {} items, {} bytes of local memory; moves {bytes} bytes, computes {operations} operations",
            kernel.groups, kernel.items, kernel.local
        );
        println!("{}", print_function(&program.module, kernel.function));
    }
    Ok(())
}

/// Makes kernels instead of running them.
struct Preparing {
    folder: PathBuf,
}

impl Backend for Preparing {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn repeats(&self) -> Repeats {
        Repeats::DEVICE
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        let lowered = planned.lowered;
        let program = prepare(lowered, &ABILITIES)?;
        stored_ptx(&program, PROCESSOR, &self.folder)?;
        Err(only_prepared())
    }
}

fn prepare_all(folder: PathBuf) -> ExitCode {
    let backend = Preparing { folder };
    let mut failed = false;
    for (name, test) in ferrozyme_conformance::ALL {
        failed |= catch_unwind(AssertUnwindSafe(|| test(&backend))).is_err();
        println!("{name}: kernels are there");
    }
    for workload in all_workloads() {
        let outcome = compile_within(&backend, &workload.graph, workload.budget);
        if let Err(error) = outcome.map(|_| ())
            && !matches!(error, Error::Missing { .. })
        {
            failed = true;
            eprintln!("{}: {error}", workload.name);
        }
        println!("{}: kernels are there", workload.name);
    }
    match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Runs tests, and measures the workloads that have this in their names.
fn run_all(device: &str, tests: &[(&str, Test)], timed: Option<&str>) -> ExitCode {
    let backend = match backend_named(device) {
        Ok(backend) => backend,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failures = 0;
    println!("{} tests on {device}", tests.len());
    for (name, test) in tests {
        let passed = catch_unwind(AssertUnwindSafe(|| test(&*backend))).is_ok();
        failures += usize::from(!passed);
        println!("  {name}: {}", if passed { "ok" } else { "FAILED" });
    }
    let mut workloads = all_workloads();
    workloads.retain(|workload| timed.is_some_and(|name| workload.name.contains(name)));
    if !workloads.is_empty() {
        println!("timings on {device}: the median of five runs, after one that is not counted");
    }
    for workload in workloads {
        match measure(&*backend, &workload) {
            Ok(seconds) => println!("  {}", workload.describe(seconds)),
            Err(error) => {
                failures += 1;
                println!("  {}: {error}", workload.name);
            }
        }
    }
    println!("{failures} failed");
    match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The time of one step, in seconds.
fn measure(backend: &dyn Backend, workload: &Workload) -> Result<f64, Error> {
    let mut program = workload.start(backend)?;
    program.run()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        program.run()?;
        times.push(start.elapsed().as_secs_f64() / f64::from(workload.steps));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
