//! Reallocations that happened while a derivative ran, as the derivative reports them at its end.
//!
//! Each thread has a stack of lists, since derivatives may be nested: a derivative reports at its end, after the inner ones. The id of a list is the number of lists below it plus one, so 0 is none.
//! A derivative that ends with a panic leaves its list behind, and the list below takes it over.
//!
//! If the caller of a derivative is differentiated itself, these functions are not: the driver recognises a word in their names. They only handle addresses.

use std::cell::RefCell;

thread_local! {
    static LISTS: RefCell<Vec<Vec<(usize, usize)>>> = const { RefCell::new(Vec::new()) };
}

/// Starts a list, and returns its id.
pub(super) fn begin_moves() -> usize {
    begin__ferrozyme_inactive_reading()
}

/// The memory that has replaced some memory, according to a list; the memory itself if it was not replaced.
pub(super) fn successor_of(list: usize, address: usize) -> usize {
    successor__ferrozyme_inactive_reading(list, address)
}

/// Ends a list, and the lists above it that were left behind.
pub(super) fn end_moves(list: usize) {
    end__ferrozyme_inactive_reading(list);
}

#[allow(non_snake_case, reason = "the driver knows the functions by this word")]
#[inline(never)]
fn begin__ferrozyme_inactive_reading() -> usize {
    LISTS.with_borrow_mut(|lists| {
        lists.push(Vec::new());
        lists.len()
    })
}

#[allow(non_snake_case, reason = "the driver knows the functions by this word")]
#[inline(never)]
fn successor__ferrozyme_inactive_reading(list: usize, address: usize) -> usize {
    LISTS.with_borrow(|lists| {
        let moves = lists
            .get(list.wrapping_sub(1))
            .map_or(&[][..], Vec::as_slice);
        // In the order in which they happened, so one pass is enough.
        moves
            .iter()
            .fold(address, |at, &(from, to)| match at == from {
                true => to,
                false => at,
            })
    })
}

#[allow(non_snake_case, reason = "the driver knows the functions by this word")]
#[inline(never)]
fn end__ferrozyme_inactive_reading(list: usize) {
    LISTS.with_borrow_mut(|lists| lists.truncate(list - 1));
}

/// Called by derivatives: the memory at one address was moved to another, or freed (0).
#[unsafe(no_mangle)]
extern "C" fn __ferrozyme_moved(from: usize, to: usize) {
    LISTS.with_borrow_mut(|lists| {
        if let Some(last) = lists.last_mut() {
            last.push((from, to));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_followed() {
        __ferrozyme_moved(1, 2);
        let outer = begin_moves();
        let inner = begin_moves();
        __ferrozyme_moved(8, 16);
        __ferrozyme_moved(16, 24);
        assert_eq!(successor_of(inner, 8), 24);
        assert_eq!(successor_of(inner, 32), 32);
        end_moves(inner);
        assert_eq!(successor_of(outer, 8), 8);
        __ferrozyme_moved(8, 40);
        assert_eq!(successor_of(outer, 8), 40);
        end_moves(outer);
    }
}
