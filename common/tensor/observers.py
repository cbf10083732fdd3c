"""Observers of the ops of a context: hooks on saved values, profiles, the search for non-finite results.

While something watches, ops take the general path (`mode.tracing` is not 0), so programs that nobody watches pay
nothing. Inside a traced function nothing is watched: there are no elements yet, and a warning says so. Around the call
of a compiled function `detect_anomaly` has it run node by node, see `static.reports.anomaly`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import CheckError, GradientError
from common.core.op import Op
from common.core.source_lines import locate, user_frame, warn_user
from common.core.spec import Specified
from common.core.switching import Change, Effect, Setting, Switching
from common.core.weak import WhileValuesLive
from common.tensor.base import TensorBase
from common.tensor.node import Node
from common.tensor.packed_values import pack_saved
from common.tensor.saved_copies import SavedCopy, copy_of_state

packers: ContextVar[tuple[Any, ...]] = ContextVar("twingrad_saved_tensors_hooks", default=())
#: The error for whoever sets such hooks, None where they are allowed.
refusing: ContextVar[str | None] = ContextVar("twingrad_saved_tensors_hooks_refused", default=None)
#: Whether `allow_mutation_on_saved_tensors` is open.
_mutable: ContextVar[bool] = ContextVar("twingrad_mutable_saved_tensors", default=False)
#: While the rule of a user-defined function runs: what `watch` has seen in it; else None.
in_rule: ContextVar[list[str] | None] = ContextVar("twingrad_anomaly_in_rule", default=None)
checking: ContextVar[bool] = ContextVar("twingrad_anomaly", default=False)


def observed() -> bool:
    """Whether a profile, or `detect_anomaly`, wants to see calls of compiled programs in this context."""
    return bool(mode.tracing) and (checking.get() or mode.profiling.get() is not None)


class Watching(Switching):
    """Context manager, and decorator, that sets a variable of the context while ops take the general path."""

    #: The hint for a user who opens one inside a traced function, where there is nothing to watch.
    in_a_trace = ""

    def __init__(self, variable: ContextVar[Any], value: Callable[[], Any]) -> None:
        self._variable, self._value = variable, value

    def _change(self) -> Change:
        if self.in_a_trace and mode.current_trace() is not None:
            warn_user(f"{type(self).__name__} inside a traced function {self.in_a_trace}")
        variable, (begin, end) = self._variable, mode.watched(self._entered())
        before = variable.get()
        return Change((begin, partial(variable.set, self._value())), (end, partial(variable.set, before)), self)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate: every call of `function` runs in the context."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with Watching(self._variable, self._value):
                return function(*args, **kwargs)

        return wrapper


class saved_tensors_hooks(Watching):
    """Context manager: what ops save for backward goes through ``pack``, and comes back through ``unpack``.

    Parameters
    ----------
    pack_hook : ``pack_hook(tensor)`` returns anything, for example the name of a file.
    unpack_hook : ``unpack_hook(packed)`` returns a tensor of the same shape and dtype, in every backward pass.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([3.0], requires_grad=True)
    >>> with saved_tensors_hooks(lambda t: t.numpy().copy(), tw.from_numpy):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    in_a_trace = (
        "packs nothing: the compiled program decides what is kept, and where. Run the function under `dynamic`."
    )

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__(packers, lambda: (*packers.get(), (pack_hook, unpack_hook)))

    def _change(self) -> Change:
        if (message := refusing.get()) is not None:
            raise GradientError(message)
        return super()._change()


class save_on_cpu(saved_tensors_hooks):
    """Context manager for programs that are written for a GPU: what ops save is kept where it is.

    Parameters
    ----------
    pin_memory, device_type : accepted, as in PyTorch.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: x, lambda x: x)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context manager: what ops save may be overwritten before the backward pass, which has to run inside.

    Ops save copies, one of each state of a tensor, so a program takes more memory here.

    Attributes
    ----------
    cloned : the copies that are alive and whose original has been overwritten, by a number of each.
    tid_to_weakhandle : all copies that are alive, by what they are copies of.

    Raises
    ------
    GradientError : it stands inside another one.
    CheckError : in backward, outside of it.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0], requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = y * y
    ...     y.mul_(10)
    ...     z.backward()
    tensor([20.], grad_fn=<MulBackward0>)
    >>> x.grad
    tensor([4.])
    """

    in_a_trace = "changes nothing: a compiled program overwrites nothing that is saved."

    def __init__(self) -> None:
        self._open = False
        self.tid_to_weakhandle: WhileValuesLive[Any] = WhileValuesLive()

        def unpack(copy: Any) -> Any:
            if not self._open:
                raise CheckError(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph "
                    "was originally recorded."
                )
            return copy.tensor

        super().__init__(partial(copy_of_state, self.tid_to_weakhandle), unpack)

    @property
    def cloned(self) -> dict[int, SavedCopy]:
        """Copies in use of arrays that have been overwritten since."""
        return {id(copy): copy for _, copy in self.tid_to_weakhandle.items() if copy.differs}

    def clear(self) -> None:
        """Forget all copies: an op after this saves a new one."""
        self.tid_to_weakhandle.clear()

    def _change(self) -> Change:
        if _mutable.get():
            raise GradientError("allow_mutation_on_saved_tensors contexts cannot be nested")
        change = super()._change()
        on = partial(setattr, self, "_open", True), partial(_mutable.set, True)
        off = partial(setattr, self, "_open", False), partial(_mutable.set, False), self.tid_to_weakhandle.clear
        return change._replace(on=(*on, *change.on), off=(*change.off, *off))


