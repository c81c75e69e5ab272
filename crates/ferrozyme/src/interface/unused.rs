//! Bytes of an enum that its current variant does not use.
//!
//! A value that a function stores there, after it has changed the variant, must start with a derivative of zero. But in a shadow these bytes hold the remains of another
//! variant, or were never written.

use super::described::tag_of;
use std::ops::Range;

/// The position of a field.
#[inline]
pub fn bytes_of<T>(field: &T) -> Range<usize> {
    let start = (&raw const *field).addr();
    start..start + size_of::<T>()
}

/// Zeroes all bytes of an enum except the given fields of its variant and the discriminant.
pub fn clear_unused<T>(value: &mut T, fields: &[Range<usize>]) {
    let place = (&raw mut *value).cast::<u8>();
    let tag = tag_of(value).map(|tag| place.addr() + tag.start..place.addr() + tag.end);
    let used = || {
        let all = fields.iter().chain(&tag);
        all.filter(|used| !used.is_empty())
    };
    let end = place.addr() + size_of::<T>();
    let mut at = place.addr();
    // There are few fields, and they need not be in order.
    while at < end {
        if let Some(field) = used().find(|used| used.contains(&at)) {
            at = field.end;
            continue;
        }
        let starts = used().map(|used| used.start).filter(|&start| start > at);
        let next = starts.min().unwrap_or(end);
        match tag {
            // SAFETY: the range is inside the value, and contains neither its discriminant nor a field.
            Some(_) => unsafe { place.add(at - place.addr()).write_bytes(0, next - at) },
            None => trial::clear(value, at..next),
        }
        at = next;
    }
}

/// Without the driver there are no derivatives, and nothing has to be cleared for them.
#[cfg(not(ferrozyme))]
mod trial {
    use super::Range;

    pub(super) fn clear<T>(_value: &mut T, _range: Range<usize>) {}
}

/// For types that the driver does not describe as an enum with floats: in derivatives that are differentiated again, without debug information, and for types whose contents it does not know.
/// On stable Rust the position of the discriminant is unknown. Bytes whose change alters the variant are restored, half by half.
///
/// Rust leaves it undefined to read a discriminant that belongs to no variant. This relies on the code that rustc generates for it in a function of its own: a load and a comparison.
#[cfg(ferrozyme)]
mod trial {
    use super::Range;
    use std::mem::{Discriminant, MaybeUninit, discriminant};

    /// Zeroes bytes that are in no field, except the discriminant.
    pub(super) fn clear<T>(value: &mut T, range: Range<usize>) {
        let value = &raw mut *value;
        clear_part(value, variant_of(value), range);
    }

    fn clear_part<T>(value: *mut T, variant: Discriminant<T>, range: Range<usize>) {
        let count = range.len();
        let mut saved = MaybeUninit::<T>::uninit();
        let saved = saved.as_mut_ptr().cast::<u8>();
        // SAFETY: the range is inside the value, and belongs to none of its fields, so nothing else reads it.
        unsafe {
            let start = value.cast::<u8>().add(range.start - value.addr());
            start.copy_to_nonoverlapping(saved, count);
            start.write_bytes(0, count);
            if variant_of(value) == variant {
                return;
            }
            start.copy_from_nonoverlapping(saved, count);
        }
        if count > 1 {
            let middle = range.start + count / 2;
            clear_part(value, variant, range.start..middle);
            clear_part(value, variant, middle..range.end);
        }
    }

    /// Not inlined, so that nothing is concluded from the variant that the caller knows.
    #[inline(never)]
    pub(super) fn variant_of<T>(value: *const T) -> Discriminant<T> {
        // SAFETY: the bytes of the discriminant are initialised; see the head of this module for the rest.
        discriminant(unsafe { &*value })
    }
}

#[cfg(all(test, ferrozyme))]
mod tests {
    use super::trial::variant_of;
    use super::*;
    use std::mem::MaybeUninit;

    /// The variant after all candidate bytes were overwritten.
    #[track_caller]
    fn check<T>(value: T, fields: impl Fn(&T) -> Vec<Range<usize>>, unused: usize) {
        let mut value = MaybeUninit::new(value);
        // SAFETY: it is initialised.
        let reference = unsafe { value.assume_init_mut() };
        let fields = fields(reference);
        clear_unused(reference, &fields);
        let place = &raw mut *reference;
        let (start, variant) = (place.cast::<u8>(), variant_of(place));
        let is_field = |at: &usize| fields.iter().any(|field| field.contains(at));
        let free = (start.addr()..start.addr() + size_of::<T>()).filter(|at| !is_field(at));
        let mut found = 0;
        for at in free {
            // SAFETY: in the value, and zeroed or part of the discriminant.
            unsafe {
                let byte = start.add(at - start.addr());
                let before = byte.read();
                found += usize::from(before == 0);
                assert!(
                    before == 0 || {
                        byte.write(0);
                        let changes = variant_of(place) != variant;
                        byte.write(before);
                        changes
                    }
                );
            }
        }
        assert_eq!(found, unused);
        // SAFETY: it is as it was.
        unsafe { value.assume_init_drop() };
    }

    #[test]
    fn only_fields_and_variants_stay() {
        enum Shape {
            Nothing,
            Number(u8, f64),
            Many(Vec<f64>),
        }
        check(None::<f64>, |_| vec![], 16);
        check(None::<Box<f64>>, |_| vec![], 8);
        check(None::<(f64, bool)>, |_| vec![], 15);
        // One more than the largest capacity is `None`.
        check(None::<Vec<f64>>, |_| vec![], 23);
        check(Some(1.0), |x| x.iter().map(bytes_of).collect(), 7);
        let fields = |shape: &Shape| match shape {
            Shape::Nothing => vec![],
            Shape::Number(a, b) => vec![bytes_of(b), bytes_of(a)],
            Shape::Many(rows) => vec![bytes_of(rows)],
        };
        check(Shape::Nothing, fields, 23);
        check(Shape::Number(7, 1.0), fields, size_of::<Shape>() - 9 - 2);
        check(Shape::Many(vec![1.0]), fields, size_of::<Shape>() - 24);
    }

    #[test]
    fn variants_need_not_start_at_zero() {
        #[repr(u16)]
        #[allow(dead_code)]
        enum Sparse {
            A(f64) = 0x101,
            B(f32) = 0x200,
        }
        let fields = |sparse: &Sparse| match sparse {
            Sparse::A(x) => vec![bytes_of(x)],
            Sparse::B(x) => vec![bytes_of(x)],
        };
        check(Sparse::A(1.0), fields, 6);
        check(Sparse::B(1.0), fields, 11);
    }
}
