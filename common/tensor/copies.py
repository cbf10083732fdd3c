"""`copy.copy`, `copy.deepcopy` and pickles of tensors, as PyTorch has them.

All of them give leaves. A copy shares the memory; it and a pickle forget gradients and hooks, and make a leaf of a
tensor with history. A deep copy keeps `.grad`, except that of a parameter, and is refused for a tensor with history.
What shares memory shares it in the deep copy, or pickle, of both together, and strides stay what they are.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import GradientError, PickleError
from common.core.source_lines import warn_user
from common.core.weak import WhileValuesLive
from common.tensor import inference
from common.tensor.base import InferenceTensor, Tensor, TensorBase
from common.tensor.write_log import owner_of

#: Where an array lies in an array that owns memory: bytes before its first element, sizes, strides in bytes, dtype.
Layout = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype]


def shallow(self: Any) -> Any:
    """``copy.copy``: a leaf over the same memory."""
    if traced(self):
        return _leaf_in_trace(self.detach(), self)
    return _leaf(type(self), self.payload, self)


def deep(self: Any, memo: dict[Any, Any]) -> Any:
    """``copy.deepcopy``: a leaf with memory of its own, and its gradient.

    Raises
    ------
    GradientError : the tensor has history.
    """
    if self.grad_fn is not None:
        raise GradientError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment: "
            "use .detach().clone()"
        )
    if traced(self):
        new = memo[id(self)] = _leaf_in_trace(self.detach().clone(), self)
        return new
    parameter = isinstance(self, _parameter())
    array = self.payload.copy(order="K") if parameter else _with_own_memory(self.payload, memo)
    new = memo[id(self)] = _leaf(type(self), array, self)
    _take_attributes(new, self, memo)
    if self._grad is not None and not parameter:
        new._grad = copy.deepcopy(self._grad, memo)
    return new


def reduced(self: Any, protocol: Any) -> Any:
    """The pickled form of a tensor.

    Raises
    ------
    PickleError : the tensor belongs to a program that is being traced.
    """
    if traced(self):
        raise PickleError(
            "cannot pickle a tensor inside a traced function, where it has no elements: return it, and pickle the "
            "result"
        )
    hooks = getattr(self, "_hooks", None)
    for hook in () if hooks is None or isinstance(self, _parameter()) else (*hooks.tensor.get(0, {}).values(),):
        warn_user(
            f"backward hook {hook!r} on tensor will not be serialized: register it again on the other side", UserWarning
        )
    kind = Tensor if inference.is_inference(self) else type(self)
    owner = owner_of(self.payload)
    layout = None if owner is self.payload else _layout(self.payload, owner)
    memory = (
        SharedMemory.of(owner) if layout is not None or owner is self.payload else SharedMemory(np.array(self.payload))
    )
    arguments = kind, memory, layout, self._requires_grad, getattr(self, "name", None)
    return _load, arguments, getattr(self, "__dict__", None) or None


def loaded(kind: type[Any], memory: SharedMemory, layout: Layout | None, requires_grad: bool, name: str | None) -> Any:
    """A tensor out of a pickle."""
    array = memory.array if layout is None else _placed(memory.array, layout)
    return _made(kind, array, requires_grad, name)


def traced(x: TensorBase) -> bool:
    """Whether a tensor has no elements: its copies are made by operations."""
    return mode.current_trace() is not None or not isinstance(x.payload, np.ndarray)


# ------------------------------------------------------------------ leaves


def _leaf(kind: type[Any], array: np.ndarray, like: Any) -> Any:
    new = _made(Tensor if kind is InferenceTensor else kind, array, like._requires_grad, None)
    if hasattr(like, "name"):
        new.name = like.name
    if hasattr(like, "__dict__"):
        new.__dict__.update(like.__dict__)
    return new


def _made(kind: type[Any], array: np.ndarray, requires_grad: bool, name: str | None) -> Any:
    new = object.__new__(kind)
    new.payload, new._requires_grad, new.grad_fn, new.output_nr, new._grad = array, requires_grad, None, 0, None
    if name is not None:
        new.name = name
    if mode.is_inference_mode_enabled():
        inference.mark(new)
    return new


def _leaf_in_trace(new: Any, like: Any) -> Any:
    return new.requires_grad_() if like.requires_grad else new


def _take_attributes(new: Any, old: Any, memo: dict[Any, Any]) -> None:
    """Take over the attributes that a user's class adds."""
    if hasattr(old, "__dict__"):
        new.__dict__.update(copy.deepcopy(old.__dict__, memo))


def _parameter() -> type[Any]:
    from common.tensor.leaf import Parameter

    return Parameter


# ------------------------------------------------------------------ memory


class SharedMemory:
    """An array that owns memory, as pickles hold it: one for all tensors that show some of it.

    Parameters
    ----------
    array : it owns the memory.
    """

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @classmethod
    def of(cls, owner: np.ndarray) -> SharedMemory:
        """The object for an array, the same one as long as a pickler keeps it."""
        memory = _memories.get(id(owner))
        if memory is None:
            memory = _memories.put(id(owner), cls(owner))
        return memory

    def __reduce__(self) -> Any:
        array = self.array
        if array.flags.forc:
            return _memory, (array, None)
        return _memory, (_flat(array), (array.shape, array.strides))


_memories: WhileValuesLive[SharedMemory] = WhileValuesLive()


def _memory(array: np.ndarray, form: Any) -> SharedMemory:
    """Memory out of a pickle; copied, because what the pickle was read from may not be written, or by others."""
    array = np.array(array, order="K")
    return SharedMemory(array if form is None else np.ndarray(form[0], array.dtype, array, 0, form[1]))


def _flat(owner: np.ndarray) -> np.ndarray | None:
    """All elements of an array as they lie in memory, (n,); None if there are gaps between them."""
    order = sorted(range(owner.ndim), key=lambda d: -owner.strides[d])
    spread = owner.transpose(order)
    return spread.reshape(-1) if spread.flags.c_contiguous else None


def _layout(array: np.ndarray, owner: np.ndarray) -> Layout | None:
    """Where an array lies in the one that owns its memory; None if that has gaps, or nothing is there."""
    if not array.size or _flat(owner) is None:
        return None
    return array.ctypes.data - owner.ctypes.data, array.shape, array.strides, array.dtype


def _placed(owner: np.ndarray, layout: Layout) -> np.ndarray:
    offset, shape, strides, dtype = layout
    return np.ndarray(shape, dtype, _flat(owner), offset, strides)


def _with_own_memory(array: np.ndarray, memo: dict[Any, Any]) -> np.ndarray:
    """A copy that lies in the same way in the copy of the memory, which `memo` keeps."""
    owner = owner_of(array)
    layout = None if owner is array else _layout(array, owner)
    if layout is None and owner is not array:
        return array.copy(order="K")
    key = "memory", id(owner)
    if key not in memo:
        memo[key] = owner, owner.copy(order="K")
    copied: np.ndarray = memo[key][1]
    return copied if layout is None else _placed(copied, layout)


_load: Any = loaded


def install(cls: type[TensorBase], load: Any) -> None:
    """Give `cls` and its subclasses these ways of copying.

    Parameters
    ----------
    load : `loaded`, under a name whose module gives tensors their methods when a pickle imports it.
    """
    global _load
    _load = load
    for name, method in (("__copy__", shallow), ("__deepcopy__", deep), ("__reduce_ex__", reduced)):
        setattr(cls, name, method)
