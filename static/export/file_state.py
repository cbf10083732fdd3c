"""Recorded programs and the state that they share, as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import ArgumentError
from common.random.generator import default_generator
from common.tensor.base import wrap
from common.tensor.leaf import Buffer, Parameter
from static.export import file_values
from static.export.recorded import RecordedCall
from static.graph import serialize

_GENERATOR = "generator.key", "generator.offset"


class WrittenPrograms:
    """The state of a file: each tensor once.

    Parameters
    ----------
    names : of tensors, by id.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self.state: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        self._known: dict[int, int] = {}

    def program(self, program: RecordedCall) -> dict[str, Any]:
        """A program as JSON."""
        if program.custom:
            raise ArgumentError(
                f"{program.name} has gradients that are Python functions of its own ({', '.join(program.custom)}), "
                "which a file cannot hold: export a function that calls it under no_grad()"
            )
        what = f"the arguments of {program.name}"
        data = set(program.positions)
        return {
            "name": program.name,
            "graph": serialize.to_data(program.graph),
            "quiet": sorted(program.quiet),
            "structure": file_values.structure_to_json(program.structure, what),
            "leaves": [None if i in data else file_values.value_to_json(x, what) for i, x in enumerate(program.leaves)],
            "positions": list(program.positions),
            "fixed": [[i, file_values.value_to_json(x, what)] for i, x in program.fixed.items()],
            "captured": [[source.kind, self.tensor(source.owner, source.kind)] for source in program.captured],
            "guards": [file_values.guard_to_json(guard) for guard in program.guards],
            "results": file_values.structure_to_json(program.out_structure, "results"),
            "constants": [file_values.value_to_json(x, f"the results of {program.name}") for x in program.results],
            "places": list(program.places),
            "targets": [self.tensor(x) for x in program.targets],
            "cleared": [self.tensor(x) for x in program.cleared],
            "without_grad": [[self.tensor(x), was_none] for x, was_none in program.without_grad],
        }

    def tensor(self, x: Any, kind: str = "tensor") -> int:
        """The number of a piece of state."""
        if id(x) not in self._known:
            self._known[id(x)] = len(self.state)
            self.state.append(self._entry(x))
        number = self._known[id(x)]
        if kind == "grad" and x.grad is not None:
            self.state[number]["grad"] = self._array(f"{self.state[number]['name']}.grad", x.grad.payload)
        return number

    def _entry(self, x: Any) -> dict[str, Any]:
        for name, of in zip(_GENERATOR, (default_generator.key, default_generator.offset), strict=True):
            if x is of:
                return {"kind": "generator", "name": name}
        if isinstance(x, np.ndarray):
            return {"kind": "array", "name": self._array("array", x)}
        kind = "parameter" if isinstance(x, Parameter) else "buffer" if isinstance(x, Buffer) else "tensor"
        name = self._names.get(id(x)) or getattr(x, "name", "") or kind
        return {
            "kind": kind, "name": self._array(name, x.payload), "requires_grad": bool(x.requires_grad and x.is_leaf)
        }  # fmt: skip

    def _array(self, wanted: str, x: Any) -> str:
        name, n = wanted, 1
        while name in self.arrays:
            name, n = f"{wanted}.{n}", n + 1
        self.arrays[name] = np.array(x, order="C")
        return name


def state_of(entry: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The tensor or array that an entry of the state describes; whatever is wrong raises something."""
    kind, name = entry["kind"], entry["name"]
    if kind == "generator":
        return default_generator.key if name == _GENERATOR[0] else default_generator.offset
    array = arrays[name]
    if array.dtype not in SUPPORTED:
        raise ValueError(f"{name} has dtype {array.dtype}")
    if kind == "array":
        return array
    made: Any
    if kind == "parameter":
        made = Parameter(array, bool(entry["requires_grad"]))
    else:
        made = Buffer(array) if kind == "buffer" else wrap(array)
        if entry["requires_grad"]:
            made.requires_grad_()
    if hasattr(made, "name"):
        made.name = str(name)
    if "grad" in entry:
        made.grad = wrap(arrays[entry["grad"]])
    return made
