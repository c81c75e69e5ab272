//! Loops: counted ones with all kinds of bounds, general ones that data ends, and what they carry.

use super::scope::{Array, Element, Float, Int, SMALL};
use super::writer::Writer;
use crate::feature::Feature;
use ferrozyme_ir::{IntPredicate, Opcode, Region, Type, Value};

/// The bounds of a counted loop and what follows from them.
struct Bounds {
    from: Value,
    to: Value,
    step: Value,
    /// Limits of the counter.
    min: i64,
    max: i64,
    /// How often it runs at most.
    trips: i64,
}

/// How a loop continues a carried value.
enum Carry {
    /// `a + e`.
    Sum,
    /// `½·a + e`.
    Decay,
    /// `a·(1 + sin(e)/8)`.
    Product,
    /// `sin(a + e)` or the like.
    Smooth,
    /// An integer that the body counts up.
    Count,
    /// A pointer that moves on by so many elements.
    Walk(i64),
    /// Two pointers that change places.
    Swap,
}

impl Writer<'_, '_> {
    fn bounds(&mut self) -> Bounds {
        let length = self.random().between(1, 6);
        let outer = (self.loops > 0)
            .then(|| {
                self.scope
                    .ints
                    .iter()
                    .rev()
                    .copied()
                    .find(|int| int.min >= 0 && int.max <= 8 && int.min < int.max)
            })
            .flatten();
        match self.random().below(16) {
            0..=3 => self.constant_bounds(0, length, 1),
            4 => {
                let from = self.random().between(-2, 2);
                let step = self.random().between(2, 3);
                self.constant_bounds(from, from + length, step)
            }
            5 => self.constant_bounds(length - 1, -1, -1),
            6 => {
                let step = -self.random().between(1, 3);
                self.constant_bounds(length, 0, step)
            }
            14 => self.computed_step(length),
            15 => self.narrow_bounds(length),
            7 => {
                // Never runs: empty, or the wrong way round.
                self.note(Feature::ZeroTrip);
                let from = self.random().between(0, 4);
                let back = self.random().between(0, 3);
                self.constant_bounds(from, from - back, 1)
            }
            8 | 9 => match self.parameter_bound() {
                Some(int) => {
                    self.note(Feature::ParameterFor);
                    Bounds {
                        from: self.int(0),
                        to: int.value,
                        step: self.int(1),
                        min: 0,
                        max: (int.max - 1).max(0),
                        trips: int.max.max(0),
                    }
                }
                None => self.constant_bounds(0, length, 1),
            },
            _ => match outer {
                Some(int) => self.dependent_bounds(int),
                None => self.constant_bounds(0, length, 1),
            },
        }
    }

    fn parameter_bound(&mut self) -> Option<Int> {
        let arguments = self.function.arguments();
        self.scope
            .ints
            .iter()
            .copied()
            .find(|int| arguments.contains(&int.value) && int.max <= 8)
    }

    fn constant_bounds(&mut self, from: i64, to: i64, step: i64) -> Bounds {
        self.note(if step < 0 {
            Feature::NegativeStep
        } else if step > 1 {
            Feature::LargeStep
        } else {
            Feature::ConstantFor
        });
        let distance = if step > 0 { to - from } else { from - to };
        let trips = if distance <= 0 {
            0
        } else {
            (distance as u64).div_ceil(step.unsigned_abs()) as i64
        };
        let last = from + step * (trips - 1).max(0);
        Bounds {
            from: self.int(from),
            to: self.int(to),
            step: self.int(step),
            min: from.min(last),
            max: from.max(last),
            trips,
        }
    }

    /// A step that is known only when the loop is entered; it is positive.
    fn computed_step(&mut self, length: i64) -> Bounds {
        self.note(Feature::ComputedStep);
        let int = self.small_int();
        let one = self.int(1);
        let step = self.b().binary(Opcode::Smax, int.value, one);
        Bounds {
            from: self.int(0),
            to: self.int(length),
            step,
            min: 0,
            max: length - 1,
            trips: length,
        }
    }

