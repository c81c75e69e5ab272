//! Writes static libraries: the format of `ar`, with the table of symbols that linkers look in.

/// The header of a member.
fn header(out: &mut Vec<u8>, name: &str, size: usize) {
    // Name, time, user, group, mode, size.
    out.extend(
        format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
            0, 0, 0, "644"
        )
        .bytes(),
    );
}

/// Members start at even positions.
fn pad(out: &mut Vec<u8>) {
    if out.len() % 2 == 1 {
        out.push(b'\n');
    }
}

/// A library of objects, each with the one symbol that it defines for others.
pub(super) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    const MAGIC: &[u8] = b"!<arch>\n";
    const HEADER: usize = 60;
    let names: usize = members.iter().map(|(symbol, _)| symbol.len() + 1).sum();
    let index = 4 + 4 * members.len() + names;
    let mut out = MAGIC.to_vec();
    header(&mut out, "/", index);
    let start = MAGIC.len() + HEADER + index.next_multiple_of(2);
    out.extend((members.len() as u32).to_be_bytes());
    let mut at = start;
    for (_, object) in members {
        out.extend((at as u32).to_be_bytes());
        at += HEADER + object.len().next_multiple_of(2);
    }
    for (symbol, _) in members {
        out.extend(symbol.bytes());
        out.push(0);
    }
    pad(&mut out);
    for (number, (_, object)) in members.iter().enumerate() {
        header(&mut out, &format!("{number}.o/"), object.len());
        out.extend(*object);
        pad(&mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_symbols_says_where_members_are() {
        let library = archive(&[("first", b"abc"), ("second", b"defg")]);
        let at = |number: usize| {
            let from = 8 + 60 + 4 + 4 * number;
            let bytes: [u8; 4] = library[from..from + 4].try_into().unwrap();
            u32::from_be_bytes(bytes) as usize
        };
        assert!(library[at(0)..].starts_with(b"0.o/"));
        assert_eq!(&library[at(0) + 60..][..3], b"abc");
        assert!(library[at(1)..].starts_with(b"1.o/"));
        assert_eq!(&library[at(1) + 60..], b"defg");
    }
}
