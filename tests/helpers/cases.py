"""Calls of every public function, as data: what parity and oracle tests run.

A case draws its operands at a size n, so that one compiled program meets several sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import common.ops.functional as F
from common.core.op import Op
from common.ops._samples import above_minus_one, away_from_zero, indices, inside_unit, positive, truth, whole
from common.ops.math.synonyms import SYNONYMS
from tests.helpers import cases_linalg
from tests.helpers.cases_reductions import add_cases as add_reductions

Draw = Callable[[np.random.Generator, str, int], np.ndarray]


class Case(NamedTuple):
    """One way to call a function.

    Attributes
    ----------
    label : what distinguishes it.
    f : ``f(*tensors)``.
    operands : how each operand is drawn for a dtype and a size n.
    differentiable : whether finite differences mean something.
    empty : whether n = 0 is allowed.
    """

    label: str
    f: Callable[..., Any]
    operands: tuple[Draw, ...]
    differentiable: bool = True
    empty: bool = True

    def draw(self, rng: np.random.Generator, dtype: str, n: int) -> list[np.ndarray]:
        """Operands at size n."""
        return [operand(rng, dtype, n) for operand in self.operands]


def _sizes(shape: tuple[Any, ...], n: int) -> tuple[int, ...]:
    return tuple(n if s == "n" else s for s in shape)


def X(*shape: Any) -> Draw:
    """Floats away from 0; without ties, as they are continuous."""
    return lambda rng, dtype, n: away_from_zero(rng, _sizes(shape, n), dtype)


def P(*shape: Any) -> Draw:
    """Positive floats."""
    return lambda rng, dtype, n: positive(rng, _sizes(shape, n), dtype)


def U(*shape: Any) -> Draw:
    """Floats of both signs inside (-1, 1)."""
    return lambda rng, dtype, n: inside_unit(rng, _sizes(shape, n), dtype)


def Within(high: float, low: float | None = None) -> Callable[..., Draw]:
    """Floats between low (-high by default) and high."""
    start = -high if low is None else low
    return lambda *shape: lambda rng, dtype, n: np.asarray(rng.uniform(start, high, _sizes(shape, n)), dtype)


def Index(*shape: Any, limit: Any = 5) -> Draw:
    """Indices below a limit, which may be "n"."""
    return lambda rng, dtype, n: indices(rng, _sizes(shape, n), max(_sizes((limit,), n)[0], 1))


def Whole(*shape: Any) -> Draw:
    """int64 of both signs, none of them 0."""
    return lambda rng, dtype, n: whole(rng, _sizes(shape, n), dtype)


def T(*shape: Any) -> Draw:
    """Truth values."""
    return lambda rng, dtype, n: truth(rng, _sizes(shape, n), dtype)


def Tied(*shape: Any) -> Draw:
    """Few different values, so that extrema tie."""
    return lambda rng, dtype, n: np.asarray(rng.integers(0, 3, _sizes(shape, n)), dtype)


CASES: dict[str, list[Case]] = {}


def case(name: str, f: Callable[..., Any], *operands: Draw, **options: Any) -> None:
    """Add a case of the public function `name`."""
    known = CASES.setdefault(name, [])
    known.append(Case(f"{name}-{len(known)}", f, operands, **options))


_DOMAINS = {"log": P, "sqrt": P, "rsqrt": P, "pow": P, "asin": U, "acos": U}
_DOMAINS |= {"log2": P, "log10": P, "tan": Within(0.8), "atanh": Within(0.8), "acosh": Within(4.0, 1.3)}
_DOMAINS |= {"erfinv": U, "lgamma": P, "digamma": P, "xlogy": P}
_STEPS = {"sign", "zeros_like", "ones_like"}

for _name in F.__all__:
    _op = getattr(F, _name)
    if not isinstance(_op, Op) or _name in SYNONYMS:
        continue
    _draw: Any = T if _op.domain == "bool" else Whole if "f" in _op.refuses else _DOMAINS.get(_name, X)
    if _name == "log1p":

        def _draw(*shape):
            return lambda rng, dtype, n: above_minus_one(rng, _sizes(shape, n), dtype)

    _draws = [T if name == "condition" else _draw for name in _op.inputs]
    _smooth = _op.differentiable and _name not in _STEPS
    case(_name, _op, *(d("n", 3) for d in _draws), differentiable=_smooth)
    if len(_draws) > 1:
        case(_name, _op, _draws[0]("n", 3), *(d(3) for d in _draws[1:]), differentiable=_smooth)
        case(_name, _op, _draws[0]("n", 1), *(d(1, 4) for d in _draws[1:]), differentiable=_smooth)

case("pow", lambda x: F.pow(x, 2), X("n"))
case("pow", lambda x: F.pow(x, 3), X("n"))
case("pow", lambda x: F.pow(x, -1), X("n"))
case("pow", lambda x: F.pow(x, 0.5), P("n"))
case("pow", lambda x: F.pow(x, 1.7), P("n"))
case("pow", lambda x: F.pow(2.5, x), X("n"))

for _name in ("add", "sub"):
    _f = getattr(F, _name)
    case(_name, _f, X("n", 3), X(3))
    case(_name, lambda a, b, f=_f: f(a, b, alpha=0.5), X("n", 1), X("n", 3))

case("clamp", lambda x: F.clamp(x, -0.5, 0.7), X("n", 3))
case("clamp", lambda x: F.clamp(x, min=0), X("n", 3))
case("clamp", lambda x: F.clamp(x, max=0.1), X("n", 3))
case("gelu", F.gelu, X("n", 3))
case("gelu", lambda x: F.gelu(x, "tanh"), X("n", 3))

for _name in ("sum", "mean", "amax", "amin", "max", "min"):
    _f, _empty = getattr(F, _name), _name in ("sum", "mean")
    case(_name, _f, X("n"), empty=_empty)
    case(_name, lambda x, f=_f: f(x, 0), X("n", 3), empty=_empty)
    case(_name, lambda x, f=_f: f(x, -1), X("n", 5))
    if _name not in ("max", "min"):  # with indices: over one dimension
        case(_name, lambda x, f=_f: f(x, (0, 2), True), X("n", 3, 4), empty=_empty)
    case(_name, lambda x, f=_f: f(x, 1), X("n", 3, 4))
    if not _empty:
        case(_name, lambda x, f=_f: f(x, -1), Tied("n", 6), differentiable=False)
for _name in ("argmax", "argmin"):
    _f = getattr(F, _name)
    case(_name, _f, Tied("n", 3), differentiable=False, empty=False)
    case(_name, lambda x, f=_f: f(x, 0), Tied("n", 3), differentiable=False, empty=False)
    case(_name, lambda x, f=_f: f(x, -1, True), X("n", 5), differentiable=False)
case("sum", F.sum, Index("n", 3), differentiable=False)
case("sum", F.sum, T("n", 3), differentiable=False)

case("softmax", lambda x: F.softmax(x, -1), X("n", 5))
case("softmax", lambda x: F.softmax(x, 0), X("n", 3))
case("log_softmax", lambda x: F.log_softmax(x, -1), X("n", 5))
case("log_softmax", lambda x: F.log_softmax(x, 0), X("n", 3))
case("logsumexp", lambda x: F.logsumexp(x, -1), X("n", 5))
case("logsumexp", lambda x: F.logsumexp(x, 0), X("n", 3))
case("logsumexp", lambda x: F.logsumexp(x, (0, 1), True), X("n", 3))
case("layer_norm", lambda x: F.layer_norm(x, 5), X("n", 5))
case("layer_norm", lambda x, w, b: F.layer_norm(x, 5, w, b), X("n", 5), X(5), X(5))
case("layer_norm", lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 1e-3), X("n", 3, 4), X(3, 4), X(3, 4))

case("mm", F.mm, X("n", 4), X(4, 3))
case("mm", F.mm, X(4, "n"), X("n", 3))
case("spmm", F.spmm, X("n", 4), X(4, 3))
case("mm", lambda a: F.mm(a, F.transpose(a, 0, 1)), X("n", 3))
case("bmm", F.bmm, X(2, "n", 4), X(2, 4, 3))
case("matmul", F.matmul, X("n"), X("n"))
case("matmul", F.matmul, X("n", 4), X(4))
case("matmul", F.matmul, X(4), X(4, "n"))
case("matmul", F.matmul, X(2, "n", 4), X(4, 3))
case("matmul", F.matmul, X(2, 1, "n", 4), X(3, 4, 2))
case("linear", F.linear, X("n", 4), X(3, 4), X(3))
case("linear", F.linear, X(2, "n", 4), X(3, 4))
case("addmm", F.addmm, X(3), X("n", 4), X(4, 3))
case("addmm", lambda c, a, b: F.addmm(c, a, b, beta=0.5, alpha=-2), X("n", 3), X("n", 4), X(4, 3))
cases_linalg.add(case, X)

case("reshape", lambda x: F.reshape(x, -1), X("n", 4))
case("reshape", lambda x: F.reshape(x, 2, x.shape[0] * 2), X("n", 4))
case("reshape", lambda x: F.reshape(F.transpose(x, 0, 1), -1), X("n", 4))
case("view", lambda x: F.view(x, -1, 2), X("n", 4), empty=False)
case("flatten", F.flatten, X("n", 2, 3))
case("flatten", lambda x: F.flatten(x, 1), X("n", 2, 3))
case("squeeze", F.squeeze, X("n", 1, 3, 1))
case("squeeze", lambda x: F.squeeze(x, 1), X("n", 1, 3, 1))
case("unsqueeze", lambda x: F.unsqueeze(x, 1), X("n", 3))
case("transpose", lambda x: F.transpose(x, 0, -1), X("n", 2, 3))
case("permute", lambda x: F.permute(x, 2, 0, 1), X("n", 2, 3))
case("expand", lambda x: F.expand(x, 4, -1, 3), X("n", 1))
case("broadcast_to", lambda x: F.broadcast_to(x, (2, *x.shape)), X("n", 3))
case("cat", lambda a, b, c: F.cat([a, b, c]), X("n", 3), X(2, 3), X("n", 3))
case("cat", lambda a, b: F.cat([a, b], -1), X("n", 3), X("n", 2))
case("stack", lambda a, b: F.stack([a, b]), X("n", 3), X("n", 3))
case("stack", lambda a, b: F.stack([a, b], -1), X("n", 3), X("n", 3))
case("stack", lambda a: F.stack([a, a], 1), X("n", 3))
case("narrow", lambda x: F.narrow(x, 1, 2, 3), X("n", 6))
case("select", lambda x: F.select(x, 1, -2), X("n", 6))
case("getitem", lambda x: F.getitem(x, (slice(None), slice(1, None, 2))), X("n", 6))
case("getitem", lambda x: F.getitem(x, (..., None, -1)), X("n", 6))
case("getitem", lambda x: F.getitem(x, (slice(1, -1), 2)), X("n", 6), empty=False)

case("gather", lambda x, i: F.gather(x, 1, i), X("n", 5), Index("n", 3))
case("gather", lambda x, i: F.gather(x, 0, i), X(5, "n"), Index(7, "n"))
case("scatter_add", lambda x, i, s: F.scatter_add(x, 1, i, s), X("n", 5), Index("n", 8), X("n", 8))
case("scatter_add", lambda x, i, s: F.scatter_add(x, 0, i, s), X(5, 3), Index("n", 3), X("n", 3))
case("index_select", lambda x, i: F.index_select(x, 0, i), X(5, 3), Index("n"))
case("index_select", lambda x, i: F.index_select(x, 1, i), X("n", 5), Index(8))
case("embedding", lambda w, i: F.embedding(i, w), X(5, 3), Index("n"))
case("embedding", lambda w, i: F.embedding(i, w), X(5, 3), Index(2, "n"))

case("nll_loss", F.nll_loss, X("n", 5), Index("n"))
case("nll_loss", lambda x, t: F.nll_loss(x, t, reduction="none"), X("n", 5), Index("n"))
case("nll_loss", F.nll_loss, X(5), Index())
case("cross_entropy", F.cross_entropy, X("n", 5), Index("n"))
case("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction="sum"), X("n", 5), Index("n"))
case("mse_loss", F.mse_loss, X("n", 3), X("n", 3))
case("mse_loss", lambda x, y: F.mse_loss(x, y, reduction="none"), X("n", 3), X("n", 3))

add_reductions(case, X, T, Tied, Index)

#: Functions whose results have sizes that depend on the data: no trace holds them. Operands as for a case.
DATA_DEPENDENT: dict[str, tuple[Callable[..., Any], tuple[Draw, ...]]] = {
    "unique": (lambda f, x: f(x, return_inverse=True), (Tied(7, 3),)),
    "unique_consecutive": (lambda f, x: f(x, return_counts=True), (Tied(7, 3),)),
}

#: Compositions in which several kernels meet: what fusion, layouts and repeated operands act on.
PROGRAMS = [
    Case("tanh mlp", lambda x, w, b, v: F.mm(F.tanh(F.linear(x, w, b)), v), (X("n", 4), X(6, 4), X(6), X(6, 2))),
    Case("normalise by hand", lambda x: (x - F.mean(x, 1, True)) / F.sqrt(F.mean(F.square(x), 1, True) + 0.1),
         (X("n", 5),)),
    Case("repeated operand", lambda x: x * x + x / (F.abs(x) + 1) - x, (X("n", 3),)),
    Case("column sums", lambda x, b: F.sum(F.tanh(x + b) * b, 0), (X("n", 3), X(3))),
    Case("two outputs", lambda x: (F.exp(x), F.sum(F.exp(x), 1)), (X("n", 3),)),
    Case("views in between", lambda x: F.sum(F.transpose(F.tanh(x), 0, 1) * 2, 0) + F.reshape(x, -1)[0], (X("n", 3),),
         empty=False),
    Case("softmax attention", lambda q, k, v: F.matmul(F.softmax(F.matmul(q, F.transpose(k, -1, -2)) * 0.5, -1), v),
         (X(2, "n", 4), X(2, 5, 4), X(2, 5, 3))),
    Case("masked mean", lambda x, m: F.sum(F.where(m, x, 0)) / (F.sum(m) + 1), (X("n", 3), T("n", 3))),
    Case("mixed dtypes", lambda x, i: F.sum(x * i) + F.sum((x > 0) * x), (X("n", 3), Index("n", 3))),
]  # fmt: skip

# cases of a theme have a file of their own, `cases_<theme>.py`, found by its name
for _file in sorted(Path(__file__).parent.glob("cases_*.py")):
    import_module(f"{__package__}.{_file.stem}")


def public(op: Op) -> bool:
    """Whether an op is a public function: its cases prove it, and the samples of its record only further attributes."""
    return op.name in CASES and op.name != "unfold"  # the function of this name is another: columns of images


def internal(op: Op) -> bool:
    """Whether only other functions use an op: the samples of its record prove it."""
    return not proved_by_others(op)


def proved_by_others(op: Op) -> bool:
    """Whether an op is a public function, or one at two indices: its source has what those at one and three have."""
    return public(op) or (op.name.startswith("index_") and op.name.endswith("2"))
