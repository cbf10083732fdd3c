"""`torch.futures`: values that another thread will set, on top of `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from common.core.devices import on_cpu
from common.core.pickling import Bound

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Bound, Generic[T]):
    """A value that will be set once.

    Parameters
    ----------
    devices : accepted where they name the CPU.

    Raises
    ------
    DeviceError : another device.
    """

    _instead = "wait for its value, and copy that"

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        for device in devices or ():
            on_cpu(device, "Future")
        self._inner: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether a value or an exception has been set."""
        return self._inner.done()

    def wait(self) -> T:
        """The value, once it is set.

        Raises
        ------
        BaseException : the exception that was set.
        """
        return self._inner.result()

    def value(self) -> T:
        """The value, which has been set.

        Raises
        ------
        RuntimeError : it has not.
        BaseException : the exception that was set.
        """
        if not self.done():
            raise RuntimeError("Future.value(): it is not completed; wait() waits for it")
        return self._inner.result()

    def set_result(self, result: T) -> None:
        """Set the value.

        Raises
        ------
        RuntimeError : it, or an exception, has been set before.
        """
        self._refuse_second()
        self._inner.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that `wait` and `value` raise.

        Raises
        ------
        RuntimeError : it, or a value, has been set before.
        """
        self._refuse_second()
        self._inner.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future when it is done; at once if it is."""
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what a function makes of this one when it is done, or of the exception that it raises."""
        made: Future[Any] = Future()

        def follow(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                made.set_exception(error)
            else:
                made.set_result(result)

        self.add_done_callback(follow)
        return made

    def _refuse_second(self) -> None:
        if self.done():
            raise RuntimeError("Future: it is completed already; its result is set once")


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of futures, done when all of them are."""
    futures = list(futures)
    made: Future[list[Future[Any]]] = Future()
    waiting, lock = set(map(id, futures)), threading.Lock()

    def one_less(done: Future[Any]) -> None:
        with lock:
            waiting.discard(id(done))
            if not waiting and not made.done():
                made.set_result(futures)

    for future in futures:
        future.add_done_callback(one_less)
    if not futures:
        made.set_result(futures)
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The values of all futures, once they are set.

    Raises
    ------
    BaseException : the first exception among them.
    """
    return [future.wait() for future in futures]
