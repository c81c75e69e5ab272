//! Checks the laws of the compiler on random programs, as many as requested.
//!
//! ```text
//! cargo run --release -p ferrozyme-gen --bin soak -- --count 1000000 --seed 1
//! cargo run --release -p ferrozyme-gen --bin soak -- --replay 4711
//! cargo run --release -p ferrozyme-gen --bin soak -- --replay failures/reverse-4711.fz
//! ```
//!
//! Failing programs are made small and written to a directory. The exit code says whether there were any.

use anyhow::{Context, bail};
use clap::Parser;
use ferrozyme_gen::laws::{Law, Subject, Tally, check, remember_panics};
use ferrozyme_gen::shrink::shrink;
use ferrozyme_gen::soak::{Failure, Plan, Progress, describe, read_subject, soak};
use ferrozyme_gen::{Profile, generate};
use ferrozyme_ir::print_module;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Random programs against the laws of the compiler.
#[derive(Parser)]
struct Arguments {
    /// How many programs to run.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The seed of the first program; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads [default: number of processors].
    #[arg(long)]
    threads: Option<usize>,
    /// Which laws to check, separated by commas [default: all].
    #[arg(long, value_delimiter = ',', value_parser = parse_law)]
    laws: Vec<Law>,
    /// What kind of programs to make [default: a mixture].
    #[arg(long, value_parser = parse_profile)]
    profile: Option<&'static Profile>,
    /// After how many seconds to stop.
    #[arg(long)]
    time_limit: Option<u64>,
    /// After how many failures to stop.
    #[arg(long, default_value_t = 20)]
    failures: usize,
    /// How many candidates to try to make a failing program small; 0 to leave it as it is.
    #[arg(long, default_value_t = 4000)]
    shrinking: usize,
    /// Time limit for one program, in seconds.
    #[arg(long, default_value_t = 30)]
    patience: u64,
    /// Where failing programs go.
    #[arg(long, default_value = "soak-failures")]
    output: PathBuf,
    /// Checks the program of one seed, or of a file.
    #[arg(long, value_name = "SEED|FILE")]
    replay: Option<String>,
    /// Makes a program small on which the compiler gets stuck, trying each candidate in a process of its own.
    #[arg(long, value_name = "FILE")]
    unstick: Option<PathBuf>,
    /// Prints the program of a seed.
    #[arg(long, value_name = "SEED")]
    show: Option<u64>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let plan = Plan {
        first: arguments.seed,
        count: arguments.count,
        profile: arguments.profile,
        laws: if arguments.laws.is_empty() {
            Law::ALL.to_vec()
        } else {
            arguments.laws.clone()
        },
        time_limit: arguments.time_limit.map(Duration::from_secs),
        failure_limit: arguments.failures,
        shrinking: arguments.shrinking,
    };
    remember_panics();
    if let Some(seed) = arguments.show {
        let program = generate(seed, plan.profile_of(seed));
        print!("{}", print_module(&program.module));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &arguments.unstick {
        return unstick(&plan, file, &arguments);
    }
    match &arguments.replay {
        Some(what) => replay(&plan, what, &arguments),
        None => run(&plan, &arguments),
    }
}

fn run(plan: &Plan, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = arguments.threads {
        pool = pool.num_threads(threads);
    }
    let pool = pool.build().context("threads could not be started")?;
    let bar = ProgressBar::new(plan.count).with_style(ProgressStyle::with_template(
        "{elapsed_precise} {wide_bar} {human_pos}/{human_len} {per_sec} {msg}",
    )?);
    let failed = AtomicU64::new(0);
    let watch = Arc::new(Watch::default());
    let patience = Duration::from_secs(arguments.patience);
    watch.clone().start(patience, arguments.output.clone());
    let progress = |progress: Progress<'_>| {
        watch.note(progress);
        let Progress::Finished(failure) = progress else {
            return;
        };
        bar.inc(1);
        if let Some(failure) = failure {
            let failures = failed.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{failures} failures"));
            if let Err(error) = write(failure, &arguments.output) {
                bar.println(format!("{error:#}"));
            }
        }
    };
    let summary = pool.install(|| soak(plan, &progress));
    bar.finish_and_clear();
    print!("{summary}");
    if summary.failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("the programs are in {}", arguments.output.display());
    Ok(ExitCode::FAILURE)
}

/// Writes a failing program to the directory of failures.
fn write(failure: &Failure, output: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(output)
        .with_context(|| format!("{} could not be made", output.display()))?;
    let path = output.join(format!("{}-{}.fz", failure.violation.law, failure.seed));
    std::fs::write(&path, &failure.text)
        .with_context(|| format!("{} could not be written", path.display()))
}

/// Records which programs are being checked: a compiler that hangs or uses all memory cannot report itself.
#[derive(Default)]
struct Watch {
    running: Mutex<HashMap<ThreadId, (Subject, Instant)>>,
}

