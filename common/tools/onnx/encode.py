"""Records as the bytes of an ONNX file; the counterpart of `records.Reader`."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.tools.onnx.records import DTYPES, Declared, OnnxFile, OnnxFunction, OnnxGraph, OnnxNode

CODES = {np.dtype(name).newbyteorder("="): code for code, name in DTYPES.items()}


def _varint(number: int) -> bytes:
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_bytes(number, x.encode()) for x in values)


def file(model: OnnxFile) -> bytes:
    """ModelProto."""
    sets = b"".join(_bytes(8, _opset(d, version)) for d, version in model.opsets.items())
    functions = b"".join(_bytes(25, function(f)) for f in model.functions.values())
    head = _whole(1, model.version) + _bytes(2, model.producer.encode()) + _texts(6, [model.doc] * bool(model.doc))
    return head + _bytes(7, graph(model.graph)) + sets + functions


def _opset(domain: str, version: int) -> bytes:
    return _bytes(1, domain.encode()) + _whole(2, version)


def function(x: OnnxFunction) -> bytes:
    """FunctionProto."""
    names = _texts(4, [d.name for d in x.graph.inputs]) + _texts(5, [d.name for d in x.graph.outputs])
    body = b"".join(_bytes(7, node(n)) for n in x.graph.nodes)
    sets = b"".join(_bytes(9, _opset(d, version)) for d, version in x.opsets.items())
    return (
        _bytes(1, x.graph.name.encode()) + names + _texts(6, x.attributes) + body + sets + _bytes(10, x.domain.encode())
    )


def graph(x: OnnxGraph) -> bytes:
    """GraphProto."""
    parts = [_bytes(1, node(n)) for n in x.nodes]
    parts.append(_bytes(2, x.name.encode()))
    parts += [_bytes(5, array(value, name)) for name, value in x.arrays.items()]
    parts += [_bytes(number, declared(d)) for number, listed in ((11, x.inputs), (12, x.outputs)) for d in listed]
    return b"".join(parts)


def node(x: OnnxNode) -> bytes:
    """NodeProto."""
    head = _texts(1, x.inputs) + _texts(2, x.outputs) + _texts(3, [x.name] if x.name else []) + _texts(4, [x.kind])
    head += b"".join(_bytes(5, attribute(name, value)) for name, value in x.attrs.items())
    return head + _texts(7, [x.domain] if x.domain else [])


def attribute(name: str, value: Any) -> bytes:
    """AttributeProto.

    Raises
    ------
    ArgumentError : no kind of attribute holds such a value.
    """
    head = _bytes(1, name.encode())
    if isinstance(value, OnnxGraph):
        return head + _bytes(6, graph(value)) + _whole(20, 5)
    if isinstance(value, np.ndarray):
        return head + _bytes(5, array(value, "")) + _whole(20, 4)
    if isinstance(value, str):
        return head + _bytes(4, value.encode()) + _whole(20, 3)
    if isinstance(value, int):
        return head + _whole(3, value) + _whole(20, 2)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _whole(20, 1)
    if isinstance(value, list) and all(isinstance(x, int) for x in value):
        return head + b"".join(_whole(8, x) for x in value) + _whole(20, 7)
    raise ArgumentError(f"attribute {name!r}: no ONNX attribute holds {value!r}")


def declared(x: Declared) -> bytes:
    """ValueInfoProto of a tensor."""
    sizes = b"".join(
        _bytes(1, _whole(1, n) if isinstance(n, int) else _bytes(2, str(n).encode())) for n in x.shape or ()
    )
    kind = _whole(1, x.dtype or 0) + (b"" if x.shape is None else _bytes(2, sizes))
    return _bytes(1, x.name.encode()) + _bytes(2, _bytes(1, kind))


def array(x: np.ndarray, name: str) -> bytes:
    """TensorProto."""
    raw = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False).tobytes()
    sizes = b"".join(_whole(1, n) for n in x.shape)
    return sizes + _whole(2, CODES[x.dtype.newbyteorder("=")]) + _bytes(8, name.encode()) + _bytes(9, raw)
