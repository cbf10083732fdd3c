"""Eager ops on a million elements beside PyTorch eager: ``python -m benchmarks.elements [name ...]``.

The list follows from the public functions: every elementwise op is called with operands of one shape, every function
of `CALLS` as stated there. An op is *costly* where its record says so: a transcendental function or one that divides.
One core, one thread; the ratio is the median of the ratios of rounds in turns. Without PyTorch only our own times
are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import common.ops.functional as functional
import dynamic
from benchmarks import machine, measure, stats
from common.core.op import Op

SIZE = 1_000_000
ROWS = (1000, 1000)
DTYPES = ("float32", "float64")
EXACT, COSTLY = 1.2, 3.0
"""Bounds on the ratio to PyTorch's time."""
MISSES = 0.1
"""Share of the ops that may be slower than their bound."""
SECONDS = 0.15

Call = Callable[..., Any]


class Element(NamedTuple):
    """One measured call: ``call(framework, *operands)`` on operands of these shapes."""

    name: str
    call: Call
    shapes: tuple[tuple[int, ...], ...]
    costly: bool
    drawn: str = "f"
    """Kind of the operands: "f" floats between 0.3 and 0.9, "b" bools, "i" ints from 1 to 9."""

    @property
    def bound(self) -> float:
        """Largest ratio to PyTorch's time."""
        return COSTLY if self.costly else EXACT


def _method(name: str, *arguments: Any, **options: Any) -> Call:
    return lambda tw, *xs: getattr(tw, name)(*xs, *arguments, **options)


FLAT, TWO, THREE = ((SIZE,),), ((SIZE,),) * 2, ((SIZE,),) * 3
CALLS = {
    "fmod": Element("fmod", _method("fmod"), TWO, costly=False),
    "remainder": Element("remainder", _method("remainder"), TWO, costly=False),
    "remainder by a number": Element("remainder", _method("remainder", 0.07), FLAT, costly=False),
    "floor_divide": Element("floor_divide", _method("floor_divide"), TWO, costly=False),
    "div": Element("div", _method("div"), TWO, costly=False),
    "div, trunc": Element("div", _method("div", rounding_mode="trunc"), TWO, costly=True),
    "round": Element("round", _method("round"), FLAT, costly=False),
    "round, decimals": Element("round", _method("round", decimals=2), FLAT, costly=True),
    "nan_to_num": Element("nan_to_num", _method("nan_to_num"), FLAT, costly=False),
    "isclose": Element("isclose", _method("isclose"), TWO, costly=False),
    "addcmul": Element("addcmul", _method("addcmul", value=0.5), THREE, costly=False),
    "addcdiv": Element("addcdiv", _method("addcdiv", value=0.5), THREE, costly=True),
    "clamp": Element("clamp", _method("clamp", 0.4, 0.8), FLAT, costly=False),
    "add, a number": Element("add", _method("add", 0.5), FLAT, costly=False),
    "add, a row": Element("add", _method("add"), (ROWS, ROWS[1:]), costly=False),
    "add, a column": Element("add", _method("add"), (ROWS, (ROWS[0], 1)), costly=False),
    "add, transposed": Element("add", lambda tw, x, y: tw.transpose(x, 0, 1) + y, (ROWS, ROWS), costly=False),
    "sum": Element("sum", _method("sum"), FLAT, costly=False),
    "sum of rows": Element("sum", _method("sum", 1), (ROWS,), costly=False),
    "sum of columns": Element("sum", _method("sum", 0), (ROWS,), costly=False),
    "mean": Element("mean", _method("mean"), FLAT, costly=False),
    "amax": Element("amax", _method("amax", 1), (ROWS,), costly=False),
    "softmax": Element("softmax", _method("softmax", 1), (ROWS,), costly=True),
    "log_softmax": Element("log_softmax", _method("log_softmax", 1), (ROWS,), costly=True),
    "gelu": Element("gelu", lambda tw, x: tw.nn.functional.gelu(x), FLAT, costly=True),
    "cat": Element("cat", lambda tw, x, y: tw.cat([x, y]), TWO, costly=False),
}


