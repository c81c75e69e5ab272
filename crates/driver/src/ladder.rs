//! The ladder of attempts: what else is tried before a derivative is refused, and which refusal is told in the end.
//!
//! The first attempt costs least. What it refuses may be accepted in another way, which takes more time or promises less. Each of these ways is a *rung* of the [`LADDER`], which [`climb`] goes through from the
//! bottom. There are two things to attempt: the derivative of one request ([`Scope::Request`]), and those of the whole program ([`Scope::Program`]), whose attempts climb the rungs of their requests.
//!
//! ```text
//! attempt          refused: FZ0302                told: FZ0302
//! resolved calls   refused: FZ0305                told: FZ0305, which the next rung lifts
//! shaped shadows   stays, so the climb starts again at the bottom
//!   attempt        refused: FZ0302                told: FZ0302, since FZ0305 was lifted
//!   resolved calls made
//! ```
//!
//! *Which refusal is told* is decided in one place ([`Told::add`]). It is the first one, since the first attempt is nearest to what the user wrote, but
//! - where a rung lifts what was told so far, it is what is refused after that: the old refusal is settled, the new one is what the user has to know;
//! - a refusal that a rung further up is meant for takes the place of one that none is, so that the climb goes on.
//!
//! No part of the differentiator makes attempts of its own. (`assume_constants` in `diff` repeats an analysis until its assumption holds; that decides nothing about refusals.)

use ferrozyme_diff as diff;
use ferrozyme_ir::Opcode;
use ferrozyme_refusal::Refusal;

/// What an attempt may have that the first one has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relaxation {
    /// Indirect calls whose targets the points-to analysis knows are direct calls, so that each target is differentiated as its call sites need it. Each call site may cost derivatives of its own.
    ResolvedCalls,
    /// Shadows of slices are made for the call, so that floats and pointers in them can be told apart. They are copied in and out.
    ShapedShadows,
    /// A function that may be called through a pointer and has no derivative stops the program where it is called.
    FewerChoices,
    /// Calls through pointers of the caller's are choices between functions of the program. All that might be meant is brought in.
    Choices,
    /// What has no derivative stops the program where the derivative is called (`refuse=late`).
    LateRefusals,
}

/// What is attempted in several ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The derivative of one request.
    Request,
    /// The derivatives of a program.
    Program,
}

/// Which refusals a rung is meant for.
#[derive(Clone, Copy)]
enum Lifts {
    /// None in particular: it may help with any.
    None,
    /// Those of a kind.
    Some(fn(&diff::Error) -> bool),
    /// Whatever it is taken for.
    All,
}

/// One further attempt.
pub(crate) struct Rung {
    pub(crate) relaxation: Relaxation,
    scope: Scope,
    /// Whether all later attempts have it too. After such a rung the climb starts again at the bottom.
    stays: bool,
    lifts: Lifts,
    /// What derivatives that it helps to are made with, for `explain`.
    pub(crate) shown: &'static str,
}

/// All further attempts, in the order in which they are made.
pub(crate) static LADDER: [Rung; 5] = [
    // Not at once, since most indirect calls have derivatives without it.
    Rung {
        relaxation: Relaxation::ResolvedCalls,
        scope: Scope::Request,
        stays: false,
        lifts: Lifts::None,
        shown: "indirect calls resolved where their targets are known",
    },
    Rung {
        relaxation: Relaxation::ShapedShadows,
        scope: Scope::Request,
        stays: true,
        lifts: Lifts::Some(|error| error.refusal == Refusal::UnionOfCaller),
        shown: "shadows that are made for each call",
    },
    // Only after all else, since the program may stop.
    Rung {
        relaxation: Relaxation::FewerChoices,
        scope: Scope::Request,
        stays: true,
        lifts: Lifts::All,
        shown: "functions behind pointers that stop the program",
    },
    // Not at once, since most function pointers are known after inlining, and those in objects that the differentiated function makes have shadows.
    Rung {
        relaxation: Relaxation::Choices,
        scope: Scope::Program,
        stays: true,
        lifts: Lifts::Some(|error| error.is_at(Opcode::CallIndirect)),
        shown: "calls through pointers as choices between functions of the program",
    },
    Rung {
        relaxation: Relaxation::LateRefusals,
        scope: Scope::Program,
        stays: true,
        lifts: Lifts::All,
        shown: "refusals when the program runs",
    },
];

