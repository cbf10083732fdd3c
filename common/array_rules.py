"""Gradient rules as straight lines of native builtins, for the eager engine's commonest nodes.

A rule such as ``lambda g, y: g * (1 - y * y)`` is run once on terms that write down what is computed. The result
is a function that calls the builtins of `common.eager_kernels` directly (0.1 us per op instead of a numpy ufunc's
0.3, see benchmarks/test_dynamic.py). It computes the same ops in the same order, hence the same bits; whatever a
builtin does not accept comes back as None, and the caller runs the rule itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from common import functional  # fills the registry
from common.eager import number
from common.eager_kernels import fast
from common.op import REGISTRY, Op, rule_parameters
from common.operators import install


class _Term:
    """An expression over the names that a rule was given."""

    __op_priority__ = 9
    dtype = property(lambda self: self.trail.dtype)

    def __init__(self, text: str, trail: _Trail) -> None:
        self.text, self.trail = text, trail

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> _Term:
        trail = next(x.trail for x in operands if isinstance(x, _Term))
        return trail.call(op, operands, attrs)


class _Trail:
    """The builtins and constants that the expressions name."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.scope: dict[str, Any] = {}

    def call(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> _Term:
        numbers = any(isinstance(x, (int, float)) for x in operands)
        if op.kind != "elementwise" or attrs or op.result == "bool" or (numbers and len(operands) != 2):
            raise _NotStraightError
        self.scope[op.name] = fast(op.name, (self.dtype,) * len(operands), self.dtype)
        return _Term(f"{op.name}({', '.join(self._operand(x) for x in operands)})", self)

    def _operand(self, x: Any) -> str:
        if isinstance(x, _Term):
            return x.text
        name = f"c{len(self.scope)}"
        self.scope[name] = number(x, self.dtype)
        return name


class _NotStraightError(Exception):
    """The rule needs more than elementwise ops on its operands."""


assert functional
install(_Term, REGISTRY, comparisons=False)


@cache
def straight_rules(op: Op, rules: tuple[Any, ...], dtype: np.dtype) -> Callable[..., tuple[Any, ...]]:
    """``backward(saved, attrs, g, needs)`` of an op for operands of one shape and dtype.

    Parameters
    ----------
    rules : the op's present rules: part of the key, so that a changed rule is seen.
    """
    trail = _Trail(dtype)
    if op.saved_shapes or op.attrs or op.nout != 1:
        return op.backward
    terms = {name: _Term(f"s{i}", trail) for i, name in enumerate(op.saves)}
    terms["g"] = _Term("g", trail)
    parts = []
    try:
        for i, rule in enumerate(rules):
            if rule is None:
                parts.append("None, ")
                continue
            result = rule(*(terms[name] for name in rule_parameters(rule)))
            parts.append(f"{result.text} if needs[{i}] is not None else None, ")
    except _NotStraightError:
        return op.backward
    unpack = f"    {''.join(f's{i}, ' for i in range(len(op.saves)))}= saved\n" if op.saves else ""
    source = f"def backward(saved, attrs, g, needs):\n{unpack}    return ({''.join(parts)})\n"
    exec(compile(source, f"{__file__}: backward of {op.name}", "exec"), trail.scope)
    return trail.scope["backward"]
