"""The contents of an ONNX file as plain records: graphs, nodes, attributes, arrays.

References
----------
Open Neural Network Exchange, onnx.proto3: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from common.core.errors import DTypeError, StateError
from common.tools.onnx import wire
from common.tools.onnx.wire import Payload

DTYPES = {1: "<f4", 2: "u1", 3: "i1", 5: "<i2", 6: "<i4", 7: "<i8", 9: "?", 11: "<f8"}
_NAMES = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
          10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
          16: "bfloat16"}  # fmt: skip
DOMAIN = "twingrad"
"""Of functions that are an op of this package: name, then the dtype if it is not float32."""
_DEEPEST = 40
"""Graphs inside graphs: more than any model has, and less than Python's stack."""


def dtype_of(code: int, what: str) -> np.dtype[Any]:
    """The dtype of a code.

    Raises
    ------
    DTypeError : there are no ops for it.
    """
    if code not in DTYPES:
        raise DTypeError(f"{what} is {_NAMES.get(code, f'of type {code}')}, which has no ops here: convert the model")
    return np.dtype(DTYPES[code]).newbyteorder("=")


@dataclass(slots=True)
class Declared:
    """An input or an output: its name, and if the file says it dtype and sizes, None or a name where they are free."""

    name: str = ""
    dtype: int | None = None
    shape: list[int | str | None] | None = None


@dataclass(slots=True)
class OnnxNode:
    """An application of an operator."""

    name: str = ""
    kind: str = ""
    domain: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The name of the node in errors."""
        return f"{self.kind} {self.name!r}" if self.name else f"{self.kind} that makes {', '.join(self.outputs)!r}"


@dataclass(slots=True)
class OnnxGraph:
    """A graph: of the model, or of a branch or a loop."""

    name: str = ""
    nodes: list[OnnxNode] = field(default_factory=list)
    inputs: list[Declared] = field(default_factory=list)
    outputs: list[Declared] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True)
class OnnxFunction:
    """A function of the model: an operator that is a graph of others."""

    graph: OnnxGraph = field(default_factory=OnnxGraph)
    domain: str = ""
    attributes: list[str] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class OnnxFile:
    """A model."""

    graph: OnnxGraph = field(default_factory=OnnxGraph)
    version: int = 0
    producer: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], OnnxFunction] = field(default_factory=dict)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute of a function's node that is an attribute of the function."""

    name: str