/// Something that can be attempted in several ways.
pub(crate) trait Attempts {
    type Made;
    type Refused: Refused;
    const SCOPE: Scope;

    /// Attempts it with what is relaxed. Nothing stays of what was refused.
    fn attempt(&mut self) -> Result<Self::Made, Self::Refused>;

    /// Relaxes something. Whether that may make a difference to what was refused.
    fn relax(&mut self, relaxation: Relaxation, told: &Self::Refused) -> bool;

    /// Takes back what is relaxed for one attempt only.
    fn take_back(&mut self, _relaxation: Relaxation) {}
}

/// Why an attempt failed.
pub(crate) trait Refused {
    /// What the differentiator said.
    fn errors(&self) -> &[diff::Error];

    /// Whether there is nothing to say but what was said before.
    fn is_silent(&self) -> bool {
        false
    }
}

impl Lifts {
    /// Whether one of these refusals is of the kind that is meant.
    fn is_kind_of(self, refused: &impl Refused) -> bool {
        match self {
            Lifts::Some(is_meant) => refused.errors().iter().any(is_meant),
            Lifts::None | Lifts::All => false,
        }
    }

    fn includes(self, refused: &impl Refused) -> bool {
        matches!(self, Lifts::All) || self.is_kind_of(refused)
    }
}

/// Attempts something in all ways that may help.
///
/// # Errors
/// The refusal that says most, if all are refused.
pub(crate) fn climb<A: Attempts>(attempts: &mut A) -> Result<A::Made, A::Refused> {
    let is_meant = |rung: &&Rung| rung.scope == A::SCOPE;
    let mut told = match attempts.attempt() {
        Ok(made) => return Ok(made),
        Err(refused) => refused,
    };
    let mut above = LADDER.iter().filter(is_meant);
    while let Some(rung) = above.find(|rung| attempts.relax(rung.relaxation, &told)) {
        if rung.stays {
            above = LADDER.iter().filter(is_meant);
        }
        match attempts.attempt() {
            Ok(made) => return Ok(made),
            Err(refused) if says_more(&refused, &told, rung, above.clone()) => told = refused,
            Err(_) => {}
        }
        if !rung.stays {
            attempts.take_back(rung.relaxation);
        }
    }
    Err(told)
}

