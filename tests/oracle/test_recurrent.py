"""Recurrent networks over sequences: against loops in numpy, finite differences, and the other engine's bits."""

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import TwingradError
from tests.bits import assert_all_same_bits
from tests.helpers.differences import check_gradient
from tests.helpers.wrapped import wrap

RNG = np.random.default_rng(5)
KINDS = ["RNN", "GRU", "LSTM"]
OPTIONS = [
    {},
    {"num_layers": 2, "batch_first": True},
    {"bidirectional": True, "bias": False},
    {"num_layers": 3, "bidirectional": True},
]  # fmt: skip
PAIRS = [(kind, options) for options in OPTIONS for kind in KINDS]
PAIRS += [("LSTM", {"proj_size": 2}), ("LSTM", {"proj_size": 3, "num_layers": 2, "bidirectional": True, "bias": False})]
TIME, BATCH, IN, OUT = 5, 2, 3, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, a, b, h, c):
    """The next h and c, of the products with the input and with h."""
    if kind == "RNN":
        return np.tanh(a + b), c
    if kind == "GRU":
        (r, z, n), (s, y, m) = np.split(a, 3, -1), np.split(b, 3, -1)
        z = sigmoid(z + y)
        return (1 - z) * np.tanh(n + sigmoid(r + s) * m) + z * h, c
    i, f, g, o = np.split(a + b, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def run(kind, weights, x, h, c, layers, directions):
    """All steps one after the other; x (time, batch, in), h and c (layers * directions, batch, out)."""
    ends = []
    for layer in range(layers):
        sides = []
        for side in range(directions):
            suffix = f"_l{layer}" + "_reverse" * side
            w, u = weights[f"weight_ih{suffix}"], weights[f"weight_hh{suffix}"]
            b, d = weights.get(f"bias_ih{suffix}", 0.0), weights.get(f"bias_hh{suffix}", 0.0)
            p, q, states = h[len(ends)], c[len(ends)], [None] * len(x)
            for t in range(len(x))[:: -1 if side else 1]:
                p, q = step(kind, x[t] @ w.T + b, p @ u.T + d, p, q)
                if f"weight_hr{suffix}" in weights:
                    p = p @ weights[f"weight_hr{suffix}"].T
                states[t] = p
            sides.append(np.stack(states))
            ends.append((p, q))
        x = np.concatenate(sides, -1)
    return x, *(np.stack(s) for s in zip(*ends, strict=True))


def states_of(kind, hx):
    return tuple(hx) if kind == "LSTM" else hx[0]


def flat(result):
    y, hx = result
    return [y, *(hx if isinstance(hx, tuple) else (hx,))]


def inputs(options, rng=RNG, dtype=np.float64, time=TIME, batch=BATCH):
    """An input and two kinds of states."""
    many = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    shape = (batch, time, IN) if options.get("batch_first") else (time, batch, IN)
    states = [(many, batch, width) for width in (options.get("proj_size", OUT), OUT)]
    return [rng.normal(size=s).astype(dtype) for s in (shape, *states)]


@pytest.mark.parametrize(("kind", "options"), PAIRS, ids=str)
def test_every_step_of_every_layer(kind, options):
    module = getattr(dynamic.nn, kind)(IN, OUT, **options, dtype=np.float64)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    assert module.extra_repr().startswith(f"{IN}, {OUT}")
    x, *hx = inputs(options)
    layers, directions = options.get("num_layers", 1), 1 + options.get("bidirectional", False)
    turned = x.swapaxes(0, 1) if options.get("batch_first") else x
    for first in (hx, [h * 0 for h in hx]):
        y, *ends = run(kind, weights, turned, *first, layers, directions)
        given = states_of(kind, [wrap(h) for h in first])
        found = flat(module(wrap(x), given) if first is hx else module(wrap(x)))
        expected = [y.swapaxes(0, 1) if options.get("batch_first") else y, *ends][: len(found)]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-12, atol=1e-13)
    alone = flat(module(wrap(np.ascontiguousarray(turned[:, 1])), states_of(kind, [wrap(h[:, 1]) for h in hx])))
    whole = flat(module(wrap(x), states_of(kind, [wrap(h) for h in hx])))
    for a, b in zip(alone, whole, strict=True):
        at = 0 if options.get("batch_first") and a is alone[0] else 1
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy().take(1, at), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("kind", "options"), PAIRS, ids=str)
def test_bits_of_both_engines(kind, options):
    """Results, gradients, and what is dropped; a new length or batch is no new trace."""
    made = []
    for engine in (dynamic, static):
        engine.manual_seed(3)
        module = getattr(engine.nn, kind)(IN, OUT, **options, dropout=0.25)

        def loss(x, h, c, module=module):
            return sum((y * y).sum() for y in flat(module(x, states_of(kind, (h, c)))))

        f = engine.function(engine.value_and_grad(loss, argnums=(0, 1)))
        train = engine.function(lambda x, module=module: flat(module(x))[0].sum().backward())
        found = []
        rng = np.random.default_rng(1)
        for time, batch in ((TIME, BATCH), (3, 7)):
            x, h, c = inputs(options, rng, np.float32, time, batch)
            value, (dx, dh) = f(x, h, c)
            module.zero_grad()
            train(x)
            gradients = [p.grad for p in module.parameters()]
            found += [np.array(a.detach() if hasattr(a, "detach") else a) for a in (value, dx, dh, *gradients)]
        made.append(found)
        if engine is static:
            assert len(f.traces) == len(train.traces) == 1
    assert_all_same_bits(*made, kind)


