"""GPT-2 in PyTorch, on the CPU: as it is run line by line, and compiled."""

from shape import Shape, arguments, parameters, report

given = arguments()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.manual_seed(1)
torch.set_num_threads(given.threads)


def start(size, kind):
    if kind == "random":
        return 0.02 * torch.randn(size)
    return torch.ones(size) if kind == "one" else torch.zeros(size)


p = {name: start(size, kind).requires_grad_() for name, size, kind in parameters(Shape)}
tokens, targets = (torch.randint(Shape.vocabulary, (Shape.sequences, Shape.steps)) for _ in range(2))


def loss():
    b, t, c = Shape.sequences, Shape.steps, Shape.channels
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


def measure(name, function):
    def forward():
        with torch.no_grad():
            function()

    def gradient():
        for tensor in p.values():
            tensor.grad = None
        function().backward()

    report(name, given, forward, gradient)


measure("PyTorch, eager", loss)
try:
    measure("PyTorch, compiled", torch.compile(loss))
except Exception as problem:  # It wants a C++ compiler and Python's headers.
    import sys

    print(f"note: PyTorch does not compile here: {str(problem).splitlines()[0]}", file=sys.stderr)