    /// A counter of 32 bits.
    fn narrow_bounds(&mut self, length: i64) -> Bounds {
        self.note(Feature::NarrowCounter);
        let narrow =
            |writer: &mut Self, value: i64| writer.function.int(Type::I32, i128::from(value));
        Bounds {
            from: narrow(self, 0),
            to: narrow(self, length),
            step: narrow(self, 1),
            min: 0,
            max: length - 1,
            trips: length,
        }
    }

    /// Bounds that depend on the counter of a loop around: triangles.
    fn dependent_bounds(&mut self, outer: Int) -> Bounds {
        self.note(Feature::DependentFor);
        match self.random().below(4) {
            0 => Bounds {
                from: self.int(0),
                to: outer.value,
                step: self.int(1),
                min: 0,
                max: (outer.max - 1).max(0),
                trips: outer.max,
            },
            1 => {
                let one = self.int(1);
                let to = self.b().binary(Opcode::Add, outer.value, one);
                Bounds {
                    from: self.int(0),
                    to,
                    step: self.int(1),
                    min: 0,
                    max: outer.max,
                    trips: outer.max + 1,
                }
            }
            2 => {
                let top = outer.max + 1;
                Bounds {
                    from: outer.value,
                    to: self.int(top),
                    step: self.int(1),
                    min: outer.min,
                    max: top - 1,
                    trips: top - outer.min,
                }
            }
            _ => Bounds {
                from: outer.value,
                to: self.int(-1),
                step: self.int(-1),
                min: 0,
                max: outer.max,
                trips: outer.max + 1,
            },
        }
    }

    pub(crate) fn counted_loop(&mut self) {
        let bounds = self.bounds();
        if !self.affords(bounds.trips.max(1) as u64) {
            return self.new_float();
        }
        if self.loops > 0 {
            self.note(Feature::NestedLoop);
        }
        let (carries, initial, arrays) = self.carried(bounds.trips);
        let (op, region) = self
            .b()
            .for_loop(bounds.from, bounds.to, bounds.step, &initial);
        let mut counter = self.function.regions[region].args[0];
        self.name(counter, "i");

        let (outer, mark) = self.enter(region);
        let weight = self.weight;
        self.weight *= bounds.trips.max(1) as u64;
        self.loops += 1;
        if self.function.ty(counter) != Type::I64 {
            counter = self.b().cast(Opcode::Sext, counter, Type::I64);
        }
        self.add_int(counter, bounds.min, bounds.max);
        let inside = self.function.regions[region].args[1..].to_vec();
        self.take_carried(&inside, &carries, &arrays, bounds.trips, true);
        let share = self.share();
        self.block(share);
        let next = self.next_carried(region, 1, &carries);
        self.release(mark);
        self.b().yields(&next);
        self.leave(outer);
        self.loops -= 1;
        self.weight = weight;

        let results = self.function.ops[op].results.to_vec();
        self.take_carried(&results, &carries, &arrays, bounds.trips, false);
    }

    /// What a loop of so many trips carries: how, the initial values, and the arrays behind carried pointers.
    fn carried(&mut self, trips: i64) -> (Vec<Carry>, Vec<Value>, Vec<Array>) {
        let mut carries = Vec::new();
        let mut initial = Vec::new();
        let mut arrays = Vec::new();
        let count = self.random().pick(&[0, 0, 1, 1, 1, 2, 3]);
        for _ in 0..count {
            match self.random().below(16) {
                0 => {
                    carries.push(Carry::Count);
                    let start = self.random().between(0, 2);
                    initial.push(self.int(start));
                }
                1 | 2 => {
                    let stride = self.random().between(1, 2);
                    let fits = |array: &Array| {
                        array.element == Element::Double && array.length > (trips - 1) * stride
                    };
                    if let Some(array) = self.pick_array(fits) {
                        self.note(Feature::CarriedPointer);
                        carries.push(Carry::Walk(stride));
                        initial.push(array.pointer);
                        arrays.push(Array { length: 1, ..array });
                    }
                }
                3 => {
                    let (a, b) = (self.pick_writable(), self.pick_writable());
                    if let (Some(a), Some(b)) = (a, b) {
                        self.note(Feature::Swapped);
                        carries.push(Carry::Swap);
                        initial.extend([a.pointer, b.pointer]);
                        arrays.push(Array {
                            length: a.length.min(b.length),
                            object: if a.object == b.object { a.object } else { None },
                            ..a
                        });
                    }
                }
                4..=8 => {
                    carries.push(Carry::Sum);
                    let start = self.small(1);
                    initial.push(start);
                }
                9 | 10 => {
                    carries.push(Carry::Product);
                    let start = self.small(1);
                    initial.push(start);
                }
                11..=13 => {
                    carries.push(Carry::Smooth);
                    let start = self.small(1);
                    initial.push(start);
                }
                _ => {
                    carries.push(Carry::Decay);
                    let start = self.small(1);
                    initial.push(start);
                }
            }
        }
        if !carries.is_empty() {
            self.note(Feature::Carried);
        }
        (carries, initial, arrays)
    }