@pytest.mark.parametrize(("kind", "more"), [*((kind, {}) for kind in KINDS), ("LSTM", {"proj_size": 2})], ids=str)
def test_gradients(kind, more):
    options = {"num_layers": 2, "bidirectional": True, **more}
    module = getattr(dynamic.nn, kind)(IN, OUT, **options, dtype=np.float64)
    weight = RNG.normal(size=tuple(module.weight_hh_l1.shape))

    def f(x, h, c):
        return sum((y * y).sum() for y in flat(module(x, states_of(kind, (h, c)))))

    check_gradient(f, inputs(options, time=3), kind)

    def of_weights(u):
        state = dict(module.named_parameters()) | {"weight_hh_l1": u}
        return sum(y.sum() for y in flat(dynamic.func.functional_call(module, state, (wrap(X),))))

    check_gradient(of_weights, [weight * 0.3], f"{kind}: weights")


X = RNG.normal(size=(3, BATCH, IN))
REFUSED = {
    "width of the input": lambda m: m(wrap(X[..., :2])),
    "rank of the input": lambda m: m(wrap(X[0, 0])),
    "layers of the state": lambda m: m(wrap(X), wrap(np.zeros((3, BATCH, OUT)))),
    "batch of the state": lambda m: m(wrap(X), wrap(np.zeros((1, BATCH + 1, OUT)))),
    "state of one sequence": lambda m: m(wrap(X[:, 0]), wrap(np.zeros((1, BATCH, OUT)))),
    "nonlinearity": lambda m: dynamic.nn.RNN(IN, OUT, nonlinearity="sin"),
    "probability": lambda m: dynamic.nn.LSTM(IN, OUT, dropout=1.0),
    "layers": lambda m: dynamic.nn.GRU(IN, OUT, num_layers=0),
    "projection": lambda m: dynamic.nn.GRU(IN, OUT, proj_size=2),
    "size of the projection": lambda m: dynamic.nn.LSTM(IN, OUT, proj_size=OUT),
    "state of the projection": lambda m: dynamic.nn.LSTM(IN, OUT, proj_size=2)(
        wrap(X), (wrap(np.zeros((1, BATCH, OUT))), wrap(np.zeros((1, BATCH, OUT))))
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    with pytest.raises(TwingradError) as raised:
        REFUSED[what](dynamic.nn.GRU(IN, OUT, dtype=np.float64))
    assert len(str(raised.value)) > 20
