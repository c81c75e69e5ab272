//! Transposition of square blocks in vector registers.
//!
//! First within 16 bytes, where the processor interleaves two registers cheaply, then of whole pieces of 16 bytes:
//!
//! ```text
//! r0: a0 a1 a2 a3 | a4 a5 a6 a7        a0 b0 a1 b1 | …        a0 b0 c0 d0 | a4 b4 c4 d4        a0 b0 c0 d0 | e0 f0 g0 h0
//! r1: b0 b1 b2 b3 | b4 b5 b6 b7   →    a2 b2 a3 b3 | …   →    a1 b1 c1 d1 | a5 b5 c5 d5   →    a1 b1 c1 d1 | e1 f1 g1 h1
//! r2: c0 …                             c0 d0 c1 d1 | …        …                                …
//! ```

use crate::emit::Code;
use ferrozyme_ir::Value;

/// The columns of a block of which these vectors are the rows. There are as many rows as lanes, a power of two.
pub(crate) fn transpose(code: &mut Code<'_>, rows: Vec<Value>) -> Vec<Value> {
    let lanes = rows.len();
    let bytes = code.ty(rows[0]).scalar().bytes() as usize;
    let piece = (16 / bytes).min(lanes);
    let mut rows = rows;
    let mut width = 1;
    while width < piece {
        rows = interleave(code, &rows, piece, width);
        width *= 2;
    }
    let mut columns = vec![None; lanes];
    for index in 0..piece {
        let groups: Vec<Value> = rows.iter().copied().skip(index).step_by(piece).collect();
        let transposed = transpose_pieces(code, groups, piece);
        for (group, value) in transposed.into_iter().enumerate() {
            columns[group * piece + index] = Some(value);
        }
    }
    columns.into_iter().flatten().collect()
}

/// One step within pieces: interleaves units of `width` elements of the rows `width` apart, so that units of twice the width arise.
fn interleave(code: &mut Code<'_>, rows: &[Value], piece: usize, width: usize) -> Vec<Value> {
    let lanes = rows.len();
    let mut next = Vec::new();
    for group in rows.chunks(2 * width) {
        for index in 0..width {
            for half in 0..2 {
                let mask = (0..lanes).map(|lane| {
                    let (at, within) = (lane / piece * piece, lane % piece);
                    let (unit, element) = (within / width, within % width);
                    let source = at + half * piece / 2 + unit / 2 * width + element;
                    (source + unit % 2 * lanes) as u16
                });
                let mask = mask.collect();
                next.push(code.shuffle(group[index], group[width + index], mask));
            }
        }
    }
    next
}

/// Transposes a block of whole pieces: `rows[i]` has piece `j` of what becomes piece `i` of `result[j]`.
fn transpose_pieces(code: &mut Code<'_>, rows: Vec<Value>, piece: usize) -> Vec<Value> {
    let count = rows.len();
    if count == 1 {
        return rows;
    }
    let lanes = count * piece;
    // The even pieces of two rows, or the odd ones.
    let halves = |parity: usize| -> Vec<u16> {
        let of_first =
            (0..lanes / 2).map(|lane| lane / piece * 2 * piece + parity * piece + lane % piece);
        let of_first: Vec<usize> = of_first.collect();
        let of_second = of_first.iter().map(|lane| lane + lanes);
        of_first
            .iter()
            .copied()
            .chain(of_second)
            .map(|lane| lane as u16)
            .collect()
    };
    let mut current = rows;
    let mut distance = 1;
    while distance < count {
        let mut next = current.clone();
        for start in (0..count).step_by(2 * distance) {
            for index in 0..distance {
                let (a, b) = (current[start + index], current[start + distance + index]);
                // The parity is the next bit of the column, from the lowest on.
                next[start + index] = code.shuffle(a, b, halves(0));
                next[start + distance + index] = code.shuffle(a, b, halves(1));
            }
        }
        current = next;
        distance *= 2;
    }
    current
}
