"""Reading and writing at tuples of indices: the ops under `x[i, j]`, its gradient, and writes.

The k index operands belong to k neighbouring dimensions of an array from `dim` on and broadcast to one shape B, which
stands in their place in what is read or written: x (outer..., e0, ..., ek, inner...) and v (outer..., B..., inner...).
There is one op per number of indices, `index_get1`, `index_get2`, ...; all of a number are made together.

Writes happen one after the other in C order, see `common/kernels/arrays/coordinates.py`. So repeated indices have
defined results, and gradients follow: a value that a later one replaces gets a gradient of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from common.core.dispatch import apply, known_attrs
from common.core.dtypes import bool_
from common.core.errors import DTypeError, ShapeError
from common.core.op import IndexUse, NativeCall, Op
from common.core.shapes import broadcast_shapes
from common.core.sizes import same_shape
from common.core.spec import Spec
from common.ops._define import kernel
from common.ops._samples import away_from_zero
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import to
from common.ops.math.compare import eq, ne, where
from common.ops.shape.view import expand, reshape

INDEX_DTYPES = (np.dtype(np.int64), np.dtype(np.int32))
MOST_ARGS = 40
"""Indices times dimensions of B up to which the kernel broadcasts them: a call has up to 64 arguments."""


def index_get(x: Any, indices: Sequence[Any], dim: int, wrap: bool = True) -> Any:
    """(outer..., B..., inner...): the elements of x at the indices."""
    return apply(_op("index_get", indices), (x, *_few(indices)), known_attrs(None, dim=dim, wrap=wrap))


def index_put_zeros(v: Any, indices: Sequence[Any], extents: tuple[Any, ...], dim: int, wrap: bool = True) -> Any:
    """Zeros with v (outer..., B..., inner...) added at the indices."""
    return _op("index_put_zeros", indices)(v, *_few(indices), extents=extents, dim=dim, wrap=wrap)


def index_add(x: Any, v: Any, indices: Sequence[Any], dim: int, wrap: bool = True) -> Any:
    """x with v, 0-d or (outer..., B..., inner...), added at the indices, one element after the other."""
    return apply(_op("index_add", indices), (x, v, *_few(indices)), known_attrs(None, dim=dim, wrap=wrap))


def index_mul(x: Any, v: Any, indices: Sequence[Any], dim: int, wrap: bool = True) -> Any:
    """x multiplied by v, 0-d or (outer..., B..., inner...), at the indices, one element after the other."""
    return apply(_op("index_mul", indices), (x, v, *_few(indices)), known_attrs(None, dim=dim, wrap=wrap))


def index_set(x: Any, v: Any, indices: Sequence[Any], dim: int, wrap: bool = True) -> Any:
    """x with v, 0-d or (outer..., B..., inner...), at the indices; of several at one place the last stays."""
    return apply(_op("index_set", indices), (x, v, *_few(indices)), known_attrs(None, dim=dim, wrap=wrap))


def index_clear(x: Any, indices: Sequence[Any], dim: int, wrap: bool = True) -> Any:
    """x with zeros at the indices."""
    return apply(_op("index_clear", indices), (x, *_few(indices)), known_attrs(None, dim=dim, wrap=wrap))


def set_rule(g: Any, extents: tuple[Any, ...], indices: Sequence[Any], dim: int, wrap: bool) -> Any:
    """The gradient of v in `index_set`: g at the indices, 0 where a later value has replaced this one."""
    stays = _op("index_last", indices)(*_few(indices), extents=extents, dim=dim, wrap=wrap)
    inner = g.ndim - dim - len(indices)
    stays = reshape(stays, (*stays.shape, *(1,) * inner))
    return where(stays, index_get(g, indices, dim, wrap), 0)


def factor_rule(g: Any, x: Any, v: Any, indices: Sequence[Any], dim: int, wrap: bool) -> Any:
    """The gradient of v in `index_mul`: the product of all others at its place.

    Where no factor is 0 that is the product of all over this one; the only 0 gets that of all others, several get 0.
    What another factor gets beside a 0 is 0, and depends on that 0: its derivative is that of the product over it. What
    one of two zeros gets depends on the other, which is the sum of both less itself.
    """
    zero = eq(v, 0)
    ones = to(zero, dtype=x.dtype, x_dtype=zero.dtype)
    others = index_get(g * index_mul(x, where(zero, 1, v), indices, dim, wrap), indices, dim, wrap)
    zeros = index_get(index_add(zeros_like(x), ones, indices, dim, wrap), indices, dim, wrap)
    divisor = where(zero, 1, v)
    beside = index_get(g * index_mul(x, v, indices, dim, wrap), indices, dim, wrap) / divisor + 0
    both = index_get(index_add(zeros_like(x), where(zero, v, 0), indices, dim, wrap), indices, dim, wrap)
    finite = where(eq(others - others, 0), others, 0)
    among = where(eq(zeros, 1), others, where(eq(zeros, 2), finite * (both - v) + 0, 0))
    return where(zero, among, where(eq(zeros, 0), others / divisor, beside))


def ties(g: Any, y: Any, x: Any, v: Any, indices: Sequence[Any], dim: int, wrap: bool) -> tuple[Any, Any]:
    """The gradients of x and v in `index_max` and `index_min`: shared evenly by the elements equal to the extreme."""
    own, given = (to(t, dtype=y.dtype, x_dtype=bool_) for t in (eq(x, y), eq(v, index_get(y, indices, dim, wrap))))
    share = g / index_add(own, given, indices, dim, wrap)
    return where(ne(own, 0), share, 0), where(ne(given, 0), index_get(share, indices, dim, wrap), 0)


def _op(name: str, indices: Sequence[Any]) -> Op:
    return op_of(name, len(indices))


def _few(indices: Sequence[Any]) -> Sequence[Any]:
    if len(indices) * max(i.ndim for i in indices) <= MOST_ARGS:
        return indices
    shape = broadcast_shapes(*(i.shape for i in indices))
    return [expand(i, shape) for i in indices]


# ------------------------------------------------------------------ the records


_OPERANDS = {"get": 1, "put": 1, "add": 2, "mul": 2, "max": 2, "min": 2, "set": 2, "clear": 1, "last": 0}
"""How many operands stand before the indices."""


def _native(operation: str) -> Callable[..., list[NativeCall]]:
    """The calls of a kernel of `common.kernels.arrays.coordinates`; what is written to starts as a copy of x."""

    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import coordinates as places
        from common.kernels.arrays import copying

        dim, wrap, (out,) = attrs["dim"], attrs["wrap"], outs
        first = _OPERANDS[operation]
        indices = specs[first:]
        k = len(indices)
        extents = attrs["extents"] if operation in ("put", "last") else specs[0].shape[dim : dim + k]
        shape = (*extents,) if operation == "last" else (specs[0] if operation == "get" else out).shape
        start = 0 if operation == "last" else dim
        single = first == 2 and not specs[1].shape
        copies = first == 2 or operation == "clear"
        calls = []
        if copies:
            calls.append(copying.copy(out.dtype, copying.copy_args(out.shape), (0, len(specs))))
        calls.append(
            NativeCall(
                places.source(operation, out.dtype, [i.dtype for i in indices], wrap, single),
                f"{operation}{k}",
                places.place_args(shape, start, [i.shape for i in indices]),
                tuple(range(int(copies), len(specs) + 1)),
                places.scratch_bytes(extents) if operation == "last" else 0,
                places.WrongIndex(extents, dim, wrap),
            )
        )
        return calls

    return native


def _selected(x: Spec, indices: Sequence[Spec], dim: int) -> tuple[Any, ...]:
    """The shape that indices select, after a check that their dimensions exist.

    Raises
    ------
    ShapeError : they do not: a kernel would read beyond the array.
    """
    if dim + len(indices) > len(x.shape):
        raise ShapeError(f"{len(indices)} indices from dimension {dim} on for a tensor of shape {list(x.shape)}")
    b = broadcast_shapes(*(i.shape for i in indices))
    return (*x.shape[:dim], *b, *x.shape[dim + len(indices) :])


def _spec_get(x: Spec, *indices: Spec, dim: int, wrap: bool) -> Spec:
    return Spec(_selected(x, indices, dim), x.dtype)


def _spec_write(x: Spec, v: Spec, *indices: Spec, dim: int, wrap: bool) -> Spec:
    wanted = _selected(x, indices, dim)
    if v.shape and not same_shape(v.shape, wanted) and tuple(v.shape) != wanted:
        raise ShapeError(f"values of shape {list(v.shape)} for places of shape {list(wanted)}")
    if v.dtype != x.dtype:
        raise DTypeError(f"values of dtype {v.dtype} for a tensor of dtype {x.dtype}")
    return x


def _spec_clear(x: Spec, *indices: Spec, dim: int, wrap: bool) -> Spec:
    _selected(x, indices, dim)
    return x


def _spec_put(v: Spec, *indices: Spec, extents: tuple[Any, ...], dim: int, wrap: bool) -> Spec:
    b = broadcast_shapes(*(i.shape for i in indices))
    rank, own = len(b), tuple(v.shape[dim : dim + len(b)])
    if len(extents) != len(indices) or (not same_shape(own, b) and own != tuple(b)):
        raise ShapeError(f"values of shape {list(v.shape)} for places of shape {list(b)} from dimension {dim} on")
    return Spec((*v.shape[:dim], *extents, *v.shape[dim + rank :]), v.dtype)


def _at(dim: int, index: tuple[int, ...]) -> tuple[Any, ...]:
    return ((slice(None),) * dim) + index


def _each(dim: int, indices: Sequence[np.ndarray]) -> Any:
    """Pairs of a place in x and one in v, in C order."""
    whole = np.broadcast_arrays(*indices)
    for j in np.ndindex(whole[0].shape):
        yield _at(dim, tuple(int(i[j]) for i in whole)), _at(dim, j)


def _oracle_get(x: np.ndarray, *indices: np.ndarray, dim: int, wrap: bool) -> np.ndarray:
    return np.array(x[(slice(None),) * dim + tuple(indices)])


def _oracle_put(v: np.ndarray, *indices: np.ndarray, extents: Any, dim: int, wrap: bool) -> np.ndarray:
    rank = np.broadcast(*indices).ndim
    zeros = np.zeros((*v.shape[:dim], *extents, *v.shape[dim + rank :]), v.dtype)
    return _oracle_add(zeros, v, *indices, dim=dim, wrap=wrap)


def _oracle_write(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, v: np.ndarray, *indices: np.ndarray, dim: int, wrap: bool) -> np.ndarray:
        out = x.copy()
        for place, source in _each(dim, indices):
            out[place] = combine(out[place], v[source] if v.ndim else v)
        return out

    return oracle


_oracle_add = _oracle_write(np.add)


def _oracle_clear(x: np.ndarray, *indices: np.ndarray, dim: int, wrap: bool) -> np.ndarray:
    out = x.copy()
    out[(slice(None),) * dim + tuple(indices)] = 0
    return out


def _oracle_last(*indices: np.ndarray, extents: Any, dim: int, wrap: bool) -> np.ndarray:
    whole = np.broadcast_arrays(*indices)
    flat = np.ravel_multi_index([np.where(i < 0, i + e, i) for i, e in zip(whole, extents, strict=True)], extents)
    places = np.atleast_1d(flat).ravel()
    return np.array([p not in places[j + 1 :] for j, p in enumerate(places)], bool).reshape(whole[0].shape)


#: Sizes before and after the indexed dimensions, and shapes of the indices.
_LAYOUTS: list[tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]] = [
    ((2,), (3,), [(4, 2), (2,), (4, 1)]),
    ((), (), [(5,), (5,), (1,)]),
    ((), (2,), [(), (), ()]),
]


def _samples(k: int, operation: str) -> Any:
    """x (2, e..., 3) and x (e...), with indices that repeat, broadcast and count from the end."""

    def samples(rng: np.random.Generator, dtype: Any) -> list[Any]:
        out = []
        for outer, inner, shapes in _LAYOUTS:
            extents = (3, 2, 4)[:k]
            own = [shapes[d % 3] for d in range(k)]
            indices = [np.asarray(rng.integers(-e, e, s)) for e, s in zip(extents, own, strict=True)]
            b = np.broadcast_shapes(*own)
            x = away_from_zero(rng, (*outer, *extents, *inner), dtype)
            v = away_from_zero(rng, (*outer, *b, *inner), dtype)
            attrs: dict[str, Any] = {"dim": len(outer), "wrap": True}
            if operation in ("put", "last"):
                attrs["extents"] = extents
            operands = [v] if operation == "put" else [x, v][: _OPERANDS[operation]]
            out.append(((*operands, *indices), attrs))
            if _OPERANDS[operation] == 2:
                out.append(((x, away_from_zero(rng, (), dtype), *indices), attrs))
        return out

    return samples


#: The effect of an op with one index per row; ops with several read, those with two add as well.
_INDEXED = {
    "get": IndexUse(), "put": IndexUse(writes=True, join="add"), "add": IndexUse(writes=True, join="add"),
    "set": IndexUse(writes=True), "mul": IndexUse(writes=True, join="mul"),
    "max": IndexUse(writes=True, join="maximum"), "min": IndexUse(writes=True, join="minimum"),
}  # fmt: skip


def _use(k: int, operation: str) -> IndexUse | None:
    """How an op with k indices uses them, where that is known."""
    known = k == 1 or operation == "get" or (k == 2 and operation == "put")
    use = _INDEXED.get(operation) if known else None
    return use and use._replace(pairs=k == 2)


@cache
def family(k: int) -> dict[str, Op]:
    """The ops for k indices."""
    names = tuple(f"i{d}" for d in range(k))
    listed = ", ".join(names)
    scope = {
        "get": index_get, "put": index_put_zeros, "clear": index_clear, "set_rule": set_rule, "times": index_mul,
        "factor_rule": factor_rule, "ties": ties,
        "extents": lambda shape, dim: tuple(shape[dim : dim + k]),
    }  # fmt: skip

    def rule(parameters: str, body: str) -> Any:
        return eval(f"lambda {parameters}, dim, wrap, {listed}: {body}", scope)

    def make(name: str, inputs: tuple[str, ...], spec: Any, oracle: Any, rules: Any, doc: str, node: str,
             attrs: tuple[str, ...] = ("dim", "wrap")) -> Op:  # fmt: skip
        operation = name.split("_")[1]
        return kernel(f"{name}{k}", (*inputs, *names), spec, _native(operation), oracle, rules, doc=doc, attrs=attrs,
                      node_name=node, samples=_samples(k, operation),
                      indexed=_use(k, operation))  # fmt: skip

    at = f"({listed},)"
    extreme_rules = tuple(rule("g, y, x, v", f"ties(g, y, x, v, {at}, dim, wrap)[{i}]") for i in range(2))
    whole = ("extents", "dim", "wrap")
    return {
        "index_get": make(
            "index_get", ("x",), _spec_get, _oracle_get,
            (rule("g, x_shape", f"put(g, {at}, extents(x_shape, dim), dim, wrap)"),),
            "x at tuples of indices of neighbouring dimensions. The gradient is added up in C order.", "Index",
        ),
        "index_put_zeros": make(
            "index_put_zeros", ("v",), _spec_put, _oracle_put, (rule("g", f"get(g, {at}, dim, wrap)"),),
            "Zeros with v added at indices, in C order; the transpose of index_get.", "IndexPut", whole,
        ),
        "index_add": make(
            "index_add", ("x", "v"), _spec_write, _oracle_add,
            (lambda g: g, rule("g", f"get(g, {at}, dim, wrap)")),
            "x with v added at indices, one element after the other in C order.", "IndexPut",
        ),
        "index_set": make(
            "index_set", ("x", "v"), _spec_write, _oracle_write(lambda _, v: v),
            (rule("g", f"clear(g, {at}, dim, wrap)"),
             rule("g, x_shape", f"set_rule(g, extents(x_shape, dim), {at}, dim, wrap)")),
            "x with v at indices; of several at one place the last in C order stays, and has the gradient.", "IndexPut",
        ),
        "index_mul": make(
            "index_mul", ("x", "v"), _spec_write, _oracle_write(np.multiply),
            (rule("g, x, v", f"times(g, v, {at}, dim, wrap)"),
             rule("g, x, v", f"factor_rule(g, x, v, {at}, dim, wrap)")),
            "x multiplied by v at indices, one element after the other in C order.", "IndexReduce",
        ),
        "index_max": make(
            "index_max", ("x", "v"), _spec_write, _oracle_write(np.maximum), extreme_rules,
            "The maximum of x and the v at its indices. Ties share the gradient evenly.", "IndexReduce",
        ),
        "index_min": make(
            "index_min", ("x", "v"), _spec_write, _oracle_write(np.minimum), extreme_rules,
            "The minimum of x and the v at its indices. Ties share the gradient evenly.", "IndexReduce",
        ),
        "index_clear": make(
            "index_clear", ("x",), _spec_clear, _oracle_clear, (rule("g", f"clear(g, {at}, dim, wrap)"),),
            "x with zeros at indices.", "IndexFill",
        ),
        "index_last": make(
            "index_last", (), lambda *i, **_: Spec(broadcast_shapes(*(s.shape for s in i)), np.dtype(np.bool_)),
            _oracle_last, (), "Whether no later place in C order equals this one.", "IndexLast", whole,
        ),
    }  # fmt: skip


def op_of(name: str, count: int) -> Op:
    """The op of that name for so many indices."""
    return family(count)[name]


for _k in (1, 2, 3):
    family(_k)

__all__: list[str] = []
