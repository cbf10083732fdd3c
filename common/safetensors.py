"""Arrays by name in a file, in the safetensors format, which PyTorch's and JAX's users share.

A file is eight bytes with the length of a header, the header as JSON (name -> dtype, shape, begin and end of the data),
and the data. Nothing in it is code, and nothing of it is believed: a header that does not describe every byte of the
data exactly once is refused.

References
----------
The format: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import ArgumentError, DTypeError, StateError
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase

_CODES = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
_NAMES = {np.dtype(code).newbyteorder("="): name for name, code in _CODES.items()}
LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""


def save_file(tensors: Mapping[str, Any], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays or tensors to a file, such as a module's `state_dict`; it is there whole or not at all.

    Parameters
    ----------
    tensors : name -> (...) array or tensor.
    filename : path of the file.
    metadata : texts by name, kept beside the arrays.

    Raises
    ------
    DTypeError : a dtype without ops.
    ArgumentError : a name or a text that is no str.

    Examples
    --------
    >>> import dynamic as tw, tempfile, os
    >>> layer = tw.nn.Linear(3, 2)
    >>> path = os.path.join(tempfile.mkdtemp(), "layer.safetensors")
    >>> tw.save_file(layer.state_dict(), path)
    >>> sorted(tw.load_file(path))
    ['bias', 'weight']
    """
    if any(not isinstance(text, str) or not isinstance(k, str) for k, text in (metadata or {}).items()):
        raise ArgumentError("metadata are texts by name: str -> str")
    if any(not isinstance(name, str) or name == "__metadata__" for name in tensors):
        raise ArgumentError("tensors are saved by names: a str other than '__metadata__'")
    arrays = {n: to_array(x.payload if isinstance(x, TensorBase) else x, copy=False) for n, x in tensors.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    # large elements first, so that each array is aligned
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in order:
        x = arrays[name]
        header[name] = {"dtype": _NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [end, end + x.nbytes]}
        end += x.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = Path(filename)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                file.write(arrays[name].astype(_CODES[_NAMES[arrays[name].dtype]], copy=False).tobytes())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load_file(filename: Any) -> dict[str, np.ndarray]:
    """Read all arrays of a file.

    Parameters
    ----------
    filename : path of the file.

    Returns
    -------
    dict
        name -> (...) array, in the order of the file's header.

    Raises
    ------
    StateError : the file is not of this format, or damaged.
    DTypeError : an array of a dtype without ops, such as bfloat16.
    """
    data = Path(filename).read_bytes()
    header, start = _header(data)
    header.pop("__metadata__", None)
    body = memoryview(data)[start:]
    found, spans = {}, []
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry)
        if end - begin != math.prod(shape) * dtype.itemsize or end > len(body):
            raise StateError(f"safetensors: {name!r} is {dtype.name}{list(shape)}, but its data are bytes {begin} to "
                             f"{end} of {len(body)}")  # fmt: skip
        spans.append((begin, end))
        native = dtype.newbyteorder("=")
        found[name] = np.frombuffer(body[begin:end], dtype).astype(native).reshape(shape)
    last = 0
    for begin, end in sorted(spans):
        if begin != last:
            raise StateError(
                f"safetensors: bytes {min(last, begin)} to {max(last, begin)} belong to no array or to two"
            )
        last = end
    if last != len(body):
        raise StateError(f"safetensors: the last {len(body) - last} bytes belong to no array")
    return found


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """The header and where the data begin."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(LONGEST_HEADER, len(data) - 8):
        raise StateError(f"safetensors: no header of {length} bytes in a file of {len(data)}")
    try:
        header = json.loads(data[8 : 8 + length].decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StateError(f"safetensors: the header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise StateError("safetensors: the header is no JSON object")
    return header, 8 + length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are all different."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is used twice")
    return found


def _entry(name: str, entry: Any) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Dtype, shape, begin and end of one array."""
    try:
        code, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, begin, end]
    except (TypeError, KeyError, ValueError):
        raise StateError(f"safetensors: {name!r} lacks dtype, shape or data_offsets") from None
    if any(type(n) is not int or n < 0 for n in numbers) or end < begin:
        raise StateError(f"safetensors: {name!r} has shape {shape} and data_offsets {[begin, end]}")
    if code not in _CODES:
        raise DTypeError(f"safetensors: {name!r} has dtype {code}; supported are {sorted(_CODES)}: convert it first")
    return np.dtype(_CODES[code]), tuple(shape), begin, end


__all__ = ["load_file", "save_file"]
