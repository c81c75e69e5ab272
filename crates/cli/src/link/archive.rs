//! Archives of object files: reads their members and symbols, and rewrites archives with members replaced.
//!
//! A rewritten archive has no symbol index: lld reads the members itself, as if each stood between `--start-lib` and
//! `--end-lib`, so order and laziness are those of the original.

use object::read::archive::ArchiveFile;
use std::ops::Range;

/// A member of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its file name.
    pub name: String,
    /// The offset of its contents in the archive.
    pub range: Range<usize>,
    /// The offset of its header, by which the symbol index refers to it.
    header: u64,
}

/// Whether these bytes begin an archive that holds its members (thin archives do not).
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"!<arch>\n")
}

/// The members of an archive.
///
/// # Errors
/// If it is damaged.
pub fn members(bytes: &[u8]) -> Result<Vec<Member>, String> {
    let file = ArchiveFile::parse(bytes).map_err(|error| error.to_string())?;
    file.members()
        .map(|member| {
            let member = member.map_err(|error| error.to_string())?;
            let (start, size) = member.file_range();
            let range = to_usize(start)?..to_usize(start.saturating_add(size))?;
            if range.end > bytes.len() {
                return Err("a member extends beyond the end of the archive".to_owned());
            }
            Ok(Member {
                name: String::from_utf8_lossy(member.name()).into_owned(),
                header: start.saturating_sub(HEADER_BYTES),
                range,
            })
        })
        .collect()
}

/// A name in the symbol index, and the number of the member that defines it.
pub type IndexEntry<'a> = (&'a [u8], usize);

/// The symbol index; `None` if the archive has none.
///
/// # Errors
/// If it is damaged.
pub fn index<'a>(
    bytes: &'a [u8],
    members: &[Member],
) -> Result<Option<Vec<IndexEntry<'a>>>, String> {
    let file = ArchiveFile::parse(bytes).map_err(|error| error.to_string())?;
    let Some(symbols) = file.symbols().map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let mut found = Vec::new();
    for symbol in symbols {
        let symbol = symbol.map_err(|error| error.to_string())?;
        let offset = symbol.offset().0;
        let Ok(number) = members.binary_search_by_key(&offset, |member| member.header) else {
            continue;
        };
        found.push((symbol.name(), number));
    }
    Ok(Some(found))
}

/// An archive of these members, in this order, without a symbol index.
pub fn write<'a>(members: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Vec<u8> {
    let mut out = START.to_vec();
    write_members(&mut out, members);
    out
}

/// An archive of these members with a symbol index, for linkers that need one.
///
/// # Errors
/// If it is too large for this kind of archive.
pub fn write_indexed<'a>(
    members: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    symbols: &[Vec<&[u8]>],
) -> Result<Vec<u8>, String> {
    let count: usize = symbols.iter().map(Vec::len).sum();
    let names: usize = symbols.iter().flatten().map(|name| name.len() + 1).sum();
    let size = 4 + 4 * count + names;
    let mut rest = Vec::new();
    let starts = write_members(&mut rest, members);
    let before = START.len() + HEADER_BYTES as usize + size.next_multiple_of(2);
    let mut index = Vec::with_capacity(size);
    let word = |value: usize| {
        let value = u32::try_from(value).map_err(|_| "the archive is too large".to_owned())?;
        Ok::<_, String>(value.to_be_bytes())
    };
    index.extend(word(count)?);
    for (start, symbols) in starts.iter().zip(symbols) {
        for _ in symbols {
            index.extend(word(before + start)?);
        }
    }
    for name in symbols.iter().flatten() {
        index.extend_from_slice(name);
        index.push(0);
    }
    let mut out = START.to_vec();
    write_member(&mut out, "/", &index);
    out.extend(rest);
    Ok(out)
}

const START: &[u8] = b"!<arch>\n";

/// Writes the names and the members; where each of them starts.
fn write_members<'a>(
    out: &mut Vec<u8>,
    members: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Vec<usize> {
    // GNU's format: a table holds all names, and headers refer to it by offset.
    let mut names = Vec::new();
    let mut offsets = Vec::new();
    for (name, _) in members.clone() {
        offsets.push(names.len());
        names.extend_from_slice(name.as_bytes());
        names.extend_from_slice(b"/\n");
    }
    write_member(out, "//", &names);
    let mut starts = Vec::new();
    for ((_, contents), offset) in members.zip(offsets) {
        starts.push(out.len());
        write_member(out, &format!("/{offset}"), contents);
    }
    starts
}

const HEADER_BYTES: u64 = 60;

fn write_member(out: &mut Vec<u8>, name: &str, contents: &[u8]) {
    // Name, time, owner, group, mode, size; two bytes that end a header.
    let header = format!(
        "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        0,
        0,
        0,
        644,
        contents.len()
    );
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(contents);
    if contents.len() % 2 == 1 {
        out.push(b'\n');
    }
}

fn to_usize(value: u64) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| "the archive is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let parts = [
            ("lib.rmeta", &b"odd"[..]),
            ("a-rather-long-name-of-a-member.rcgu.o", b"contents"),
            ("", b""),
        ];
        let bytes = write(parts.iter().copied());
        let members = members(&bytes).expect("well-formed");
        let read: Vec<(&str, &[u8])> = members
            .iter()
            .map(|member| (member.name.as_str(), &bytes[member.range.clone()]))
            .collect();
        assert_eq!(read, parts);
        assert_eq!(index(&bytes, &members), Ok(None));
    }

    #[test]
    fn the_index_names_the_members() {
        let parts = [("a.o", &b"odd"[..]), ("b.o", b"even")];
        let symbols = [vec![&b"first"[..], b"second"], vec![&b"third"[..]]];
        let bytes = write_indexed(parts.iter().copied(), &symbols).expect("small");
        let members = members(&bytes).expect("well-formed");
        let found = index(&bytes, &members).expect("well-formed");
        let expected: [IndexEntry<'_>; 3] = [(b"first", 0), (b"second", 0), (b"third", 1)];
        assert_eq!(found.as_deref(), Some(&expected[..]));
    }

    #[test]
    fn damaged_archives_are_errors() {
        let bytes = write([("a.o", &b"contents"[..])].into_iter());
        assert!(members(&bytes[..bytes.len() - 4]).is_err());
        assert!(members(b"!<arch>\nx").is_err());
    }
}
