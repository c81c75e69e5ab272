//! `cargo install` gives users the driver, and a package outside this repository builds with it.

use super::project::{Project, Run, SQUARES, SQUARES_OUTPUT, repository, target_folder};
use std::path::Path;

#[test]
fn an_installed_driver_builds_a_package_elsewhere() {
    let project = Project::program("installed", SQUARES);
    let root = project.folder.join("root");
    let cli = repository().join("crates/cli");
    // The repository's own target directory holds the parts already: `cargo fz` runs a release build of the driver. A debug build
    // would take the place of the one that the other tests run meanwhile.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("in the target directory");
    let mut install = project.command(env!("CARGO").as_ref());
    install
        .env_remove("CARGO_TARGET_DIR")
        .args([
            "install",
            "--quiet",
            "--locked",
            "--force",
            "--bin",
            "cargo-ferrozyme",
            "--path",
        ])
        .arg(cli)
        .arg("--root")
        .arg(&root)
        .arg("--target-dir")
        .arg(target);
    Run::of(install).expect_success();

    let mut build = project.command("cargo".as_ref());
    let path = std::env::var("PATH").unwrap_or_default();
    build
        .env("PATH", format!("{}:{path}", root.join("bin").display()))
        .env_remove("CARGO")
        .env("CARGO_TARGET_DIR", target_folder())
        .args(["ferrozyme", "run"]);
    assert_eq!(Run::of(build).expect_success(), SQUARES_OUTPUT);
}