class disable_saved_tensors_hooks(Setting):
    """Context manager, and decorator: `saved_tensors_hooks` are refused inside.

    Parameters
    ----------
    error_message : of the error.

    Raises
    ------
    GradientError : there are such hooks already.
    """

    def __init__(self, error_message: str) -> None:
        super().__init__(refusing, error_message)
        self._message = error_message

    def _enter(self) -> Callable[..., Any]:
        if packers.get():
            raise GradientError(self._message)
        return super()._enter()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate: every call of `function` runs in the context."""
        return mode.decorated(function, lambda: disable_saved_tensors_hooks(self._message))


class detect_anomaly(Watching):
    """Context manager: the first node that makes a nan or infinity of a finite gradient raises in backward.

    A forward pass is not looked at, as in PyTorch; `static.nan_watch` finds where its first nan comes from.

    Parameters
    ----------
    check_nan : as in PyTorch; False only keeps the lines of forward ops, which this engine does always.

    Raises
    ------
    GradientError : names the node and the line of the forward op.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([0.0], requires_grad=True)
    >>> with detect_anomaly():
    ...     tw.sqrt(x).backward()
    Traceback (most recent call last):
        ...
    common.core.errors.GradientError: Function 'SqrtBackward0' returned inf values in its 0th output...
    """

    in_a_trace = "watches nothing, as there are no elements yet: put it around the call of the compiled function."

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(checking, lambda: bool(check_nan))


class set_detect_anomaly(Switching):
    """Switch `detect_anomaly` on or off at once; as a context manager, until the end of the block.

    Parameters
    ----------
    mode : on or off.
    check_nan : see `detect_anomaly`.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before, on = checking.get(), bool(mode) and check_nan
        self._is_on(*self._change().off)
        try:
            self._switch(on)
        except BaseException:
            self._switch(self._before)
            raise

    def _change(self) -> Change:
        return Change((), (partial(checking.set, self._before), *self._watching(self._before)))

    @classmethod
    def _watching(cls, on: bool) -> tuple[Effect, ...]:
        return (partial(mode.tracing.__setitem__, cls, get_ident()) if on else partial(mode.tracing.pop, cls, None),)

    @classmethod
    def _switch(cls, on: bool) -> None:
        checking.set(on)
        for effect in cls._watching(on):
            effect()


def is_anomaly_enabled() -> bool:
    """Whether results are checked in this context."""
    return checking.get()


def watch(op: Op, payloads: list[Any], y: Any, node: Node | None) -> None:
    """Look at an op that has run outside a trace."""
    profile = mode.profiling.get()
    if profile is not None:
        profile.end(op.name, payloads, -1 if node is None else node.number)
    inside = in_rule.get()
    if inside is not None and not finite(y) and all(map(finite, payloads)):
        file, line, function = locate(*user_frame(3))
        inside.append(  # `check_contributions` adds it to what it says of the node
            f"{op.name}() at {file}:{line} in {function} returned {worst(y)} values for finite inputs of shapes "
            f"{[np.shape(x) for x in payloads]}"
        )
    if node is not None and packers.get() and type(node.saved) is tuple and node.saved:
        pack_saved(node, packers.get()[-1])


def check_contributions(node: Node, contributions: tuple[Any, ...], g: Any, inside: Sequence[str] = ()) -> None:
    """Look at what a node's rules gave for `g`.

    Parameters
    ----------
    inside : what `watch` has seen while they ran.

    Raises
    ------
    GradientError : `g` is finite and a contribution is not.
    """
    if not finite(g):
        return
    for position, c in enumerate(contributions):
        if not finite(c):
            file, line, function = node.source
            raise GradientError(
                f"Function '{node.name()}' returned {worst(c)} values in its {position}th output, for a finite "
                f"gradient of its result. The forward op is at {file}:{line} in {function}."
                + "".join(f" In its backward, {said}." for said in inside[:1])
            )


def finite(x: Any) -> bool:
    """Whether all floats of an array, a tensor, a number, or a tuple of these are finite."""
    if isinstance(x, tuple):
        return all(map(finite, x))
    data = _elements(x)
    if not isinstance(data, (np.ndarray, np.generic, float)):
        return True
    return np.asarray(data).dtype.kind != "f" or bool(np.isfinite(data).all())


def _elements(x: Any) -> Any:
    """The array behind a tensor, which may be that of all examples of a `vmap`."""
    while isinstance(x, (TensorBase, Specified)):
        x = x.payload if isinstance(x, TensorBase) else getattr(x, "value", None)
    return x


def worst(x: Any) -> str:
    """The word for what is not finite: "nan" if there is one, else "inf"."""
    parts = x if isinstance(x, tuple) else (x,)
    arrays = [np.asarray(_elements(p)) for p in parts if p is not None]
    return "nan" if any(a.dtype.kind == "f" and np.isnan(a).any() for a in arrays) else "inf"
