//! The symbols that a bitcode module defines and needs, read from the symbol table at its end, without LLVM.
//!
//! A bitcode file is a sequence of blocks, each with its length, so everything but the two blocks of interest is skipped:
//! the string table, and the symbol table that LLVM writes for linkers (`llvm/Object/IRSymtab.h`):
//!
//! ```text
//! 'B' 'C' C0 DE | IDENTIFICATION | MODULE … | SYMTAB { blob } | STRTAB { blob }
//! ```
//!
//! *Assumes* nothing of the bytes: malformed input gives `None`, never a panic.

/// Whether these bytes begin a bitcode file.
pub fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xC0\xDE")
}

/// A symbol that a module defines or needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    /// Its mangled name, as the linker sees it.
    pub name: &'a [u8],
    /// Whether the module only refers to it.
    pub undefined: bool,
    /// Whether it is visible to other modules.
    pub global: bool,
}

/// The symbols of a bitcode file, in its order; `None` if it has no table that can be read.
pub fn symbols(bitcode: &[u8]) -> Option<Vec<Symbol<'_>>> {
    let (table, strings) = tables(bitcode)?;
    let word = |offset: usize| -> Option<usize> {
        let bytes = table.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    // The header: version, producer, and ranges of modules, of comdats, and of symbols, each an offset and a count.
    let start = word(28)?;
    let count = word(32)?;
    let mut symbols = Vec::with_capacity(count.min(table.len() / SYMBOL_BYTES));
    for index in 0..count {
        let at = start.checked_add(index.checked_mul(SYMBOL_BYTES)?)?;
        let name_start = word(at)?;
        let name_end = name_start.checked_add(word(at + 4)?)?;
        let flags = word(at + 20)?;
        symbols.push(Symbol {
            name: strings.get(name_start..name_end)?,
            undefined: flags & FLAG_UNDEFINED != 0,
            global: flags & FLAG_GLOBAL != 0,
        });
    }
    Some(symbols)
}

/// Name (offset, length), name in the IR (offset, length), comdat, flags.
const SYMBOL_BYTES: usize = 24;
const FLAG_UNDEFINED: usize = 1 << 3;
const FLAG_GLOBAL: usize = 1 << 10;

const STRTAB_BLOCK: u64 = 23;
const SYMTAB_BLOCK: u64 = 25;

/// The contents of the symbol table and of the string table.
fn tables(bitcode: &[u8]) -> Option<(&[u8], &[u8])> {
    if !is_bitcode(bitcode) {
        return None;
    }
    let mut bits = Bits {
        bytes: bitcode,
        position: 32,
    };
    let mut table = None;
    let mut strings = None;
    // Sections may be padded, so trailing bytes that are not a block end the search.
    while let Some(block) = bits.enter_block() {
        match block.id {
            SYMTAB_BLOCK => table = blob(bitcode, &block),
            STRTAB_BLOCK => strings = blob(bitcode, &block),
            _ => {}
        }
        bits.position = block.end;
    }
    Some((table?, strings?))
}

struct Block {
    id: u64,
    abbreviation_width: u32,
    start: usize,
    end: usize,
}

/// The only record of a block, which is a blob.
fn blob<'a>(bitcode: &'a [u8], block: &Block) -> Option<&'a [u8]> {
    let mut bits = Bits {
        bytes: bitcode,
        position: block.start,
    };
    while bits.position < block.end {
        match bits.fixed(block.abbreviation_width)? {
            DEFINE_ABBREVIATION => bits.skip_abbreviation()?,
            // The record's code is a literal of its abbreviation; what follows is the blob.
            FIRST_ABBREVIATION => {
                let length = usize::try_from(bits.variable(6)?).ok()?;
                bits.align();
                let start = bits.position / 8;
                return bitcode.get(start..start.checked_add(length)?);
            }
            _ => return None,
        }
    }
    None
}

const ENTER_BLOCK: u64 = 1;
const DEFINE_ABBREVIATION: u64 = 2;
const FIRST_ABBREVIATION: u64 = 4;

/// Reads a stream of bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Bits<'_> {
    fn fixed(&mut self, width: u32) -> Option<u64> {
        let mut value = 0;
        for bit in 0..width {
            let byte = *self.bytes.get(self.position / 8)?;
            value |= u64::from(byte >> (self.position % 8) & 1) << bit;
            self.position += 1;
        }
        Some(value)
    }

    /// A variable-width integer (VBR) in groups of `width` bits, the highest of which says whether more follow.
    fn variable(&mut self, width: u32) -> Option<u64> {
        let more = 1 << (width - 1);
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let group = self.fixed(width)?;
            value |= (group & (more - 1)).checked_shl(shift)?;
            if group & more == 0 {
                return Some(value);
            }
            shift += width - 1;
        }
    }

    fn align(&mut self) {
        self.position = self.position.next_multiple_of(32);
    }

    fn enter_block(&mut self) -> Option<Block> {
        // At the top level, abbreviations are two bits wide.
        if self.fixed(2)? != ENTER_BLOCK {
            return None;
        }
        let id = self.variable(8)?;
        let abbreviation_width = u32::try_from(self.variable(4)?)
            .ok()
            .filter(|&width| (2..=32).contains(&width))?;
        self.align();
        let words = usize::try_from(self.fixed(32)?).ok()?;
        let start = self.position;
        let end = start.checked_add(words.checked_mul(32)?)?;
        (end <= self.bytes.len().checked_mul(8)?).then_some(Block {
            id,
            abbreviation_width,
            start,
            end,
        })
    }

    fn skip_abbreviation(&mut self) -> Option<()> {
        for _ in 0..self.variable(5)? {
            let literal = self.fixed(1)? == 1;
            if literal {
                self.variable(8)?;
            } else if matches!(self.fixed(3)?, 1 | 2) {
                // Fixed and variable widths come with the width.
                self.variable(5)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_has_no_symbols() {
        assert_eq!(symbols(b""), None);
        assert_eq!(symbols(b"BC\xC0\xDE"), None);
        let mut bytes = b"BC\xC0\xDE".to_vec();
        for seed in 0..2000u32 {
            bytes.push((seed.wrapping_mul(2_654_435_761) >> 13) as u8);
            let _ = symbols(&bytes);
        }
    }
}
