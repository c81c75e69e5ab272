//! Bytes of an enum that its current variant does not use.
//!
//! A value that a function stores there, after it has changed the variant, must start with a derivative of zero. But in a shadow these bytes hold the remains of another
//! variant, or were never written.

use std::mem::{Discriminant, MaybeUninit, discriminant};
use std::ops::Range;

/// The position of a field.
#[inline]
pub fn bytes_of<T>(field: &T) -> Range<usize> {
    let start = (&raw const *field).addr();
    start..start + size_of::<T>()
}

/// Zeroes all bytes of an enum except the given fields of its variant and the discriminant.
pub fn clear_unused<T>(value: &mut T, fields: &[Range<usize>]) {
    let bytes = Bytes::of(value);
    let end = bytes.address + size_of::<T>();
    let mut at = bytes.address;
    // There are few fields, and they need not be in order.
    while at < end {
        match fields.iter().find(|field| field.contains(&at)) {
            Some(field) => at = field.end,
            None => {
                let starts = fields.iter().filter(|field| !field.is_empty());
                let starts = starts.map(|field| field.start).filter(|&start| start > at);
                let next = starts.min().unwrap_or(end);
                bytes.clear(at..next);
                at = next;
            }
        }
    }
}

/// An enum as bytes.
struct Bytes<T> {
    value: *mut T,
    address: usize,
    variant: Discriminant<T>,
}

impl<T> Bytes<T> {
    fn of(value: &mut T) -> Bytes<T> {
        let value = &raw mut *value;
        Bytes {
            value,
            address: value.addr(),
            variant: variant_of(value),
        }
    }

    /// Zeroes bytes that are in no field. On stable Rust the position of the discriminant is unknown: bytes whose change alters the variant are restored, half by half.
    fn clear(&self, range: Range<usize>) {
        let count = range.len();
        let mut saved = MaybeUninit::<T>::uninit();
        let saved = saved.as_mut_ptr().cast::<u8>();
        // SAFETY: the range is inside the value, and belongs to none of its fields, so nothing else reads it.
        unsafe {
            let start = self.value.cast::<u8>().add(range.start - self.address);
            start.copy_to_nonoverlapping(saved, count);
            start.write_bytes(0, count);
            if variant_of(self.value) == self.variant {
                return;
            }
            start.copy_from_nonoverlapping(saved, count);
        }
        if count > 1 {
            let middle = range.start + count / 2;
            self.clear(range.start..middle);
            self.clear(middle..range.end);
        }
    }
}

/// Not inlined, so that the compiler concludes nothing from the variant that the caller knows.
#[inline(never)]
fn variant_of<T>(value: *const T) -> Discriminant<T> {
    // SAFETY: the discriminant is initialised. It may be that of another variant, or invalid, while it is compared.
    discriminant(unsafe { &*value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variant after all candidate bytes were overwritten.
    #[track_caller]
    fn check<T>(value: T, fields: impl Fn(&T) -> Vec<Range<usize>>, unused: usize) {
        let mut value = MaybeUninit::new(value);
        // SAFETY: it is initialised.
        let reference = unsafe { value.assume_init_mut() };
        let fields = fields(reference);
        clear_unused(reference, &fields);
        let bytes = Bytes::of(reference);
        let start = bytes.value.cast::<u8>();
        let is_field = |at: &usize| fields.iter().any(|field| field.contains(at));
        let free = (bytes.address..bytes.address + size_of::<T>()).filter(|at| !is_field(at));
        let mut found = 0;
        for at in free {
            // SAFETY: in the value, and zeroed or part of the discriminant.
            unsafe {
                let byte = start.add(at - bytes.address);
                let before = byte.read();
                found += usize::from(before == 0);
                assert!(
                    before == 0 || {
                        byte.write(0);
                        let changes = variant_of(bytes.value) != bytes.variant;
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
