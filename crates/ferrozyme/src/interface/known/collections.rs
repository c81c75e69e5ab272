//! `Vec` and `String`.
//!
//! The order of their three words is unspecified. But length and capacity can be queried, so the order is found at
//! compile time from a vector made of three different words.

use std::mem::MaybeUninit;

use crate::interface::{Differentiable, Field, Layout, Mismatch, Places};

const WORD: usize = size_of::<usize>();

/// Three words that each could be address, capacity or length, and the fields in the order that was found.
macro_rules! fields_of {
    ($owner:ty, $item:ty) => {{
        const {
            // Multiples of every alignment that is common, so that each could be an address, too.
            let words: [usize; 3] = [4096, 8192, 12288];
            let fits = size_of::<$owner>() == size_of_val(&words)
                && align_of::<$owner>() == align_of_val(&words)
                && size_of::<$item>() != 0
                && align_of::<$item>() <= 4096;
            if !fits {
                [Field::unknown(0, size_of::<$owner>()); 3]
            } else {
                // SAFETY: of the same size and alignment; any of the words may be address, capacity or length. The
                // owner is only looked at, and never dropped.
                let owner = unsafe { &*(&raw const words).cast::<$owner>() };
                let length = owner.len() / 4096 - 1;
                let capacity = owner.capacity() / 4096 - 1;
                if length < 3 && capacity < 3 && length != capacity {
                    let address = 3 - length - capacity;
                    [
                        Field::pointer::<$item>(address * WORD),
                        Field::integer(length * WORD, WORD),
                        Field::integer(capacity * WORD, WORD),
                    ]
                } else {
                    [Field::unknown(0, size_of::<$owner>()); 3]
                }
            }
        }
    }};
}

/// One unknown field in place of three.
const fn known(fields: &'static [Field; 3]) -> &'static [Field] {
    match fields[0].kind {
        0 => fields.split_at(1).0,
        _ => fields,
    }
}

// SAFETY: see the head of the file.
unsafe impl<T: Differentiable> Differentiable for Vec<T> {
    const LAYOUT: &'static Layout = &Layout::new::<Vec<T>>(known(const { &fields_of!(Vec<T>, T) }));
    const FROZEN: bool = true;
    const FLAT: bool = false;
    const SHARES_0: bool = false;
    const SHARES_1: bool = T::SHARES_0;
    const SHARES_2: bool = T::SHARES_1;
    const SHARES_3: bool = T::SHARES_2;

    #[inline]
    fn places(&self, places: &mut Places) {
        places.memory(T::LAYOUT, self.iter(), self.as_ptr().addr(), T::places);
    }

    #[inline]
    fn same_shape(&self, shadow: &Vec<T>) -> bool {
        self[..].same_shape(&shadow[..])
    }

    fn compare(&self, shadow: &Vec<T>) -> Result<(), Mismatch> {
        self[..].compare(&shadow[..])
    }

    fn fit(&self, shadow: &mut Vec<T>) {
        if shadow.capacity() != self.capacity() {
            change_capacity(shadow, self.capacity());
        }
        // Elements that the function adds start with a derivative of zero.
        shadow.spare_capacity_mut().fill_with(MaybeUninit::zeroed);
        self[..].fit(&mut shadow[..]);
    }
}

#[cold]
#[inline(never)]
fn change_capacity<T>(vector: &mut Vec<T>, capacity: usize) {
    if vector.capacity() < capacity {
        vector.reserve_exact(capacity - vector.len());
    } else {
        vector.shrink_to(capacity);
    }
}

// SAFETY: see the head of the file.
unsafe impl Differentiable for String {
    const LAYOUT: &'static Layout =
        &Layout::new::<String>(known(const { &fields_of!(String, u8) }));
    const FROZEN: bool = true;
    const FLAT: bool = true;
    const SHARES_0: bool = false;
    const SHARES_1: bool = false;
    const SHARES_2: bool = false;
    const SHARES_3: bool = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the fields, read from the bytes of a value.
    fn words<T>(value: &T, layout: &Layout) -> [usize; 3] {
        assert_eq!(layout.field_count, 3);
        // SAFETY: a layout points to as many fields as it says.
        let fields = unsafe { std::slice::from_raw_parts(layout.fields, 3) };
        assert_eq!([4, 1, 1], [fields[0].kind, fields[1].kind, fields[2].kind]);
        let start = (&raw const *value).cast::<u8>();
        // SAFETY: the fields are words inside of the value.
        [0, 1, 2].map(|index| unsafe { start.add(fields[index].offset).cast::<usize>().read() })
    }

    #[test]
    fn words_of_vectors_are_found() {
        let mut vector = Vec::with_capacity(10);
        vector.extend([1.0, 2.0, 3.0]);
        let found = words(&vector, Vec::<f64>::LAYOUT);
        assert_eq!(found, [vector.as_ptr() as usize, 3, vector.capacity()]);

        let text = String::from("text");
        let found = words(&text, String::LAYOUT);
        assert_eq!(found, [text.as_ptr() as usize, 4, text.capacity()]);
    }

    #[test]
    fn shadows_get_the_capacity_of_their_vectors() {
        let mut vector = vec![Vec::with_capacity(7), vec![]];
        vector[0].push(1.0);
        let mut shadow = vec![vec![0.0], Vec::with_capacity(100)];
        vector.compare(&shadow).expect("the same shape");
        vector.fit(&mut shadow);
        assert_eq!(shadow[0].capacity(), 7);
        assert_eq!(shadow[1].capacity(), 0);
        let mismatch = vector
            .compare(&vec![vec![], vec![]])
            .expect_err("another shape");
        assert_eq!(mismatch.path, "[0]");
        assert_eq!(mismatch.shadow, "length 0");
    }
}
