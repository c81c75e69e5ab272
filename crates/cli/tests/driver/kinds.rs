//! Libraries for C, shared and static ones, and code of C in programs of Rust.

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

/// Variable arguments are the business of the front end of C, which takes part wherever its code does: also where clang does not name itself in its modules.
#[test]
fn code_of_c_in_programs_of_rust_is_recognised() {
    if Command::new("clang-22").arg("--version").output().is_err() {
        eprintln!("note: no clang 22: the test is left out");
        return;
    }
    let source = "#include <stdarg.h>\n\
        __attribute__((noinline)) static double product(int count, ...) {\n  va_list list;\n  va_start(list, count);\n  double result = 1;\n  \
        for (int i = 0; i < count; i++)\n    result *= va_arg(list, double);\n  va_end(list);\n  return result;\n}\n\
        double cube(double x) { return product(3, x, x, x); }\n";
    let main = "use ferrozyme::autodiff_reverse;\n\nunsafe extern \"C\" {\n    safe fn cube(x: f64) -> f64;\n}\n\n\
        #[autodiff_reverse(d_outer, Active, Active)]\nfn outer(x: f64) -> f64 {\n    2.0 * cube(x)\n}\n\n\
        fn main() {\n    println!(\"{:?}\", d_outer(2.0, 1.0));\n}\n";
    let manifest = manifest("with-c", "[workspace]\n");
    let project = Project::new(
        "with-c",
        &[
            ("Cargo.toml", &manifest),
            ("src/main.rs", main),
            ("cube.c", source),
        ],
    );
    for ident in ["-fident", "-fno-ident"] {
        let object = format!("cube{ident}.o");
        let mut compile = project.command("clang-22".as_ref());
        compile.args(["-c", "-flto", "-O1", ident, "cube.c", "-o", &object]);
        Run::of(compile).expect_success();
        let object = project.folder.join(object);
        let flags = format!("-Clink-arg={}", object.display());
        let run = project.ferrozyme_with(&["run"], |command| {
            command.env("RUSTFLAGS", &flags);
        });
        run.expect_success();
        assert_eq!(run.output, "(16.0, 24.0)\n", "{ident}");
    }
}
