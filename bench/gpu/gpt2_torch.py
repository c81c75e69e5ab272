"""Training steps of GPT-2 124M by PyTorch on a GPU: eager, and compiled with CUDA graphs. Forward, backward, fused AdamW; the model is that of bench/peers.

    python3 gpt2_torch.py --sequences 4 --length 64 --products tf32
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

for folder in [Path(__file__).parent, Path(__file__).parent.parent / "peers"]:
    sys.path.insert(0, str(folder))
from shape import Shape, parameters  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--sequences", type=int, default=4)
parser.add_argument("--length", type=int, default=64)
parser.add_argument("--products", choices=["f32", "tf32", "bf16"], default="tf32")
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--only", choices=["eager", "compiled"])
given = parser.parse_args()

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = given.products != "f32"
device = torch.device("cuda")
b, t, c = given.sequences, given.length, Shape.channels


def start(size, kind):
    if kind == "random":
        return 0.02 * torch.randn(size, device=device)
    return torch.ones(size, device=device) if kind == "one" else torch.zeros(size, device=device)


def loss(p, tokens, targets):
    x = F.embedding(tokens, p["wte"]) + p["wpe"][:t]
    for i in range(Shape.layers):
        y = F.layer_norm(x, (c,), p[f"ln1w{i}"], p[f"ln1b{i}"])
        qkv = F.linear(y, p[f"qkvw{i}"], p[f"qkvb{i}"]).view(b, t, 3, Shape.heads, c // Shape.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + F.linear(y, p[f"attprojw{i}"], p[f"attprojb{i}"])
        y = F.layer_norm(x, (c,), p[f"ln2w{i}"], p[f"ln2b{i}"])
        y = F.gelu(F.linear(y, p[f"fcw{i}"], p[f"fcb{i}"]), approximate="tanh")
        x = x + F.linear(y, p[f"fcprojw{i}"], p[f"fcprojb{i}"])
    x = F.layer_norm(x, (c,), p["lnfw"], p["lnfb"])
    logits = F.linear(x, p["wte"][: Shape.vocabulary])
    return F.cross_entropy(logits.view(b * t, -1), targets.view(-1))


def measure(name, compute):
    p = {name: start(size, kind).requires_grad_() for name, size, kind in parameters(Shape)}
    optimiser = torch.optim.AdamW(p.values(), lr=1e-4, weight_decay=0.0, fused=True)
    tokens, targets = (torch.randint(Shape.vocabulary, (b, t), device=device) for _ in range(2))

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=given.products == "bf16"):
            value = compute(p, tokens, targets)
        value.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return value

    torch.cuda.reset_peak_memory_stats()
    for _ in range(5):
        last = float(step())
    times = []
    for _ in range(given.rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    # Steps that follow each other without waiting, as in training.
    begin = time.perf_counter()
    for _ in range(given.rounds):
        step()
    torch.cuda.synchronize()
    together = (time.perf_counter() - begin) / given.rounds
    gigabytes = torch.cuda.max_memory_allocated() / 1e9
    print(
        f"PyTorch {torch.__version__}, {name}, {b} sequences of {t} tokens, {given.products}: "
        f"{1e3 * statistics.median(times):.2f} ms a step (median), {1e3 * together:.2f} ms without waiting, "
        f"{gigabytes:.2f} GB, loss {last:.4f}",
        flush=True,
    )


if given.only != "compiled":
    measure("eager", loss)
if given.only != "eager":
    measure("compiled with CUDA graphs", torch.compile(loss, mode="reduce-overhead"))
