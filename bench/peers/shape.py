"""What all peers measure: the sizes of the model and of the batch, the parameters, and how time is taken."""

import argparse
import json
import os
import sys
import time


class Shape:
    layers, heads, channels, vocabulary, padded_vocabulary, positions = 12, 12, 768, 50257, 50304, 1024
    sequences, steps = 4, 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    # Before the library starts its threads: so many cores, and no more threads than cores.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]:
        os.environ[variable] = str(given.threads)
    return given


def parameters(shape):
    """Names, shapes, and whether a tensor starts random (with deviation 0.02), at one or at zero."""
    c = shape.channels
    yield "wte", (shape.padded_vocabulary, c), "random"
    yield "wpe", (shape.positions, c), "random"
    for layer in range(shape.layers):
        yield f"ln1w{layer}", (c,), "one"
        yield f"ln1b{layer}", (c,), "zero"
        yield f"qkvw{layer}", (3 * c, c), "random"
        yield f"qkvb{layer}", (3 * c,), "zero"
        yield f"attprojw{layer}", (c, c), "random"
        yield f"attprojb{layer}", (c,), "zero"
        yield f"ln2w{layer}", (c,), "one"
        yield f"ln2b{layer}", (c,), "zero"
        yield f"fcw{layer}", (4 * c, c), "random"
        yield f"fcb{layer}", (4 * c,), "zero"
        yield f"fcprojw{layer}", (c, 4 * c), "random"
        yield f"fcprojb{layer}", (c,), "zero"
    yield "lnfw", (c,), "one"
    yield "lnfb", (c,), "zero"


def report(name, given, forward, gradient):
    """Takes the quickest of some rounds, after one to warm up, and prints a line of JSON."""

    def quickest(work):
        work()
        best = float("inf")
        for _ in range(given.rounds):
            start = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - start)
        return best

    row = {"name": name, "threads": given.threads, "forward": quickest(forward), "gradient": quickest(gradient)}
    print(json.dumps(row))
    sys.stdout.flush()
