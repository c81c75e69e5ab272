//! Many programs, one batch after the other; failing ones are made small.

use crate::program::{Language, Program};
use crate::shrink::shrink;
use crate::tree::Tree;
use crate::verdict::{Failure, Finding, Verdict, judge};
use crate::workshop::Workshop;
use std::collections::BTreeMap;
use std::fmt;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The language of the programs.
    pub language: Language,
    /// The seed of the first program; the others follow.
    pub first: u64,
    /// How many programs.
    pub count: u64,
    /// How many at a time.
    pub batch: usize,
    /// In which profiles.
    pub profiles: Vec<String>,
    /// How many builds may be spent on making one program small.
    pub shrinking: usize,
    /// After how many failures to stop.
    pub failure_limit: usize,
}

/// A program that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Its seed.
    pub seed: u64,
    /// How it failed.
    pub failure: Failure,
    /// The findings.
    pub details: String,
    /// Its text, made small.
    pub text: String,
}

/// What came of all programs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many were right.
    pub right: u64,
    /// How many could not be judged.
    pub unclear: u64,
    /// How many were refused, by the kind of refusal.
    pub refused: BTreeMap<String, u64>,
    /// The first program of each kind of refusal.
    pub examples: BTreeMap<String, u64>,
    /// Programs that do not compile without derivatives either: seed and message.
    pub invalid: Vec<(u64, String)>,
    /// Those that failed.
    pub failed: Vec<Failed>,
}

impl Summary {
    /// How many programs there were.
    pub fn total(&self) -> u64 {
        let lists = self.invalid.len() + self.failed.len();
        self.right + self.unclear + self.refused.values().sum::<u64>() + lists as u64
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused: u64 = self.refused.values().sum();
        writeln!(
            formatter,
            "{} programs: {} right, {} refused, {} unclear, {} invalid, {} failed",
            self.total(),
            self.right,
            refused,
            self.unclear,
            self.invalid.len(),
            self.failed.len()
        )?;
        let mut kinds: Vec<(&String, &u64)> = self.refused.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (kind, count) in kinds {
            let seed = self.examples.get(kind).copied().unwrap_or_default();
            writeln!(formatter, "{count:7} refused: {kind} (seed {seed})")?;
        }
        for (seed, message) in self.invalid.iter().take(5) {
            let lines: Vec<&str> = message.lines().take(12).collect();
            writeln!(formatter, "invalid, seed {seed}: {}", lines.join("\n"))?;
        }
        for failed in &self.failed {
            let Failed {
                seed,
                failure,
                details,
                ..
            } = failed;
            let details: String = details.chars().take(300).collect();
            writeln!(formatter, "{failure}, seed {seed}: {details}")?;
        }
        Ok(())
    }
}

/// Generates, compiles, runs and judges programs. `progress` hears after each batch how many programs it had, and what is known so far; `failed` hears of each failure.
///
/// # Errors
///
/// If files cannot be written or commands cannot be started.
pub fn soak(
    plan: &Plan,
    workshop: &Workshop,
    progress: &mut dyn FnMut(u64, &Summary),
    failed: &mut dyn FnMut(&Failed) -> anyhow::Result<()>,
) -> anyhow::Result<Summary> {
    let mut summary = Summary::default();
    let seeds: Vec<u64> = (plan.first..plan.first + plan.count).collect();
    for batch in seeds.chunks(plan.batch.max(1)) {
        let programs: Vec<Program> = batch
            .iter()
            .map(|seed| plan.language.generate(*seed))
            .collect();
        for (program, verdict) in
            programs
                .iter()
                .zip(verdicts(workshop, &programs, &plan.profiles)?)
        {
            match verdict {
                Verdict::Right => summary.right += 1,
                Verdict::Unclear => summary.unclear += 1,
                Verdict::Refused(kind) => {
                    summary.examples.entry(kind.clone()).or_insert(program.seed);
                    *summary.refused.entry(kind).or_default() += 1;
                }
                Verdict::Invalid(message) => summary.invalid.push((program.seed, message)),
                Verdict::Failed(failure, details) => {
                    let small = reduce(plan, workshop, program, failure, &details)?;
                    let failure = Failed {
                        seed: program.seed,
                        failure,
                        details,
                        text: small.print(),
                    };
                    failed(&failure)?;
                    summary.failed.push(failure);
                }
            }
        }
        progress(batch.len() as u64, &summary);
        if summary.failed.len() >= plan.failure_limit {
            break;
        }
    }
    Ok(summary)
}

/// Judges programs by their results in all profiles.
///
/// # Errors
///
/// If files cannot be written or commands cannot be started.
pub fn verdicts(
    workshop: &Workshop,
    programs: &[Program],
    profiles: &[String],
) -> anyhow::Result<Vec<Verdict>> {
    let mut findings: Vec<Vec<(String, Finding)>> = vec![Vec::new(); programs.len()];
    for profile in profiles {
        let found = workshop.run(programs, profile)?;
        for (all, finding) in findings.iter_mut().zip(found) {
            all.push((profile.clone(), finding));
        }
    }
    Ok(findings.iter().map(|findings| judge(findings)).collect())
}

/// Makes a failing program small.
fn reduce(
    plan: &Plan,
    workshop: &Workshop,
    program: &Program,
    failure: Failure,
    details: &str,
) -> anyhow::Result<Tree> {
    // One profile is enough where one shows it.
    let shown = plan
        .profiles
        .iter()
        .find(|profile| details.starts_with(&format!("{profile}: ")));
    let profiles = match shown {
        Some(profile) => vec![profile.clone()],
        None => plan.profiles.clone(),
    };
    let mut error = None;
    let mut fail = |candidates: &[Tree]| {
        let programs: Vec<Program> = candidates
            .iter()
            .map(|tree| Program {
                tree: tree.clone(),
                ..program.clone()
            })
            .collect();
        match verdicts(workshop, &programs, &profiles) {
            Ok(verdicts) => verdicts
                .iter()
                .map(|verdict| matches!(verdict, Verdict::Failed(found, _) if *found == failure))
                .collect(),
            Err(new) => {
                error = Some(new);
                vec![false; candidates.len()]
            }
        }
    };
    let small = shrink(
        &program.tree,
        plan.language.number(),
        plan.shrinking,
        &mut fail,
    );
    match error {
        Some(error) => Err(error),
        None => Ok(small),
    }
}
