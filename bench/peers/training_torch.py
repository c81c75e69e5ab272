"""Training steps by PyTorch: forward, backward, update; eager and compiled. The models are GPT-2 124M with fused AdamW, and the encoder of `crates/nn`'s example with SGD, whose rows are one sequence.

    python3 training_torch.py gpt2 --threads 1
    python3 training_torch.py gpt2 --device cuda --products tf32
    python3 training_torch.py encoder --layers 6 --threads 1

`bench/gpu` measures the same steps as tensor graphs: `gpu time - cpu "GPT-2 124M, 4"`, `gpu time - cpu "width 64"`.
"""

import argparse
import contextlib
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from shape import Shape, parameters

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model", choices=["gpt2", "encoder"])
parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
parser.add_argument("--threads", type=int, default=1, help="on the CPU")
parser.add_argument("--sequences", type=int, default=4, help="of GPT-2")
parser.add_argument("--length", type=int, default=64, help="of GPT-2")
parser.add_argument("--products", choices=["f32", "tf32", "bf16"], default="f32")
parser.add_argument("--layers", type=int, default=6, help="of the encoder")
parser.add_argument("--rounds", type=int, default=20)
parser.add_argument("--only", choices=["eager", "compiled"])
given = parser.parse_args()

torch.manual_seed(1)
torch.set_num_threads(given.threads)
torch.backends.cuda.matmul.allow_tf32 = given.products != "f32"
device = torch.device(given.device)
on_gpu = given.device == "cuda"
# What PyTorch compiles best with: graphs of launches on a GPU, a search for the best kernels on the CPU.
MODE = "reduce-overhead" if on_gpu else "max-autotune"


class Gpt2:
    """All parameters by name, and the loss of random text."""

    def __init__(self):
        self.named = {name: self.start(size, kind).requires_grad_() for name, size, kind in parameters(Shape)}
        self.parameters = list(self.named.values())
        shape = (given.sequences, given.length)
        self.inputs = [torch.randint(Shape.vocabulary, shape, device=device) for _ in range(2)]
        self.optimiser = torch.optim.AdamW(self.parameters, lr=1e-4, weight_decay=0.0, fused=True)
        self.what = f"GPT-2 124M, {given.sequences} sequences of {given.length} tokens, {given.products}"

    @staticmethod
    def start(size, kind):
        if kind == "random":
            return 0.02 * torch.randn(size, device=device)
        return torch.ones(size, device=device) if kind == "one" else torch.zeros(size, device=device)

    def compute(self, tokens, targets):
        p, (b, t), c = self.named, tokens.shape, Shape.channels
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


class Layer(torch.nn.Module):
    """Attention with a projection for each head, and two linear layers; the sums are normalised."""

    def __init__(self, width, heads, inner):
        super().__init__()
        size = width // heads
        linear = torch.nn.Linear
        self.projections = torch.nn.ModuleList(
            torch.nn.ModuleList(linear(width, size, bias=False) for _ in range(3)) for _ in range(heads)
        )
        self.out = linear(width, width, bias=False)
        self.first, self.second = linear(width, inner), linear(inner, width)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.scale = width**-0.5

    def head(self, projections, x):
        q, k, v = (projection(x) for projection in projections)
        return torch.softmax(self.scale * (q @ k.T), -1) @ v

    def forward(self, x):
        attended = torch.cat([self.head(projections, x) for projections in self.projections], -1)
        y = self.norms[0](x + self.out(attended))
        return self.norms[1](y + self.second(torch.relu(self.first(y))))


class Encoder:
    """Layers of width 64 on two rows of constants; the gradient is that of the sum."""

    def __init__(self):
        net = torch.nn.Sequential(*(Layer(64, 4, 128) for _ in range(given.layers))).to(device)
        self.compute = lambda x: net(x).sum()
        self.inputs = [torch.full((2, 64), 0.3, device=device)]
        self.optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
        self.what = f"encoder, {given.layers} layers of width 64, 2 rows"


def measure(name, change):
    model = {"gpt2": Gpt2, "encoder": Encoder}[given.model]()
    compute = change(model.compute)
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    half = torch.autocast("cuda", torch.bfloat16) if given.products == "bf16" else contextlib.nullcontext()

    def step():
        with half:
            value = compute(*model.inputs)
        value.backward()
        model.optimiser.step()
        model.optimiser.zero_grad(set_to_none=True)
        return value

    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(5):
        last = float(step())
    times = []
    for _ in range(given.rounds):
        wait()
        begin = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - begin)
    # Steps that follow each other without waiting, as in training.
    begin = time.perf_counter()
    for _ in range(given.rounds):
        step()
    wait()
    together = (time.perf_counter() - begin) / given.rounds
    peak = torch.cuda.max_memory_allocated() if on_gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"PyTorch {torch.__version__}, {name}, {model.what}, {given.device}, {given.threads} threads: "
        f"{1e3 * statistics.median(times):.3f} ms a step (median), {1e3 * together:.3f} ms without waiting, "
        f"{peak / 1e9:.2f} GB, result {last:.4f}",
        flush=True,
    )


if given.only != "compiled":
    measure("eager", lambda compute: compute)
if given.only != "eager":
    measure(f"compiled ({MODE})", lambda compute: torch.compile(compute, mode=MODE))
