"""Random arguments for public functions, by the names of their parameters; see `tests.helpers.fuzz`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from common.core.aliases import OLDER_REDUCTION

Rng = np.random.Generator

FLOATS = ["float32", "float32", "float64"]
INTS = ["int64", "int64", "int32", "uint8", "int8", "int16"]
FOREIGN = ["complex64", "float16", "uint32", "uint64", "object", "<U3", "datetime64[s]"]
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, 1.0, -1.0, 0.5, 2.0]
HUGE = [2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, -(2**70)]
JUNK: list[Any] = [
    None,
    "x",
    "",
    1.5,
    np.nan,
    np.inf,
    1 + 2j,
    b"ab",
    {},
    [],
    (),
    [[]],
    object,
    Ellipsis,
    [1, [2]],
    [None],
    "float32",
]


class Call:
    """One call: a function's name and its arguments; arrays inside are what a traced call gets as its arguments."""

    def __init__(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, tuple(args), kwargs

    def leaves(self) -> list[Any]:
        """Arguments and elements of lists, in order."""
        found: list[Any] = []

        def note(x: Any) -> Any:
            found.append(x)
            return x

        self._replace(note)
        return found

    def _replace(self, change: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        def inside(x: Any) -> Any:
            if type(x) in (list, tuple) and any(type(y) is np.ndarray for y in x):
                return type(x)(change(y) for y in x)
            return change(x)

        return [inside(x) for x in self.args], {k: inside(x) for k, x in self.kwargs.items()}

    def replaced(self, arrays: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments with `arrays` in place of the arrays."""
        rest = iter(arrays)
        return self._replace(lambda x: next(rest) if type(x) is np.ndarray else x)

    def run_method(self, engine: Any) -> Any:
        """Call the method of the first argument."""
        return getattr(engine.as_tensor(self.args[0]), self.name)(*self.args[1:], **self.kwargs)

    def run(self, engine: Any, arrays: Sequence[Any] | None = None) -> Any:
        """Call the function of an engine, with `arrays` in place of the arrays."""
        args, kwargs = (self.args, self.kwargs) if arrays is None else self.replaced(arrays)
        if self.name == "getitem":
            return engine.as_tensor(args[0])[args[1]]
        return getattr(engine, self.name)(*args, **kwargs)

    def __str__(self) -> str:
        parts = [_show(x) for x in self.args] + [f"{k}={_show(x)}" for k, x in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"


def _show(x: Any) -> str:
    if type(x) in (list, tuple):
        return f"{type(x).__name__}({', '.join(map(_show, x))})"
    if not isinstance(x, np.ndarray):
        return repr(x)
    layout = "" if x.flags.c_contiguous else f", strides {x.strides}"
    layout += ("" if x.flags.aligned else ", unaligned") + ("" if x.flags.writeable else ", read-only")
    values = np.array2string(x.ravel()[:8], separator=",", max_line_width=1000)
    return f"array({x.dtype.str}{list(x.shape)}{layout}: {values})"


def _pick(rng: Rng, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


# ---------------------------------------------------------------- arrays
def shape(rng: Rng) -> tuple[int, ...]:
    """Few dimensions and small sizes mostly; zeros and ones often."""
    ndim = _pick(rng, [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5])
    sizes = [0, 1, 1, 2, 2, 3, 3, 4, 5, 8]
    return tuple(_pick(rng, sizes if ndim < 4 else sizes[:8]) for _ in range(ndim))


def values(rng: Rng, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Elements of a dtype: ordinary, special, or small enough to be indices."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        x = rng.normal(size=shape)
        if rng.random() < 0.3:
            x = np.where(rng.random(shape) < 0.5, rng.choice(SPECIAL, shape), x)
        with np.errstate(all="ignore"):
            return np.asarray(x, dtype)
    if kind in "iu":
        style = rng.random()
        if style < 0.6:
            return np.asarray(rng.integers(0, 3, shape), dtype)
        if style < 0.9 or kind == "u":
            return np.asarray(rng.integers(0 if kind == "u" else -4, 6, shape), dtype)
        info = np.iinfo(dtype)
        return np.asarray(rng.choice(np.array([info.min, info.max, 0, -1]), shape), dtype)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    return np.asarray(rng.integers(0, 3, shape)).astype(dtype)


def layout(rng: Rng, x: np.ndarray) -> np.ndarray:
    """The same elements elsewhere in memory; or other ones, in windows that overlap."""
    kind = _pick(
        rng, ["dense"] * 6 + ["turned", "steps", "backwards", "odd", "swapped", "read-only", "flat", "windows"]
    )
    if kind == "turned":
        return np.asfortranarray(x)
    if kind in ("steps", "backwards") and x.ndim:
        step = 2 if kind == "steps" else -1
        wide = np.zeros((*x.shape[:-1], x.shape[-1] * abs(step)), x.dtype)
        part = wide[..., ::step]
        part[...] = x
        return part
    if kind == "odd" and x.dtype.kind != "O":
        memory = np.zeros(x.nbytes + x.itemsize + 1, np.uint8)
        odd: np.ndarray = memory[1 : 1 + x.nbytes].view(x.dtype).reshape(x.shape)
        odd[...] = x
        return odd
    if kind == "swapped" and x.dtype.itemsize > 1:
        return x.astype(x.dtype.newbyteorder())
    if kind == "read-only":
        x = x.copy()
        x.flags.writeable = False
        return x
    if kind == "flat" and x.size:
        return np.broadcast_to(x.ravel()[:1].reshape([1] * x.ndim), x.shape)
    if kind == "windows" and x.ndim == 2 and x.size:
        line = np.resize(x.ravel(), sum(x.shape))
        return as_strided(line, x.shape, (line.itemsize, line.itemsize))
    return x


def array(rng: Rng, size: tuple[int, ...] | None = None, dtype: str | None = None) -> np.ndarray:
    """An array of any kind."""
    if dtype is None:
        dtype = _pick(rng, FLOATS * 6 + INTS * 2 + ["bool"] * 2 + ([_pick(rng, FOREIGN)] if rng.random() < 0.5 else []))
    return layout(rng, values(rng, shape(rng) if size is None else size, dtype))


class Operands:
    """The operands of one call: shapes that fit together mostly, and sometimes the same array again."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.base = shape(rng)
        self.dtype = _pick(rng, FLOATS * 5 + INTS + ["bool"])
        self.made: list[np.ndarray] = []

    def fitting(self) -> tuple[int, ...]:
        """A shape like the first one: the same, broadcast, transposed, or with inner sizes that multiply."""
        rng, base = self.rng, self.base
        kind = _pick(rng, ["same"] * 4 + ["ones", "fewer", "turned", "inner", "last", "other", "more"])
        if kind == "ones":
            return tuple(1 if rng.random() < 0.5 else n for n in base)
        if kind == "fewer":
            return base[1:]
        if kind == "turned":
            return (*base[:-2], *base[-2:][::-1])
        if kind == "inner" and base:
            return (*base[:-2], base[-1], _pick(rng, [0, 1, 2, 3]))
        if kind == "last":
            return base[-1:]
        if kind == "more":
            return (2, *base)
        return shape(rng) if kind == "other" else base

    def operand(self, name: str) -> Any:
        """An operand for a parameter."""
        rng = self.rng
        style = rng.random()
        if style < 0.03:
            return _pick(rng, JUNK)
        if style < 0.07:
            return _pick(rng, [0, 1, -2, 2.5, True, np.float32(0.5), np.int64(3), [1.0, 2.0], [[1, 2], [3, 4]], [True]])
        if self.made and style < 0.13:
            return _pick(rng, self.made)
        index = name in ("index", "target", "sorter") or (name == "input" and style > 0.97)
        dtype = _pick(rng, INTS[:3]) if index else "bool" if name == "condition" else self.dtype
        if style > 0.9:
            dtype = None
        x = array(rng, self.fitting() if self.made else self.base, dtype)
        self.made.append(x)
        return x


# ---------------------------------------------------------------- other arguments
def integer(rng: Rng) -> Any:
    """A small int mostly; sometimes a huge one, or something else."""
    style = rng.random()
    if style < 0.8:
        return int(_pick(rng, [0, 1, 1, 2, 2, 3, 4, -1, -1, -2, -3]))
    if style < 0.86:
        return int(_pick(rng, HUGE))
    return _pick(rng, [*JUNK, 7, -9, np.int32(1), np.int64(-1), True, np.array(1), np.array([1]), 2.0])


def some_integers(rng: Rng) -> Any:
    """A tuple or list of ints, or a single one."""
    if rng.random() < 0.25:
        return integer(rng)
    return [tuple, tuple, list][int(rng.integers(3))](integer(rng) if rng.random() < 0.15 else int(rng.integers(-1, 4))
                                            for _ in range(int(rng.integers(0, 5))))  # fmt: skip


def dims(rng: Rng) -> Any:
    """A dimension, or several."""
    style = rng.random()
    if style < 0.7:
        return int(rng.integers(-3, 3))
    return some_integers(rng) if style < 0.9 else integer(rng)


def number(rng: Rng) -> Any:
    """A number; sometimes something else."""
    style = rng.random()
    if style < 0.85:
        return _pick(rng, [0, 1, 2, -1, 3, 0.5, -2.5, 1e-3, 10.0, np.float64(0.25), np.int64(2), True, *SPECIAL])
    return _pick(rng, [*JUNK, *HUGE])


def flag(rng: Rng) -> Any:
    """A truth value."""
    return bool(rng.integers(2)) if rng.random() < 0.9 else _pick(rng, JUNK)


_DTYPES = [
    *FLOATS,
    *INTS,
    "bool",
    np.float32,
    np.dtype("int8"),
    None,
    "float16",
    "complex64",
    "nonsense",
    5,
    int,
    float,
]
_STRINGS: dict[str, list[Any]] = {
    "reduction": ["mean", "sum", "none", "avg"], "mode": ["constant", "reflect", "replicate", "circular", "mirror"],
    "indexing": ["ij", "xy", "ji"], "side": ["left", "right", "up"], "approximate": ["none", "tanh", "fast"],
    "rounding_mode": [None, "floor", "trunc", "round"],
    "equation": ["ij,jk->ik", "ii->i", "i,i", "ij->ji", "...j,j", "ij,ij->", "a", "ij,kl->", "i->ii", "->", "i j"],
}  # fmt: skip
_FLAGS = frozenset(
    ["keepdim", "descending", "stable", "largest", "sorted", "right", "out_int32", "training", "unbiased",
     "return_inverse", "return_counts", "inplace"]
)  # fmt: skip
_NUMBERS = frozenset(
    ["alpha", "beta", "eps", "fill_value", "value", "min", "max", "p", "start", "end", "step", "base", "exponent",
     "correction", "negative_slope", "threshold", "lambd", "weight_decay", "nan", "posinf", "neginf", "decimals"]
)  # fmt: skip
_SHAPES = frozenset(["size", "sizes", "shape", "dims", "more", "pad", "shifts", "repeats", "normalized_shape",
                     "split_size_or_sections", "indices_or_sections", "source", "destination"])  # fmt: skip
_OPERANDS = frozenset(
    ["input", "other", "weight", "bias", "target", "index", "src", "condition", "mat", "mat1", "mat2", "vec", "vec1",
     "vec2", "batch1", "batch2", "input1", "input2", "boundaries", "sorted_sequence", "sorter", "tensor", "a", "b",
     "data", "array", "tensors"]
)  # fmt: skip
_FREE = ("generator", "axis", "keepdims", "out", "requires_grad")


def is_left_out(p: inspect.Parameter) -> bool:
    """Whether a parameter is another word for one that is given, or has a default that is the rule."""
    return (p.name in _FREE and p.default is not p.empty) or is_older_reduction(p)


def is_older_reduction(p: inspect.Parameter) -> bool:
    """Whether a parameter of a loss is one of PyTorch's older words for `reduction`."""
    return p.name in OLDER_REDUCTION and p.default is None


def argument(rng: Rng, p: inspect.Parameter, operands: Operands) -> Any:
    """An argument for a parameter, by its name."""
    name = p.name
    if name in _OPERANDS:
        if name == "tensors":
            some = [operands.operand("input") for _ in range(_pick(rng, [0, 1, 2, 2, 2, 3, 3]))]
            return [list, tuple][int(rng.integers(2))](some) if rng.random() < 0.95 else operands.operand("input")
        if name == "index" and rng.random() < 0.3:
            return integer(rng)
        return operands.operand(name)
    if name in _STRINGS:
        return _pick(rng, _STRINGS[name]) if rng.random() < 0.92 else _pick(rng, JUNK)
    if name == "dtype":
        return _pick(rng, _DTYPES)
    if name in _FLAGS:
        return flag(rng)
    if name == "exponent":
        return operands.operand(name) if rng.random() < 0.5 else number(rng)
    if name in ("low", "high", "min", "max", "repeats") and rng.random() < 0.3:
        return operands.operand(name)
    if name in _NUMBERS:
        return number(rng)
    if name in _SHAPES:
        return some_integers(rng)
    if name.startswith(("dim", "axis", "start_dim", "end_dim")):
        return dims(rng)
    return integer(rng)


def draw_call(rng: Rng, name: str, signature: inspect.Signature | None, operands: Operands | None = None) -> Call:
    """A call of a function; of indexing where there is no signature."""
    operands = operands or Operands(rng)
    if signature is None:
        return Call(name, (array(rng), key(rng)), {})
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p in signature.parameters.values():
        if is_left_out(p):
            continue
        if p.kind is p.VAR_POSITIONAL:
            if p.name == "tensors":
                args += [operands.operand("input") for _ in range(int(rng.integers(0, 4)))]
            elif p.name != "more":
                args.append(some_integers(rng))
            continue
        if p.default is not p.empty and p.default is not ... and rng.random() < 0.55:
            continue
        value = argument(rng, p, operands)
        if p.kind is p.KEYWORD_ONLY or kwargs or (p.default is not p.empty and rng.random() < 0.6):
            kwargs[p.name] = value
        elif len(args) == _position(signature, p.name):
            args.append(value)
        else:
            kwargs[p.name] = value
    return Call(name, args, kwargs)


def _position(signature: inspect.Signature, name: str) -> int:
    return [p.name for p in signature.parameters.values() if p.name not in _FREE or p.default is p.empty].index(name)


def key(rng: Rng) -> Any:
    """An index: ints, slices, new dimensions, arrays, masks, and what is none."""

    def one() -> Any:
        style = rng.random()
        if style < 0.3:
            return int(rng.integers(-3, 4))
        if style < 0.6:
            bounds = [None, 0, 1, 2, -1, -2, 5, -7, 2**40]
            return slice(_pick(rng, bounds), _pick(rng, bounds), _pick(rng, [None, None, 1, 2, 3, -1, 0]))
        if style < 0.7:
            return _pick(rng, [None, Ellipsis])
        if style < 0.85:
            return array(rng, dtype=_pick(rng, ["int64", "int32", "bool", "uint8"]))
        return (
            integer(rng) if style < 0.95 else _pick(rng, [*JUNK, [0, 1], [True, False], True, False, slice("a", 1.5)])
        )

    return one() if rng.random() < 0.5 else tuple(one() for _ in range(int(rng.integers(0, 4))))
