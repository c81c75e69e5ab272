use super::*;

fn memory_with(bytes: u64, align: u64) -> (Memory, Pointer) {
    let mut memory = Memory::default();
    let at = memory.allocate(bytes, align);
    (memory, at)
}

#[test]
fn what_is_written_is_read_back() {
    let (mut memory, at) = memory_with(64, 8);
    assert_eq!(memory.write_f64s(at, &[1.0, -2.5]), Ok(()));
    assert_eq!(memory.read_f64s(at, 2), Ok(vec![1.0, -2.5]));
    assert_eq!(memory.write_i32s(at.offset(16), &[7]), Ok(()));
    assert_eq!(
        memory.read_datum(at.offset(16), Type::I32),
        Ok(Datum::i32(7))
    );
    assert_eq!(memory.write_pointers(at.offset(24), &[at]), Ok(()));
    assert_eq!(memory.read_pointers(at.offset(24), 1), Ok(vec![at]));
    assert_eq!(memory.bytes_from(at.offset(24)), Ok(40));
}

#[test]
fn alignment_is_exactly_what_was_asked_for() {
    for align in [1u64, 2, 8, 64, 4096, 1 << 20, 1 << 24] {
        let (_, at) = memory_with(8, align);
        assert_eq!(at.0.trailing_zeros(), align.trailing_zeros());
    }
}

#[test]
fn accesses_outside_are_found_on_both_sides() {
    let (mut memory, at) = memory_with(16, 8);
    assert_eq!(memory.write_bytes(at, &[0; 16]), Ok(()));
    assert!(matches!(
        memory.read_bytes(at.offset(9), 8),
        Err(FaultKind::OutOfBounds {
            offset: 9,
            bytes: 8,
            size: 16,
            ..
        })
    ));
    assert!(matches!(
        memory.read_bytes(at.offset(-1), 1),
        Err(FaultKind::OutOfBounds { offset: -1, .. })
    ));
    assert!(matches!(
        memory.read_bytes(Pointer(8), 1),
        Err(FaultKind::NullAccess { .. })
    ));
    assert!(matches!(
        memory.read_bytes(Pointer(77 << 32), 1),
        Err(FaultKind::WildPointer { .. })
    ));
}

#[test]
fn uninitialised_bytes_are_carried_along_and_found_on_reading() {
    let (mut memory, at) = memory_with(16, 8);
    assert_eq!(memory.write_bytes(at, &[1, 2]), Ok(()));
    assert_eq!(memory.move_bytes(at.0 + 8, at.0, 3), Ok(()));
    assert_eq!(
        memory.peek_bytes(at.offset(8), 4),
        Ok(vec![Some(1), Some(2), None, None])
    );
    assert_eq!(
        memory.read_bytes(at.offset(8), 3),
        Err(FaultKind::Uninitialised {
            address: at.offset(10)
        })
    );
}

#[test]
fn released_memory_is_dead() {
    let mut memory = Memory::default();
    let at = memory.heap_allocate(8, 8, true, "c").unwrap_or_default();
    assert_eq!(memory.live_heap(), (1, 8));
    assert!(matches!(
        memory.heap_free(at, "rust"),
        Err(FaultKind::WrongFamily { .. })
    ));
    assert!(matches!(
        memory.heap_free(at.offset(4), "c"),
        Err(FaultKind::InvalidFree { .. })
    ));
    assert_eq!(memory.heap_free(at, "c"), Ok(()));
    assert_eq!(memory.live_heap(), (0, 0));
    assert_eq!(
        memory.read_bytes(at, 1),
        Err(FaultKind::UseAfterFree { address: at })
    );
    assert_eq!(
        memory.heap_free(at, "c"),
        Err(FaultKind::DoubleFree { address: at })
    );
    assert_eq!(memory.heap_free(Pointer::NULL, "c"), Ok(()));
}

#[test]
fn limits_hold() {
    let mut memory = Memory::default();
    memory.set_memory_limit(100);
    assert!(memory.try_allocate(60, 1).is_ok());
    assert_eq!(
        memory.try_allocate(60, 1),
        Err(FaultKind::OutOfMemory {
            bytes: 60,
            limit: 100
        })
    );
    assert_eq!(
        memory.try_allocate(u64::MAX, 1),
        Err(FaultKind::AbsurdSize { bytes: -1 })
    );
    assert!(memory.try_allocate(1, 3).is_err());
}

#[test]
fn a_million_short_lives_do_not_fill_the_table() {
    let mut memory = Memory::default();
    for _ in 0..REMEMBERED + 1000 {
        let at = memory.heap_allocate(0, 1, false, "").unwrap_or_default();
        assert_eq!(memory.heap_free(at, ""), Ok(()));
    }
    assert!(memory.pieces.len() <= REMEMBERED + 2);
}
