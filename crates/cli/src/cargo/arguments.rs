//! The arguments of cargo that the driver needs. All but the driver's own are passed to cargo unchanged.

/// What we know of a cargo command line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CargoArguments {
    /// The first argument that is not an option.
    pub command: Option<String>,
    /// Values of `--target`.
    pub targets: Vec<String>,
    /// The value of `--target-dir`.
    pub target_folder: Option<String>,
    /// The value of `--manifest-path`.
    pub manifest: Option<String>,
    /// Values of `--config`.
    pub config: Vec<String>,
    /// The value of `-C`: where cargo goes first.
    pub folder: Option<String>,
    /// The value of `--color`.
    pub colour: Option<String>,
    /// Whether `--strict` is there, which is ours.
    pub strict: bool,
    /// Whether `--no-multiversion` is there, which is ours.
    pub no_multiversion: bool,
}

/// The arguments without those that are ours alone.
pub fn without_ours(arguments: &[String]) -> Vec<String> {
    let end = arguments.iter().position(|argument| argument == "--");
    let (before, after) = arguments.split_at(end.unwrap_or(arguments.len()));
    let kept = before
        .iter()
        .filter(|argument| !OURS.contains(&argument.as_str()));
    kept.chain(after).cloned().collect()
}

const STRICT: &str = "--strict";
const NO_MULTIVERSION: &str = "--no-multiversion";
const OURS: [&str; 2] = [STRICT, NO_MULTIVERSION];

/// Finds what concerns us; `arguments` begin with the command of cargo.
pub fn parse(arguments: &[String]) -> CargoArguments {
    let mut found = CargoArguments::default();
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            break;
        }
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (argument, None),
        };
        let mut value = || attached.or_else(|| arguments.next()).map(str::to_owned);
        match name {
            "--target" => found.targets.extend(value()),
            "--target-dir" => found.target_folder = value(),
            "--manifest-path" => found.manifest = value(),
            "--config" => found.config.extend(value()),
            STRICT => found.strict = true,
            NO_MULTIVERSION => found.no_multiversion = true,
            "--color" => found.colour = value(),
            "-C" => found.folder = value(),
            // Options of cargo itself that may precede the command.
            "-Z" => drop(value()),
            _ if found.command.is_none() && !name.starts_with('-') => {
                found.command = Some(name.to_owned());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_stay_here() {
        for ours in OURS {
            let arguments = ["build", ours, "-q", "--", ours].map(str::to_owned);
            let found = parse(&arguments);
            assert_eq!(found.strict, ours == STRICT);
            assert_eq!(found.no_multiversion, ours == NO_MULTIVERSION);
            assert_eq!(without_ours(&arguments), ["build", "-q", "--", ours]);
            let rest = parse(&without_ours(&arguments));
            assert!(!rest.strict && !rest.no_multiversion);
        }
    }

    #[test]
    fn finds_options_up_to_the_separator() {
        let arguments = [
            "--config",
            "a=1",
            "-Z",
            "x",
            "test",
            "-p",
            "b",
            "--target=t",
            "--target-dir",
            "d",
            "--",
            "--target",
            "no",
        ];
        let found = parse(&arguments.map(str::to_owned));
        assert_eq!(found.command.as_deref(), Some("test"));
        assert_eq!(found.config, ["a=1"]);
        assert_eq!(found.targets, ["t"]);
        assert_eq!(found.target_folder.as_deref(), Some("d"));
    }
}
