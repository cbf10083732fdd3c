"""RNN, GRU and LSTM of ONNX, as loops over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from common.control.iterate import scan
from common.core.errors import ArgumentError
from common.ops import functional as F
from common.tools.onnx.applied import Applied, of_tensors
from common.tools.onnx.host_values import arange, full

Curve = Callable[[Any], Any]
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULT = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_USUAL = {"LeakyRelu": (0.01, 0.0), "Elu": (1.0, 0.0), "HardSigmoid": (0.2, 0.5), "ThresholdedRelu": (1.0, 0.0),
          "Affine": (1.0, 0.0), "ScaledTanh": (1.0, 1.0)}  # fmt: skip


def _curve(name: str, alpha: float, beta: float) -> Curve:
    curves: dict[str, Curve] = {
        "sigmoid": F.sigmoid, "tanh": F.tanh, "relu": F.relu, "softsign": F.softsign, "softplus": F.softplus,
        "leakyrelu": lambda x: F.leaky_relu(x, alpha), "elu": lambda x: F.elu(x, alpha),
        "hardsigmoid": lambda x: F.clamp(x * alpha + beta, 0.0, 1.0),
        "thresholdedrelu": lambda x: F.where(x > alpha, x, 0.0), "affine": lambda x: x * alpha + beta,
        "scaledtanh": lambda x: alpha * F.tanh(beta * x),
    }  # fmt: skip
    if name.lower() not in curves:
        raise ArgumentError(f"its activation is {name!r}")
    return curves[name.lower()]


def _curves(a: Applied, count: int) -> list[Curve]:
    names = a.get("activations") or _DEFAULT[a.node.kind] * count
    alphas, betas = list(a.get("activation_alpha") or []), list(a.get("activation_beta") or [])
    made = []
    for name in names:
        usual = _USUAL.get(name, (0.0, 0.0))
        takes = name in _USUAL
        alpha = alphas.pop(0) if takes and alphas else usual[0]
        beta = betas.pop(0) if takes and usual[1] and betas else usual[1]
        made.append(_curve(name, alpha, beta))
    return made


def _rnn(gates: list[Any], state: Sequence[Any], again: Any, f: Sequence[Curve], a: Applied, more: Any) -> list[Any]:
    (x,) = gates
    return [f[0](x + again(state[0])[0])]


def _lstm(gates: list[Any], state: Sequence[Any], again: Any, f: Sequence[Curve], a: Applied, more: Any) -> list[Any]:
    h, c = state
    i, o, g, w = (x + y for x, y in zip(gates, again(h), strict=True))
    if more is not None:
        i, g = i + more[0] * c, g + more[2] * c
    i = f[0](i)
    g = 1 - i if a.get("input_forget", 0) else f[0](g)
    c = g * c + i * f[1](w)
    o = o if more is None else o + more[1] * c
    return [f[0](o) * f[2](c), c]


def _gru(gates: list[Any], state: Sequence[Any], again: Any, f: Sequence[Curve], a: Applied, more: Any) -> list[Any]:
    (h,) = state
    z, r, _ = again(h)
    z, r = f[0](gates[0] + z), f[0](gates[1] + r)
    weight, bias = more
    if a.get("linear_before_reset", 0):
        inner = gates[2] + r * (F.matmul(h, F.t(weight)) + bias)
    else:
        inner = gates[2] + F.matmul(r * h, F.t(weight)) + bias
    return [(1 - z) * f[1](inner) + z * h]


_STEPS: dict[str, Callable[..., list[Any]]] = {"RNN": _rnn, "LSTM": _lstm, "GRU": _gru}


@of_tensors("RNN", "GRU", "LSTM")
def _recurrent(a: Applied, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h: Any = None, c: Any = None,
               peepholes: Any = None) -> Any:  # fmt: skip
    kind, way, late = a.node.kind, a.get("direction", "forward"), a.get("layout", 0)
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(way)
    if ways is None or late not in (0, 1):
        raise ArgumentError(f"its direction is {way!r}, its layout {late}")
    if late:
        x = F.permute(x, (1, 0, 2))
        h, c = (None if s is None else F.permute(s, (1, 0, 2)) for s in (h, c))
    size, batch, per = a.need("hidden_size", int), x.shape[1], len(_DEFAULT[kind])
    curves = _curves(a, len(ways))
    told, last, cells = [], [], []
    for d, back in enumerate(ways):
        start = [full((batch, size), 0.0, x.dtype) if s is None else s[d] for s in ((h, c) if kind == "LSTM" else (h,))]
        parts = w[d], r[d], None if b is None else b[d], None if peepholes is None else peepholes[d]
        rows, state = _one_way(a, x, parts, start, lengths, curves[d * per : (d + 1) * per], back)
        told.append(rows)
        last.append(state[0])
        cells.append(state[-1])
    y = F.stack(told, 1)  # (time, ways, batch, size)
    if late:
        made = [F.permute(y, (2, 0, 1, 3)), F.stack(last, 1), F.stack(cells, 1)]
    else:
        made = [y, F.stack(last, 0), F.stack(cells, 0)]
    return made[: a.nout]


def _one_way(a: Applied, x: Any, parts: Any, start: list[Any], lengths: Any, f: Sequence[Curve], back: bool) -> Any:
    w, r, b, peepholes = parts
    kind = a.node.kind
    count, size = _GATES[kind], start[0].shape[-1]
    gates = F.matmul(x, F.t(w))
    bias = None
    if b is not None:
        own, bias = F.split(b, count * size, 0)
        gates = gates + own
        if kind != "GRU":
            gates = gates + bias
    more: Any = None if peepholes is None else F.split(peepholes, size, 0)
    if kind == "GRU":
        if bias is not None:  # that of the new state is inside the reset, or not
            gates = gates + F.cat([F.narrow(bias, 0, 0, 2 * size), full((size,), 0.0, x.dtype)], 0)
        more = (F.narrow(r, 0, 2 * size, size), full((size,), 0.0, x.dtype) if bias is None
                else F.narrow(bias, 0, 2 * size, size))  # fmt: skip
    limit = a.get("clip")

    def again(h: Any) -> list[Any]:
        return list(F.split(F.matmul(h, F.t(r)), size, 1))

    def step(state: Any, row: Any) -> Any:
        now, t = row
        now = now if limit is None else F.clamp(now, -limit, limit)
        new = _STEPS[kind](list(F.split(now, size, 1)), state, again, f, a, more)
        if lengths is None:
            return new, new[0]
        on = F.unsqueeze(t < lengths, 1)
        return [F.where(on, n, s) for n, s in zip(new, state, strict=True)], F.where(on, new[0], 0.0)

    state, rows = scan(step, start, (gates, arange(x.shape[0])), reverse=back)
    return rows, state
