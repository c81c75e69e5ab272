//! Finds packages that cannot take part in derivatives: no package that uses `ferrozyme` depends on them, except at build time (procedural macros, build
//! scripts, and their dependencies).
//!
//! Cargo passes the same flags to all packages. Bitcode would only slow down the build of these packages, so the wrapper removes the flag for it,
//! and they are built as with plain cargo.

use super::arguments::CargoArguments;
use ferrozyme_driver::Diagnostic;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The required metadata of a workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Workspace {
    /// The target directory.
    pub target_folder: PathBuf,
    /// What needs no bitcode.
    pub plain: Vec<Plain>,
}

/// Something that is built as a plain cargo does it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Plain {
    /// The library in a package's folder.
    Library(PathBuf),
    /// The build script of the package in this folder.
    BuildScript(PathBuf),
}

/// Asks cargo; `None` if the command does not concern a package.
///
/// # Errors
/// If cargo cannot be run.
pub fn ask(
    cargo: &OsStr,
    words: &[String],
    found: &CargoArguments,
    folder: &Path,
    triple: &str,
) -> Result<Option<Workspace>, Diagnostic> {
    let command = found.command.as_deref().unwrap_or_default();
    if NO_PACKAGE.contains(&command) {
        return Ok(None);
    }
    let mut command = Command::new(cargo);
    command
        .args(["metadata", "--format-version=1", "--all-features"])
        .args(["--filter-platform", triple])
        .current_dir(folder)
        .stderr(Stdio::inherit());
    if let Some(manifest) = &found.manifest {
        command.args(["--manifest-path", manifest]);
    }
    for option in &found.config {
        command.args(["--config", option]);
    }
    let passed = words.iter().take_while(|word| *word != "--");
    let passed = passed.filter(|word| PASSED_ON.contains(&word.as_str()));
    command.args(passed);
    let output = command
        .output()
        .map_err(|error| super::cannot_run(&command, &error))?;
    let Ok(metadata) = serde_json::from_slice::<Metadata>(&output.stdout) else {
        // Cargo has printed the reason, or will do so.
        return Ok(None);
    };
    let mut workspace = understand(&metadata);
    let chosen = found
        .target_folder
        .as_ref()
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from));
    if let Some(chosen) = chosen.filter(|chosen| !chosen.as_os_str().is_empty()) {
        workspace.target_folder = folder.join(chosen);
    }
    Ok(Some(workspace))
}

/// Commands that work without a package, or on another one than that of the folder.
const NO_PACKAGE: [&str; 14] = [
    "",
    "new",
    "init",
    "install",
    "uninstall",
    "search",
    "login",
    "logout",
    "help",
    "version",
    "owner",
    "yank",
    "info",
    "clean",
];

/// Options that mean the same for `cargo metadata`.
const PASSED_ON: [&str; 5] = ["--locked", "--offline", "--frozen", "-q", "--quiet"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
    resolve: Option<Resolve>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

impl Dependency {
    fn is(&self, kind: Option<&str>) -> bool {
        self.dep_kinds
            .iter()
            .any(|found| found.kind.as_deref() == kind)
    }
}

impl Package {
    fn has(&self, kind: &str) -> bool {
        self.targets
            .iter()
            .any(|target| target.kind.iter().any(|found| found == kind))
    }
}

fn understand(metadata: &Metadata) -> Workspace {
    let packages: HashMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package))
        .collect();
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let graph: HashMap<&str, &[Dependency]> = nodes
        .map(|node| (node.id.as_str(), node.deps.as_slice()))
        .collect();
    let dependencies = |id: &str| graph.get(id).copied().unwrap_or_default();
    let is_macro = |id: &str| {
        packages
            .get(id)
            .is_some_and(|package| package.has("proc-macro"))
    };
    // Packages that depend on `ferrozyme`, directly or not, in any way.
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for (&id, dependencies) in &graph {
        for dependency in *dependencies {
            users.entry(&dependency.pkg).or_default().push(id);
        }
    }
    let ferrozyme = metadata
        .packages
        .iter()
        .filter(|package| package.name == "ferrozyme");
    let asking = reach(ferrozyme.map(|package| package.id.as_str()), |id, visit| {
        users
            .get(id)
            .into_iter()
            .flatten()
            .for_each(|user| visit(user));
    });
    // Code of all their dependencies may be differentiated, but not of build-time dependencies.
    let differentiable = reach(asking.iter().copied(), |id, visit| {
        for dependency in dependencies(id) {
            let runs = dependency.is(None) || dependency.is(Some("dev"));
            if runs && !is_macro(&dependency.pkg) {
                visit(&dependency.pkg);
            }
        }
    });
    let mut plain = Vec::new();
    for package in &metadata.packages {
        let id = package.id.as_str();
        let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
        if !differentiable.contains(id) {
            plain.push(Plain::Library(folder.to_owned()));
        }
        let script_asks = || {
            let mut used = dependencies(id)
                .iter()
                .filter(|dependency| dependency.is(Some("build")));
            used.any(|dependency| asking.contains(dependency.pkg.as_str()))
        };
        if package.has("custom-build") && !script_asks() {
            plain.push(Plain::BuildScript(folder.to_owned()));
        }
    }
    plain.sort();
    Workspace {
        target_folder: metadata.target_directory.clone(),
        plain,
    }
}