    /// How large a carried float is at most.
    fn carried_bound(carry: &Carry, trips: i64) -> f64 {
        match carry {
            Carry::Sum => SMALL * (trips + 1) as f64,
            Carry::Decay => 2.0 * SMALL,
            Carry::Product => SMALL * 1.125f64.powi(trips as i32),
            _ => SMALL,
        }
    }

    /// Brings the values that a loop carries into scope: inside, or as its results.
    fn take_carried(
        &mut self,
        values: &[Value],
        carries: &[Carry],
        arrays: &[Array],
        trips: i64,
        inside: bool,
    ) {
        let mut values = values.iter().copied();
        let mut arrays = arrays.iter().copied();
        let mut next = || values.next().expect("one value for each that is carried");
        let mut array = || arrays.next().expect("arrays behind pointers are listed");
        for carry in carries {
            match carry {
                Carry::Count => {
                    let value = next();
                    self.add_int(value, 0, 2 + 3 * trips);
                }
                Carry::Walk(_) => {
                    let (pointer, array) = (next(), array());
                    // At the end the pointer may stand behind the array.
                    if inside {
                        self.scope.arrays.push(Array { pointer, ..array });
                    }
                }
                Carry::Swap => {
                    let array = array();
                    for pointer in [next(), next()] {
                        self.scope.arrays.push(Array { pointer, ..array });
                    }
                }
                _ => {
                    let value = next();
                    self.name(value, "acc");
                    self.add_float(value, Self::carried_bound(carry, trips));
                }
            }
        }
    }

    /// What the body makes of the carried values.
    fn next_carried(&mut self, region: Region, first: usize, carries: &[Carry]) -> Vec<Value> {
        let arguments = self.function.regions[region].args[first..].to_vec();
        let mut arguments = arguments.into_iter();
        let mut argument = || {
            arguments
                .next()
                .expect("one argument for each carried value")
        };
        let mut next = Vec::new();
        for carry in carries {
            let a = argument();
            match carry {
                Carry::Sum => {
                    let e = self.small(2);
                    next.push(self.b().binary(Opcode::Fadd, a, e));
                }
                Carry::Decay => {
                    let half = self.double(0.5);
                    let e = self.small(2);
                    next.push(self.b().fma(a, half, e));
                }
                Carry::Product => {
                    let e = self.float(1);
                    let sine = self.b().unary(Opcode::Sin, e.value);
                    let eighth = self.double(0.125);
                    let one = self.double(1.0);
                    let factor = self.b().fma(sine, eighth, one);
                    next.push(self.b().binary(Opcode::Fmul, a, factor));
                }
                Carry::Smooth => {
                    let e = self.small(2);
                    let sum = self.b().binary(Opcode::Fadd, a, e);
                    let bounded = self.squash(Float {
                        value: sum,
                        bound: 3.0 * SMALL,
                    });
                    next.push(bounded);
                }
                Carry::Count => {
                    let step = self.random().between(1, 3);
                    let step = self.int(step);
                    let counted = self.b().binary(Opcode::Add, a, step);
                    if self.random().percent(50) {
                        let condition = self.condition();
                        next.push(self.b().select(condition, counted, a));
                    } else {
                        next.push(counted);
                    }
                }
                Carry::Walk(stride) => {
                    let stride = self.int(*stride);
                    next.push(self.b().offset(a, stride, 8));
                }
                Carry::Swap => {
                    let b = argument();
                    next.extend([b, a]);
                }
            }
        }
        next
    }

