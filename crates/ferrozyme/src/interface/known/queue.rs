//! `VecDeque`: a ring in memory, which may start anywhere.
//!
//! The elements of a shadow are found by the slots of the primal's elements, so both rings must start in the same slot and have the same capacity. The
//! standard library does not say where a ring starts. But two of its four words are the length and the capacity, which can be queried; of the
//! others, the one that is a valid slot is the start, and the other is the address.

use std::collections::VecDeque;
use std::mem::MaybeUninit;

use crate::interface::{Differentiable, Field, Layout, Mismatch, Places};

const WORDS: usize = 4;

/// The position of a ring.
struct Ring<T> {
    slots: *mut T,
    /// The slot of the first element; of the next one, if there is none.
    first: usize,
}

impl<T> Ring<T> {
    /// None if it has no memory, because there is nothing to put there.
    fn of(queue: &VecDeque<T>) -> Option<Ring<T>> {
        if size_of::<T>() == 0 || queue.capacity() == 0 {
            return None;
        }
        match Ring::find(queue) {
            Some(ring) => Some(ring),
            None => refuse(),
        }
    }

    fn find(queue: &VecDeque<T>) -> Option<Ring<T>> {
        if size_of::<VecDeque<T>>() != WORDS * size_of::<usize>() {
            return None;
        }
        let start = (&raw const *queue).cast::<*mut T>();
        // SAFETY: the queue has as many words, and any of them can be read as an address.
        let words: [*mut T; WORDS] = [0, 1, 2, 3].map(|index| unsafe { start.add(index).read() });
        let capacity = queue.capacity();
        let place = |value: usize, not: usize| {
            (0..WORDS).find(|&index| index != not && words[index].addr() == value)
        };
        let length = place(queue.len(), WORDS)?;
        let room = place(capacity, length)?;
        let mut others = (0..WORDS).filter(|index| ![length, room].contains(index));
        let (one, other) = (words[others.next()?], words[others.next()?]);
        let (slots, first) = match (one.addr() < capacity, other.addr() < capacity) {
            (true, false) => (other, one.addr()),
            (false, true) => (one, other.addr()),
            _ => return None,
        };
        let is_there =
            |front: &T| slots.addr() + first * size_of::<T>() == (&raw const *front).addr();
        queue
            .front()
            .is_none_or(is_there)
            .then_some(Ring { slots, first })
    }
}

#[cold]
#[inline(never)]
fn refuse() -> ! {
    panic!(
        "the layout of `VecDeque` in this version of the standard library is unknown, so its shadow cannot be checked: use a `Vec`"
    );
}

fn first_slot<T>(queue: &VecDeque<T>) -> usize {
    Ring::of(queue).map_or(0, |ring| ring.first)
}

/// An empty queue whose ring has the same capacity as another, and starts in the same slot.
pub(crate) fn empty_like<T, S>(queue: &VecDeque<T>) -> VecDeque<S> {
    let mut empty = VecDeque::<S>::with_capacity(queue.capacity());
    let first = first_slot(queue);
    if size_of::<S>() == 0 || first == 0 {
        return empty;
    }
    // SAFETY: `MaybeUninit` elements have the same layout; the queue has no elements before and after.
    let turned = unsafe { &mut *(&raw mut empty).cast::<VecDeque<MaybeUninit<S>>>() };
    for _ in 0..first {
        turned.push_back(MaybeUninit::uninit());
        turned.pop_front();
    }
    empty
}

// SAFETY: the layout says nothing of the bytes, except that a queue is a vector with one more integer.
unsafe impl<T: Differentiable> Differentiable for VecDeque<T> {
    const LAYOUT: &'static Layout =
        &Layout::new::<VecDeque<T>>(const { &[Field::unknown(0, size_of::<VecDeque<T>>())] });
    const FROZEN: bool = true;
    const FLAT: bool = false;
    const SHARES_0: bool = false;
    const SHARES_1: bool = T::SHARES_0;
    const SHARES_2: bool = T::SHARES_1;
    const SHARES_3: bool = T::SHARES_2;

