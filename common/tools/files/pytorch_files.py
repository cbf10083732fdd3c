"""Files of `torch.save`, as far as they hold tensors in plain containers.

Such a file is a pickle beside the bytes of the tensors: in an archive (PyTorch 1.6 and later), or one after another in
one file. A pickle may call anything that it names; this reader knows the names that stand for tensors, and refuses all
others, so nothing of a file runs. Source: torch/serialization.py, and the opcodes of Python's pickletools.
"""

from __future__ import annotations

import io
import pickle
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import StateError
from common.core.size_tuples import Size
from common.tensor.base import wrap
from common.tensor.leaf import Parameter

_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16",
    "IntStorage": "int32", "LongStorage": "int64", "FloatStorage": "float32", "DoubleStorage": "float64",
}  # fmt: skip
#: Errors in which a damaged file, or one made to harm, ends.
_DAMAGED = (
    pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, ArithmeticError, AttributeError, EOFError, ImportError,
    LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
_INSTEAD = (
    "Save the state_dict() there, or safetensors.torch.save_file(torch.load(path, weights_only=True), "
    "'new.safetensors') and load('new.safetensors') here"
)


class _KnownName:
    """The object behind one of PyTorch's names: a function that makes it, or an element type."""

    __slots__ = ("_make",)

    _make: Callable[..., Any]

    def __init__(self, make: Callable[..., Any]) -> None:
        object.__setattr__(self, "_make", make)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise pickle.UnpicklingError("a name is given attributes")

    def __call__(self, *args: Any) -> Any:
        return self._make(*args)


class _KnownDType(_KnownName):
    """A dtype to be: numpy's own can be given a state."""

    __slots__ = ()


class _Stored:
    """A tensor to be: tensors are made when the pickle has been read, of what has proved to be an array."""

    __slots__ = ("array", "parameter", "requires_grad")

    def __init__(self, array: Any, requires_grad: Any, parameter: bool = False) -> None:
        self.array, self.requires_grad, self.parameter = array, bool(requires_grad), parameter


class _Reader(pickle.Unpickler):
    """Reads one pickle.

    Parameters
    ----------
    file : at its beginning.
    storage : of the name of an element type and what else names the memory: its elements, an array of one dimension.
    """

    def __init__(self, file: Any, storage: Callable[[str, tuple[Any, ...]], np.ndarray]) -> None:
        super().__init__(file)
        self._storage = storage
        self._views: dict[Any, np.ndarray] = {}
        self._names: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch", "Size"): _KnownName(lambda sizes: Size(tuple(sizes))),
            ("torch._utils", "_rebuild_tensor_v2"): _KnownName(self._tensor),
            ("torch._utils", "_rebuild_parameter"): _KnownName(_parameter),
        }  # fmt: skip

    def find_class(self, module: str, name: str) -> Any:
        """The object behind a name.

        Raises
        ------
        UnpicklingError : a tensor does not need it.
        """
        if (found := self._names.get((module, name))) is not None:
            return found
        if module == "torch" and name.endswith("Storage"):
            return _KnownName(lambda: name)
        if module == "torch" and name in {d.name for d in SUPPORTED}:
            return _KnownDType(lambda: np.dtype(name))
        raise pickle.UnpicklingError(f"it holds an object of {module}.{name}, whose code would have to run")

    def persistent_load(self, pid: Any) -> Any:
        """The elements of one memory, and its name."""
        kind, element_type, *rest = pid
        if kind != "storage" or not isinstance(element_type, _KnownName):
            raise pickle.UnpicklingError("something else than tensors lies beside the pickle")
        name = element_type()
        if name not in _STORAGES:
            raise pickle.UnpicklingError(f"it holds tensors of a {name}; convert them with .float() first")
        return rest[0], self._storage(_STORAGES[name], tuple(rest))

    def _tensor(self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: Any, *hooks: Any) -> _Stored:
        key, elements = storage
        size, stride = tuple(map(int, size)), tuple(map(int, stride))
        place = (key, elements.dtype, offset, size, stride)
        if place not in self._views:
            count = int(np.prod(size, dtype=object)) if size else 1
            last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if count else offset
            if min((offset, *size, *stride)) < 0 or (count and last >= elements.size) or count > elements.size:
                raise pickle.UnpicklingError("a tensor reaches beyond the elements that the file holds")
            steps = [s * elements.itemsize for s in stride]
            view = np.lib.stride_tricks.as_strided(elements[offset:], size, steps)
            self._views[place] = np.array(view, view.dtype.newbyteorder("="), order="C")
        return _Stored(self._views[place], requires_grad)


