"""Arrays by name in a file, in the safetensors format, which PyTorch's and JAX's users share.

The package `safetensors` reads and writes; it believes nothing of a file that does not describe every byte of its data
exactly once. What it refuses is refused here with the library's errors.

References
----------
The format: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from common.core.errors import ArgumentError, DTypeError, StateError
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase
from common.tools.files.strict_json import parsed
from common.tools.files.whole_file import whole_file

_CODES = {"BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}


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
    for what, given in (("tensors", tensors), ("metadata", metadata or {})):
        if not isinstance(given, Mapping):
            raise ArgumentError(f"save_file(): argument '{what}' must be dict, not {type(given).__name__}")
    if any(not isinstance(text, str) or not isinstance(k, str) for k, text in (metadata or {}).items()):
        raise ArgumentError("metadata are texts by name: str -> str")
    if any(not isinstance(name, str) or name == "__metadata__" for name in tensors):
        raise ArgumentError("tensors are saved by names: a str other than '__metadata__'")
    arrays = {n: to_array(x.payload if isinstance(x, TensorBase) else x, copy=False) for n, x in tensors.items()}
    from safetensors.numpy import save_file as write

    with whole_file(Path(filename)) as beside:
        write({name: np.asarray(x, order="C") for name, x in arrays.items()}, beside, dict(metadata or {}) or None)


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
    path = Path(filename)
    return arrays_of(path.read_bytes(), f"safetensors: {path}")[0]


def arrays_of(data: bytes, name: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the metadata of a file's bytes, both by name.

    Parameters
    ----------
    name : what errors call the file.

    Raises
    ------
    StateError, DTypeError : as `load_file`.
    """
    from safetensors import SafetensorError, deserialize

    try:
        entries = cast("Callable[[bytes], list[Any]]", deserialize)(data)
        header = parsed(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError) as error:
        raise StateError(f"{name} is damaged, or of another format: {error}") from error
    return {key: _array_of(key, entry) for key, entry in entries}, header.get("__metadata__") or {}


def _array_of(name: str, entry: dict[str, Any]) -> np.ndarray:
    """One array, with memory of its own."""
    code, shape = entry["dtype"], entry["shape"]
    if code not in _CODES:
        raise DTypeError(f"safetensors: {name!r} has dtype {code}; supported are {sorted(_CODES)}: convert it first")
    elements = np.frombuffer(entry["data"], _CODES[code]).astype(np.dtype(_CODES[code]).newbyteorder("="))
    try:
        return elements.reshape(shape)
    except (ValueError, OverflowError) as error:
        raise StateError(f"safetensors: {name!r} has shape {shape}, which no array can have: {error}") from error


__all__ = ["load_file", "save_file"]
