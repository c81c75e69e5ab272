//! The verdict on a program after it was compiled and run, in one profile and in all.

use std::fmt;

/// What came of a program in one profile.
#[derive(Clone, Debug)]
pub enum Finding {
    /// It does not compile without derivatives either: a defect of the generator.
    Invalid(String),
    /// The compiler refuses to differentiate it.
    Refused(String),
    /// It ran to its end.
    Ran(Vec<Point>),
    /// It, or the compiler, crashed.
    Crashed(String),
    /// It, or the compiler, did not come to an end.
    Slow(String),
}

/// What came of a program at one point.
#[derive(Clone, Debug)]
pub enum Point {
    /// All derivatives agree. The value and the gradient.
    Right(Vec<f64>),
    /// Forward and reverse mode agree, and finite differences say nothing.
    Edge,
    /// The point is of no use: a panic, or a value beyond all bounds.
    Unclear,
    /// Derivatives differ.
    Wrong(String),
}

/// What came of a program in all profiles.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Right in all profiles that accepted it, of which there is one.
    Right,
    /// Refused in all profiles, or in some of them: the kind of refusal.
    Refused(String),
    /// Nothing could be compared.
    Unclear,
    /// It does not compile without derivatives either.
    Invalid(String),
    /// It failed: the kind and the details.
    Failed(Failure, String),
}

/// How a program fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// A derivative is wrong.
    Wrong,
    /// Derivatives differ between profiles.
    Differs,
    /// The compiler or the program crashed.
    Crash,
    /// The compiler or the program did not come to an end.
    Slow,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Failure::Wrong => "wrong",
            Failure::Differs => "differs",
            Failure::Crash => "crash",
            Failure::Slow => "slow",
        })
    }
}

/// Judges what came of a program in each profile.
pub fn judge(findings: &[(String, Finding)]) -> Verdict {
    let mut refusals = Vec::new();
    let mut runs: Vec<(&String, &Vec<Point>)> = Vec::new();
    for (profile, finding) in findings {
        match finding {
            Finding::Invalid(why) => return Verdict::Invalid(why.clone()),
            Finding::Crashed(how) => {
                return Verdict::Failed(Failure::Crash, format!("{profile}: {how}"));
            }
            Finding::Slow(how) => {
                return Verdict::Failed(Failure::Slow, format!("{profile}: {how}"));
            }
            Finding::Refused(kind) => refusals.push((profile, kind)),
            Finding::Ran(points) => {
                for point in points {
                    if let Point::Wrong(how) = point {
                        return Verdict::Failed(Failure::Wrong, format!("{profile}: {how}"));
                    }
                }
                runs.push((profile, points));
            }
        }
    }
    for pair in runs.windows(2) {
        if let Some(how) = difference(pair[0], pair[1]) {
            return Verdict::Failed(Failure::Differs, how);
        }
    }
    if let Some((profile, kind)) = refusals.first() {
        return Verdict::Refused(match refusals.len() == findings.len() {
            true => (*kind).clone(),
            false => format!("{kind} ({profile} only)"),
        });
    }
    let compared = |point: &Point| matches!(point, Point::Right(_) | Point::Edge);
    match runs.iter().any(|(_, points)| points.iter().any(compared)) {
        true => Verdict::Right,
        false => Verdict::Unclear,
    }
}

/// Where two profiles differ by more than rounding.
fn difference(one: (&String, &Vec<Point>), other: (&String, &Vec<Point>)) -> Option<String> {
    for (a, b) in one.1.iter().zip(other.1) {
        let (Point::Right(a), Point::Right(b)) = (a, b) else {
            continue;
        };
        let scale = a
            .iter()
            .fold(1.0_f64, |scale, number| scale.max(number.abs()));
        let differs = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-6 * scale;
        if a.iter().zip(b).any(differs) {
            return Some(format!(
                "value and gradient are {a:?} in {}, {b:?} in {}",
                one.0, other.0
            ));
        }
    }
    None
}
