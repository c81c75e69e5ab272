//! The companions of values: the tangents of a float, or the shadow pointers of a pointer, one for each direction.

use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Function, Value};
use smallvec::SmallVec;

/// One value for each direction.
pub(crate) type Lanes = SmallVec<[Value; 4]>;

/// The companions of the values of a function.
pub(crate) struct Companions {
    width: usize,
    /// Where the companions of a value start in `lanes`, counted from 1; 0 where it has none.
    starts: SecondaryMap<Value, u32>,
    lanes: Vec<Value>,
}

impl Companions {
    pub(crate) fn new(width: usize) -> Companions {
        Companions {
            width,
            starts: SecondaryMap::new(),
            lanes: Vec::new(),
        }
    }

    /// How many companions a value has, if any.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The companions of a value. A float without them has the tangent zero.
    pub(crate) fn get(&self, value: Value) -> Option<&[Value]> {
        let start = (self.starts[value] as usize).checked_sub(1)?;
        Some(&self.lanes[start..start + self.width])
    }

    /// Gives a value its companions, and gives those names: `x'`, or `x'0`, `x'1` and so on.
    pub(crate) fn set(&mut self, function: &mut Function, value: Value, lanes: &[Value]) {
        debug_assert_eq!(lanes.len(), self.width);
        self.starts[value] = self.lanes.len() as u32 + 1;
        self.lanes.extend_from_slice(lanes);
        let Some(name) = function.values[value].name.clone() else {
            return;
        };
        for (lane, &companion) in lanes.iter().enumerate() {
            // The tangent of a sum with a constant is that of the other summand, which has its name.
            if function.values[companion].name.is_some() || function.is_constant(companion) {
                continue;
            }
            if self.width == 1 {
                function.set_name(companion, format!("{name}'"));
            } else {
                function.set_name(companion, format!("{name}'{lane}"));
            }
        }
    }
}
