#!/usr/bin/env python3
"""The gradient of GPT-2 by Ferrozyme beside PyTorch and JAX: the 124M shape, 4 sequences of 64 tokens, on the CPU.

    python3 bench/peers/run.py --torch-index https://download.pytorch.org/whl/cpu

PyTorch and JAX are installed by pip into an environment that is removed again; --environment keeps one. Rust's rows come from `cargo fz run -p gpt2 -- bench`, C's from
models/gpt2-c where clang and make are. What cannot be had is left out, with a note.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ALL = ["rust", "c", "torch", "jax"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads to measure with (1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the quickest counts (3)")
    parser.add_argument("--only", nargs="+", choices=ALL, default=ALL, help="what to measure (all)")
    parser.add_argument("--torch-index", help="where pip finds PyTorch; PyPI's own packages for Linux bring gigabytes for GPUs along")
    parser.add_argument("--environment", type=pathlib.Path, help="a folder for the Python environment, to be kept")
    parser.add_argument("--model-program", type=pathlib.Path, help="a gpt2 that is built already")
    parser.add_argument("--c-programs", type=pathlib.Path, help="a folder with gpt2-c and gpt2-c-openmp that are built already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ferrozyme-peers") as folder:
        rows = []
        for name, measure in [("rust", measure_rust), ("c", measure_c), ("torch", measure_torch), ("jax", measure_jax)]:
            if name in given.only:
                try:
                    rows += measure(given, pathlib.Path(folder))
                except (OSError, subprocess.CalledProcessError) as problem:
                    print(f"note: {name} is left out: {problem}", file=sys.stderr)
        show(rows, given)


def measure_rust(given, folder):
    file = folder / "rust.json"
    program = [str(given.model_program)] if given.model_program else ["cargo", "fz", "run", "--release", "-p", "gpt2", "--"]
    environment = dict(os.environ)
    environment.setdefault("RUSTFLAGS", "-Ctarget-cpu=native")
    rows = {}
    # One thread is measured along with several.
    for threads in [threads for threads in given.threads if threads > 1] or [1]:
        words = ["bench", "--whole", "--rounds", str(given.rounds), "--threads", str(threads), "--json", str(file)]
        subprocess.run(program + words, cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
        for row in read(file.read_text()):
            rows[row["threads"]] = row
    return ours([row for row in rows.values() if row["threads"] in given.threads], "Rust")


def measure_c(given, folder):
    programs = given.c_programs
    if not programs:
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        subprocess.run(["cargo", "build", "--release", "-p", "ferrozyme-cc"], cwd=ROOT, check=True)
        compiler = target.resolve() / "release" / "ferrozyme-cc"
        subprocess.run(["make", f"CC={compiler}", f"BUILD={folder}"], cwd=ROOT / "models" / "gpt2-c", check=True, stdout=sys.stderr)
        programs = folder
    rows = []
    for threads in given.threads:
        program = programs / ("gpt2-c" if threads == 1 else "gpt2-c-openmp")
        words = [program, "bench", "whole", f"rounds={given.rounds}", f"threads={threads}"]
        rows += read(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return ours(rows, "C")


def ours(rows, language):
    for row in rows:
        name = f"{language}, OpenMP" if row.get("openmp") else language
        for key, kind in [("automatic", "automatic gradient"), ("manual", "by hand")]:
            yield {"name": f"{name}, {kind}", "threads": row["threads"], "forward": row["forward"], "gradient": row[key]}


def measure_torch(given, folder):
    return measure_python(given, folder, "gpt2_torch.py", ["torch", "numpy"], given.torch_index)


def measure_jax(given, folder):
    return measure_python(given, folder, "gpt2_jax.py", ["jax"], None)


def measure_python(given, folder, script, packages, index):
    environment = given.environment or folder / "environment"
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    if subprocess.run([python, "-c", f"import {packages[0]}"], stderr=subprocess.DEVNULL).returncode != 0:
        options = ["--index-url", index] if index else []
        subprocess.run([python, "-m", "pip", "install", "--no-cache-dir", "--quiet", *options, *packages], check=True)
    rows = []
    for threads in given.threads:
        words = [python, HERE / script, "--threads", str(threads), "--rounds", str(given.rounds)]
        rows += read(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    if not given.environment:
        # The next one needs the room.
        shutil.rmtree(environment)
    return rows


def read(lines):
    return [json.loads(line) for line in lines.splitlines()]


def show(rows, given):
    print("124M, 4 sequences of 64 tokens; gradient: forward and backward pass together; ratio: to Rust's automatic gradient on as many threads")
    print(f"{'':34} {'threads':>7} {'forward ms':>11} {'gradient ms':>12} {'ratio':>7}")
    for threads in given.threads:
        here = [row for row in rows if row["threads"] == threads]
        first = next((row["gradient"] for row in here if row["name"] == "Rust, automatic gradient"), None)
        for row in sorted(here, key=lambda row: row["gradient"]):
            ratio = f"{row['gradient'] / first:7.2f}" if first else ""
            print(f"{row['name']:34} {threads:7} {1e3 * row['forward']:11.1f} {1e3 * row['gradient']:12.1f} {ratio}")


if __name__ == "__main__":
    main()
