"""The cache of promoted operand dtypes and result specs of each op.

A trace works it out once per op and specs, which takes longer than everything else about a node. Specs that are equal
are one object, so what follows from them is found by their addresses, and nothing symbolic is hashed or compared.
Guards that working it out has recorded hold for the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from common.core.dtypes import operand_dtypes
from common.core.op import CAST, REGISTRY, Op, out_specs
from common.core.sizes import Dim, DimScope
from common.core.spec import Spec
from common.tensor.base import spec_of
from static.graph import Value


class Records(Protocol):
    """A trace, as far as casts and sizes of operands need it."""

    @property
    def dims(self) -> DimScope:
        """The sizes of the program."""
        ...

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Append an application of `op`."""
        ...


Derivation = tuple[list[Any], tuple[Spec, ...]]
"""Operands, and specs of the results."""


class Derived:
    """A trace's memory of promoted operands and specs of results.

    Parameters
    ----------
    remembers : whether guards hold for the whole trace, not for the lines that recorded them.
    """

    def __init__(self, trace: Records, remembers: bool = True) -> None:
        self._trace, self._remembers = trace, remembers
        self._known: dict[Any, Any] = {}
        self._specs: dict[Any, Spec] = {}

    def __call__(self, op: Op, values: list[Any], attrs: Mapping[str, Any]) -> Derivation:
        """Derive promoted values and result specs from values and numbers of the trace."""
        if op.attrs:
            specs = out_specs(op.spec(*[spec_of(x) for x in values], **attrs))
            return values, tuple([self.one(spec) for spec in specs])
        if not self._remembers:
            return self._anew(op, values)
        key = (op, *[id(x.spec) if type(x) is Value else type(x) for x in values])
        known = self._known.get(key)
        if known is None:
            return self._learned(key, op, values)
        casts, specs, _ = known
        for i, dtype in casts:
            values[i] = self._cast(values[i], dtype)
        return values, specs

    def _learned(self, key: Any, op: Op, values: list[Any]) -> Derivation:
        kept = [x.spec for x in values if type(x) is Value]  # the key has their addresses
        cast, specs = self._anew(op, values)
        casts = [(i, y.dtype) for i, (x, y) in enumerate(zip(values, cast, strict=True)) if x is not y]
        specs = tuple([self.one(spec) for spec in specs])
        self._known[key] = casts, specs, kept
        return cast, specs

    def _anew(self, op: Op, values: list[Any]) -> Derivation:
        if op.kind == "elementwise":
            wanted = operand_dtypes(op, [spec_of(x) for x in values])
            pairs = zip(values, wanted, strict=True)
            values = [self._cast(x, dtype) if type(x) is Value and x.dtype != dtype else x for x, dtype in pairs]
        return values, out_specs(op.spec(*[spec_of(x) for x in values]))

    def _cast(self, x: Value, dtype: np.dtype) -> Value:
        value: Value = self._trace.record(REGISTRY[CAST], (x,), {"dtype": dtype, "x_dtype": x.dtype})
        return value

    def one(self, spec: Spec) -> Spec:
        """The one object that stands for all specs like this; its sizes are numbers where they must be."""
        settled = self._trace.dims.settled
        sizes = tuple([settled(n) if isinstance(n, Dim) else n for n in spec.shape])
        shape = tuple([n.terms if isinstance(n, Dim) else n for n in sizes])
        return self._specs.setdefault((shape, spec.dtype, spec.weak), Spec(sizes, spec.dtype, spec.weak))
