"""A number inside a graph: weak, so that its consumer rounds it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.dtypes import number_spec
from common.core.op import NativeCall
from common.core.spec import Spec
from common.ops._define import kernel
from common.ops._samples import fixed


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    return []


constant = kernel(
    "constant", (), lambda *, value: number_spec(value), _native, lambda value: value,
    doc="A number written in a program, or a symbolic size used as a number; placed when a plan is made.",
    attrs=("value",), samples=fixed({"value": 1.5}), literal=True, fill="value",
)  # fmt: skip
