#!/usr/bin/env python3
"""What layers, losses, optimisers and schedules of PyTorch give, as the table that the tests of crates/nn compare theirs with.

    python3 bench/peers/layers_torch.py > crates/nn/tests/figures.json

Inputs and parameters are random multiples of 1/1024, so that they are the same numbers in single precision; PyTorch computes in double precision. A line is a case:
`tensors` go in, `result` comes out, and `gradients` are those of the sum of `seed` times the result by all tensors that the test names. Parameters have the names and layouts of crates/nn:
the weights of linear layers are [inputs, outputs].
"""

import json
import sys
import zlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def random(name, *shape, scale=1.0, positive=False):
    """Multiples of 1/1024 that depend on the name."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    numbers = torch.randint(1 if positive else -1024, 1024, shape, generator=generator)
    return (numbers * scale).round() / 1024


def number(value):
    value = float(value)
    return value if value == value else None


def written(tensor):
    tensor = tensor.detach()
    if tensor.dtype in (torch.int64, torch.bool):
        return {"shape": list(tensor.shape), "integers": [int(value) for value in tensor.flatten()]}
    return {"shape": list(tensor.shape), "values": [float(f"{float(value):.10g}") for value in tensor.flatten()]}


def case(name, function, tensors, states=()):
    """One line: `function` gets the tensors by name. States go in and are compared afterwards, but have no gradient."""
    inputs = {}
    for key, tensor in tensors.items():
        tensor = tensor.clone()
        if tensor.is_floating_point() and key not in states:
            tensor.requires_grad_()
        inputs[key] = tensor
    result = function(**inputs)
    seed = random("seed " + name, *result.shape) if result.shape else torch.tensor(1.0)
    (result * seed).sum().backward()
    line = {
        "name": name,
        "tensors": {key: written(tensor) for key, tensor in tensors.items()},
        "result": written(result),
        "seed": written(seed),
        "gradients": {key: written(tensor.grad) for key, tensor in inputs.items() if tensor.requires_grad and tensor.grad is not None},
        "states": {key: written(inputs[key]) for key in states},
    }
    print(json.dumps(line))


def activations():
    functions = {
        "relu": F.relu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "softmax": lambda x: F.softmax(x, -1),
        "log_softmax": lambda x: F.log_softmax(x, -1),
    }
    for name, function in functions.items():
        case(name, lambda x, function=function: function(x), {"x": random(name, 3, 5, scale=4.0)})


def linear():
    tensors = {"x": random("lx", 2, 3, 4), "weight": random("lw", 4, 5), "bias": random("lb", 5)}
    case("linear", lambda x, weight, bias: F.linear(x, weight.t(), bias), tensors)
    indices = torch.tensor([[1, 4, 1], [0, 2, 4]])
    case("embedding", lambda x, weight: F.embedding(x, weight), {"x": indices, "weight": random("ew", 5, 3)})


def norms():
    x, weight, bias = random("nx", 3, 6, scale=2.0), random("nw", 6), random("nb", 6)
    case("layer_norm", lambda x, weight, bias: F.layer_norm(x, (6,), weight, bias), {"x": x, "weight": weight, "bias": bias})
    # Newer versions have it as a layer, with this formula.
    case("rms_norm", lambda x, weight: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight, {"x": x, "weight": weight})
    for name, training, shape in [("batch_norm", True, (4, 3)), ("batch_norm_images", True, (2, 3, 2, 2)), ("batch_norm_evaluated", False, (4, 3))]:

        def function(x, weight, bias, running_mean, running_variance, training=training):
            return F.batch_norm(x, running_mean, running_variance, weight, bias, training)

        tensors = {
            "x": random(name, *shape, scale=2.0),
            "weight": random("bw", 3),
            "bias": random("bb", 3),
            "running_mean": random("bm", 3),
            "running_variance": random("bv", 3, positive=True),
        }
        case(name, function, tensors, states=("running_mean", "running_variance"))


def convolutions():
    options = {
        "conv1d": (F.conv1d, (2, 3, 7), (4, 3, 3), {}),
        "conv1d_strided": (F.conv1d, (2, 3, 7), (4, 3, 3), {"stride": 2, "padding": 1, "dilation": 2}),
        "conv2d": (F.conv2d, (2, 2, 5, 4), (3, 2, 3, 2), {}),
        "conv2d_strided": (F.conv2d, (2, 2, 6, 5), (3, 2, 3, 3), {"stride": 2, "padding": 1}),
    }
    for name, (function, x, weight, settings) in options.items():
        tensors = {"x": random(name, *x), "weight": random(name + "w", *weight), "bias": random(name + "b", weight[0])}
        case(name, lambda x, weight, bias: function(x, weight, bias, **settings), tensors)


def pooling():
    case("max_pool1d", lambda x: F.max_pool1d(x, 2), {"x": random("p1", 2, 3, 6)})
    case("max_pool2d", lambda x: F.max_pool2d(x, 2), {"x": random("p2", 2, 2, 4, 4)})
    case("max_pool2d_padded", lambda x: F.max_pool2d(x, 3, stride=2, padding=1), {"x": random("p3", 1, 2, 5, 4)})
    case("avg_pool1d", lambda x: F.avg_pool1d(x, 2), {"x": random("p4", 2, 3, 6)})
    case("avg_pool2d_padded", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), {"x": random("p5", 1, 2, 5, 4)})


ATTENTION = [f"{part}.{kind}" for part in ["query", "key", "value", "output"] for kind in ["weight", "bias"]]


def attention_parameters(prefix, size):
    return {prefix + name: random(name, size, size) if name.endswith("weight") else random(name, size) for name in ATTENTION}


def attention(x, parameters, prefix, heads, mask=None):
    """PyTorch's own function, given its layouts."""
    of = lambda name: parameters[prefix + name]
    weight = torch.cat([of(f"{part}.weight").t() for part in ["query", "key", "value"]])
    bias = torch.cat([of(f"{part}.bias") for part in ["query", "key", "value"]])
    # Positions first.
    turned = x.transpose(0, 1)
    result, _ = F.multi_head_attention_forward(
        turned, turned, turned, x.shape[-1], heads, weight, bias, None, None, False, 0.0,
        of("output.weight").t(), of("output.bias"), need_weights=False, attn_mask=mask,
    )
    return result.transpose(0, 1)


