//! Bytes of an enum that its current variant does not use.
//!
//! A value that a function stores there, after it has changed the variant, must start with a derivative of zero. But in a shadow these bytes hold the remains of another
//! variant, or were never written.
//!
//! Stable Rust does not say where an enum keeps its tag, the bytes that tell the variant. Debug information does: the driver replaces each call of [`__ferrozyme_request_tag`] by a number,
//! also in derivatives that are differentiated again. Where there is no such debug information, the program is stopped.

use std::any::type_name;
use std::ops::Range;

/// The position of a field.
#[inline]
pub fn bytes_of<T>(field: &T) -> Range<usize> {
    let start = (&raw const *field).addr();
    start..start + size_of::<T>()
}

/// Zeroes all bytes of an enum except the given fields of its variant and its tag.
pub fn clear_unused<T>(value: &mut T, fields: &[Range<usize>]) {
    // Without the driver there are no derivatives, and nothing has to be cleared for them.
    if !cfg!(ferrozyme) {
        return;
    }
    let Some(tag) = tag_of::<T>() else {
        refuse_unknown(type_name::<T>());
    };
    // SAFETY: debug information says where the tag is.
    unsafe { clear_except(value, fields, tag) }
}

/// Zeroes all bytes of an enum except the given fields of its variant and its tag.
///
/// # Safety
/// The bytes that tell the variant are among those of the tag.
unsafe fn clear_except<T>(value: &mut T, fields: &[Range<usize>], tag: Range<usize>) {
    let place = (&raw mut *value).cast::<u8>();
    let tag = place.addr() + tag.start..place.addr() + tag.end;
    let used = || {
        let all = fields.iter().chain([&tag]);
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
        // SAFETY: the range is inside the value, and contains neither its tag nor a field.
        unsafe { place.add(at - place.addr()).write_bytes(0, next - at) };
        at = next;
    }
}

#[cfg(ferrozyme)]
unsafe extern "C" {
    /// Replaced by the driver with the position of the tag of the enum for which the enclosing function is instantiated: its first byte in the upper 32 bits, and the number of its bytes
    /// in the lower ones. All bits are set if the driver does not know.
    fn __ferrozyme_request_tag(name: *const u8, length: usize) -> u64;
}

/// The bytes that tell the variant of an enum, none if it has only one. The debug information of this function names the type; the name is passed so that instances for different types
/// are not merged.
#[cfg(ferrozyme)]
#[inline(never)]
fn tag_of<T>() -> Option<Range<usize>> {
    let name = type_name::<T>();
    // SAFETY: the driver replaces the call by a number.
    let tag = unsafe { __ferrozyme_request_tag(name.as_ptr(), name.len()) };
    let (start, bytes) = ((tag >> 32) as usize, tag as u32 as usize);
    (tag != u64::MAX).then_some(start..start + bytes)
}

#[cfg(not(ferrozyme))]
fn tag_of<T>() -> Option<Range<usize>> {
    let _ = type_name::<T>;
    None
}

#[cold]
#[inline(never)]
fn refuse_unknown(name: &str) -> ! {
    panic!(
        "the shadow of a value of type `{name}` cannot be cleared: a crate that calls a derivative was compiled without debug information about types. \
         Add `ferrozyme` to the dependencies of that crate, or `debug = 2` to its profile"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Bytes {
        aligned: [u64; 0],
        bytes: [u8; 24],
    }

    /// The bytes that are left.
    fn left(fields: &[Range<usize>], tag: Range<usize>) -> Vec<usize> {
        let mut value = Bytes {
            aligned: [],
            bytes: [1; 24],
        };
        let start = (&raw const value).addr();
        let fields: Vec<Range<usize>> = fields
            .iter()
            .map(|field| start + field.start..start + field.end)
            .collect();
        // SAFETY: there is no tag.
        unsafe { clear_except(&mut value, &fields, tag) };
        (0..24).filter(|&at| value.bytes[at] != 0).collect()
    }

    #[test]
    fn only_fields_and_tags_stay() {
        assert_eq!(left(&[], 0..0), []);
        assert_eq!(left(&[], 20..24), [20, 21, 22, 23]);
        assert_eq!(left(&[2..4, 0..1], 8..9), [0, 2, 3, 8]);
        // A tag in a field, and fields without bytes.
        assert_eq!(left(&[1..4, 7..7, 24..24], 2..3), [1, 2, 3]);
        assert_eq!(left(&[0..24, 4..8], 8..16).len(), 24);
    }
}

#[cfg(all(test, ferrozyme))]
mod described {
    use super::*;

    /// The variant stays, and as many bytes are zero as are in no field.
    #[track_caller]
    fn check<T>(mut value: T, fields: impl Fn(&T) -> Vec<Range<usize>>, unused: usize) {
        let variant = std::mem::discriminant(&value);
        let fields = fields(&value);
        let tag = tag_of::<T>().expect("tests have debug information");
        clear_unused(&mut value, &fields);
        assert_eq!(std::mem::discriminant(&value), variant);
        let start = (&raw const value).cast::<u8>();
        let is_free = |at: &usize| {
            !tag.contains(at)
                && !fields
                    .iter()
                    .any(|field| field.contains(&(start.addr() + at)))
        };
        let free: Vec<usize> = (0..size_of::<T>()).filter(is_free).collect();
        assert_eq!(free.len(), unused);
        // SAFETY: in the value, and cleared.
        assert!(free.iter().all(|&at| unsafe { start.add(at).read() } == 0));
    }

    #[test]
    fn only_fields_and_variants_stay() {
        enum Shape {
            Nothing,
            Number(u8, f64),
            Many(Vec<f64>),
        }
        check(None::<f64>, |_| vec![], 8);
        check(None::<Box<f64>>, |_| vec![], 0);
        check(None::<(f64, bool)>, |_| vec![], 15);
        // One more than the largest capacity is `None`.
        check(None::<Vec<f64>>, |_| vec![], 16);
        check(Some(1.0), |x| x.iter().map(bytes_of).collect(), 0);
        let fields = |shape: &Shape| match shape {
            Shape::Nothing => vec![],
            Shape::Number(a, b) => vec![bytes_of(b), bytes_of(a)],
            Shape::Many(rows) => vec![bytes_of(rows)],
        };
        check(Shape::Nothing, fields, 16);
        check(Shape::Number(7, 1.0), fields, size_of::<Shape>() - 8 - 9);
        check(Shape::Many(vec![1.0]), fields, size_of::<Shape>() - 24);
        // Without floats, with a tag of 16 bytes, with a single variant that exists.
        check(None::<u32>, |_| vec![], 4);
        check(None::<std::num::NonZero<u128>>, |_| vec![], 0);
        type Never = std::convert::Infallible;
        let fields = |x: &Result<f64, Never>| x.iter().map(bytes_of).collect();
        check(Ok::<f64, Never>(1.0), fields, 0);
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
        check(Sparse::B(1.0), fields, 10);
    }
}
