//! Checked memory: every object knows its size, which of its bytes are initialised, and whether it is still alive.
//!
//! An address is flat, 64 bits wide, and may be stored, compared and computed with. Its upper half identifies an object,
//! its lower half is the offset; objects start well inside their range of addresses, so that
//! small excursions to either side reach no other object. The start of an object has exactly the requested
//! alignment and no larger one: code that relies on more is detected.
//!
//! Freed memory stays known as such. Its addresses are reused only after a million later frees.

use super::datum::{Bits, Datum, Pointer};
use super::fault::FaultKind;
use crate::function::{Op, ones};
use crate::types::{Scalar, Type};
use crate::{FunctionId, GlobalId};
use cranelift_entity::EntityRef;
use std::collections::VecDeque;

/// How the interpreter's memory was used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapStatistics {
    /// How many pieces of memory `alloc` gave.
    pub allocations: u64,
    /// How many bytes `alloc` gave in all.
    pub allocated_bytes: u64,
    /// How many pieces are not yet released.
    pub live: usize,
    /// How many bytes are not yet released.
    pub live_bytes: u64,
    /// The largest that `live_bytes` ever was.
    pub peak_bytes: u64,
}

/// The memory of a [`Machine`](super::Machine): of the host, the globals, the stack and the heap.
#[derive(Clone, Debug)]
pub struct Memory {
    pieces: Vec<Piece>,
    /// Dead pieces whose place in `pieces` may serve again, oldest first.
    dead: VecDeque<u32>,
    /// Live bytes of every kind.
    live_bytes: u64,
    limit: u64,
    heap: HeapStatistics,
}

/// Where in the program memory was made.
pub(super) type Origin = Option<(FunctionId, Op)>;

#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    bytes: Vec<u8>,
    /// `0xff` for each byte that was written, 0 for the others.
    known: Vec<u8>,
    size: u64,
    align: u64,
    kind: Kind,
    alive: bool,
    writable: bool,
    origin: Origin,
    family: Option<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Host,
    Global,
    Stack,
    Heap,
}

/// The largest size of one piece. Twice that is the range of addresses that belongs to a piece.
const LARGEST_PIECE: u64 = 1 << 31;
/// The largest alignment.
const LARGEST_ALIGNMENT: u64 = 1 << 29;
/// How far into its range of addresses a piece starts at least.
const MARGIN: u64 = 1 << 20;
/// How many dead pieces are remembered before the first is forgotten.
const REMEMBERED: usize = 1 << 20;
/// Addresses below this are offsets from `null`.
const NULL_PAGE: u64 = 4096;
/// Addresses from here on belong to functions.
const FUNCTIONS: u64 = 0xf000_0000_0000_0000;
/// How far apart the addresses of functions are.
const FUNCTION_SIZE: u64 = 16;

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            pieces: Vec::new(),
            dead: VecDeque::new(),
            live_bytes: 0,
            limit: 1 << 32,
            heap: HeapStatistics::default(),
        }
    }
}

impl Memory {
    /// Limits the total memory (4 GiB by default); exceeding it is a fault.
    pub fn set_memory_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// New memory of the host, uninitialised. It is not part of the program's heap.
    ///
    /// # Panics
    /// Where [`Memory::try_allocate`] fails.
    pub fn allocate(&mut self, bytes: u64, align: u64) -> Pointer {
        self.try_allocate(bytes, align)
            .expect("the host asks for a sensible amount of memory")
    }

    /// New memory of the host, uninitialised; fails beyond the limit, and for an alignment that is not a power of two or too large.
    pub fn try_allocate(&mut self, bytes: u64, align: u64) -> Result<Pointer, FaultKind> {
        self.new_piece(Kind::Host, bytes, align, false, None)
    }

    /// New memory of the host that holds these doubles.
    ///
    /// # Panics
    /// As [`Memory::allocate`].
    pub fn allocate_f64s(&mut self, values: &[f64]) -> Pointer {
        let at = self.allocate(8 * values.len() as u64, 8);
        self.write_f64s(at, values)
            .expect("memory just made can be written");
        at
    }