class Reader:
    """Reads messages.

    Parameters
    ----------
    folder : of the file, in which arrays may lie that are not in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.depth = 0

    def file(self, data: memoryview) -> OnnxFile:
        """ModelProto."""
        made = OnnxFile()
        graphs = 0
        for number, value in wire.fields(data):
            if number == 1:
                made.version = wire.whole(value)
            elif number == 2:
                made.producer = wire.text(value)
            elif number == 6:
                made.doc = wire.text(value)
            elif number == 7:
                made.graph = self.graph(wire.message(value))
                graphs += 1
            elif number == 8:
                made.opsets.update(self.opset(value))
            elif number == 25:
                function = self.function(wire.message(value))
                made.functions[function.domain, function.graph.name] = function
        if graphs != 1 or not made.version:
            raise StateError("no ONNX model: it has no version, or not one graph")
        return made

    def opset(self, value: Payload) -> dict[str, int]:
        """OperatorSetIdProto: domain -> version."""
        domain, version = "", 0
        for number, x in wire.fields(wire.message(value)):
            if number == 1:
                domain = wire.text(x)
            elif number == 2:
                version = wire.whole(x)
        return {"" if domain == "ai.onnx" else domain: version}

    def graph(self, data: memoryview) -> OnnxGraph:
        """GraphProto."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise StateError(f"graphs are nested more than {_DEEPEST} deep")
        made = OnnxGraph()
        for number, value in wire.fields(data):
            if number == 1:
                made.nodes.append(self.node(wire.message(value)))
            elif number == 2:
                made.name = wire.text(value)
            elif number == 5:
                name, array = self.array(wire.message(value))
                made.arrays[name] = array
            elif number == 11:
                made.inputs.append(self.declared(wire.message(value)))
            elif number == 12:
                made.outputs.append(self.declared(wire.message(value)))
            elif number == 15:
                raise DTypeError("sparse arrays have no ops here: convert the model")
        self.depth -= 1
        return made

    def function(self, data: memoryview) -> OnnxFunction:
        """FunctionProto."""
        made = OnnxFunction()
        for number, value in wire.fields(data):
            if number == 1:
                made.graph.name = wire.text(value)
            elif number == 4:
                made.graph.inputs.append(Declared(wire.text(value)))
            elif number == 5:
                made.graph.outputs.append(Declared(wire.text(value)))
            elif number == 6:
                made.attributes.append(wire.text(value))
            elif number == 7:
                made.graph.nodes.append(self.node(wire.message(value)))
            elif number == 9:
                made.opsets.update(self.opset(value))
            elif number == 10:
                made.domain = wire.text(value)
            elif number == 11:
                made.defaults.update([self.attribute(wire.message(value))])
        return made

    def node(self, data: memoryview) -> OnnxNode:
        """NodeProto."""
        made = OnnxNode()
        for number, value in wire.fields(data):
            if number == 1:
                made.inputs.append(wire.text(value))
            elif number == 2:
                made.outputs.append(wire.text(value))
            elif number == 3:
                made.name = wire.text(value)
            elif number == 4:
                made.kind = wire.text(value)
            elif number == 5:
                made.attrs.update([self.attribute(wire.message(value))])
            elif number == 7:
                domain = wire.text(value)
                made.domain = "" if domain == "ai.onnx" else domain
        return made

    def attribute(self, data: memoryview) -> tuple[str, Any]:
        """AttributeProto: its name, and a number, a text, an array, a graph, or a list of them."""
        name, kind = "", 0
        found: dict[int, list[Any]] = {}
        readers: dict[int, Callable[[Payload], list[Any]]] = {
            2: lambda x: wire.numbers(x, "f"), 3: lambda x: [wire.whole(x)], 4: lambda x: [bytes(wire.message(x))],
            5: lambda x: [self.array(wire.message(x))[1]], 6: lambda x: [self.graph(wire.message(x))],
            7: lambda x: wire.numbers(x, "f"), 8: wire.integers, 9: lambda x: [bytes(wire.message(x))],
            10: lambda x: [self.array(wire.message(x))[1]], 11: lambda x: [self.graph(wire.message(x))],
            21: lambda x: [wire.text(x)],
        }  # fmt: skip
        for number, value in wire.fields(data):
            if number == 1:
                name = wire.text(value)
            elif number == 20:
                kind = wire.whole(value)
            elif number in readers:
                found.setdefault(number, []).extend(readers[number](value))
            elif number in (14, 15, 22, 23):
                raise DTypeError(f"attribute {name!r} is a type or a sparse array, which has no counterpart here")
        if 21 in found:
            return name, Reference(found[21][0])
        place = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10, 10: 11}.get(kind)
        if place is None:
            place = next(iter(found), 8)  # files of the first version do not say it
        values = [x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in found.get(place, [])]
        if place >= 7:
            return name, values
        return name, values[0] if values else {2: 0.0, 3: 0, 4: ""}.get(place)

    def declared(self, data: memoryview) -> Declared:
        """ValueInfoProto."""
        made = Declared()
        for number, value in wire.fields(data):
            if number == 1:
                made.name = wire.text(value)
            elif number == 2:
                for kind, x in wire.fields(wire.message(value)):
                    if kind == 1:
                        self._tensor_type(wire.message(x), made)
        return made

    def _tensor_type(self, data: memoryview, made: Declared) -> None:
        for number, value in wire.fields(data):
            if number == 1:
                made.dtype = wire.whole(value)
            elif number == 2:
                made.shape = []
                for _, dimension in wire.fields(wire.message(value)):
                    size: int | str | None = None
                    for kind, x in wire.fields(wire.message(dimension)):
                        size = wire.whole(x) if kind == 1 else wire.text(x) if kind == 2 else size
                    made.shape.append(size)

    def array(self, data: memoryview) -> tuple[str, np.ndarray]:
        """TensorProto: its name and its elements."""
        shape: list[int] = []
        code, name, raw, outside = 0, "", None, False
        listed: list[Any] = []
        where: dict[str, str] = {}
        for number, value in wire.fields(data):
            if number == 1:
                shape += wire.integers(value)
            elif number == 2:
                code = wire.whole(value)
            elif number in (4, 10):
                listed += wire.numbers(value, "f" if number == 4 else "d")
            elif number in (5, 7, 11):
                listed += wire.integers(value)
            elif number == 8:
                name = wire.text(value)
            elif number == 9:
                raw = wire.message(value)
            elif number == 13:
                entry = dict.fromkeys((1, 2), "")
                entry.update((k, wire.text(x)) for k, x in wire.fields(wire.message(value)) if k in entry)
                where[entry[1]] = entry[2]
            elif number == 14:
                outside = wire.whole(value) == 1
        dtype = dtype_of(code, f"the array {name!r}")
        if any(n < 0 for n in shape):
            raise StateError(f"damaged: the array {name!r} has sizes {tuple(shape)}")
        if outside:
            raw = memoryview(self._outside(name, where, math.prod(shape) * dtype.itemsize))
        if raw is None:
            wanted = np.iinfo(dtype) if dtype.kind in "iu" else None
            if wanted and any(not wanted.min <= x <= wanted.max for x in listed):
                raise StateError(f"damaged: an element of {name!r} does not fit into {dtype}")
            elements = np.array(listed, dtype)
        elif len(raw) % dtype.itemsize:
            raise StateError(f"damaged: the array {name!r} has {len(raw)} bytes, no multiple of {dtype.itemsize}")
        else:
            elements = np.frombuffer(raw, np.dtype(DTYPES[code])).astype(dtype)
        if elements.size != math.prod(shape):
            raise StateError(f"damaged: the array {name!r} of sizes {tuple(shape)} has {elements.size} elements")
        return name, elements.reshape(shape)

    def _outside(self, name: str, where: dict[str, str], size: int) -> bytes:
        """The bytes of an array in a file beside the model's."""
        path = PurePosixPath(where.get("location", ""))
        if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in str(path) or ":" in str(path):
            raise StateError(f"the array {name!r} lies at {str(path)!r}: only files beside the model are read")
        target = (self.folder / path).resolve()
        if not target.is_relative_to(self.folder.resolve()):
            raise StateError(f"the array {name!r} lies at {str(path)!r}, outside of the model's folder")
        try:
            start, length = int(where.get("offset", "0")), int(where.get("length", str(size)))
        except ValueError:
            raise StateError(f"damaged: the place of the array {name!r} is no number") from None
        if start < 0 or length != size:
            raise StateError(f"damaged: the array {name!r} has {length} bytes from {start}, its sizes say {size}")
        if not target.is_file() or target.stat().st_size < start + size:
            raise StateError(f"the array {name!r} lies in {str(path)!r}, which is missing or too short")
        with target.open("rb") as file:
            file.seek(start)
            return file.read(size)