    /// A `loop` that ends when its data says so, and after a few trips in any case.
    pub(crate) fn data_loop(&mut self) {
        let trips = self.random().between(1, 6);
        if !self.affords(trips as u64) {
            return self.new_float();
        }
        self.note(Feature::DataLoop);
        if self.loops > 0 {
            self.note(Feature::NestedLoop);
        }
        let zero = self.int(0);
        let (carries, carried, arrays) = self.carried(trips);
        let mut initial = vec![zero];
        initial.extend(carried);
        let (op, region) = self.b().loop_while(&initial);
        let (outer, mark) = self.enter(region);
        let weight = self.weight;
        self.weight *= trips as u64;
        self.loops += 1;
        let counter = self.function.regions[region].args[0];
        self.name(counter, "k");
        self.add_int(counter, 0, trips - 1);
        let inside = self.function.regions[region].args[1..].to_vec();
        self.take_carried(&inside, &carries, &arrays, trips, true);
        let share = self.share();
        self.block(share);
        let mut next = self.next_carried(region, 1, &carries);
        let one = self.int(1);
        let limit = self.int(trips);
        let count = self.b().binary(Opcode::Add, counter, one);
        let fewer = self.b().icmp(IntPredicate::Slt, count, limit);
        let goes_on = self.data_condition();
        let again = self.b().binary(Opcode::And, fewer, goes_on);
        self.release(mark);
        next.insert(0, count);
        self.b().again(again, &next);
        self.leave(outer);
        self.loops -= 1;
        self.weight = weight;
        let results = self.function.ops[op].results.to_vec();
        self.add_int(results[0], 1, trips);
        self.take_carried(&results[1..], &carries, &arrays, trips, false);
    }

    /// A `loop` that a condition in the middle of its body can leave, and another at its end.
    pub(crate) fn loop_with_exits(&mut self) {
        let trips = self.random().between(2, 6);
        if !self.affords(trips as u64) {
            return self.new_float();
        }
        self.note(Feature::SeveralExits);
        self.note(Feature::DataLoop);
        if self.loops > 0 {
            self.note(Feature::NestedLoop);
        }
        let zero = self.int(0);
        let start = self.small(1);
        let (op, region) = self.b().loop_while(&[zero, zero, start]);
        let (outer, mark) = self.enter(region);
        let weight = self.weight;
        self.weight *= trips as u64;
        self.loops += 1;
        let arguments = self.function.regions[region].args.to_vec();
        let (counter, a) = (arguments[0], arguments[2]);
        self.add_int(counter, 0, trips - 1);
        self.add_float(a, SMALL);
        let share = self.share();
        self.block(share);
        let leave = self.data_condition();
        let types = [Type::I1, Type::I64, Type::F64];
        let (inner, then_region, else_region) = self.b().if_else(leave, &types);
        // The first exit: the value as it is, or something made of it.
        let (around, inner_mark) = self.enter(then_region);
        let no = self.function.int(Type::I1, 0);
        let which = self.int(1);
        let value = if self.random().percent(50) {
            a
        } else {
            self.small(2)
        };
        self.release(inner_mark);
        self.b().yields(&[no, which, value]);
        self.leave(around);
        // The way on, which ends at a count.
        let (around, inner_mark) = self.enter(else_region);
        if self.random().percent(50) && self.depth < self.shared.profile.depth {
            self.statement();
        }
        let last = self.int(trips - 1);
        let more = self.b().icmp(IntPredicate::Slt, counter, last);
        let e = self.small(2);
        let product = self.b().binary(Opcode::Fmul, a, e);
        let value = self.squash(Float {
            value: product,
            bound: SMALL * SMALL,
        });
        let which = self.int(2);
        self.release(inner_mark);
        self.b().yields(&[more, which, value]);
        self.leave(around);
        let results = self.function.ops[inner].results.to_vec();
        let one = self.int(1);
        let count = self.b().binary(Opcode::Add, counter, one);
        self.release(mark);
        self.b().again(results[0], &[count, results[1], results[2]]);
        self.leave(outer);
        self.loops -= 1;
        self.weight = weight;
        let results = self.function.ops[op].results.to_vec();
        self.add_int(results[0], 1, trips);
        self.add_int(results[1], 1, 2);
        self.add_float(results[2], SMALL);
    }
}
