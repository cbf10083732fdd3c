"""`save` and `load`: tensors in nested containers, in one file, without pickle. Files of PyTorch's are read too.

The file is one of safetensors, whose metadata hold the containers as JSON. So nothing that is loaded runs code, and
any reader of safetensors finds the arrays.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from common.core.devices import device, on_cpu
from common.core.dtypes import SUPPORTED, name_of
from common.core.errors import ArgumentError, StateError
from common.core.source_lines import warn_user
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase, wrap
from common.tensor.leaf import Buffer, Parameter
from common.tools.files.safetensors import arrays_of
from common.tools.files.strict_json import parsed
from common.tools.files.whole_file import whole_file

#: Types of `f` and of `map_location`, as programs of PyTorch annotate them.
FILE_LIKE = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None
#: What PyTorch pickles with by default, which programs pass on.
DEFAULT_PROTOCOL = 2


def default_restore_location(storage: Any, location: str) -> Any:
    """What programs give as `map_location`: data as it is, because there is one device."""
    return storage


_KEY = "twingrad.structure"
#: Kinds of arrays that tensors do not have, and files hold: the state of numpy's generators, texts.
_OTHERS = "ufcSU"


class _SavedWriter:
    """Takes a structure apart into JSON and arrays; an array that occurs twice is written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._known: dict[Any, str] = {}
        self._alive: list[Any] = []

    def plain(self, x: Any, where: str) -> Any:
        """JSON for a value: texts, whole and truth values as they are, else one pair of a kind and its content."""
        if x is None or isinstance(x, (bool, str)) or type(x) in (int, float):
            return x
        if isinstance(x, TensorBase):
            kind = "parameter" if isinstance(x, Parameter) else "buffer" if isinstance(x, Buffer) else "tensor"
            return {kind: [self._array(to_array(x, copy=False)), bool(x.requires_grad)]}
        if isinstance(x, np.ndarray) and x.dtype not in SUPPORTED and x.dtype.kind in _OTHERS:
            return {"bytes of": [x.dtype.str, list(x.shape), base64.b64encode(x.tobytes()).decode()]}
        if isinstance(x, np.ndarray):
            return {"array": self._array(to_array(x, copy=False))}
        if isinstance(x, np.generic) and x.dtype.kind in "biuf":
            return {"number": [name_of(x.dtype), x.item()]}
        if isinstance(x, Mapping):
            items = [[self.plain(k, where), self.plain(v, f"{where}[{k!r}]")] for k, v in x.items()]
            return {"dict": items}
        if isinstance(x, (list, tuple, set, frozenset)):
            name = "list" if isinstance(x, list) else "tuple" if isinstance(x, tuple) else "set"
            return {name: [self.plain(v, f"{where}[{i}]") for i, v in enumerate(x)]}
        if isinstance(x, (bytes, bytearray)):
            return {"bytes": base64.b64encode(x).decode()}
        if isinstance(x, np.dtype):
            return {"dtype": x.name}
        if isinstance(x, device):
            return {"device": str(x)}
        if isinstance(x, complex):
            return {"complex": [x.real, x.imag]}
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        if callable(state := getattr(x, "state_dict", None)) and not isinstance(x, type):
            warn_user(
                f"save(): {where} is of type {kind}, of which the file holds the state_dict() without pickle: make the "
                "object anew and call its load_state_dict(load(...))",
                UserWarning,
            )
            return self.plain(state(), where)
        raise ArgumentError(
            f"save(): {where} is of type {kind}, of which a file can hold no object without pickle; save what it is "
            "made of"
        )

    def _array(self, array: np.ndarray) -> str:
        key = array.ctypes.data, array.shape, array.strides, array.dtype
        if key not in self._known or not array.size:
            self._known[key] = name = str(len(self.arrays))
            self.arrays[name] = np.asarray(array, order="C")
            self._alive.append(array)
        return self._known[key]


