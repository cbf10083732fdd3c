"""`import_onnx`: an ONNX model as a module of both engines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, FileError, StateError, TwingradError, file_error
from common.core.op import REGISTRY
from common.nn.module import Module
from common.ops import functional as F
from common.tensor.leaf import Buffer, Parameter
from common.tools.onnx.applied import MEANINGS, Applied
from common.tools.onnx.host_values import kept, tensor
from common.tools.onnx.python_operands import read_by_python
from common.tools.onnx.records import DOMAIN, Declared, OnnxFile, OnnxGraph, OnnxNode, Reader, dtype_of

OLDEST, NEWEST = 6, 28
"""Versions of the operators that are understood."""
_THEMES = ("elementwise", "shape", "index", "layer", "resize", "recurrent", "control")
_BUFFERS = {"BatchNormalization": (3, 4)}
"""Operands that are statistics, not parameters."""
WHOLE = ("attention", "attention_backward", "attention_masked", "attention_masked_backward")
"""Ops that are no elementwise ones, of which an exported model has functions; their attributes are bools."""


def import_onnx(path: Any) -> OnnxModel:
    """Read an ONNX model.

    Parameters
    ----------
    path : of the file. Arrays that it keeps in files beside it are read too; nothing else is.

    Returns
    -------
    OnnxModel
        A module of both engines: it is called with the model's inputs, by position or by name, and returns its
        output, or a tuple of them. Its float arrays are parameters, under their names; what a normalisation has
        counted are buffers.

    Raises
    ------
    FileError : the file cannot be read.
    StateError : it is no ONNX model, or damaged.
    DTypeError : arrays of a dtype without ops.
    ArgumentError : an operator that has no counterpart; the message names it and its node.

    Examples
    --------
    >>> import numpy as np, static, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "layer.onnx")
    >>> layer, x = static.nn.Linear(3, 2), np.ones((4, 3), np.float32)
    >>> model = static.import_onnx(static.export_onnx(layer, path, x))
    >>> sorted(model.state_dict()), bool((model(x) == layer(x)).all())
    (['bias', 'weight'], True)
    """
    try:
        target = Path(os.fspath(path))
        data = target.read_bytes()
    except OSError as error:
        raise file_error(error) from None
    except TypeError:
        raise ArgumentError(f"import_onnx(): a path is expected, not {type(path).__name__}") from None
    try:
        file = Reader(target.parent).file(memoryview(data))
        return OnnxModel(file)
    except (StateError, ArgumentError, FileError, TwingradError) as error:
        error.args = (f"import_onnx(): {target.name}: {error}", *error.args[1:])
        raise


def aligned(x: Any, y: Any, axis: int) -> Any:
    """The second operand of an operator before version 7: its dimensions are those of the first from `axis` on."""
    y = tensor(y)
    return F.reshape(y, (*y.shape, *[1] * (x.ndim - axis % max(x.ndim, 1) - y.ndim)))


def own_op(node: OnnxNode) -> Any:
    """The op of this package that a function of an exported model stands for; None if it is none."""
    name = node.kind.partition(".")[0]
    op = REGISTRY[name] if name in REGISTRY.homes else None
    if op is None or not (op.kind == "elementwise" or name in WHOLE) or len(op.inputs) != len(node.inputs):
        return None
    return op if set(op.attrs) == set(node.attrs) and all(type(x) is int for x in node.attrs.values()) else None


class NamesAlike(Module):
    """Names that begin alike."""


class OnnxModel(Module):
    """An ONNX model; made by `import_onnx`.

    Attributes
    ----------
    input_names, output_names : of the model.
    """

    def __init__(self, file: OnnxFile) -> None:
        super().__init__()
        for theme in _THEMES:
            import_module(f"common.tools.onnx.{theme}_meanings")
        self._file = file
        graph = file.graph
        self._inputs = [x for x in graph.inputs if x.name not in graph.arrays]
        self.input_names = tuple(x.name for x in self._inputs)
        self.output_names = tuple(x.name for x in graph.outputs)
        version = file.opsets.get("")
        if version is None or not OLDEST <= version <= NEWEST:
            raise ArgumentError(f"operators of version {version}; versions {OLDEST} to {NEWEST} are understood")
        self._check(graph, set(), ())
        for function in file.functions.values():
            self._check(function.graph, set(), ())
        self._places: dict[str, tuple[Module, str]] = {}
        counted = {node.inputs[i] for node in graph.nodes for i in _BUFFERS.get(node.kind, ()) if i < len(node.inputs)}
        constants = read_by_python(graph)
        for name, array in list(graph.arrays.items()):
            if array.dtype.kind == "f" and array.ndim and name not in constants:
                self._keep(name, array, name in counted)
                del graph.arrays[name]

    def _keep(self, name: str, array: np.ndarray, counted: bool) -> None:
        """Make an array state, under its name; a dot is a module."""
        home: Module = self
        *outer, last = [part for part in name.split(".") if part] or ["state"]
        for part in outer:
            below = home._modules.get(part)
            if not isinstance(below, NamesAlike):
                if hasattr(home, part):
                    outer, home, last = [], self, name.replace(".", "_")
                    break
                below = NamesAlike()
                home.add_module(part, below)
            home = below
        while hasattr(home, last):
            last += "_"
        if counted:
            home.register_buffer(last, Buffer(tensor(array)))
        else:
            home.register_parameter(last, Parameter(array))
        self._places[name] = (home, last)

    def _check(self, graph: OnnxGraph, outside: set[str], above: tuple[str, ...]) -> None:
        """Each name is made before it is read, and each operator is known.

        Raises
        ------
        StateError : a name is made twice, or never. ArgumentError : an operator that has no counterpart.
        """
        made = outside | {x.name for x in graph.inputs} | graph.arrays.keys()
        for node in graph.nodes:
            for name in node.inputs:
                if name and name not in made:
                    raise StateError(f"{node.place} reads {name!r}, which nothing before it makes")
            own = (node.domain, node.kind) in self._file.functions
            if not own and (node.domain or node.kind not in MEANINGS):
                domain = f" of {node.domain!r}" if node.domain else ""
                raise ArgumentError(f"the operator {node.kind}{domain} has no counterpart ({node.place})")
            for value in node.attrs.values():
                for inner in value if isinstance(value, list) else [value]:
                    if isinstance(inner, OnnxGraph):
                        self._check(inner, made, above)
            for name in filter(None, node.outputs):
                if name in made and name not in outside:
                    raise StateError(f"{node.place} makes {name!r}, which is there already")
                made.add(name)
        for declared in graph.outputs:
            if declared.name not in made:
                raise StateError(f"nothing makes the output {declared.name!r}")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs.

        Raises
        ------
        ArgumentError : arguments that are not its inputs.
        """
        given = dict(zip(self.input_names, args, strict=False))
        twice = given.keys() & kwargs.keys()
        if len(args) > len(self.input_names) or twice or kwargs.keys() - set(self.input_names):
            raise ArgumentError(f"the model's inputs are {', '.join(self.input_names)}; given were "
                                f"{len(args)} by position and {', '.join(kwargs) or 'none'} by name")  # fmt: skip
        given |= kwargs
        values = {x.name: _taken(x, given.get(x.name)) for x in self._inputs}
        values |= {name: getattr(home, last) for name, (home, last) in self._places.items()}
        run = ModelRun(self._file, self._file.opsets[""], {})
        results = [tensor(x) for x in run.graph(self._file.graph, values)]
        return results[0] if len(results) == 1 else tuple(results)

    def extra_repr(self) -> str:
        """Inputs and outputs."""
        return f"({', '.join(self.input_names)}) -> ({', '.join(self.output_names)})"


