"""Layers of RNNs, GRUs and LSTMs over whole sequences, and their gradients, as one kernel each.

=====================  ===================================================================================
kernel                 buffers
=====================  ===================================================================================
``recurrent``          a, states, u, d, outputs, kept, final states, counts, scratch
``recurrent_backward`` cotangents of outputs, u, kept, da, du, dd, cotangents of states, counts, scratch
=====================  ===================================================================================

- a (steps, batch, gates n), the products of the inputs with their weights; u (gates n, n) and d (gates n), the weights
  and the bias of the states; states and final states (batch, n), one or two of them; outputs (steps, batch, n);
- kept (steps, batch, ...): what the gradient reads again, see `Cell`;
- cotangents of states are those of the final ones, and then those of the first ones;
- counts (steps,): how many examples, the first ones, have a step; the others keep their states. Only where `masked`;
- args: ``steps, batch, n, flip``; if flip, steps run from the last to the first; status 0. Then of the layer ``keep``,
  without which kept has room for one step; of the gradient ``rows``, whether the outputs have cotangents, and
  ``weights``, whether du and dd are wanted.

Every element is what ops give, one after the other, step by step, bit by bit: the products h u^T + d, then the cell's
elementwise functions; contributions to u and d are added step by step, from +0.0. Source of the equations: Hochreiter
and Schmidhuber, Long short-term memory, 1997; Cho and others, Learning phrase representations using RNN
encoder-decoder, 2014.
"""

from __future__ import annotations

import textwrap
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from common.core.numerics import LANES

__all__ = ["CELLS", "Cell", "backward_scratch", "backward_source", "forward_scratch", "forward_source"]


class Cell(NamedTuple):
    """The differences between the cells, as text of kernels.

    Attributes
    ----------
    gates : how many n rows of weights there are.
    states : how many states; the first one is the output.
    kept : how many n elements are kept per step and example, the last of them the first state before the step.
    step : from ``a[e + i n]`` and ``z[f + i n] + d[j + i n]`` to the next states, ``v`` and perhaps ``u0``, and what is
        kept from ``k[q]`` on.
    back : from the cotangents of the next states, ``v`` and perhaps ``v0``, to ``da[e + i n]``, and to what else than
        products the cotangents of the states before have: ``p`` of the first, ``p0`` of the second.
    own : whether the products of the state have cotangents of their own, at ``z[f + i n]``.
    adds : whether there is a ``p``.
    """

    gates: int
    states: int
    kept: int
    step: str
    back: str
    own: bool = False
    adds: bool = False


def _product(gate: int) -> str:
    """The product of the state with the weights of a gate."""
    return f"(z[f + {gate} * n] + d[j + {gate} * n])"


def _sum(gate: int) -> str:
    """The sum of both products of a gate."""
    return f"a[e + {gate} * n] + {_product(gate)}"


_LSTM = Cell(4, 2, 6, f"""
x = sigmoid({_sum(0)})
y = sigmoid({_sum(1)})
w = tanh({_sum(2)})
m = sigmoid({_sum(3)})
u0 = y * c[s] + x * w
v = m * tanh(u0)
k[q] = x
k[q + n] = y
k[q + 2 * n] = w
k[q + 3 * n] = m
k[q + 4 * n] = c[s]
k[q + 5 * n] = h[s]
""", """
x = k[q]
y = k[q + n]
w = k[q + 2 * n]
u0 = k[q + 3 * n]
b = k[q + 4 * n]
t0 = tanh(y * b + x * w)
m = v0 + (v * u0) * (one - t0 * t0)
da[e] = (m * w) * ((one - x) * x)
da[e + n] = (m * b) * ((one - y) * y)
da[e + 2 * n] = (m * x) * (one - w * w)
da[e + 3 * n] = (v * t0) * ((one - u0) * u0)
p0 = m * y
""")  # fmt: skip

_GRU = Cell(3, 1, 5, f"""
x = sigmoid({_sum(0)})
y = sigmoid({_sum(1)})
m = {_product(2)}
w = tanh(a[e + 2 * n] + x * m)
v = (h[s] - w) * y + w
k[q] = x
k[q + n] = y
k[q + 2 * n] = w
k[q + 3 * n] = m
k[q + 4 * n] = h[s]
""", """
x = k[q]
y = k[q + n]
w = k[q + 2 * n]
p = v * y
m = (v + -p) * (one - w * w)
t0 = (m * k[q + 3 * n]) * ((one - x) * x)
u0 = (v * (k[q + 4 * n] - w)) * ((one - y) * y)
da[e] = t0
da[e + n] = u0
da[e + 2 * n] = m
z[f] = t0
z[f + n] = u0
z[f + 2 * n] = m * x
""", own=True, adds=True)  # fmt: skip


def _rnn(step: str, back: str) -> Cell:
    """The cell of one nonlinearity."""
    return Cell(1, 1, 2, f"""
v = {step}({_sum(0)})
k[q] = v
k[q + n] = h[s]
""", f"""
w = k[q]
da[e] = {back}
""")  # fmt: skip


_TANH, _RELU = _rnn("tanh", "v * (one - w * w)"), _rnn("relu", "where(gt(w, zero), v, zero)")

#: By PyTorch's name of a module's mode.
CELLS = {"LSTM": _LSTM, "GRU": _GRU, "RNN_TANH": _TANH, "RNN_RELU": _RELU}


def forward_scratch(cell: Cell, batch: int, n: int, dtype: Any) -> int:
    """Bytes of scratch of ``recurrent``: the products of a step."""
    return batch * cell.gates * n * np.dtype(dtype).itemsize


def backward_scratch(cell: Cell, batch: int, n: int, dtype: Any) -> int:
    """Bytes of scratch of ``recurrent_backward``: cotangents of a step's products, of weights, states, and lanes."""
    width = cell.gates * n
    return (batch * (width + n) + width * (n + 1 + LANES)) * np.dtype(dtype).itemsize