    /// New heap memory, as from `alloc`; for functions of the host that are allocators.
    pub fn heap_allocate(
        &mut self,
        bytes: u64,
        align: u64,
        zeroed: bool,
        family: &str,
    ) -> Result<Pointer, FaultKind> {
        self.heap_allocate_from(bytes, align, zeroed, family, None)
    }

    /// Releases memory of the heap, as `free` does.
    pub fn heap_free(&mut self, address: Pointer, family: &str) -> Result<(), FaultKind> {
        if address.is_null() {
            return Ok(());
        }
        let index = piece_index(address.0);
        let Some(piece) = index.and_then(|index| self.pieces.get(index)) else {
            return Err(FaultKind::InvalidFree { address });
        };
        if piece.kind != Kind::Heap || piece.start != address.0 {
            return Err(FaultKind::InvalidFree { address });
        }
        if !piece.alive {
            return Err(FaultKind::DoubleFree { address });
        }
        let given = piece.family.as_deref().unwrap_or_default();
        if given != family {
            return Err(FaultKind::WrongFamily {
                allocated: given.into(),
                freed: family.into(),
            });
        }
        let size = piece.size;
        self.heap.live -= 1;
        self.heap.live_bytes -= size;
        self.kill(index.unwrap_or_default());
        Ok(())
    }

    /// Checks that memory that is to be freed was allocated with this size and, unless that is 1, this alignment.
    pub(super) fn check_release(
        &self,
        address: Pointer,
        bytes: u64,
        align: u64,
    ) -> Result<(), FaultKind> {
        let Some(piece) = piece_index(address.0).and_then(|index| self.pieces.get(index)) else {
            return Ok(());
        };
        let heap = piece.kind == Kind::Heap && piece.start == address.0 && piece.alive;
        if heap && (piece.size != bytes || (align != 1 && piece.align != align)) {
            return Err(FaultKind::WrongSize {
                allocated: (piece.size, piece.align),
                freed: (bytes, align),
            });
        }
        Ok(())
    }

    /// How many pieces of the heap are not yet released, and how many bytes they have.
    pub fn live_heap(&self) -> (usize, u64) {
        (self.heap.live, self.heap.live_bytes)
    }

    /// How the heap was used so far.
    pub fn heap_statistics(&self) -> HeapStatistics {
        self.heap
    }

    pub(super) fn reset_statistics(&mut self) {
        self.heap = HeapStatistics {
            live: self.heap.live,
            live_bytes: self.heap.live_bytes,
            peak_bytes: self.heap.live_bytes,
            ..HeapStatistics::default()
        };
    }

    /// How many bytes lie between an address and the end of its memory.
    pub fn bytes_from(&self, at: Pointer) -> Result<u64, FaultKind> {
        let (index, offset) = self.resolve(at.0, 0)?;
        Ok(self.pieces[index].size - offset as u64)
    }

    /// Reads bytes, which must be initialised.
    pub fn read_bytes(&self, at: Pointer, count: u64) -> Result<Vec<u8>, FaultKind> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (index, offset) = self.resolve(at.0, count)?;
        let range = offset..offset + count as usize;
        let piece = &self.pieces[index];
        if let Some(first) = piece.known[range.clone()].iter().position(|&k| k == 0) {
            return Err(FaultKind::Uninitialised {
                address: at.offset(first as i64),
            });
        }
        Ok(piece.bytes[range].to_vec())
    }

    /// Reads bytes; uninitialised ones are none.
    pub fn peek_bytes(&self, at: Pointer, count: u64) -> Result<Vec<Option<u8>>, FaultKind> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let (index, offset) = self.resolve(at.0, count)?;
        let range = offset..offset + count as usize;
        let piece = &self.pieces[index];
        let bytes = piece.bytes[range.clone()].iter();
        Ok(bytes
            .zip(&piece.known[range])
            .map(|(&byte, &known)| (known != 0).then_some(byte))
            .collect())
    }

    /// Writes bytes.
    pub fn write_bytes(&mut self, at: Pointer, bytes: &[u8]) -> Result<(), FaultKind> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (index, offset) = self.resolve_writable(at.0, bytes.len() as u64)?;
        let range = offset..offset + bytes.len();
        let piece = &mut self.pieces[index];
        piece.bytes[range.clone()].copy_from_slice(bytes);
        piece.known[range].fill(0xff);
        Ok(())
    }

    /// Reads a value of any type.
    pub fn read_datum(&self, at: Pointer, ty: Type) -> Result<Datum, FaultKind> {
        let bits = self.load(at.0, ty)?;
        Ok(Datum { ty, bits })
    }

    /// Writes a value of any type; undefined lanes make their bytes uninitialised.
    pub fn write_datum(&mut self, at: Pointer, datum: &Datum) -> Result<(), FaultKind> {
        self.store(at.0, datum.ty, &datum.bits)
    }
}