def save(obj: Any, f: Any, **options: Any) -> None:
    """Write an object to a file: tensors, arrays, numbers and texts in dictionaries, lists and tuples.

    Parameters
    ----------
    obj : such as the `state_dict` of a module or of an optimiser, or a dictionary of them.
    f : path, or a file opened for writing bytes. A file with a path is there whole or not at all.
    options : PyTorch's `pickle_module` and the like, accepted; no pickle is used.

    Raises
    ------
    ArgumentError : something in it is none of these. Of a module, or an optimiser, the `state_dict` is saved, with a
        warning.

    Examples
    --------
    >>> import dynamic as tw, io
    >>> file = io.BytesIO()
    >>> tw.save({"epoch": 3, "weights": [tw.ones(2), tw.zeros(1)]}, file)
    >>> _ = file.seek(0)
    >>> tw.load(file)
    {'epoch': 3, 'weights': [tensor([1., 1.]), tensor([0.])]}
    """
    data = to_bytes(obj)
    if hasattr(f, "write"):
        f.write(data)
        return
    with whole_file(Path(f)) as beside:
        beside.write_bytes(data)


def to_bytes(obj: Any) -> bytes:
    """The file of an object.

    Raises
    ------
    ArgumentError : something in it is none of what `save` takes.
    """
    from safetensors.numpy import save as pack

    writer = _SavedWriter()
    try:
        text = json.dumps(writer.plain(obj, "the object"))
    except RecursionError:
        raise ArgumentError("save(): the object holds itself, or is nested too deeply") from None
    return pack(writer.arrays, {_KEY: text})


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
         **options: Any) -> Any:  # fmt: skip
    """Read what `save` has written; of another safetensors file, its tensors by name; of one of PyTorch's, its object.

    Parameters
    ----------
    f : path, or a file opened for reading bytes.
    map_location : the CPU, in any way that PyTorch takes it.
    weights_only, mmap, options : accepted; nothing that is read runs code in any case.

    Returns
    -------
    object
        With tensors of their own memory; what was one tensor in two places is one array again.

    Raises
    ------
    StateError : the file is damaged, of another format, or one of PyTorch's that holds more than tensors of a dtype
        that is here, in dictionaries, lists and tuples, with numbers and texts: other objects would run code.
    DeviceError : another device than the CPU.
    """
    if isinstance(map_location, (str, device)):
        on_cpu(map_location, "load")
    data: bytes = f.read() if hasattr(f, "read") else Path(f).read_bytes()
    return from_bytes(data, getattr(f, "name", "the file") if hasattr(f, "read") else os.fspath(f))


def from_bytes(data: bytes, name: Any) -> Any:
    """The object of a file's bytes; `name` is what errors call the file.

    Raises
    ------
    StateError : as `load`.
    """
    if data[:4] == b"PK\x03\x04" and data[30:42] == b"program.json":
        raise StateError(f"load(): {name} is a compiled program: load it with static.load")
    # a pickle begins with 0x80; so does the header's length in some of our files, whose ninth byte is a brace
    if data[:4] == b"PK\x03\x04" or (data[:1] == b"\x80" and data[8:9] != b"{"):
        from common.tools.files.pytorch_files import read_pytorch

        return read_pytorch(data, name)
    arrays, metadata = arrays_of(data, f"load(): {name}")
    text = metadata.get(_KEY)
    if text is None:
        return {key: wrap(array) for key, array in arrays.items()}
    try:
        return _built(parsed(text), arrays)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StateError(f"load(): {name} is damaged: its structure makes no sense: {error}") from error


def _built(x: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The object of its JSON."""
    if not isinstance(x, dict):
        if isinstance(x, list):
            raise ValueError("a list without its kind")
        return x
    ((kind, content),) = x.items()
    if kind == "dict":
        return {_built(key, arrays): _built(value, arrays) for key, value in content}
    if kind in ("list", "tuple", "set"):
        made: Any = {"list": list, "tuple": tuple, "set": set}[kind]
        return made(_built(value, arrays) for value in content)
    if kind == "array":
        return arrays[content]
    if kind in ("tensor", "parameter", "buffer"):
        name, requires_grad = content
        if kind == "parameter":
            return Parameter(arrays[name], requires_grad)
        tensor = wrap(arrays[name])
        return tensor.requires_grad_() if requires_grad else tensor
    if kind == "bytes of":
        dtype = np.dtype(content[0])
        if dtype.kind not in _OTHERS:
            raise ValueError(f"an array of {dtype}")
        return np.frombuffer(base64.b64decode(content[2]), dtype).reshape(content[1]).copy()
    if kind == "number":
        return np.dtype(content[0]).type(content[1])
    simple: dict[str, Any] = {"bytes": base64.b64decode, "dtype": np.dtype, "device": device}
    return complex(*content) if kind == "complex" else simple[kind](content)


__all__ = ["load", "save"]