def elements(names: Sequence[str] = ()) -> dict[str, Element]:
    """Return the calls to measure, all or those of some public functions."""
    found = {}
    for name in functional.__all__:
        op = getattr(functional, name)
        if isinstance(op, Op) and op.kind == "elementwise":
            kind = "b" if op.domain == "bool" else "i" if "f" in op.refuses else "f"
            found[name] = Element(name, _method(name), ((SIZE,),) * len(op.inputs), op.costly, kind)
    return {label: e for label, e in (found | CALLS).items() if not names or e.name in names}


def operands(element: Element, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Return operands of a call in the domain of every function."""
    rng = np.random.default_rng(seed)
    made = []
    for i, shape in enumerate(element.shapes):
        x = rng.uniform(0.3, 0.9, shape)
        if element.drawn == "b" or (element.name == "where" and i == 0):
            made.append(x > 0.6)
        elif element.drawn == "i":
            made.append((10 * x).astype(np.dtype(dtype.replace("float", "int"))))
        else:
            made.append(x.astype(dtype) + (1 if element.name == "acosh" else 0))
    return made


def calls(element: Element, dtype: str) -> dict[str, tuple[Call, list[tuple[Any, ...]]]]:
    """Return the call in our engine and, where it is installed and has the function, in PyTorch."""
    arrays = operands(element, dtype)
    found = {"dynamic": (_bound(element, dynamic), [tuple(map(dynamic.tensor, arrays))])}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        theirs = tuple(torch.tensor(x) for x in arrays)
        try:
            element.call(torch, *theirs)
        except (AttributeError, TypeError):  # the function is ours only
            return found
        found["torch"] = (_bound(element, torch), [theirs])
    return found


def _bound(element: Element, framework: Any) -> Call:
    return lambda *xs: element.call(framework, *xs)


class ElementTime(NamedTuple):
    """A measurement: milliseconds, and the ratio where there is a peer."""

    label: str
    dtype: str
    ours: float
    theirs: float | None
    ratio: float | None
    bound: float

    @property
    def missed(self) -> bool:
        """Whether the ratio is above its bound."""
        return self.ratio is not None and self.ratio > self.bound

    def __str__(self) -> str:
        peer = "- | -" if self.ratio is None else f"{self.theirs:.3f} | {self.ratio:.2f}"
        return f"| {self.label} | {self.dtype} | {self.ours:.3f} | {peer} | {self.bound} |{' missed' * self.missed}"


def measured(found: dict[str, Element], dtype: str, seconds: float = SECONDS) -> Iterator[ElementTime]:
    """Measure calls one after the other, each in turns with PyTorch's."""
    for label, element in found.items():
        samples = measure.interleave(calls(element, dtype), seconds)
        ours, theirs = samples["dynamic"], samples.get("torch")
        ratio = None if theirs is None else stats.ratio(ours, theirs).value
        peer = None if theirs is None else 1e3 * float(np.median(theirs))
        yield ElementTime(label, dtype, 1e3 * float(np.median(ours)), peer, ratio, element.bound)


def summary(rows: Sequence[ElementTime]) -> str:
    """Return one line: how many calls are slower than their bound, and which."""
    compared = [row for row in rows if row.ratio is not None]
    missed = [f"{row.label} {row.dtype} {row.ratio:.2f}" for row in compared if row.missed]
    if not compared:
        return "PyTorch is not installed: nothing is compared"
    return f"{len(missed)} of {len(compared)} are slower than their bound{': ' * bool(missed)}{', '.join(missed)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; see the module's docstring."""
    parser = argparse.ArgumentParser(description="eager ops on a million elements beside PyTorch eager")
    parser.add_argument("names", nargs="*", metavar="name", help="public functions, by default all")
    chosen = parser.parse_args(arguments).names
    measure.single_core()
    print(f"{machine.one_line(machine.describe())}. One core, one thread, {SIZE:,} elements, medians.\n")
    print("| call | dtype | dynamic, ms | torch, ms | ratio | bound |\n|---|---|---|---|---|---|")
    rows = []
    for dtype in DTYPES:
        for row in measured(elements(chosen), dtype):
            rows.append(row)
            print(row, flush=True)
    print(f"\n{summary(rows)}")


if __name__ == "__main__":
    main()