/// Everything that can be reached.
fn reach<'a>(
    start: impl Iterator<Item = &'a str>,
    step: impl Fn(&'a str, &mut dyn FnMut(&'a str)),
) -> HashSet<&'a str> {
    let mut work: Vec<&str> = start.collect();
    let mut reached: HashSet<&str> = work.iter().copied().collect();
    while let Some(id) = work.pop() {
        step(id, &mut |next| {
            if reached.insert(next) {
                work.push(next);
            }
        });
    }
    reached
}

/// The list as text, one in a line.
pub fn write_plain(plain: &[Plain]) -> String {
    plain
        .iter()
        .map(|plain| match plain {
            Plain::Library(folder) => format!("library {}\n", folder.display()),
            Plain::BuildScript(folder) => format!("build-script {}\n", folder.display()),
        })
        .collect()
}

/// Whether such a text names the library (or else the build script) in a folder.
pub fn names_plain(text: &str, folder: &str, build_script: bool) -> bool {
    let kind = if build_script {
        "build-script"
    } else {
        "library"
    };
    text.lines().any(|line| {
        line.strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix(' '))
            .is_some_and(|named| named == folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `edges`: from, to, kind.
    fn metadata(packages: &[(&str, &str)], edges: &[(&str, &str, Option<&str>)]) -> Metadata {
        let nodes: Vec<_> = packages
            .iter()
            .map(|(name, _)| {
                let used = edges.iter().filter(|(from, ..)| from == name);
                let deps =
                    used.map(|(_, to, kind)| json!({"pkg": to, "dep_kinds": [{"kind": kind}]}));
                json!({"id": name, "deps": deps.collect::<Vec<_>>()})
            })
            .collect();
        let packages: Vec<_> = packages
            .iter()
            .map(|(name, kind)| {
                let targets: Vec<_> = kind.split(' ').map(|kind| json!({"kind": [kind]})).collect();
                json!({"id": name, "name": name, "manifest_path": format!("/{name}/Cargo.toml"), "targets": targets})
            })
            .collect();
        let value = json!({
            "packages": packages, "target_directory": "/target", "resolve": {"nodes": nodes},
        });
        serde_json::from_value(value).expect("as cargo writes it")
    }

    #[test]
    fn what_only_macros_use_is_plain() {
        let packages = [
            ("app", "bin custom-build"),
            ("ferrozyme", "lib"),
            ("macros", "proc-macro"),
            ("syn", "lib custom-build"),
            ("both", "lib"),
            ("testing", "lib"),
            ("tables", "lib"),
        ];
        let edges = [
            ("app", "ferrozyme", None),
            ("ferrozyme", "macros", None),
            ("macros", "syn", None),
            ("macros", "both", None),
            ("app", "both", None),
            ("app", "testing", Some("dev")),
            ("app", "tables", Some("build")),
        ];
        let text = write_plain(&understand(&metadata(&packages, &edges)).plain);
        assert_eq!(
            text,
            "library /macros\nlibrary /syn\nlibrary /tables\nbuild-script /app\nbuild-script /syn\n"
        );
        assert!(names_plain(&text, "/syn", false));
        assert!(names_plain(&text, "/app", true));
        assert!(!names_plain(&text, "/app", false));

        // A build script that requests derivatives gets our flags, and so do its dependencies.
        let edges = [&edges[..], &[("tables", "ferrozyme", None)]].concat();
        let text = write_plain(&understand(&metadata(&packages, &edges)).plain);
        assert_eq!(text, "library /macros\nlibrary /syn\nbuild-script /syn\n");
    }

    #[test]
    fn what_users_of_ferrozyme_do_not_use_is_plain() {
        let packages = [
            ("app", "bin"),
            ("model", "lib"),
            ("ferrozyme", "lib"),
            ("numbers", "lib"),
            ("tool", "lib"),
        ];
        let edges = [("app", "tool", None), ("tool", "numbers", None)];
        let text = write_plain(&understand(&metadata(&packages, &edges)).plain);
        assert!(
            text.contains("library /app\nlibrary /model\nlibrary /numbers\nlibrary /tool\n"),
            "{text}"
        );
        let edges = [
            &edges[..],
            &[("app", "model", None), ("model", "ferrozyme", None)],
        ]
        .concat();
        assert_eq!(
            write_plain(&understand(&metadata(&packages, &edges)).plain),
            ""
        );
    }
}
