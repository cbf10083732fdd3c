"""The surroundings of a call of `vmap`: its options, and the questions that the mapped function may ask."""

from __future__ import annotations

from typing import Any

from common.core import mode
from common.tensor.base import TensorBase
from common.tensor.observers import packers


class Outside:
    """Context of what runs around a call of `vmap`, as often as it is entered; ops in it need not look for the call.

    Parameters
    ----------
    trace : the call.
    """

    __slots__ = ("trace", "_left")

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self._left: list[Any] = []

    def __enter__(self) -> None:
        trace = self.trace
        watcher = mode.leave(trace.key)
        self._left.append((mode.open_trace(), packers.get(), mode.dual_level.get(), watcher))
        packers.set(trace.packers)
        mode.dual_level.set(trace.level)
        mode.switch_trace(trace.outer)

    def __exit__(self, *raised: object) -> None:
        before, packed, level, watcher = self._left.pop()
        mode.come_back(self.trace.key, watcher)
        packers.set(packed)
        mode.dual_level.set(level)
        mode.switch_trace(before)


class Questions:
    """Answers what Python asks of elements, where all examples share them."""

    follows = False

    def __init__(self, trace: Any) -> None:
        self._trace = trace

    def _shared(self, x: TensorBase) -> Any:
        payload = self._trace.payload(x)
        if payload.mapped:
            self._trace.refuse_value(x)
        return payload.value

    def item(self, x: TensorBase) -> Any:
        """The element."""
        value = self._shared(x)
        with self._trace.outside:
            return value.item()

    def number(self, x: TensorBase) -> Any:
        """The element as Python's own number."""
        value = self._shared(x)
        with self._trace.outside:
            return complex(value).real if value.dtype.kind == "f" else int(value)

    def whole(self, x: TensorBase) -> int:
        """The element without what is behind the point."""
        value = self._shared(x)
        with self._trace.outside:
            return int(value)

    def nested(self, x: TensorBase) -> Any:
        """Elements as nested lists."""
        value = self._shared(x)
        with self._trace.outside:
            return value.tolist()

    def truth(self, x: TensorBase) -> bool:
        """Whether the element is not 0."""
        value = self._shared(x)
        with self._trace.outside:
            return bool(value)
