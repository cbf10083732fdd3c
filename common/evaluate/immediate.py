"""Arrays as rules and composites see them where they run at once: with the operators of ops.

An operator of numpy's is not an op: it promotes otherwise, divides ints in float64, and its ``**`` has other bits. So a
rule gets `Immediate` operands in place of arrays, and weak numbers (`common.core.python_numbers`) in place of Python's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from common.core.op import REGISTRY, Op
from common.core.operators import install
from common.core.python_numbers import weak
from common.core.spec import Spec, Specified
from common.evaluate.specialise import run


class Immediate(Specified):
    """An array of which every use is an op that runs at once."""

    __slots__ = ("payload",)

    def __init__(self, payload: np.ndarray) -> None:
        self.payload = payload

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        """Shape and dtype."""
        return Spec(self.payload.shape, self.payload.dtype)

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return wrapped(run(op, unwrapped(operands), attrs))


@cache
def _give_operators() -> None:
    """Let them have operators when the first is made: by then the registry has ops."""
    install(Immediate, REGISTRY, comparisons=False)


def wrapped(x: Any) -> Any:
    """An array, a number, or each of a tuple; None is left as it is."""
    _give_operators()
    if type(x) is tuple:
        return tuple(map(wrapped, x))
    return Immediate(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else weak(x)


def unwrapped(x: Any) -> Any:
    """Undo `wrapped`, of one operand or of several."""
    if isinstance(x, (tuple, list)):
        return tuple(map(unwrapped, x))
    return x.payload if type(x) is Immediate else x


def run_rules(op: Op, saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
    """The rules of an op on arrays and numbers."""
    sizes = range(len(op.saved_inputs), len(op.saved_inputs) + len(op.saved_shapes))
    given = tuple(x if i in sizes else wrapped(x) for i, x in enumerate(saved))
    return tuple(map(unwrapped, op.backward(given, attrs, wrapped(g), needs)))