def _taken(wanted: Declared, x: Any) -> Any:
    """An argument, as the model declares it.

    Raises
    ------
    ArgumentError : it is missing, or of another dtype or shape.
    """
    if x is None:
        raise ArgumentError(f"the model's input {wanted.name!r} is missing")
    if not hasattr(x, "ndim"):
        plain = isinstance(x, (bool, int, float))
        x = np.asarray(x, None if wanted.dtype is None else dtype_of(wanted.dtype, f"the input {wanted.name!r}"))
        x = x if plain else tensor(x)  # Python knows a plain number, so control flow on it is Python's
    if wanted.dtype is not None and x.dtype != dtype_of(wanted.dtype, f"the input {wanted.name!r}"):
        raise ArgumentError(f"the model's input {wanted.name!r} is {dtype_of(wanted.dtype, '')}, not {x.dtype}")
    shape = wanted.shape
    if shape is not None and (
        len(shape) != x.ndim or any(type(n) is int and n > 0 and m != n for n, m in zip(shape, x.shape, strict=True))
    ):
        raise ArgumentError(f"the model's input {wanted.name!r} has sizes {shape}, not {list(x.shape)}")
    return x


class ModelRun:
    """A run of a model, of one of its functions.

    Parameters
    ----------
    opset : version of the operators.
    given : attributes of the function's call.
    """

    def __init__(self, file: OnnxFile, opset: int, given: Mapping[str, Any]) -> None:
        self.file, self.opset, self.given = file, opset, dict(given)
        self.sizes: dict[str, np.ndarray] = {}

    def graph(self, graph: OnnxGraph, values: dict[str, Any]) -> list[Any]:
        """Run a graph; `values` are known by name, and more will be."""
        values.update(graph.arrays)
        for node in graph.nodes:
            made = self.node(node, [values[name] if name else None for name in node.inputs], values)
            values.update((name, x) for name, x in zip(node.outputs, made, strict=False) if name)
        return [values[x.name] for x in graph.outputs]

    def node(self, node: OnnxNode, operands: Sequence[Any], outside: dict[str, Any]) -> list[Any]:
        """Run a node; its results.

        Raises
        ------
        ArgumentError : the operator cannot be applied to such operands.
        """
        function = self.file.functions.get((node.domain, node.kind))
        try:
            if node.domain == DOMAIN and (op := own_op(node)) is not None:
                own = op(*map(tensor, operands), **{name: bool(x) for name, x in node.attrs.items()})
                return list(own) if isinstance(own, tuple) else [own]
            if function is not None:
                known = {**function.defaults, **self._attrs(node)}
                inner = ModelRun(self.file, function.opsets.get("", self.opset), known)
                names = [x.name for x in function.graph.inputs]
                return inner.graph(function.graph, dict(zip(names, [*operands, *[None] * len(names)], strict=False)))

            def inside(graph: OnnxGraph, given: Sequence[Any]) -> list[Any]:
                own = dict(zip((x.name for x in graph.inputs), given, strict=True))
                return self.graph(graph, {**outside, **own})

            while operands and operands[-1] is None:
                operands = operands[:-1]
            if self.opset < 7 and node.attrs.get("broadcast") and "axis" in node.attrs and len(operands) == 2:
                operands = [operands[0], aligned(operands[0], operands[1], node.attrs["axis"])]
            made = MEANINGS[node.kind](Applied(node, self.opset, inside, self.given, self.sizes), *operands)
            return list(map(kept, made)) if isinstance(made, list) else [kept(made)]
        except TwingradError as error:
            if not getattr(error, "onnx_node", None):
                error.onnx_node = node.place  # type: ignore[attr-defined]
                error.add_note(f"in the ONNX operator {node.place}")
            raise
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, AssertionError) as error:
            told = ", ".join("none" if x is None else f"{x.dtype}{list(x.shape)}" if hasattr(x, "dtype") else "a list"
                             for x in operands)  # fmt: skip
            raise ArgumentError(f"the ONNX operator {node.place} cannot be applied to ({told}): {error}") from None

    def _attrs(self, node: OnnxNode) -> dict[str, Any]:
        from common.tools.onnx.records import Reference

        return {k: self.given.get(x.name) if isinstance(x, Reference) else x for k, x in node.attrs.items()}