_ARGS = """    steps = args[0]
    batch = args[1]
    n = args[2]
    flip = args[3]
    width = {gates} * n
    wide()
"""


def _buffers(names: str, kind: np.dtype[Any], masked: bool) -> str:
    """The buffers of a kernel; how many examples have a step, and scratch, follow those that are named."""
    kinds = [(name, str(kind)) for name in names.split()] + [("counts", "int64")] * masked + [("z", str(kind))]
    return "".join(f"    {name} = buffer(bufs, {i}, {of})\n" for i, (name, of) in enumerate(kinds))


def _places(cell: Cell, masked: bool, at: str) -> str:
    """Where the elements of an example's step lie; what is kept of step `at`."""
    return f"""        for r in range(batch):
            for j in range(n):
                s = r * n + j
                o = (t * batch + r) * n + j
                f = r * width + j
                e = (t * batch + r) * width + j
                q = ({at} * batch + r) * ({cell.kept} * n) + j
{"                here = r < counts[t]" + chr(10) if masked else ""}"""


def _states(cell: Cell, prefix: str) -> str:
    return f"{prefix}h" + (f" {prefix}c" if cell.states == 2 else "")


@cache
def forward_source(mode: str, dtype: Any, vector: bool, masked: bool) -> str:
    """Return the kernel ``recurrent`` of a cell for float32 or float64.

    Parameters
    ----------
    vector : whether the batch is one example, whose products have the order of a matrix and a vector.
    masked : whether some examples have less steps.
    """
    cell, kind = CELLS[mode], np.dtype(dtype)
    names = f"a {_states(cell, 'first_')} u d out k {_states(cell, '')}"
    copies = "".join(f"        {x}[j] = first_{x}[j]\n" for x in _states(cell, "").split())
    product = (
        "multiply_vector(u, 0, h, 0, z, 0, width, n, n, 0)" if vector
        else "multiply(h, 0, u, 0, z, 0, batch, width, n, n, n, width, 0, 1)"
    )  # fmt: skip
    rest = _STAY if masked else ""
    rest += "c[s] = u0\n" if cell.states == 2 else ""
    if masked and cell.states == 2:
        rest = rest.replace(_STAY, _STAY + "u0 = where(here, u0, c[s])\n")
    step = f"{cell.step.strip()}\n{rest}h[s] = v\nout[o] = v\n"
    return f"""def recurrent(bufs, args):
{_buffers(names, kind, masked)}{_ARGS.format(gates=cell.gates)}    keep = args[4]
    for j in range(batch * n):
{copies}    for i in range(steps):
        t = steps - 1 - i if flip != 0 else i
        {product}
{_places(cell, masked, "t * keep")}{textwrap.indent(step, " " * 16)}    return 0
"""


_STAY = "v = where(here, v, h[s])\n"


@cache
def backward_source(mode: str, dtype: Any, vector: bool, masked: bool) -> str:
    """Return the kernel ``recurrent_backward`` of a cell; parameters as of `forward_source`."""
    cell, kind = CELLS[mode], np.dtype(dtype)
    names = f"g u k da du dd {_states(cell, 'd')}"
    rows, where = ("z", "0") if cell.own else ("da", "t * batch * width")
    product = (
        f"multiply_vector(u, 0, {rows}, {where}, z, y0, n, width, n, 1)" if vector
        else f"multiply({rows}, {where}, u, 0, z, y0, batch, n, width, width, n, n, 0, 0)"
    )  # fmt: skip
    second, adds = cell.states == 2, cell.adds or masked
    steps = ["v0 = dc[s]"] * second
    if masked:
        steps += ["p1 = where(here, zero, v)", "v = where(here, v, zero)"]
        steps += ["p2 = where(here, zero, v0)", "v0 = where(here, v0, zero)"] * second
    steps.append(cell.back.strip())
    if adds:
        steps.append(f"dh[s] = {'p1 + p' if masked and cell.adds else 'p1' if masked else 'p'}")
    steps += [f"dc[s] = {'p2 + p0' if masked else 'p0'}"] * second
    body = textwrap.indent("\n".join(steps), " " * 16)
    return f"""def recurrent_backward(bufs, args):
{_buffers(names, kind, masked)}{_ARGS.format(gates=cell.gates)}    rows = args[4]
    weights = args[5]
    zero = {kind}(0)
    one = {kind}(1)
    y0 = batch * width
    y1 = y0 + batch * n
    y2 = y1 + width * n
    y3 = y2 + width
    if weights != 0:
        for j in range(width * n):
            du[j] = zero
        for j in range(width):
            dd[j] = zero
    for i in range(steps):
        t = i if flip != 0 else steps - 1 - i
{_places(cell, masked, "t")}                v = dh[s]
                if rows != 0:
                    v = v + g[o]
{body}
        {product}
        for j in range(batch * n):
            dh[j] = {"dh[j] + z[y0 + j]" if adds else "z[y0 + j]"}
        if weights != 0:
            first = t * batch * ({cell.kept} * n) + {cell.kept - 1} * n
            multiply({rows}, {where}, k, first, z, y1, width, n, batch, width, {cell.kept} * n, n, 1, 0)
            for j in range(width * n):
                du[j] = du[j] + z[y1 + j]
            start_columns(z, y3, width, batch)
            for r in range(batch):
                lane = y3 + (r & {LANES - 1}) * width
                for j in range(width):
                    z[lane + j] = z[lane + j] + {rows}[{where} + r * width + j]
            finish_columns(z, y3, width, batch, z, y2)
            for j in range(width):
                dd[j] = dd[j] + z[y2 + j]
    return 0
"""
