//! Tests that are made once before a raised nest: what could not be proven of memory, but holds in nearly every program.

use super::arrays::Array;
use super::distinct::{Distinct, Moves, are_distinct};
use super::narrow::Fits;
use crate::alias::{Access, Aliases};
use crate::distribution::Meeting;
use crate::indices::is_loop;
use crate::ranges::{Place, RangeBuilder, Stretch};
use crate::recurrence::Counted;
use ferrozyme_ir::{Builder, FloatPredicate, Op, Opcode, Value};

/// A condition under which two accesses do not meet, or under which their places are known.
#[derive(Clone, PartialEq)]
pub(crate) enum Test {
    /// All that they touch over the nest lies apart.
    Apart(Box<[Stretch; 2]>),
    /// They are one place, which is another one in each iteration of the nest.
    Distinct(Distinct),
    /// Narrow arithmetic does not wrap.
    Fits(Box<Fits>),
}

/// What to test so that two accesses are known not to meet; none if no test is of use.
pub(super) fn test_for(
    aliases: &Aliases<'_>,
    place: &Place,
    meeting: &Meeting<'_>,
) -> Option<Test> {
    let Meeting { earlier, later } = meeting;
    if earlier.1 == later.1 && aliases.may_follow(earlier.0, later.0) {
        return None;
    }
    test_for_iterations(aliases, place, *earlier, *later)
}

/// What to test so that two accesses are known not to meet in different iterations of a nest, before which the test is made; none if no test is of use.
pub(crate) fn test_for_iterations(
    aliases: &Aliases<'_>,
    place: &Place,
    one: (Op, &Access),
    other: (Op, &Access),
) -> Option<Test> {
    if one.1 == other.1 {
        return distinct_over(aliases, place.op, one, other).map(Test::Distinct);
    }
    if one.1.root == other.1.root {
        return None;
    }
    test_apart(aliases, place, one.1, other.1)
}

/// The test whether all that two accesses touch lies apart.
pub(crate) fn test_apart(
    aliases: &Aliases<'_>,
    place: &Place,
    one: &Access,
    other: &Access,
) -> Option<Test> {
    let stretches = [one, other].map(|access| stretch_of(aliases, place, access));
    let [Some(one), Some(other)] = stretches else {
        return None;
    };
    Some(Test::Apart(Box::new([one, other])))
}

/// The bytes of an access, if it can be told before a nest between which addresses they lie.
pub(crate) fn stretch_of(aliases: &Aliases<'_>, place: &Place, access: &Access) -> Option<Stretch> {
    let size = access.size.as_ref()?;
    let stretch = Stretch::new(access.root, access.offset.clone(), size)?;
    place
        .is_bounded(aliases.function(), &stretch)
        .then_some(stretch)
}

/// Whether a place is another one in each iteration of the loops around two operations.
fn distinct_over(
    aliases: &Aliases<'_>,
    nest: Op,
    a: (Op, &Access),
    b: (Op, &Access),
) -> Option<Distinct> {
    let loops = loops_within(aliases, nest, a.0)?;
    if loops.len() != loops_within(aliases, nest, b.0)?.len() {
        return None;
    }
    let array = Array::of(aliases, a.1, &loops)?;
    let size = a.1.size.as_ref()?.is_constant()?;
    let moves = loops.iter().zip(&array.strides).map(|(counted, stride)| {
        let is_moved = stride.is_constant() != Some(0);
        let count = counted.trip_count().filter(|_| is_moved)?;
        Some(Moves {
            stride: stride.clone(),
            counts: vec![count],
            least: 1,
        })
    });
    let moves = moves.collect::<Option<Vec<Moves>>>()?;
    are_distinct(aliases, nest, &moves, size)
}

/// The counted loops from a nest inwards to an operation; none if there is another loop.
pub(super) fn loops_within(aliases: &Aliases<'_>, nest: Op, op: Op) -> Option<Vec<Counted>> {
    let structure = aliases.structure();
    let mut loops = Vec::new();
    let mut region = structure.region_of(op)?;
    loop {
        let holder = structure.op_of(region)?;
        if is_loop(aliases.function().ops[holder].opcode) {
            loops.push(aliases.indices().counted(holder)?.clone());
        }
        if holder == nest {
            loops.reverse();
            return Some(loops);
        }
        region = structure.region_of(holder)?;
    }
}

impl Test {
    /// Builds the test; none if it always holds.
    pub(crate) fn build(
        &self,
        b: &mut Builder<'_>,
        ranges: &mut RangeBuilder<'_>,
    ) -> Option<Value> {
        match self {
            Test::Distinct(distinct) => distinct.build(b),
            Test::Fits(fits) => Some(fits.build(b, ranges)),
            Test::Apart(stretches) => {
                let [[start, end], [other_start, other_end]] =
                    (stretches.each_ref()).map(|stretch| ranges.build(b, [stretch.clone()]));
                let before = b.fcmp(FloatPredicate::Ole, end, other_start);
                let behind = b.fcmp(FloatPredicate::Ole, other_end, start);
                Some(b.binary(Opcode::Or, before, behind))
            }
        }
    }
}