impl Watch {
    fn running(&self) -> MutexGuard<'_, HashMap<ThreadId, (Subject, Instant)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what this thread does.
    fn note(&self, progress: Progress<'_>) {
        let thread = std::thread::current().id();
        match progress {
            Progress::Checks(subject) => {
                let entry = (subject.clone(), Instant::now());
                self.running().insert(thread, entry);
            }
            Progress::Finished(_) => {
                self.running().remove(&thread);
            }
        }
    }

    /// Ends the process when a program takes too long or memory grows beyond reason; those under way are written down.
    fn start(self: Arc<Self>, patience: Duration, output: PathBuf) {
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(20));
                let running = self.running();
                let late = running
                    .values()
                    .any(|(_, since)| since.elapsed() > patience);
                let large = resident_bytes() > MEMORY_LIMIT;
                if !late && !large {
                    continue;
                }
                let what = if late { "too long" } else { "too much memory" };
                eprintln!("\none of these programs takes {what}:");
                let _ = std::fs::create_dir_all(&output);
                for (subject, since) in running.values() {
                    let seconds = since.elapsed().as_secs_f64();
                    let path = output.join(format!("stuck-{}.fz", subject.seed));
                    let text = print_module(&subject.module);
                    let _ = std::fs::write(&path, format!("; seed: {}\n{text}", subject.seed));
                    eprintln!("{} ({seconds:.1} s)", path.display());
                }
                std::process::exit(STUCK);
            }
        });
    }
}

/// How much memory this process uses, where the system tells.
fn resident_bytes() -> u64 {
    let statistics = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statistics
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * 4096
}

/// The exit code when a program takes too long or too much memory.
const STUCK: i32 = 3;

/// How much memory a run may use.
const MEMORY_LIMIT: u64 = 4 << 30;

/// Checks one program and prints it, made small, if it fails.
fn replay(plan: &Plan, what: &str, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (subject, profile) = match what.parse::<u64>() {
        Ok(seed) => {
            let profile = plan.profile_of(seed);
            let program = generate(seed, profile);
            let subject = Subject {
                module: program.module,
                main: program.main,
                seed,
            };
            (subject, profile)
        }
        Err(_) => {
            let text =
                std::fs::read_to_string(what).with_context(|| format!("{what} cannot be read"))?;
            match read_subject(&text) {
                Ok(subject) => (subject, plan.profile_of(0)),
                Err(message) => bail!("{what}: {message}"),
            }
        }
    };
    let watch = Arc::new(Watch::default());
    watch.note(Progress::Checks(&subject));
    let patience = Duration::from_secs(arguments.patience);
    watch.clone().start(patience, arguments.output.clone());
    match check(&subject, &plan.laws, &mut Tally::default()) {
        Ok(()) => {
            println!("all laws hold");
            Ok(ExitCode::SUCCESS)
        }
        Err(violation) => {
            let note = |progress: Progress<'_>| watch.note(progress);
            let failure = describe(plan, profile, &subject, violation, &note);
            // The reader may have closed the pipe.
            let _ = writeln!(std::io::stdout(), "{}", failure.text);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Makes a program small on which the compiler gets stuck, and prints it.
fn unstick(plan: &Plan, file: &Path, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let subject = match read_subject(&text) {
        Ok(subject) => subject,
        Err(message) => bail!("{}: {message}", file.display()),
    };
    let program = std::env::current_exe().context("this program cannot be found")?;
    let scratch = std::env::temp_dir().join(format!("soak-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let candidate_file = scratch.join("candidate.fz");
    let laws: Vec<&str> = plan.laws.iter().map(|law| law.name()).collect();
    let with_seed = |subject: &Subject| {
        format!(
            "; seed: {}\n{}",
            subject.seed,
            print_module(&subject.module)
        )
    };
    let mut sticks = |candidate: &Subject| {
        let valid = check(candidate, &[Law::Text, Law::Run], &mut Tally::default()).is_ok();
        if !valid || std::fs::write(&candidate_file, with_seed(candidate)).is_err() {
            return false;
        }
        let status = Command::new(&program)
            .arg("--replay")
            .arg(&candidate_file)
            .args(["--laws", &laws.join(","), "--shrinking", "0", "--output"])
            .arg(&scratch)
            .args(["--patience", &arguments.patience.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.code() == Some(STUCK))
    };
    let stuck = sticks(&subject);
    if stuck {
        let small = shrink(&subject, &mut sticks, plan.shrinking);
        print!("{}", with_seed(&small));
    } else {
        println!("the compiler does not get stuck on it");
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(ExitCode::from(u8::from(stuck)))
}

fn parse_law(name: &str) -> Result<Law, String> {
    Law::named(name).ok_or_else(|| {
        let names: Vec<&str> = Law::ALL.iter().map(|law| law.name()).collect();
        format!("there is no such law; there are {}", names.join(", "))
    })
}

fn parse_profile(name: &str) -> Result<&'static Profile, String> {
    Profile::named(name).ok_or_else(|| {
        let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("there is no such profile; there are {}", names.join(", "))
    })
}
