//! Checks the laws on many programs, in parallel, and shrinks failures.

use crate::feature::Feature;
use crate::laws::{Kind, Law, Subject, Tally, Violation, check};
use crate::profile::Profile;
use crate::program::generate;
use crate::shrink::{fails_the_same, shrink};
use ferrozyme_ir::{parse_module, print_module};
use rayon::prelude::*;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of the first program; the others follow.
    pub first: u64,
    /// How many programs.
    pub count: u64,
    /// What kind of programs; none for a mixture.
    pub profile: Option<&'static Profile>,
    /// Which laws.
    pub laws: Vec<Law>,
    /// When to stop in any case.
    pub time_limit: Option<Duration>,
    /// After how many failures to stop.
    pub failure_limit: usize,
    /// How many candidates a failing program may cost to make it small; 0 leaves it as it is.
    pub shrinking: usize,
}

impl Plan {
    /// The kind of program for a seed.
    pub fn profile_of(&self, seed: u64) -> &'static Profile {
        self.profile.unwrap_or_else(|| Profile::of_seed(seed))
    }
}

/// A program that breaks a law.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the program.
    pub seed: u64,
    /// What kind of program it is.
    pub profile: &'static str,
    /// The violated law.
    pub violation: Violation,
    /// The program, made small, as text.
    pub text: String,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many programs ran.
    pub programs: u64,
    /// Which failed, by seed.
    pub failures: Vec<Failure>,
    /// How often each law was checked.
    pub tally: Tally,
    /// In how many programs each feature occurred.
    pub features: Vec<u64>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Progress reports of a run.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'p> {
    /// This thread is about to check a program: that of a seed, or a candidate of shrinking.
    Checks(&'p Subject),
    /// This thread is done with its program, which may have broken a law.
    Finished(Option<&'p Failure>),
}

/// Runs the programs of a plan on the threads of the current pool. `progress` hears of each program, on its thread.
pub fn soak(plan: &Plan, progress: &(dyn Fn(Progress<'_>) + Sync)) -> Summary {
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let programs = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let (tally, features) = (plan.first..plan.first.saturating_add(plan.count))
        .into_par_iter()
        .fold(
            || (Tally::default(), vec![0u64; Feature::ALL.len()]),
            |(mut tally, mut features), seed| {
                let late = plan
                    .time_limit
                    .is_some_and(|limit| start.elapsed() >= limit);
                if late || stop.load(Ordering::Relaxed) {
                    return (tally, features);
                }
                let failure = try_seed(plan, seed, &mut tally, &mut features, progress);
                programs.fetch_add(1, Ordering::Relaxed);
                progress(Progress::Finished(failure.as_ref()));
                if let Some(failure) = failure {
                    let mut failures = failures.lock().unwrap_or_else(|error| error.into_inner());
                    failures.push(failure);
                    stop.fetch_or(failures.len() >= plan.failure_limit, Ordering::Relaxed);
                }
                (tally, features)
            },
        )
        .reduce(
            || (Tally::default(), vec![0u64; Feature::ALL.len()]),
            |(mut tally, mut features), (other_tally, other_features)| {
                tally.add(&other_tally);
                for (own, other) in features.iter_mut().zip(other_features) {
                    *own += other;
                }
                (tally, features)
            },
        );
    let mut failures = failures
        .into_inner()
        .unwrap_or_else(|error| error.into_inner());
    failures.sort_by_key(|failure| failure.seed);
    Summary {
        programs: programs.into_inner(),
        failures,
        tally,
        features,
        elapsed: start.elapsed(),
    }
}

/// Makes the program of a seed and checks it.
fn try_seed(
    plan: &Plan,
    seed: u64,
    tally: &mut Tally,
    features: &mut [u64],
    progress: &dyn Fn(Progress<'_>),
) -> Option<Failure> {
    let profile = plan.profile_of(seed);
    let program = generate(seed, profile);
    for feature in program.features.iter() {
        features[feature as usize] += 1;
    }
    let subject = Subject {
        module: program.module,
        main: program.main,
        seed,
    };
    if let Ok(inputs) = crate::inputs::Inputs::new(&subject.module, subject.main, seed) {
        features[Feature::AliasedInput as usize] += u64::from(inputs.aliased);
        let floats = inputs.arguments.iter().zip(&inputs.active);
        let constant = floats
            .filter(|(argument, active)| {
                !matches!(argument, crate::inputs::Argument::Int(..)) && !**active
            })
            .count();
        features[Feature::ConstArgument as usize] += u64::from(constant > 0);
    }
    progress(Progress::Checks(&subject));
    let violation = check(&subject, &plan.laws, tally).err()?;
    Some(describe(plan, profile, &subject, violation, progress))
}

/// Makes a failing program small and writes it down.
pub fn describe(
    plan: &Plan,
    profile: &Profile,
    subject: &Subject,
    violation: Violation,
    progress: &dyn Fn(Progress<'_>),
) -> Failure {
    let laws: Vec<Law> = (plan.laws.iter().copied())
        .filter(|&law| law == violation.law)
        .collect();
    let small = if plan.shrinking > 0 {
        let mut fails = fails_the_same(&violation, &laws);
        let mut fails = |candidate: &Subject| {
            progress(Progress::Checks(candidate));
            fails(candidate)
        };
        shrink(subject, &mut fails, plan.shrinking)
    } else {
        subject.clone()
    };
    let violation = check(&small, &laws, &mut Tally::default())
        .err()
        .unwrap_or(violation);
    let mut text = format!("; seed: {}\n; profile: {}\n", subject.seed, profile.name);
    text += &format!("; law: {}: {}\n", violation.law, violation.law.statement());
    let detail = violation.to_string();
    let mut lines = detail.lines();
    for line in lines.by_ref().take(12) {
        text += format!("; {line}").trim_end();
        text += "\n";
    }
    if lines.next().is_some() {
        text += "; …\n";
    }
    text += "\n";
    text += &print_module(&small.module);
    Failure {
        seed: subject.seed,
        profile: Profile::named(profile.name).map_or("", |profile| profile.name),
        violation,
        text,
    }
}

/// A program from text, as [`Failure::text`] has it: `@main` is checked, on the inputs of the seed in the head comment.
pub fn read_subject(text: &str) -> Result<Subject, String> {
    let module = parse_module(text).map_err(|error| error.to_string())?;
    let main = module
        .function_named("main")
        .ok_or("there is no function @main")?;
    let seed = text
        .lines()
        .take_while(|line| line.starts_with(';') || line.trim().is_empty())
        .find_map(|line| line.strip_prefix("; seed:"))
        .map_or(Ok(0), |seed| seed.trim().parse())
        .map_err(|error| format!("the seed in the head comment: {error}"))?;
    Ok(Subject { module, main, seed })
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(
            f,
            "{} programs, {} failures, {:.0} operations each, {:.1} s ({:.2} ms per program)",
            self.programs,
            self.failures.len(),
            self.tally.steps as f64 / self.programs.max(1) as f64,
            seconds,
            1e3 * seconds / self.programs.max(1) as f64,
        )?;
        writeln!(
            f,
            "\nlaw                      checked    skipped     broken"
        )?;
        for &law in Law::ALL {
            let broken = self.failures.iter().filter(|x| x.violation.law == law);
            writeln!(
                f,
                "{:<20} {:>11} {:>10} {:>10}",
                law.name(),
                self.tally.checked(law),
                self.tally.skipped(law),
                broken.count(),
            )?;
        }
        writeln!(f, "\nfeature                                    programs")?;
        for &feature in Feature::ALL {
            let count = self.features.get(feature as usize).copied().unwrap_or(0);
            writeln!(f, "{:<40} {count:>10}", feature.name())?;
        }
        let mut kinds: Vec<(Law, Kind)> = Vec::new();
        for failure in &self.failures {
            let kind = (failure.violation.law, failure.violation.kind);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for (law, kind) in kinds {
            let seeds: Vec<String> = (self.failures.iter())
                .filter(|x| x.violation.law == law && x.violation.kind == kind)
                .map(|x| x.seed.to_string())
                .collect();
            writeln!(
                f,
                "\n{law} ({kind:?}), {} times: {}",
                seeds.len(),
                seeds.join(" ")
            )?;
        }
        Ok(())
    }
}
