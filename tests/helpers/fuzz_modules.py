"""Random modules, made with sensible arguments and called with any; see `tests.helpers.fuzz`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

import dynamic
from common.nn.module import Module
from tests.helpers.fuzz_arguments import Call, Operands, _pick, array, draw_call

#: Modules that hold others.
CONTAINERS = frozenset(["Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"])
_SIZES = ("in_features", "out_features", "num_embeddings", "embedding_dim", "input_size", "hidden_size",
          "num_features", "num_groups", "num_channels", "num_parameters")  # fmt: skip


def names() -> list[str]:
    """The modules for which calls are made, as "nn.Linear"."""
    found = [(name, getattr(dynamic.nn, name)) for name in dynamic.nn.__all__]
    return [f"nn.{n}" for n, x in found if isinstance(x, type) and issubclass(x, Module) and n not in CONTAINERS]


class ModuleCall(Call):
    """A call of a module; its parameters are drawn when it is built.

    Parameters
    ----------
    options : arguments of the class.
    """

    def __init__(self, name: str, options: dict[str, Any], args: Sequence[Any]) -> None:
        super().__init__(name, args, {})
        self.options = options
        self.module: Any = None

    def build(self, engine: Any) -> None:
        """Make the module."""
        self.module = getattr(engine.nn, self.name.partition(".")[2])(**self.options)

    def run(self, engine: Any, arrays: Sequence[Any] | None = None) -> Any:
        """Call the module with `arrays` in place of the arrays."""
        args = self.args if arrays is None else self.replaced(arrays)[0]
        return self.module(*args)

    def __str__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in self.options.items())
        return f"{self.name}({options}){super().__str__().removeprefix(self.name)}"


def draw_module(rng: np.random.Generator, name: str) -> ModuleCall:
    """A module and what it is called with: operands whose last, or second, size fits mostly."""
    kind = getattr(dynamic.nn, name.partition(".")[2])
    options: dict[str, Any] = {}
    size = int(_pick(rng, [1, 2, 3, 4]))
    for p in inspect.signature(kind).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in ("device", "dtype"):
            continue
        if p.default is not p.empty and rng.random() < 0.6:
            continue
        if p.name in _SIZES:
            options[p.name] = 1 if p.name == "num_groups" else size
        elif p.name == "normalized_shape":
            options[p.name] = _pick(rng, [size, (size,), (2, size)])
        elif p.name in ("weight", "pos_weight"):
            options[p.name] = array(rng, (size,), "float32")
        elif isinstance(p.default, bool):
            options[p.name] = bool(rng.integers(2))
        elif isinstance(p.default, str):
            options[p.name] = _pick(rng, ["mean", "sum", "none"]) if p.name == "reduction" else p.default
        elif isinstance(p.default, float) or p.name in ("threshold", "value"):
            options[p.name] = float(_pick(rng, [0.5, 0.25, 0.1]))
        else:
            options[p.name] = int(_pick(rng, [0, 1, -1]))
    operands = Operands(rng)
    if rng.random() < 0.8:
        operands.base = _pick(rng, [(3, size), (size,), (2, size, 2), (0, size), (2, 2, size), (2, size, 1, 2)])
        operands.dtype = "float32"
    args = draw_call(rng, "forward", _operands_of(kind), operands).args
    fitting = [x if type(x) is np.ndarray else array(rng, operands.base, operands.dtype) for x in args]
    return ModuleCall(name, options, fitting)


def _operands_of(kind: type) -> inspect.Signature:
    """The signature of `forward` with names that say operand."""
    known = {"x": "input", "hx": "input", "index": "index", "target": "target", "x1": "input1", "x2": "input2"}
    found = list(inspect.signature(kind.forward).parameters.values())[1:]  # type: ignore[attr-defined]
    found = [p for p in found if p.default is p.empty]
    return inspect.Signature([p.replace(name=known.get(p.name, p.name)) for p in found])
