//! Libraries for C: shared and static ones.

use super::project::{Project, Run, manifest, target_folder};
use std::process::Command;

#[test]
fn c_programs_link_libraries_with_derivatives() {
    let manifest = manifest(
        "for-c",
        "[lib]\ncrate-type = [\"cdylib\", \"staticlib\"]\n[workspace]\n",
    );
    let library = "use ferrozyme::autodiff_reverse;\n\n\
        #[autodiff_reverse(d_cube, Active, Active)]\nfn cube(x: f64) -> f64 {\n    x * x * x\n}\n\n\
        #[unsafe(no_mangle)]\npub extern \"C\" fn cube_slope(x: f64) -> f64 {\n    d_cube(x, 1.0).1\n}\n";
    let program = "#include <stdio.h>\ndouble cube_slope(double);\nint main(void) { printf(\"%g\\n\", cube_slope(2.0)); }\n";
    let project = Project::new(
        "for-c",
        &[
            ("Cargo.toml", &manifest),
            ("src/lib.rs", library),
            ("main.c", program),
        ],
    );
    for (profile, folder) in [("dev", "debug"), ("release", "release")] {
        project
            .ferrozyme(&["build", "--profile", profile])
            .expect_success();
        let built = target_folder().join(folder);
        for library in ["libfor_c.a", "libfor_c.so"] {
            let program = project.folder.join("main");
            let mut compile = Command::new("cc");
            compile
                .current_dir(&project.folder)
                .args(["main.c", "-o"])
                .arg(&program)
                .arg(built.join(library))
                .args(["-lpthread", "-ldl", "-lm"]);
            Run::of(compile).expect_success();
            let mut command = Command::new(&program);
            command.env("LD_LIBRARY_PATH", &built);
            assert_eq!(
                Run::of(command).expect_success(),
                "12\n",
                "{library} {profile}"
            );
        }
    }
}