def _parameter(stored: Any, requires_grad: Any, hooks: Any) -> _Stored:
    return _Stored(stored.array, requires_grad, True)


def _made(x: Any, known: dict[int, Any]) -> Any:
    """An object with its tensors, containers as they are in the file."""
    if isinstance(x, _Stored):
        if id(x) not in known:
            if not isinstance(x.array, np.ndarray):
                raise pickle.UnpicklingError("a tensor without elements")
            tensor = Parameter(x.array, x.requires_grad) if x.parameter else wrap(x.array)
            known[id(x)] = tensor.requires_grad_() if x.requires_grad else tensor
        return known[id(x)]
    if isinstance(x, Mapping):
        made = [(_made(key, known), _made(value, known)) for key, value in x.items()]
        return OrderedDict(made) if isinstance(x, OrderedDict) else dict(made)
    if type(x) in (list, tuple, set, frozenset):
        return type(x)(_made(value, known) for value in x)
    if isinstance(x, _KnownDType):
        return x()
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes, Size)):
        return x
    raise pickle.UnpicklingError(f"it holds a {type(x).__name__}")


def _archive(data: bytes) -> Any:
    """The object of an archive: the pickle and each memory are files in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (pickled,) = (name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl")
        prefix = pickled.removesuffix("data.pkl")
        order = archive.read(f"{prefix}byteorder") if f"{prefix}byteorder" in archive.namelist() else b"little"

        def storage(dtype: str, rest: tuple[Any, ...]) -> np.ndarray:
            raw = archive.read(f"{prefix}data/{rest[0]}")
            return np.frombuffer(raw, np.dtype(dtype).newbyteorder(">" if order == b"big" else "<"))

        return _Reader(io.BytesIO(archive.read(pickled)), storage).load()


def _sequence(data: bytes) -> Any:
    """The object of a file of PyTorch before 1.6: pickles, the third of which is the object's; then the memories."""
    file = io.BytesIO(data)
    memories: dict[str, np.ndarray] = {}

    def storage(dtype: str, rest: tuple[Any, ...]) -> np.ndarray:
        key, _location, count, part = rest
        if part is not None or not 0 <= count * np.dtype(dtype).itemsize <= len(data):
            raise pickle.UnpicklingError("a memory is larger than the file, or part of another")
        return memories.setdefault(key, np.zeros(count, dtype))

    if _Reader(file, storage).load() != _MAGIC:
        raise pickle.UnpicklingError("it is a pickle of another kind")
    _Reader(file, storage).load()  # the version
    _Reader(file, storage).load()  # sizes of C's integers
    begin = file.tell()
    _Reader(file, storage).load()  # which memories there are; their elements come behind it
    for key in _Reader(file, storage).load():
        own = memories[key].dtype
        count = int.from_bytes(file.read(8), "little")
        memories[key] = np.frombuffer(file.read(count * own.itemsize), own.newbyteorder("<"))
    file.seek(begin)
    return _Reader(file, storage).load()


def read_pytorch(data: bytes, name: Any) -> Any:
    """The object of a file of PyTorch's.

    Parameters
    ----------
    data : the bytes of the file.
    name : what errors call the file.

    Raises
    ------
    StateError : it holds something else than tensors in plain containers, or is damaged.
    """
    try:
        read = (_archive if data[:2] == b"PK" else _sequence)(data)
        return _made(read, {})
    except _DAMAGED as error:
        raise StateError(
            f"load(): {name} is no file of PyTorch's save that holds only tensors in plain containers: {error}. "
            f"{_INSTEAD}"
        ) from error
