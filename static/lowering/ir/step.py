"""Kernel calls of a program while it is lowered, before a frame is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.kernels.arrays.coordinates import WrongIndex
from static.lowering.groups import Group
from static.lowering.ir.items import ArrayBuffer
from static.lowering.ir.kernel_memory import Scratch


@dataclass(eq=False, slots=True)
class Step:
    """One kernel call of a program.

    Attributes
    ----------
    name, source : of the kernel; no source for control flow and acts.
    things : what its slots are.
    ints : its arguments, ints or Dims.
    groups : what it computes; several if it is one pass over equal groups.
    errors, wrong_index, cut, beside, first, longer : see `static.lowering.memory.call_table.TableEntry`.
    regions : by name, the `Program` of each region that it runs; then it is no kernel call.
    """

    name: str
    source: str
    things: list[ArrayBuffer | Scratch]
    ints: list[Any]
    groups: list[Group]
    errors: Mapping[int, tuple[str, int]]
    regions: dict[str, Any] = field(default_factory=dict)
    wrong_index: WrongIndex | None = None
    cut: str = ""
    beside: int = 0
    first: Mapping[int, int] = field(default_factory=dict)
    longer: tuple[int, list[tuple[Any, int]]] | None = None
