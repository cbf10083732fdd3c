"""Programs as ONNX models, for runtimes that know nothing of this package.

ONNX does not fix the order of sums or the last bits of functions, so values agree to rounding, not by bits.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from common.core.dtypes import operand_dtypes
from common.core.errors import ArgumentError
from common.core.op import Op
from common.core.polynomials import Atom, Terms, render
from common.core.sizes import Dim
from common.tensor.base import spec_of
from common.tools.files.whole_file import whole_file
from common.tools.onnx import encode
from common.tools.onnx.records import DOMAIN, Declared, OnnxFile, OnnxFunction, OnnxGraph, OnnxNode
from static.export import (
    onnx_attention,
    onnx_control,
    onnx_convolutions,
    onnx_formulas,
    onnx_ops,
    onnx_places,
    onnx_views,
)  # fmt: skip
from static.export.onnx_ops import OnnxRule
from static.export.program_file import example_of
from static.export.recorded import RecordedCall, record
from static.graph import Graph, Node, Value
from static.jit.function import CompiledFunction

assert onnx_attention
assert onnx_convolutions
assert onnx_formulas
assert onnx_places
assert onnx_views  # all five register rules

OPSET, IR_VERSION = 18, 8
_LARGEST = 2**31 - 1


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
        ``result0``, ..., the tensors that it returns; then, of a training step, what it writes to state and leaves in
        `.grad`, by the tensor's name. State is stored as initialisers.

    Raises
    ------
    ArgumentError : an op has no counterpart in ONNX; the message names its line. Or the model is larger than 2 GiB.

    Examples
    --------
    >>> import numpy as np, static, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "double.onnx")
    >>> x = np.ones((2, 3), np.float32)
    >>> model = static.import_onnx(static.export_onnx(lambda x: x * 2, path, x))
    >>> model(x)
    tensor([[2., 2., 2.],
            [2., 2., 2.]])
    """
    if not (args or kwargs):
        if not isinstance(f, CompiledFunction) or not f.traces:
            raise ArgumentError("export_onnx() needs an example of the arguments, or a compiled function")
        args, kwargs = _as_given(*example_of(f.newest))
    program = record(f, args, kwargs, whole=lambda name: onnx_ops.known(name) is not None)
    written = encode.file(OnnxWriter(program).model())
    if len(written) > _LARGEST:
        raise ArgumentError(f"export_onnx(): a model of {len(written)} bytes; ONNX files have at most 2 GiB")
    target = Path(path)
    with whole_file(target) as beside:
        Path(beside).write_bytes(written)
    return target


