"""GPT-2 in JAX, on the CPU, compiled. Tokens of all sequences stand in one dimension, which its matrix products like."""

from shape import Shape, arguments, parameters, report

given = arguments()

import os  # noqa: E402

if given.threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402

random = numpy.random.default_rng(1)


def start(size, kind):
    if kind == "random":
        return jnp.asarray(0.02 * random.standard_normal(size), jnp.float32)
    return jnp.ones(size, jnp.float32) if kind == "one" else jnp.zeros(size, jnp.float32)


p = {name: start(size, kind) for name, size, kind in parameters(Shape)}
tokens, targets = (jnp.asarray(random.integers(0, Shape.vocabulary, Shape.sequences * Shape.steps)) for _ in range(2))


def layer_norm(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weight + bias


def loss(p, tokens, targets):
    b, t, c, heads = Shape.sequences, Shape.steps, Shape.channels, Shape.heads
    x = p["wte"][tokens] + jnp.tile(p["wpe"][:t], (b, 1))
    causal = jnp.tril(jnp.ones((t, t), bool))
    for i in range(Shape.layers):
        y = layer_norm(x, p[f"ln1w{i}"], p[f"ln1b{i}"])
        qkv = (y @ p[f"qkvw{i}"].T + p[f"qkvb{i}"]).reshape(b, t, 3, heads, c // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = jnp.where(causal, q @ k.swapaxes(-1, -2) / (c // heads) ** 0.5, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(b * t, c)
        x = x + y @ p[f"attprojw{i}"].T + p[f"attprojb{i}"]
        y = layer_norm(x, p[f"ln2w{i}"], p[f"ln2b{i}"])
        y = jax.nn.gelu(y @ p[f"fcw{i}"].T + p[f"fcb{i}"], approximate=True)
        x = x + y @ p[f"fcprojw{i}"].T + p[f"fcprojb{i}"]
    logits = layer_norm(x, p["lnfw"], p["lnfb"]) @ p["wte"][: Shape.vocabulary].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1).mean()


forward, gradient = jax.jit(loss), jax.jit(jax.value_and_grad(loss))
report(
    "JAX",
    given,
    lambda: jax.block_until_ready(forward(p, tokens, targets)),
    lambda: jax.block_until_ready(gradient(p, tokens, targets)),
)