def transformers():
    causal = torch.triu(torch.ones(3, 3, dtype=torch.bool), diagonal=1)
    for name, mask in [("attention", None), ("attention_causal", causal)]:
        function = lambda x, mask=mask, **parameters: attention(x, parameters, "", 2, mask)
        case(name, function, {"x": random(name, 2, 3, 4), **attention_parameters("", 4)})

    def encoder(x, norm_first, activation, **p):
        norm = lambda x, name: F.layer_norm(x, (4,), p[name + ".weight"], p[name + ".bias"])
        attend = lambda x: attention(x, p, "attention.", 2)

        def inner(x):
            x = activation(F.linear(x, p["linear1.weight"].t(), p["linear1.bias"]))
            return F.linear(x, p["linear2.weight"].t(), p["linear2.bias"])

        if norm_first:
            x = x + attend(norm(x, "norm1"))
            return x + inner(norm(x, "norm2"))
        x = norm(x + attend(x), "norm1")
        return norm(x + inner(x), "norm2")

    for name, norm_first, activation in [("encoder_layer", False, F.relu), ("encoder_layer_norm_first", True, F.gelu)]:
        tensors = {
            "x": random(name, 2, 3, 4),
            **attention_parameters("attention.", 4),
            "norm1.weight": random("n1w", 4), "norm1.bias": random("n1b", 4),
            "norm2.weight": random("n2w", 4), "norm2.bias": random("n2b", 4),
            "linear1.weight": random("l1w", 4, 6), "linear1.bias": random("l1b", 6),
            "linear2.weight": random("l2w", 6, 4), "linear2.bias": random("l2b", 4),
        }
        check = torch.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True, norm_first=norm_first, activation=activation)
        function = lambda x, norm_first=norm_first, activation=activation, **p: encoder(x, norm_first, activation, **p)
        same_as_module(check, tensors, function)
        case(name, function, tensors)


def same_as_module(module, tensors, function):
    """The functions above put together are PyTorch's own layer."""
    names = {
        "self_attn.out_proj.weight": tensors["attention.output.weight"].t(),
        "self_attn.out_proj.bias": tensors["attention.output.bias"],
        "self_attn.in_proj_weight": torch.cat([tensors[f"attention.{part}.weight"].t() for part in ["query", "key", "value"]]),
        "self_attn.in_proj_bias": torch.cat([tensors[f"attention.{part}.bias"] for part in ["query", "key", "value"]]),
    }
    for name in ["norm1", "norm2"]:
        names |= {f"{name}.{kind}": tensors[f"{name}.{kind}"] for kind in ["weight", "bias"]}
    for name in ["linear1", "linear2"]:
        names |= {f"{name}.weight": tensors[f"{name}.weight"].t(), f"{name}.bias": tensors[f"{name}.bias"]}
    module.load_state_dict(names)
    module.train()
    assert torch.allclose(module(tensors["x"]), function(**tensors), atol=1e-12)


def recurrent():
    for name, gates, kind in [("gru", 3, torch.nn.GRU), ("lstm", 4, torch.nn.LSTM)]:

        def function(x, weight_input, weight_hidden, bias_input, bias_hidden, kind=kind):
            layer = kind(3, 4)
            parameters = {
                "weight_ih_l0": weight_input.t(), "weight_hh_l0": weight_hidden.t(),
                "bias_ih_l0": bias_input, "bias_hh_l0": bias_hidden,
            }
            # The stateless way, so that gradients reach the tensors.
            flat = [parameters[key] for key in ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]]
            zeros = torch.zeros(1, x.shape[1], 4)
            arguments = (True, 1, 0.0, True, False, False)
            if kind is torch.nn.GRU:
                return torch._VF.gru(x, zeros, flat, *arguments)[0]
            return torch._VF.lstm(x, (zeros, zeros), flat, *arguments)[0]

        tensors = {
            "x": random(name, 5, 2, 3),
            "weight_input": random(name + "i", 3, 4 * gates), "weight_hidden": random(name + "h", 4, 4 * gates),
            "bias_input": random(name + "bi", 4 * gates), "bias_hidden": random(name + "bh", 4 * gates),
        }
        case(name, function, tensors)


