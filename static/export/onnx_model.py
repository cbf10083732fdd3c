"""Programs as ONNX models, for runtimes that know nothing of this package.

ONNX does not fix the order of sums or the last bits of functions, so values agree to rounding, not by bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.core.dtypes import operand_dtypes
from common.core.errors import ArgumentError
from common.core.op import Op
from common.core.polynomials import Atom, Terms, render
from common.core.sizes import Dim
from common.tensor.base import spec_of
from static.export import onnx_attention, onnx_ops
from static.export.program_file import example_of
from static.export.recorded import RecordedCall, record
from static.graph import Node, Value
from static.jit.function import CompiledFunction

assert onnx_attention  # registers its rules

OPSET, IR_VERSION = 18, 8


def export_onnx(f: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Path:
    """Write a function's program as an ONNX model.

    Parameters
    ----------
    f : a function of tensors or a module.
    path : of the file.
    args, kwargs : an example of its arguments; sizes other than 1 stay symbolic. Without any, `f` is a compiled
        function that has been called.

    Returns
    -------
    Path
        Of the file. The model's inputs are ``x0``, ``x1``, ... in the order of the arguments' leaves; its outputs
        ``result0``, ..., then, of a training step, what it writes to state and leaves in `.grad`, by the tensor's name.
        State is stored as initialisers.

    Raises
    ------
    ArgumentError : the package onnx is missing, or an op has no counterpart in ONNX; the message names its line.
    """
    try:
        import onnx
    except ImportError:
        raise ArgumentError("export_onnx() needs the package onnx: pip install onnx") from None
    if not (args or kwargs):
        if not isinstance(f, CompiledFunction) or not f.traces:
            raise ArgumentError("export_onnx() needs an example of the arguments, or a compiled function")
        args, kwargs = _as_given(*example_of(f.newest))
    program = record(f, args, kwargs, whole=lambda name: onnx_ops.known(name) is not None)
    model = OnnxWriter(program, onnx).model()
    onnx.checker.check_model(model)
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(model.SerializeToString())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target


def _as_given(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(args), dict(kwargs)


class OnnxWriter:
    """Writes one program.

    Parameters
    ----------
    program : composites that have rules are whole in it.
    onnx : the package.
    """

    def __init__(self, program: RecordedCall, onnx: Any) -> None:
        self.program, self.onnx, self.helper = program, onnx, onnx.helper
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._names: dict[tuple[int, int], str] = {}
        self._count = 0
        self._known: dict[Any, str] = {}

    def model(self) -> Any:
        """The model."""
        graph = self.program.graph
        inputs = self._inputs()
        for node in graph.nodes:
            if node.op is not None:
                self._node(node)
        outputs = []
        for name, value in self._results():
            outputs.append(self._described(self.add("Identity", [self._names[value.key]], name=name), value))
        made = self.helper.make_graph(
            self.nodes, self.program.name.strip("<>") or "program", inputs, outputs, self.initializers
        )
        opsets = [self.helper.make_opsetid("", OPSET)]
        return self.helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION, producer_name="twingrad")

    # ------------------------------------------------------------------ the outside

    def _inputs(self) -> list[Any]:
        given, graph = [], self.program.graph
        count = len(self.program.positions)
        for p, value in enumerate(graph.inputs[:count]):
            self._names[value.key] = f"x{p}"
            given.append(self._described(f"x{p}", value))
        for i, (source, value) in enumerate(zip(self.program.captured, graph.inputs[count:], strict=True)):
            name = f"{getattr(source.owner, 'name', '') or 'state'}.{i}"
            array = source.owner.grad.payload if source.kind == "grad" else source.payload
            self._names[value.key] = self.constant(np.asarray(array), name)
        return given

    def _results(self) -> list[tuple[str, Value]]:
        program = self.program
        graph, count = program.graph, len(program.graph.outputs) - len(program.targets)
        named = [(f"result{i}", value) for i, value in enumerate(graph.outputs[:count])]
        for x, value in zip(program.targets, graph.outputs[count:], strict=True):
            named.append((f"{getattr(x, 'name', '') or 'tensor'}.grad", value))
        named += [(f"{self._names[effect.state.key]}.new", effect.value) for effect in graph.effects]
        seen: dict[str, int] = {}
        unique = []
        for name, value in named:
            seen[name] = seen.get(name, 0) + 1
            unique.append((name if seen[name] == 1 else f"{name}.{seen[name]}", value))
        return unique

    def _described(self, name: str, value: Value) -> Any:
        shape = [n if isinstance(n, int) else render(n.terms) for n in value.shape]
        return self.helper.make_tensor_value_info(name, self._kind(value.dtype), shape)

    def _kind(self, dtype: Any) -> int:
        return int(self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    # ------------------------------------------------------------------ for rules

    def add(self, kind: str, operands: Sequence[str], nout: int = 1, name: str = "", **attrs: Any) -> Any:
        """Add a node; the name of its result, or a list of them."""
        names = [name or self._new(kind.lower()) for _ in range(nout)]
        self.nodes.append(self.helper.make_node(kind, list(operands), names, **attrs))
        return names[0] if nout == 1 else names

    def constant(self, array: np.ndarray, name: str = "") -> str:
        """The name of an array."""
        name = name or self._new("number")
        self.initializers.append(self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def number(self, x: Any, node: Node) -> str:
        """The name of a number in the dtype of a node's result."""
        return self.constant(np.asarray(x, node.outputs[0].dtype))

    def scalar(self, x: Any, dtype: np.dtype) -> str:
        """The name of a number, or of a size, in a dtype."""
        if not isinstance(x, Dim):
            return self.constant(np.asarray(x, dtype))
        return self.cast(self._size(x.terms), np.dtype(np.int64), dtype)

    def sizes(self, shape: Sequence[Any]) -> str:
        """The name of a shape, (n,) int64."""
        if all(not isinstance(n, Dim) for n in shape):
            return self.constant(np.array([int(n) for n in shape], np.int64))
        axes = self.constant(np.array([0], np.int64))
        parts = [self.add("Unsqueeze", [self.scalar(n, np.dtype(np.int64)), axes]) for n in shape]
        return str(self.add("Concat", parts, axis=0))

    def cast(self, x: str, of: Any, to: Any) -> str:
        """The name of an array in another dtype."""
        return x if np.dtype(of) == np.dtype(to) else str(self.add("Cast", [x], to=self._kind(to)))

    def _size(self, terms: Terms) -> str:
        """The name of a polynomial of sizes, () int64."""
        if terms not in self._known:
            total = ""
            for factors, coefficient in terms:
                product = self.constant(np.array(coefficient, np.int64))
                for atom in factors:
                    product = self.add("Mul", [product, self._atom(atom)])
                total = product if not total else self.add("Add", [total, product])
            self._known[terms] = total or self.constant(np.array(0, np.int64))
        return self._known[terms]

    def _atom(self, atom: Atom) -> str:
        if atom in self._known:
            return self._known[atom]
        if atom[0] in ("//", "%"):  # of sizes, which are not negative: a quotient is towards zero
            rest = self.add("Mod", [self._size(atom[1]), self._size(atom[2])])
            made = rest
            if atom[0] == "//":
                made = self.add("Div", [self.add("Sub", [self._size(atom[1]), rest]), self._size(atom[2])])
        else:
            whole = self.add("Shape", [f"x{atom[1]}"])
            made = self.add("Gather", [whole, self.constant(np.array(atom[2], np.int64))], axis=0)
        self._known[atom] = str(made)
        return str(made)

    def _new(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def _node(self, node: Node) -> None:
        rule = onnx_ops.known(node.name)
        if rule is None:
            file, line, _ = node.source
            raise ArgumentError(
                f"export_onnx(): the op {node.name!r} ({file}:{line}) has no counterpart in ONNX here: export the "
                "rest of the function, or save it with static.save"
            )
        made = rule(self, node, self._operands(node))
        for value, name in zip(node.outputs, made if isinstance(made, list) else [made], strict=True):
            self._names[value.key] = name

    def _operands(self, node: Node) -> list[str]:
        """The names of a node's operands in the dtypes in which it takes them."""
        op = node.op
        wanted = [x.dtype if type(x) is Value else node.outputs[0].dtype for x in node.operands]
        if isinstance(op, Op) and op.kind == "elementwise" and not op.attrs:
            wanted = list(operand_dtypes(op, [spec_of(x) for x in node.operands]))
        names = []
        for x, dtype in zip(node.operands, wanted, strict=True):
            if type(x) is Value:
                names.append(self.cast(self._names[x.key], x.dtype, dtype))
            else:
                names.append(self.constant(np.asarray(x, dtype)))
        return names
