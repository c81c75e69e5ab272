//! A place between the operations of a region, where operations are inserted, moved and removed.
//!
//! Finding an operation and inserting before it takes time proportional to the region's length. A pass that edits many places of a region takes
//! all operations out of it ([`Function::take_ops`]) and appends them again, with new ones in between, by a builder at its end or with
//! [`Function::append`]. A pass that only removes operations filters them ([`Function::retain_ops`]).
//!
//! ```
//! use ferrozyme_ir::{Builder, Cursor, Function, Opcode, Type};
//! let mut function = Function::define("f", vec![Type::F64.into()], vec![Type::F64]);
//! let (x, body) = (function.arguments()[0], function.body());
//! let end = Builder::at_body(&mut function).ret(&[x]);
//! let before = Cursor::before(&function, body, end);
//! let square = Builder::at(&mut function, before).binary(Opcode::Fmul, x, x);
//! function.ops[end].values_mut()[0] = square;
//! assert_eq!(function.terminator(body), end);
//! ```

use crate::function::{Function, Op, Region};

/// A place between the operations of a region. Insertions and removals after it keep it valid; those before it make it invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    region: Region,
    /// The number of operations before it; none at the end of the region, however long that becomes.
    position: Option<usize>,
}

impl Cursor {
    /// Before all operations of a region.
    pub fn at_start(region: Region) -> Cursor {
        Cursor {
            region,
            position: Some(0),
        }
    }

    /// After all operations of a region.
    pub fn at_end(region: Region) -> Cursor {
        Cursor {
            region,
            position: None,
        }
    }

    /// Before an operation of a region.
    ///
    /// # Panics
    /// If the region does not hold it.
    pub fn before(function: &Function, region: Region, op: Op) -> Cursor {
        let mut ops = function.regions[region].ops.iter();
        let position = ops.position(|&other| other == op);
        Cursor {
            region,
            position: Some(position.expect("the region holds the operation")),
        }
    }

    /// After an operation of a region.
    ///
    /// # Panics
    /// If the region does not hold it.
    pub fn after(function: &Function, region: Region, op: Op) -> Cursor {
        let mut cursor = Cursor::before(function, region, op);
        cursor.position = cursor.position.map(|position| position + 1);
        cursor
    }

    /// Before the terminator of a region.
    pub fn before_terminator(function: &Function, region: Region) -> Cursor {
        Cursor {
            region,
            position: Some(function.regions[region].ops.len() - 1),
        }
    }

    /// The region that it is in.
    pub fn region(self) -> Region {
        self.region
    }

    /// The operation after it.
    pub fn op(self, function: &Function) -> Option<Op> {
        function.regions[self.region]
            .ops
            .get(self.position?)
            .copied()
    }

    /// Inserts an operation that is in no region, and moves past it.
    pub fn insert(&mut self, function: &mut Function, op: Op) {
        let ops = &mut function.regions[self.region].ops;
        match &mut self.position {
            Some(position) => {
                ops.insert(*position, op);
                *position += 1;
            }
            None => ops.push(op),
        }
    }

    /// Inserts operations that are in no region, and moves past them.
    pub fn insert_all(&mut self, function: &mut Function, inserted: Vec<Op>) {
        let ops = &mut function.regions[self.region].ops;
        match &mut self.position {
            Some(position) => {
                let before = *position;
                *position += inserted.len();
                ops.splice(before..before, inserted);
            }
            None => ops.extend(inserted),
        }
    }

    /// Removes the operation after it from the region.
    ///
    /// # Panics
    /// At the end of the region.
    pub fn remove(self, function: &mut Function) -> Op {
        let position = self.position.expect("there is an operation behind it");
        function.regions[self.region].ops.remove(position)
    }

    /// Replaces the operation after it by operations that are in no region, and moves past them.
    ///
    /// # Panics
    /// At the end of the region.
    pub fn replace(&mut self, function: &mut Function, with: Vec<Op>) {
        let at = self.position.expect("there is an operation behind it");
        self.position = Some(at + with.len());
        function.regions[self.region].ops.splice(at..=at, with);
    }
}

