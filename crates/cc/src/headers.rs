//! The headers `<enzyme/…>`, which are part of the driver: it writes them to a folder for clang.
//!
//! The folder is kept, since build systems record the files that a compilation read. Its name depends on its contents.

use std::path::{Path, PathBuf};

/// The files below the folder.
const FILES: &[(&str, &str)] = &[
    ("enzyme/enzyme", include_str!("../include/enzyme/enzyme")),
    (
        "enzyme/checkpoint.h",
        include_str!("../include/enzyme/checkpoint.h"),
    ),
    (
        "enzyme/fixed_point.h",
        include_str!("../include/enzyme/fixed_point.h"),
    ),
];

/// The include folder; without a home, one for this run below `temporary`. None if it cannot be written: then there are no such headers.
pub(crate) fn folder(temporary: &Path) -> Option<PathBuf> {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in FILES {
        hasher.update(name.as_bytes()).update(text.as_bytes());
    }
    let name = format!("include-{}", &hasher.finalize().to_hex()[..16]);
    let places = [
        cache().map(|cache| cache.join("ferrozyme")),
        Some(temporary.to_owned()),
    ];
    places
        .into_iter()
        .flatten()
        .map(|place| place.join(&name))
        .find(|folder| {
            FILES
                .iter()
                .all(|(name, text)| provide(&folder.join(name), text).is_ok())
        })
}

/// The user's cache folder.
fn cache() -> Option<PathBuf> {
    let named = |variable: &str| {
        let value = std::env::var_os(variable).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))
}

/// Writes a file, unless it exists. Concurrent writers see all of it or nothing.
fn provide(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let readable = std::fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_once() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("enzyme/enzyme");
        provide(&path, "text").expect("written");
        let written = std::fs::metadata(&path).and_then(|it| it.modified());
        provide(&path, "text").expect("there");
        let again = std::fs::metadata(&path).and_then(|it| it.modified());
        assert_eq!(written.expect("a time"), again.expect("a time"));
        provide(&path, "another text").expect("written");
        assert_eq!(std::fs::read(&path).expect("read"), b"another text");
    }
}
