"""Arguments as text: ``f32[64,128], i64[64]<10, 0.5`` becomes arrays with fixed seeds."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workload import Array

DTYPES = {
    "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip
GRAMMAR = (
    "f32[64,128], i64[64]<10, 0.5: a dtype, sizes (numbers or names such as n), below what integers stay; or a value"
)
_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\](?:<(?P<below>\w+))?$")


@dataclass(frozen=True)
class Argument:
    """One argument: an array of random elements, or a value.

    Attributes
    ----------
    dtype : a key of `DTYPES`; "" for a value.
    sizes : numbers, or names that sizes are given to later.
    below : of integers, the first number that does not occur; a number or a name.
    value : what is handed over if there is no dtype.
    """

    dtype: str
    sizes: tuple[str, ...] = ()
    below: str = ""
    value: Any = None

    def make(self, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
        """Return the array: floats are standard normal, integers 0 to below, booleans fair coins."""
        if not self.dtype:
            return self.value
        shape = tuple(_number(size, sizes) for size in self.sizes)
        dtype = DTYPES[self.dtype]
        if self.dtype == "bool":
            return rng.random(shape) < 0.5
        if self.dtype[0] in "iu":
            return rng.integers(0, _number(self.below or "2", sizes), shape).astype(dtype)
        return np.asarray(rng.standard_normal(shape)).astype(dtype)


def parse(text: str) -> tuple[Argument, ...]:
    """Return the arguments that a text names.

    Raises
    ------
    ValueError
        If a part is neither an array nor a Python value; the message shows the grammar.

    Examples
    --------
    >>> [a.dtype + str(a.sizes) for a in parse("f32[64,n], i64[64]<10")]
    ["f32('64', 'n')", "i64('64',)"]
    """
    return tuple(_argument(part) for part in split(text))


def split(text: str) -> list[str]:
    """Return the parts between commas that lie in no brackets.

    Examples
    --------
    >>> split("f32[2,3], (1, 2)")
    ['f32[2,3]', '(1, 2)']
    """
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def arrays(arguments: tuple[Argument, ...], sizes: Mapping[str, int], seed: int) -> tuple[Any, ...]:
    """Return one input set.

    Raises
    ------
    ValueError
        If a size has a name without a number.
    """
    rng = np.random.default_rng(seed)
    return tuple(argument.make(sizes, rng) for argument in arguments)


def described(inputs: tuple[Any, ...]) -> str:
    """Return an input set as `parse` takes it.

    Examples
    --------
    >>> described((np.zeros((2, 3), np.float32), 0.5))
    'f32[2,3], 0.5'
    """
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    return ", ".join(
        f"{names.get(x.dtype, x.dtype)}[{','.join(map(str, x.shape))}]" if isinstance(x, np.ndarray) else repr(x)
        for x in inputs
    )


def floating(inputs: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions of floating arrays: what gradients are taken of."""
    return tuple(i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f")


def nbytes(inputs: tuple[Any, ...]) -> int:
    """Return the bytes of all arrays of an input set."""
    found: list[Array] = [x for x in inputs if isinstance(x, np.ndarray)]
    return sum(x.nbytes for x in found)


def _argument(text: str) -> Argument:
    found = _ARRAY.match(text)
    if found and found["dtype"] in DTYPES:
        sizes = tuple(size.strip() for size in found["sizes"].split(",") if size.strip())
        return Argument(found["dtype"], sizes, found["below"] or "")
    try:
        return Argument("", value=ast.literal_eval(text))
    except (ValueError, SyntaxError):
        raise ValueError(f"{text!r} is no argument; as in: {GRAMMAR}; dtypes: {', '.join(DTYPES)}") from None


def _number(text: str, sizes: Mapping[str, int]) -> int:
    if text.isdecimal():
        return int(text)
    if text not in sizes:
        raise ValueError(f"size {text!r} has no number: give it one with --sweep {text}=10,100 or --size {text}=100")
    return sizes[text]
