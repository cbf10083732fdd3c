"""Python calls of a compiled program, made from the native run between two kernels.

A run that is repeated, because it needed more room or was on another path, does again what it did before; what has been
printed once is not printed again. While Python is called another thread may run: programs that call it hold a lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np

from common.control.callback import Callback, Form
from common.control.print_assert import show
from common.core.errors import StateError
from common.core.locks import make_lock
from common.runtime.execute_text import INTERRUPTED
from static.graph.regions import NeedsRoom
from static.graph.side_effects import Mismatch
from static.lowering.ir.control_steps import Act

ROOM, OTHER_PATH, FAILED = 1 << 20, 1 << 21, 1 << 22
"""Status of a loop that needs more room, of a decision that differs, of a call to Python that has raised.

No kernel has them.
"""

_CALLBACK = ctypes.PYFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)


class Exclusive:
    """A lock under which one call at a time uses a program's memory."""

    def __init__(self) -> None:
        self._lock = make_lock(runs_user_code=True)

    def __enter__(self) -> None:
        if self._lock._is_owned():
            raise StateError(
                "a compiled program is called by what it calls itself, in pure_callback or in printing: its memory is "
                "in use; call the Python function, or another static.function of it"
            )
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()


class _Journal(local):
    """How many acts the present call has done, and how many of them were done before it was repeated."""

    done = 0
    before = 0
    silent = False

    def act(self, kind: str, arrays: Sequence[Any], attrs: Any) -> None:
        """Do something, unless this call has done it already."""
        if self.silent:
            return
        self.done += 1
        if self.done > self.before:
            show(kind, arrays, attrs)

    def call(self, callback: Callback, arrays: Sequence[Any], forms: Sequence[Form]) -> list[np.ndarray]:
        """The results of a callback, which may run programs itself."""
        now = vars(self).copy()
        vars(self).clear()
        try:
            return callback(arrays, forms)
        finally:
            vars(self).clear()
            vars(self).update(now)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Within it nothing is done: the program will do it when it runs."""
        self.silent = True
        try:
            yield
        finally:
            self.silent = False

    def again(self) -> None:
        """The call is repeated."""
        self.before, self.done = max(self.before, self.done), 0

    def end(self) -> None:
        """The call is over."""
        self.before = self.done = 0

    def during(self, run: Callable[[], Any]) -> Any:
        """Run, and end the run's calls unless it has to be repeated."""
        try:
            result = run()
        except (NeedsRoom, Mismatch):
            self.again()
            raise
        except BaseException:
            self.end()
            raise
        self.end()
        return result


journal = _Journal()


class Host:
    """The calls to Python of one plan.

    Attributes
    ----------
    error : what the last run raised.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._kept: list[Any] = []

    def callback(self, act: Act, values: Sequence[int]) -> int:
        """The address of a kernel that acts; `values` are the sizes of its frame."""
        forms, results = (
            [(tuple(values[i] for i in shape), np.dtype(dtype)) for dtype, shape in part]
            for part in (act.operands, act.results)
        )

        def run(status: Any, _: Any, bufs: Any, ints: Any) -> int:
            status[0] = 0
            try:
                arrays = [_array(bufs[i], *form) for i, form in enumerate(forms)]
                if act.kind == "callback":
                    for i, y in enumerate(journal.call(act.attrs["call"], arrays, results), len(forms)):
                        ctypes.memmove(bufs[i], y.ctypes.data, y.nbytes)
                else:
                    journal.act(act.kind, arrays, act.attrs)
            except BaseException as error:  # it must not pass through native code
                self.error, status[0] = error, FAILED
            return 0

        made = _CALLBACK(run)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def locked(self, run: Callable[..., Any], lock: Exclusive) -> Callable[..., Any]:
        """A native run, which returns a code or results, during which no other thread uses the program's memory."""

        def call(*arguments: Any) -> Any:
            try:
                with lock:
                    answer = run(*arguments)
            except BaseException:  # of a signal's handler
                journal.end()
                raise
            code = answer if type(answer) is int else 0
            if code >> 32 and code & 0xFFFFFFFF in (ROOM, OTHER_PATH, INTERRUPTED):
                journal.again()
            else:
                journal.end()
            return answer

        return call

    def raised(self) -> BaseException:
        """The exception that the last run raised."""
        error, self.error = self.error, None
        assert error is not None
        return error


def _array(address: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A copy of the elements at an address."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = ctypes.string_at(address or 0, nbytes) if nbytes else b""
    return np.frombuffer(memory, dtype).reshape(shape)