    fn places(&self, places: &mut Places) {
        let ring = Ring::of(self);
        let (slots, first) = ring.map_or((0, 0), |ring| (ring.slots.addr(), ring.first));
        places.memory(T::LAYOUT, self.iter(), slots, T::places);
        places.ring(first, self.len(), self.capacity());
    }

    #[inline]
    fn same_shape(&self, shadow: &VecDeque<T>) -> bool {
        self.len() == shadow.len()
            && self.capacity() == shadow.capacity()
            && first_slot(self) == first_slot(shadow)
            && (T::FLAT
                || self
                    .iter()
                    .zip(shadow)
                    .all(|(value, shadow)| value.same_shape(shadow)))
    }

    fn compare(&self, shadow: &VecDeque<T>) -> Result<(), Mismatch> {
        const HELP: &str = "(make it with `ferrozyme::shadow_of`)";
        Mismatch::lengths(self.len(), shadow.len())?;
        let (here, there) = (self.capacity(), shadow.capacity());
        if here != there {
            return Err(Mismatch::new(
                format!("capacity {here}"),
                format!("capacity {there} {HELP}"),
            ));
        }
        let (here, there) = (first_slot(self), first_slot(shadow));
        if here != there {
            return Err(Mismatch::new(
                format!("its first element in slot {here} of its memory"),
                format!("its first element in slot {there} {HELP}"),
            ));
        }
        for (index, (value, shadow)) in self.iter().zip(shadow).enumerate() {
            let step = |mismatch: Mismatch| mismatch.inside(format_args!("[{index}]"));
            value.compare(shadow).map_err(step)?;
        }
        Ok(())
    }

    fn fit(&self, shadow: &mut VecDeque<T>) {
        if let Some(Ring { slots, first }) = Ring::of(shadow) {
            let (capacity, end) = (shadow.capacity(), first + shadow.len());
            // Elements that the function adds start with a derivative of zero.
            // SAFETY: the slots are in the queue's memory, and hold no elements.
            unsafe {
                if end <= capacity {
                    slots.write_bytes(0, first);
                    slots.add(end).write_bytes(0, capacity - end);
                } else {
                    slots
                        .add(end - capacity)
                        .write_bytes(0, capacity - shadow.len());
                }
            }
        }
        if !T::FLAT {
            for (value, shadow) in self.iter().zip(shadow) {
                value.fit(shadow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow_of;

    #[test]
    fn rings_are_found() {
        for (room, by, length) in [
            (1, 0, 1),
            (2, 1, 1),
            (3, 2, 3),
            (4, 2, 2),
            (5, 4, 0),
            (8, 0, 0),
        ] {
            let mut queue = VecDeque::with_capacity(room);
            for _ in 0..by {
                queue.push_back(1.0);
                queue.pop_front();
            }
            queue.extend(vec![2.0; length]);
            assert_eq!(first_slot(&queue), by);
            let shadow = shadow_of(&queue);
            queue.compare(&shadow).expect("the same shape");
            assert_eq!(shadow, vec![0.0; length]);
        }
        assert_eq!(first_slot(&VecDeque::<f64>::new()), 0);
        assert_eq!(first_slot(&VecDeque::from([(), ()])), 0);
    }

    #[test]
    fn slots_without_elements_become_zero() {
        for by in 0..4 {
            let mut shadow = VecDeque::from([7.0; 4]);
            shadow.rotate_left(by);
            let mut queue = shadow_of(&shadow);
            for queue in [&mut queue, &mut shadow] {
                queue.pop_front();
                queue.pop_back();
            }
            assert!(queue.same_shape(&shadow));
            queue.fit(&mut shadow);
            assert_eq!(shadow, [7.0; 2]);
            let ring = Ring::of(&shadow).expect("it has memory");
            // SAFETY: all slots are elements, or were.
            let sum: f64 = (0..4)
                .map(|slot| unsafe { ring.slots.add(slot).read() })
                .sum();
            assert_eq!(sum, 14.0);
        }
    }
}