macro_rules! arrays {
    ($($(#[doc = $read_doc:literal])+ $read:ident $(#[doc = $write_doc:literal])+ $write:ident $ty:ty;)*) => {
        impl Memory {
            $(
                $(#[doc = $read_doc])+
                pub fn $read(&self, at: Pointer, count: usize) -> Result<Vec<$ty>, FaultKind> {
                    const SIZE: usize = size_of::<$ty>();
                    let bytes = self.read_bytes(at, (count * SIZE) as u64)?;
                    let chunks = bytes.as_chunks::<SIZE>().0;
                    Ok(chunks.iter().map(|chunk| <$ty>::from_le_bytes(*chunk)).collect())
                }

                $(#[doc = $write_doc])+
                pub fn $write(&mut self, at: Pointer, values: &[$ty]) -> Result<(), FaultKind> {
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                    self.write_bytes(at, &bytes)
                }
            )*
        }
    };
}

arrays! {
    /// Reads doubles.
    read_f64s
    /// Writes doubles.
    write_f64s f64;
    /// Reads single-precision floats.
    read_f32s
    /// Writes single-precision floats.
    write_f32s f32;
    /// Reads integers of 64 bits.
    read_i64s
    /// Writes integers of 64 bits.
    write_i64s i64;
    /// Reads integers of 32 bits.
    read_i32s
    /// Writes integers of 32 bits.
    write_i32s i32;
    /// Reads addresses as integers.
    read_u64s
    /// Writes addresses as integers.
    write_u64s u64;
}

impl Memory {
    /// Reads addresses.
    pub fn read_pointers(&self, at: Pointer, count: usize) -> Result<Vec<Pointer>, FaultKind> {
        Ok(self
            .read_u64s(at, count)?
            .into_iter()
            .map(Pointer)
            .collect())
    }

    /// Writes addresses.
    pub fn write_pointers(&mut self, at: Pointer, values: &[Pointer]) -> Result<(), FaultKind> {
        let raw: Vec<u64> = values.iter().map(|pointer| pointer.0).collect();
        self.write_u64s(at, &raw)
    }
}

/// The memory operations of the running program.
impl Memory {
    pub(super) fn heap_allocate_from(
        &mut self,
        bytes: u64,
        align: u64,
        zeroed: bool,
        family: &str,
        origin: Origin,
    ) -> Result<Pointer, FaultKind> {
        let at = self.new_piece(Kind::Heap, bytes, align, zeroed, origin)?;
        if !family.is_empty() {
            let index = piece_index(at.0).unwrap_or_default();
            self.pieces[index].family = Some(family.into());
        }
        self.heap.allocations += 1;
        self.heap.allocated_bytes += bytes;
        self.heap.live += 1;
        self.heap.live_bytes += bytes;
        self.heap.peak_bytes = self.heap.peak_bytes.max(self.heap.live_bytes);
        Ok(at)
    }

    pub(super) fn stack_allocate(
        &mut self,
        bytes: u64,
        align: u64,
        origin: Origin,
    ) -> Result<Pointer, FaultKind> {
        self.new_piece(Kind::Stack, bytes, align, false, origin)
    }

    /// Ends the life of stack memory.
    pub(super) fn stack_release(&mut self, at: Pointer) {
        if let Some(index) = piece_index(at.0) {
            self.kill(index);
        }
    }

    /// The memory of a global, with its initial contents; uninitialised if they are not known here.
    pub(super) fn global_allocate(
        &mut self,
        size: u64,
        align: u64,
        bytes: Option<&[u8]>,
    ) -> Result<Pointer, FaultKind> {
        let at = self.new_piece(Kind::Global, size, align, bytes.is_some(), None)?;
        if let Some(bytes) = bytes {
            self.write_bytes(at, bytes)?;
        }
        Ok(at)
    }

    pub(super) fn make_constant(&mut self, at: Pointer) {
        if let Some(piece) = piece_index(at.0).and_then(|index| self.pieces.get_mut(index)) {
            piece.writable = false;
        }
    }

    /// How many pieces of memory there have been: those made from now on have higher numbers, until addresses serve again.
    pub(super) fn pieces_so_far(&self) -> usize {
        self.pieces.len()
    }

    /// Whether a piece belongs to a global.
    pub(super) fn is_global(&self, piece: usize) -> bool {
        self.pieces
            .get(piece)
            .is_some_and(|piece| piece.kind == Kind::Global)
    }

    /// Whether a piece cannot be written.
    pub(super) fn is_constant(&self, piece: usize) -> bool {
        self.pieces.get(piece).is_some_and(|piece| !piece.writable)
    }

    /// A place in live memory that holds a pointer into a piece, other than the piece itself.
    pub(super) fn pointer_to(&self, wanted: usize) -> Option<Pointer> {
        let (start, size) = self
            .pieces
            .get(wanted)
            .map(|piece| (piece.start, piece.size))?;
        for (index, piece) in self.pieces.iter().enumerate() {
            if !piece.alive || index == wanted {
                continue;
            }
            let first = (piece.start.next_multiple_of(8) - piece.start) as usize;
            let words = piece.bytes.get(first..).unwrap_or_default();
            for (number, word) in words.as_chunks::<8>().0.iter().enumerate() {
                let offset = first + 8 * number;
                if u64::from_le_bytes(*word).wrapping_sub(start) <= size
                    && piece.known[offset..offset + 8] == [0xff; 8]
                {
                    return Some(Pointer(piece.start + offset as u64));
                }
            }
        }
        None
    }

    /// Where the memory that an address belongs to, alive or dead, was made.
    pub(super) fn origin(&self, at: Pointer) -> Origin {
        self.pieces.get(piece_index(at.0)?)?.origin
    }

    /// The origins of all live memory of the heap, with its sizes.
    pub(super) fn leaks(&self) -> impl Iterator<Item = (Origin, u64)> {
        self.pieces
            .iter()
            .filter(|piece| piece.alive && piece.kind == Kind::Heap)
            .map(|piece| (piece.origin, piece.size))
    }

    pub(super) fn load(&self, address: u64, ty: Type) -> Result<Bits, FaultKind> {
        let (index, offset) = self.resolve(address, ty.bytes())?;
        let piece = &self.pieces[index];
        let size = ty.scalar().bytes() as usize;
        let lane = |lane: usize| {
            let range = offset + lane * size..offset + (lane + 1) * size;
            if piece.known[range.clone()].contains(&0) {
                return Err(FaultKind::Uninitialised {
                    address: Pointer(address + (lane * size) as u64),
                });
            }
            let mut raw = [0; 16];
            raw[..size].copy_from_slice(&piece.bytes[range]);
            Ok(u128::from_le_bytes(raw) & ones(ty.scalar().bits()))
        };
        if !ty.is_vector() {
            return Ok(Bits::Scalar(lane(0)?));
        }
        let lanes = (0..usize::from(ty.lanes())).map(|index| lane(index).map(Some));
        Ok(Bits::Lanes(lanes.collect::<Result<_, _>>()?))
    }

    /// As [`Memory::load`] of a scalar of 8 bytes, which is most loads.
    pub(super) fn load_word(&self, address: u64) -> Result<u64, FaultKind> {
        let (index, offset) = self.resolve(address, 8)?;
        let piece = &self.pieces[index];
        if piece.known[offset..offset + 8] != [0xff; 8] {
            return Err(FaultKind::Uninitialised {
                address: Pointer(address),
            });
        }
        let mut raw = [0; 8];
        raw.copy_from_slice(&piece.bytes[offset..offset + 8]);
        Ok(u64::from_le_bytes(raw))
    }

    pub(super) fn store(&mut self, address: u64, ty: Type, bits: &Bits) -> Result<(), FaultKind> {
        let (index, offset) = self.resolve_writable(address, ty.bytes())?;
        let piece = &mut self.pieces[index];
        let size = ty.scalar().bytes() as usize;
        for lane in 0..usize::from(ty.lanes()) {
            let range = offset + lane * size..offset + (lane + 1) * size;
            match bits.lane(lane) {
                Some(raw) => {
                    piece.bytes[range.clone()].copy_from_slice(&raw.to_le_bytes()[..size]);
                    piece.known[range].fill(0xff);
                }
                None => piece.known[range].fill(0),
            }
        }
        Ok(())
    }

    /// As [`Memory::store`] of a scalar of 8 bytes, which is most stores.
    pub(super) fn store_word(&mut self, address: u64, word: u64) -> Result<(), FaultKind> {
        let (index, offset) = self.resolve_writable(address, 8)?;
        let piece = &mut self.pieces[index];
        piece.bytes[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        piece.known[offset..offset + 8].fill(0xff);
        Ok(())
    }

    /// Copies bytes, written or not, between places that may overlap.
    pub(super) fn move_bytes(&mut self, to: u64, from: u64, count: u64) -> Result<(), FaultKind> {
        if count == 0 {
            return Ok(());
        }
        let (source, source_offset) = self.resolve(from, count)?;
        let (target, target_offset) = self.resolve_writable(to, count)?;
        let source_range = source_offset..source_offset + count as usize;
        let target_range = target_offset..target_offset + count as usize;
        if let Ok([source, target]) = self.pieces.get_disjoint_mut([source, target]) {
            target.bytes[target_range.clone()].copy_from_slice(&source.bytes[source_range.clone()]);
            target.known[target_range].copy_from_slice(&source.known[source_range]);
        } else {
            let piece = &mut self.pieces[source];
            piece.bytes.copy_within(source_range.clone(), target_offset);
            piece.known.copy_within(source_range, target_offset);
        }
        Ok(())
    }

    /// Sets bytes; no byte in particular makes them uninitialised.
    pub(super) fn fill_bytes(
        &mut self,
        to: u64,
        byte: Option<u8>,
        count: u64,
    ) -> Result<(), FaultKind> {
        if count == 0 {
            return Ok(());
        }
        let (index, offset) = self.resolve_writable(to, count)?;
        let range = offset..offset + count as usize;
        let piece = &mut self.pieces[index];
        piece.bytes[range.clone()].fill(byte.unwrap_or(0));
        piece.known[range].fill(if byte.is_some() { 0xff } else { 0 });
        Ok(())
    }

    fn new_piece(
        &mut self,
        kind: Kind,
        bytes: u64,
        align: u64,
        zeroed: bool,
        origin: Origin,
    ) -> Result<Pointer, FaultKind> {
        if bytes > LARGEST_PIECE || !align.is_power_of_two() || align > LARGEST_ALIGNMENT {
            return Err(FaultKind::AbsurdSize {
                bytes: (if bytes > LARGEST_PIECE { bytes } else { align }) as i64,
            });
        }
        if self.live_bytes + bytes > self.limit {
            return Err(FaultKind::OutOfMemory {
                bytes,
                limit: self.limit,
            });
        }
        self.live_bytes += bytes;
        let reused = (self.dead.len() > REMEMBERED || self.pieces.len() >= 1 << 30)
            .then(|| self.dead.pop_front())
            .flatten();
        let index = reused.map_or(self.pieces.len(), |index| index as usize);
        let first = if align < MARGIN {
            MARGIN + align
        } else {
            align
        };
        let piece = Piece {
            start: ((index as u64 + 1) << 32) + first,
            bytes: vec![0; bytes as usize],
            known: vec![if zeroed { 0xff } else { 0 }; bytes as usize],
            size: bytes,
            align,
            kind,
            alive: true,
            writable: true,
            origin,
            family: None,
        };
        let at = Pointer(piece.start);
        match reused {
            Some(index) => self.pieces[index as usize] = piece,
            None => self.pieces.push(piece),
        }
        Ok(at)
    }

    fn kill(&mut self, index: usize) {
        let piece = &mut self.pieces[index];
        if piece.alive {
            piece.alive = false;
            piece.bytes = Vec::new();
            piece.known = Vec::new();
            self.live_bytes -= piece.size;
            self.dead.push_back(index as u32);
        }
    }

    /// The piece and the offset within it where an access of some bytes happens.
    fn resolve(&self, address: u64, bytes: u64) -> Result<(usize, usize), FaultKind> {
        if let Some(index) = piece_index(address)
            && let Some(piece) = self.pieces.get(index)
            && piece.alive
        {
            let offset = address.wrapping_sub(piece.start);
            // A negative offset is a huge one here.
            if offset <= piece.size && bytes <= piece.size - offset {
                return Ok((index, offset as usize));
            }
        }
        Err(self.explain(address, bytes))
    }

    fn resolve_writable(&self, address: u64, bytes: u64) -> Result<(usize, usize), FaultKind> {
        let (index, offset) = self.resolve(address, bytes)?;
        if !self.pieces[index].writable {
            return Err(FaultKind::WriteToConstant {
                address: Pointer(address),
            });
        }
        Ok((index, offset))
    }

    /// Why an access cannot be.
    #[cold]
    fn explain(&self, raw: u64, bytes: u64) -> FaultKind {
        let address = Pointer(raw);
        if raw < NULL_PAGE {
            return FaultKind::NullAccess { address };
        }
        match piece_index(raw).and_then(|index| self.pieces.get(index)) {
            None => FaultKind::WildPointer { address },
            Some(piece) if piece.alive => FaultKind::OutOfBounds {
                address,
                bytes,
                offset: raw.wrapping_sub(piece.start) as i64,
                size: piece.size,
            },
            Some(piece) if piece.kind == Kind::Stack => FaultKind::StackMemoryOutlived { address },
            Some(_) => FaultKind::UseAfterFree { address },
        }
    }
}

/// The addresses of a module's functions.
pub(super) fn function_address(function: FunctionId) -> Pointer {
    Pointer(FUNCTIONS + FUNCTION_SIZE * function.index() as u64)
}

/// The function at an address, if there can be one; whether the module has it is for the caller to check.
pub(super) fn function_at(address: Pointer) -> Option<FunctionId> {
    let offset = address.0.checked_sub(FUNCTIONS)?;
    let index = u32::try_from(offset / FUNCTION_SIZE).ok()?;
    offset
        .is_multiple_of(FUNCTION_SIZE)
        .then(|| FunctionId::from_u32(index))
}

/// The addresses of globals, by their ids: they are allocated first, in order.
pub(super) fn global_address(memory: &Memory, global: GlobalId) -> Pointer {
    Pointer(memory.pieces[global.index()].start)
}

/// Checks that an address is a multiple of an alignment.
pub(super) fn check_alignment(address: u64, align: u64) -> Result<(), FaultKind> {
    if address & (align - 1) == 0 {
        Ok(())
    } else {
        Err(FaultKind::Misaligned {
            address: Pointer(address),
            align,
        })
    }
}

/// The number of the piece that an address belongs to, if it can belong to one.
pub(super) fn piece_index(address: u64) -> Option<usize> {
    ((address >> 32) as usize).checked_sub(1)
}

/// Whether a scalar of this type is moved as one word of 8 bytes.
pub(super) fn is_word(ty: Type) -> bool {
    !ty.is_vector() && matches!(ty.scalar(), Scalar::F64 | Scalar::Ptr | Scalar::Int(64))
}

#[cfg(test)]
mod tests;