def _as_given(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(args), dict(kwargs)


def needed(nodes: Sequence[OnnxNode], outputs: Sequence[Declared]) -> list[OnnxNode]:
    """The nodes that results need, in their order."""
    read = {x.name for x in outputs}
    kept = []
    for node in reversed(nodes):
        if not read.isdisjoint(node.outputs):
            kept.append(node)
            read |= _reads(node)
    return kept[::-1]


def _reads(node: OnnxNode) -> set[str]:
    """The names that a node reads, by the graphs inside it too."""
    inside = [x for x in node.attrs.values() if isinstance(x, OnnxGraph)]
    names = {name for graph in inside for inner in graph.nodes for name in _reads(inner)}
    return names | set(node.inputs) | {x.name for graph in inside for x in graph.outputs}


class OnnxWriter:
    """Writes one program.

    Parameters
    ----------
    program : composites that have rules are whole in it.
    """

    def __init__(self, program: RecordedCall) -> None:
        self.program = program
        self.nodes: list[OnnxNode] = []
        self.numbers: list[OnnxNode] = []
        self.state: dict[str, np.ndarray] = {}
        self.functions: dict[tuple[str, str], OnnxFunction] = {}
        self._names: dict[tuple[int, int], str] = {}
        self._count = 0
        self.read: set[tuple[int, int]] = set()
        self._known: ChainMap[Any, str] = ChainMap()  # names of sizes, a map per graph that is being written
        self._top = self.nodes

    def model(self) -> OnnxFile:
        """The model."""
        graph = self.program.graph
        inputs = self._inputs()
        self.write(graph)
        outputs = []
        for name, value in self._results():
            outputs.append(self.described(self.add("Identity", [self._names[value.key]], name=name), value))
        name = self.program.name.strip("<>") or "program"
        made = OnnxGraph(name, needed(self.numbers + self.nodes, outputs), inputs, outputs, self.state)
        opsets = {"": OPSET} | ({DOMAIN: 1} if self.functions else {})
        traced = "; ".join(map(str, self.program.guards))
        return OnnxFile(made, IR_VERSION, "twingrad", opsets, self.functions, traced and f"Sizes must fulfil: {traced}")

    # ------------------------------------------------------------------ the outside

    def _inputs(self) -> list[Any]:
        given, graph = [], self.program.graph
        count = len(self.program.positions)
        for p, value in enumerate(graph.inputs[:count]):
            self._names[value.key] = f"x{p}"
            given.append(self.described(f"x{p}", value))
        for i, (source, value) in enumerate(zip(self.program.captured, graph.inputs[count:], strict=True)):
            name = getattr(source.owner, "name", "") or "state"
            name += ".grad" if source.kind == "grad" else ""
            name = name if name not in self.state else f"{name}.{i}"
            array = source.owner.grad.payload if source.kind == "grad" else source.payload
            self.state[name] = np.asarray(array)
            self._names[value.key] = name
        return given

    def _results(self) -> list[tuple[str, Value]]:
        program = self.program
        graph, count = program.graph, len(program.graph.outputs) - len(program.targets)
        named = [(f"result{i}", graph.outputs[k]) for i, k in enumerate(program.places)]
        for x, value in zip(program.targets, graph.outputs[count:], strict=True):
            named.append((f"{getattr(x, 'name', '') or 'tensor'}.grad", value))
        named += [(f"{self._names[effect.state.key]}.new", effect.value) for effect in graph.effects]
        seen: dict[str, int] = {}
        unique = []
        for name, value in named:
            seen[name] = seen.get(name, 0) + 1
            unique.append((name if seen[name] == 1 else f"{name}.{seen[name]}", value))
        return unique

    def described(self, name: str, value: Value) -> Declared:
        """The declaration of an input or an output like `value`."""
        return self.declared(name, value.dtype, [n if isinstance(n, int) else render(n.terms) for n in value.shape])

    def declared(self, name: str, dtype: Any, shape: Sequence[Any] = ()) -> Declared:
        """The declaration of an input or an output."""
        return Declared(name, encode.CODES[np.dtype(dtype)], list(shape))

    # ------------------------------------------------------------------ graphs inside nodes

    @contextmanager
    def inside(self) -> Iterator[list[OnnxNode]]:
        """Put new nodes into the graph of a node, which sees the names outside; yields its nodes."""
        outer = self.nodes, self._known
        self.nodes, self._known = [], self._known.new_child()
        try:
            yield self.nodes
        finally:
            self.nodes, self._known = outer

    def region(self, region: Graph, given: Sequence[str]) -> list[str]:
        """Add the nodes of a region, which reads only what is given to it; the names of its results."""
        outer = self._names
        self._names = {value.key: name for value, name in zip(region.inputs, given, strict=True)}
        try:
            self.write(region)
            return [self._names[value.key] for value in region.outputs]
        finally:
            self._names = outer

    def write(self, graph: Graph) -> None:
        """Add the nodes of a graph."""
        self.read |= {value.key for node in graph.nodes for value in node.values}
        self.read |= {value.key for value in graph.results}
        for node in graph.nodes:
            if node.op is not None:
                self._node(node)

    def graph(self, name: str, inputs: Sequence[Declared], outputs: Sequence[Declared]) -> OnnxGraph:
        """The nodes so far as the graph of a node."""
        return OnnxGraph(self.new(name), needed(self.nodes, outputs), list(inputs), list(outputs))

    def room(self, atom: Atom, name: str) -> None:
        """A loop has told how often it has run, which is the size of its stacks."""
        self._known[atom] = name

    # ------------------------------------------------------------------ for rules

    def add(self, kind: str, operands: Sequence[str], nout: int = 1, name: str = "", **attrs: Any) -> Any:
        """Add a node; the name of its result, or a list of them."""
        names = [name or self.new(kind.lower()) for _ in range(nout)]
        self.nodes.append(OnnxNode("", kind, "", list(operands), names, attrs))
        return names[0] if nout == 1 else names

    def constant(self, array: np.ndarray, name: str = "") -> str:
        """The name of an array."""
        name = name or self.new("number")
        self.numbers.append(OnnxNode("", "Constant", "", [], [name], {"value": np.asarray(array, order="C")}))
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
        return x if np.dtype(of) == np.dtype(to) else str(self.add("Cast", [x], to=encode.CODES[np.dtype(to)]))

    def _size(self, terms: Terms) -> str:
        """The name of a polynomial of sizes, () int64."""
        if terms not in self._known and not onnx_control.counts(terms) and self.nodes is not self._top:
            nodes, known = self.nodes, self._known
            self.nodes, self._known = self._top, ChainMap(known.maps[-1])
            try:
                return self._size(terms)
            finally:
                self.nodes, self._known = nodes, known
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

    def new(self, stem: str) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def _node(self, node: Node) -> None:
        rule = onnx_control.RULES.get(node.name) or onnx_ops.known(node.name)
        if rule is None:
            file, line, _ = node.source
            raise ArgumentError(
                f"export_onnx(): the op {node.name!r} ({file}:{line}) has no counterpart in ONNX here: export the "
                "rest of the function, or save it with static.save"
            )
        made = rule(self, node, self._operands(node)) if node.name not in onnx_ops.MADE else self._call(rule, node)
        for value, name in zip(node.outputs, made if isinstance(made, list) else [made], strict=True):
            if name:
                self._names[value.key] = name

    def _call(self, rule: OnnxRule, node: Node) -> str | list[str]:
        """Add a call of a function that says what an op is in ONNX; who knows the op need not read the function."""
        operands, dtype = self._operands(node), node.outputs[0].dtype
        attrs = {name: int(x) for name, x in node.attrs.items()}
        bools = (
            node.op is not None
            and node.op.kind == "kernel"
            and any(getattr(x, "dtype", None) == np.bool_ for x in node.operands)
        )
        kinds = [*(["bool"] if bools else []), *([] if dtype == np.float32 else [str(dtype)])]
        parts = [node.name, *kinds, *(f"{k}_{x}" for k, x in attrs.items())]
        name = ".".join(parts)
        if (DOMAIN, name) not in self.functions:
            outer = self.nodes, self.numbers
            self.nodes, self.numbers = [], []
            given = [f"x{i}" for i in range(len(operands))]
            made = rule(self, node, given)
            results = list(map(Declared, made if isinstance(made, list) else [made]))
            body = OnnxGraph(name, needed(self.numbers + self.nodes, results), list(map(Declared, given)), results)
            self.functions[DOMAIN, name] = OnnxFunction(body, DOMAIN, list(attrs), opsets={"": OPSET})
            self.nodes, self.numbers = outer
        names = [self.new(node.name) for _ in node.outputs]
        self.nodes.append(OnnxNode("", name, DOMAIN, operands, names, dict(attrs)))
        return names

    def _operands(self, node: Node) -> list[str]:
        """The names of a node's operands in the dtypes in which it takes them."""
        names = []
        for x, dtype in zip(node.operands, self.wanted(node), strict=True):
            if type(x) is Value:
                names.append(self.cast(self._names[x.key], x.dtype, dtype))
            else:
                names.append(self.constant(np.asarray(x, dtype)))
        return names

    def wanted(self, node: Node) -> list[Any]:
        """The dtypes in which a node takes its operands."""
        op = node.op
        wanted = [x.dtype if type(x) is Value else node.outputs[0].dtype for x in node.operands]
        if isinstance(op, Op) and op.kind == "elementwise" and not op.attrs:
            wanted = list(operand_dtypes(op, [spec_of(x) for x in node.operands]))
        elif node.regions:
            wanted = onnx_control.operand_dtypes(node)
        return wanted