def losses():
    x, target = random("loss", 3, 4, scale=2.0), random("target", 3, 4, scale=2.0)
    case("mean_squared_error", lambda x, target: F.mse_loss(x, target), {"x": x, "target": target})
    case("mean_absolute_error", lambda x, target: F.l1_loss(x, target), {"x": x, "target": target})
    logarithms = F.log_softmax(x, -1)
    logarithms = (logarithms * 1024).round() / 1024
    # The gradient by the target of PyTorch's older versions is not the whole one.
    probabilities = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.125, 0.5, 0.25, 0.125], [0.0, 0.0, 1.0, 0.0]])
    kl = lambda x, target: F.kl_div(x, target.detach(), reduction="batchmean")
    case("kl_divergence", kl, {"x": logarithms, "target": probabilities}, states=("target",))
    half = random("half", 3, 4, positive=True)
    bce = lambda x, target: F.binary_cross_entropy_with_logits(x, target)
    case("binary_cross_entropy", bce, {"x": x * 4, "target": half}, states=("target",))
    classes = torch.tensor([2, 0, 3])
    case("cross_entropy", lambda x, classes: F.cross_entropy(x, classes), {"x": x * 4, "classes": classes})
    smoothed = lambda x, classes: F.cross_entropy(x, classes, label_smoothing=0.1)
    case("cross_entropy_smoothed", smoothed, {"x": x, "classes": classes})
    ignored = torch.tensor([2, -100, 3])
    both = lambda x, classes: F.cross_entropy(x, classes, label_smoothing=0.1, ignore_index=-100)
    case("cross_entropy_ignored", both, {"x": x, "classes": ignored})
    case("negative_log_likelihood", lambda x, classes: F.nll_loss(x, classes), {"x": logarithms, "classes": classes})


def optimisers():
    """Parameters after each of five steps; the gradient is that of the sum of sin(w)·c."""
    kinds = {
        "sgd": lambda w: torch.optim.SGD(w, 0.1),
        "sgd_decay": lambda w: torch.optim.SGD(w, 0.1, weight_decay=0.1),
        "sgd_momentum": lambda w: torch.optim.SGD(w, 0.1, momentum=0.9),
        "sgd_nesterov": lambda w: torch.optim.SGD(w, 0.1, momentum=0.9, nesterov=True),
        "adam": lambda w: torch.optim.Adam(w, 0.1),
        "adamw": lambda w: torch.optim.AdamW(w, 0.1, weight_decay=0.1),
        "clip_by_norm": lambda w: torch.optim.SGD(w, 0.1),
        "clip_by_value": lambda w: torch.optim.SGD(w, 0.1),
    }
    start, factors = random("start", 4), random("factors", 4)
    for name, kind in kinds.items():
        w = start.clone().requires_grad_()
        optimiser, steps = kind([w]), []
        for _ in range(5):
            optimiser.zero_grad()
            (torch.sin(w) * factors).sum().backward()
            if name == "clip_by_norm":
                torch.nn.utils.clip_grad_norm_([w], 0.5)
            if name == "clip_by_value":
                torch.nn.utils.clip_grad_value_([w], 0.25)
            optimiser.step()
            steps.append(w.detach().clone())
        line = {"name": name, "start": written(start), "factors": written(factors), "steps": written(torch.stack(steps))}
        print(json.dumps({"optimiser": line}))


def schedules():
    """The rates of twelve steps."""
    s = torch.optim.lr_scheduler
    kinds = {
        "linear": lambda o: s.LinearLR(o, 1.0, 0.1, 8),
        "cosine": lambda o: s.CosineAnnealingLR(o, 12, 0.02),
        "exponential": lambda o: s.ExponentialLR(o, 0.9),
        "stairs": lambda o: s.StepLR(o, 3, 0.5),
        "warmup": lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.25, 1.0, 3), s.ExponentialLR(o, 0.9)], [3]),
    }
    for name, kind in kinds.items():
        optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.2)
        scheduler, rates = kind(optimiser), []
        for _ in range(12):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            scheduler.step()
        print(json.dumps({"schedule": {"name": name, "rates": rates}}))


if __name__ == "__main__":
    print("PyTorch", torch.__version__, file=sys.stderr)
    for part in [activations, linear, norms, convolutions, pooling, transformers, recurrent, losses, optimisers, schedules]:
        part()