impl Function {
    /// Takes all operations out of a region; the pass appends them again.
    pub fn take_ops(&mut self, region: Region) -> Vec<Op> {
        let ops = &mut self.regions[region].ops;
        let room = Vec::with_capacity(ops.len());
        std::mem::replace(ops, room)
    }

    /// Appends an operation that is in no region to a region.
    pub fn append(&mut self, region: Region, op: Op) {
        self.regions[region].ops.push(op);
    }

    /// Removes the operations of a region for which `keep` returns false. It is called in their order, and may change the function, but not this region.
    pub fn retain_ops(&mut self, region: Region, mut keep: impl FnMut(&mut Function, Op) -> bool) {
        let mut ops = std::mem::take(&mut self.regions[region].ops);
        ops.retain(|&op| keep(self, op));
        self.regions[region].ops = ops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Type};

    /// A body with `count` operations that are distinguished by their numbers.
    fn numbered(count: usize) -> (Function, Region, Vec<Op>) {
        let mut function = Function::define("f", vec![Type::PTR.into()], vec![]);
        let (region, pointer) = (function.body(), function.arguments()[0]);
        let mut b = Builder::at_body(&mut function);
        let ops = (0..count).map(|_| b.free(pointer)).collect();
        (function, region, ops)
    }

    fn check(function: &Function, region: Region, expected: &[Op]) {
        assert_eq!(function.regions[region].ops, expected);
    }

    #[test]
    fn inserts_where_it_stands_and_stays_behind() {
        let (mut function, region, ops) = numbered(6);
        let &[a, b, c, d, e, f] = &ops[..] else {
            unreachable!("there are six")
        };
        function.take_ops(region);
        function.append(region, a);
        let mut cursor = Cursor::before(&function, region, a);
        cursor.insert(&mut function, b);
        cursor.insert_all(&mut function, vec![c, d]);
        assert_eq!(cursor.op(&function), Some(a));
        check(&function, region, &[b, c, d, a]);
        Cursor::after(&function, region, b).insert(&mut function, e);
        check(&function, region, &[b, e, c, d, a]);
        Cursor::before_terminator(&function, region).insert(&mut function, f);
        check(&function, region, &[b, e, c, d, f, a]);
    }

    #[test]
    fn the_end_stays_the_end() {
        let (mut function, region, ops) = numbered(3);
        function.take_ops(region);
        let mut end = Cursor::at_end(region);
        end.insert(&mut function, ops[0]);
        Cursor::at_start(region).insert(&mut function, ops[1]);
        end.insert_all(&mut function, vec![ops[2]]);
        assert_eq!(end.op(&function), None);
        check(&function, region, &[ops[1], ops[0], ops[2]]);
    }

    #[test]
    fn removes_moves_and_replaces() {
        let (mut function, region, ops) = numbered(6);
        let new = ops[4..].to_vec();
        function.retain_ops(region, |_, op| !new.contains(&op));
        let moved = Cursor::before(&function, region, ops[0]).remove(&mut function);
        Cursor::after(&function, region, ops[2]).insert(&mut function, moved);
        check(&function, region, &[ops[1], ops[2], ops[0], ops[3]]);
        let mut place = Cursor::before(&function, region, ops[2]);
        place.replace(&mut function, new.clone());
        assert_eq!(place.op(&function), Some(ops[0]));
        check(&function, region, &[ops[1], new[0], new[1], ops[0], ops[3]]);
        function.retain_ops(region, |_, op| op != ops[1]);
        check(&function, region, &[new[0], new[1], ops[0], ops[3]]);
    }

    #[test]
    #[should_panic(expected = "the region holds the operation")]
    fn an_operation_of_another_region_has_no_place() {
        let (mut function, region, ops) = numbered(1);
        let other = function.new_region(&[]);
        assert_eq!(Cursor::before(&function, region, ops[0]).region(), region);
        Cursor::before(&function, other, ops[0]);
    }
}