/// Whether what the attempt on a rung was refused for is told instead of what was told before. `above` are the rungs that come next.
fn says_more<'r>(
    refused: &impl Refused,
    before: &impl Refused,
    taken: &Rung,
    mut above: impl Iterator<Item = &'r Rung>,
) -> bool {
    let is_settled = taken.lifts.includes(before);
    let leads_on = |rung: &Rung| rung.lifts.is_kind_of(refused) && !rung.lifts.is_kind_of(before);
    !refused.is_silent() && (is_settled || above.any(leads_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is attempted needs some relaxations, and is refused for this or that before.
    struct Scripted {
        /// What is refused with which relaxations; all else is made.
        refused: Vec<(Vec<Relaxation>, Refusal)>,
        relaxed: Vec<Relaxation>,
        /// How often choices can be given up.
        choices: usize,
        attempts: Vec<Vec<Relaxation>>,
    }

    impl Refused for Vec<diff::Error> {
        fn errors(&self) -> &[diff::Error] {
            self
        }
    }

    impl Attempts for Scripted {
        type Made = ();
        type Refused = Vec<diff::Error>;
        const SCOPE: Scope = Scope::Request;

        fn attempt(&mut self) -> Result<(), Vec<diff::Error>> {
            self.attempts.push(self.relaxed.clone());
            let mut refused = self.refused.iter();
            match refused.find(|(relaxed, _)| *relaxed == self.relaxed) {
                Some((_, refusal)) => Err(vec![diff::Error::of("f", refusal.clone())]),
                None => Ok(()),
            }
        }

        fn relax(&mut self, relaxation: Relaxation, told: &Vec<diff::Error>) -> bool {
            let helps = match relaxation {
                Relaxation::ResolvedCalls => true,
                Relaxation::ShapedShadows => {
                    told[0].refusal == Refusal::UnionOfCaller && !self.relaxed.contains(&relaxation)
                }
                Relaxation::FewerChoices => self.choices > 0,
                Relaxation::Choices | Relaxation::LateRefusals => {
                    unreachable!("these are for programs")
                }
            };
            if helps {
                self.relaxed.push(relaxation);
                self.choices -= usize::from(relaxation == Relaxation::FewerChoices);
            }
            helps
        }

        fn take_back(&mut self, relaxation: Relaxation) {
            self.relaxed.retain(|&other| other != relaxation);
        }
    }

    use Relaxation::{FewerChoices, ResolvedCalls, ShapedShadows};

    /// What comes of attempts, and which were made.
    fn climbed(
        choices: usize,
        refused: &[(&[Relaxation], Refusal)],
    ) -> (Option<Refusal>, Vec<Vec<Relaxation>>) {
        let refused = refused.iter().map(|(r, why)| (r.to_vec(), why.clone()));
        let mut scripted = Scripted {
            refused: refused.collect(),
            relaxed: Vec::new(),
            choices,
            attempts: Vec::new(),
        };
        let told = climb(&mut scripted).err();
        (told.map(|told| told[0].refusal.clone()), scripted.attempts)
    }

    #[test]
    fn what_is_made_at_once_is_not_attempted_again() {
        assert_eq!(climbed(1, &[]), (None, vec![vec![]]));
    }

    #[test]
    fn the_first_refusal_is_told_where_nothing_settles_it() {
        let refused = [
            (&[][..], Refusal::UnknownLayout),
            (&[ResolvedCalls][..], Refusal::GivenCode),
        ];
        let attempts = vec![vec![], vec![ResolvedCalls]];
        assert_eq!(
            climbed(0, &refused),
            (Some(Refusal::UnknownLayout), attempts)
        );
    }

    #[test]
    fn what_stays_is_in_all_later_attempts() {
        let refused = [
            (&[][..], Refusal::UnionOfCaller),
            (&[ResolvedCalls][..], Refusal::UnknownLayout),
            (&[ShapedShadows][..], Refusal::UnknownLayout),
        ];
        let attempts = vec![
            vec![],
            vec![ResolvedCalls],
            vec![ShapedShadows],
            vec![ShapedShadows, ResolvedCalls],
        ];
        assert_eq!(climbed(0, &refused), (None, attempts));
    }

    #[test]
    fn a_refusal_that_the_next_rung_lifts_leads_on() {
        let refused = [
            (&[][..], Refusal::UnknownLayout),
            (&[ResolvedCalls][..], Refusal::UnionOfCaller),
        ];
        let attempts = vec![vec![], vec![ResolvedCalls], vec![ShapedShadows]];
        assert_eq!(climbed(0, &refused), (None, attempts));
    }

    #[test]
    fn what_is_left_is_told_where_a_refusal_is_settled() {
        let refused = [
            (&[][..], Refusal::UnionOfCaller),
            (&[ResolvedCalls][..], Refusal::UnionOfCaller),
            (&[ShapedShadows][..], Refusal::Thread),
            (&[ShapedShadows, ResolvedCalls][..], Refusal::UnknownLayout),
        ];
        assert_eq!(climbed(0, &refused).0, Some(Refusal::Thread));
    }

    #[test]
    fn choices_are_given_up_as_long_as_that_helps() {
        let refused = [
            (&[][..], Refusal::UnknownLayout),
            (&[ResolvedCalls][..], Refusal::UnknownLayout),
            (&[FewerChoices][..], Refusal::Thread),
            (&[FewerChoices, ResolvedCalls][..], Refusal::Thread),
        ];
        let (told, attempts) = climbed(2, &refused);
        assert_eq!(told, None);
        assert_eq!(attempts.last(), Some(&vec![FewerChoices, FewerChoices]));
        assert_eq!(climbed(1, &refused).0, Some(Refusal::Thread));
    }

    #[test]
    fn each_relaxation_has_one_rung() {
        for (index, rung) in LADDER.iter().enumerate() {
            let same = |other: &&Rung| other.relaxation == rung.relaxation;
            assert_eq!(LADDER.iter().filter(same).count(), 1, "rung {index}");
            // What is taken back could otherwise be taken again for ever.
            assert!(
                rung.stays || matches!(rung.lifts, Lifts::None),
                "rung {index}"
            );
        }
    }
}
