"""Compiled functions that write their results to given arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.tree import flatten
from static.graph.side_effects import Mismatch
from static.running.plan import Plan

if TYPE_CHECKING:
    from static.jit.traced import CompiledTrace


class Calling(Protocol):
    """A compiled function, as far as its calls are concerned."""

    __name__: str

    def general(self, args: Any, kwargs: Any, missed: Any = None, into: Any = None) -> Any:
        """Call it, whatever its arguments are."""
        ...


class Into:
    """A function whose results are written to `out`; made by `Function.into`."""

    def __init__(self, function: Calling, out: Any) -> None:
        self.function, self.out = function, out
        self._arrays, self._structure = flatten(out)
        self._last: tuple[CompiledTrace, Any, int, Any] | None = None
        for i, x in enumerate(self._arrays):
            if type(x) is not np.ndarray:
                raise ArgumentError(
                    f"into(): results are written to arrays, not to a {type(x).__name__} ({self._at(i)})"
                )
            if not (x.flags.c_contiguous and x.flags.aligned and x.flags.writeable and x.dtype.isnative):
                raise ArgumentError(
                    f"into(): {self._at(i)} must be contiguous in C order, aligned, writeable and in native byte order"
                )

    def __reduce__(self) -> Any:
        return Into, (self.function, self.out)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the arguments' present contents; returns `out`.

        Raises
        ------
        ArgumentError : the results are nested otherwise than `out`, an array of `out` overlaps an argument, captured
            state or another one, or the results are part of the tape.
        ShapeError, DTypeError : an array does not fit its result.
        """
        if self._last is not None and not kwargs and not mode.tracing:
            traced, plan, version, step = self._last
            if traced.checked == mode.changes and plan.version == version and not traced.watches:
                result = step(*args)
                if type(result) is not int:
                    traced.deliver(result, (args, {}))
                    self._copy(traced)
                    return self.out
                with suppress(Mismatch):  # the general path looks for the right program
                    plan.explain(result)
        if mode.current_trace() is not None:
            raise ArgumentError(f"{self.function.__name__}.into() is for calls from outside: inside a traced function, "
                                "call the function and write its results with copy_()")  # fmt: skip
        self._last = None
        self.function.general(args, kwargs, into=self)
        return self.out

    def run(self, traced: CompiledTrace, plan: Any, arrays: list[Any], direct: bool, call: Any) -> None:
        """Run a plan of the function's.

        Parameters
        ----------
        arrays : what the program is given.
        direct : whether the next call may take the short way: arguments are plain arrays and numbers.
        call : positional and named arguments as the caller gave them.
        """
        name = self.function.__name__
        if self._structure != traced.out_structure or any(x is not None for x in traced.results):
            raise ArgumentError(f"into(): {name} returns {traced.out_structure}, `out` is {self._structure}")
        if traced.op is not None:
            raise ArgumentError(f"into(): results of {name} would be part of the tape; call it under no_grad()")
        if traced.donated:
            raise ArgumentError(f"into(): results of {name} are written over donated arguments")
        state, outs = [x.payload for x in traced.state], self._outs(traced)
        if not isinstance(plan, Plan):
            outputs = plan(*arrays, *state)
            self._check([outputs[k] for k in traced.places])
            for out, x in zip(outs, outputs):
                np.copyto(out, x)
            traced.finish(outputs, arrays, call)
        else:
            results = plan.arguments[len(arrays) + len(state) :]
            self._check([results[k] for k in traced.places])
            traced.finish(plan(*arrays, *state, outs=outs), arrays, call)
            if direct:
                self._last = traced, plan, plan.version, traced.bind(plan, outs)
        self._copy(traced)

    def _outs(self, traced: CompiledTrace) -> list[np.ndarray]:
        """Where the program writes: of a tensor that is returned more than once the first array."""
        return [self._arrays[traced.places.index(k)] for k in range(traced.returned)]

    def _copy(self, traced: CompiledTrace) -> None:
        """Copy what is returned more than once to its other arrays."""
        if traced.returned < len(traced.places):
            for i, k in enumerate(traced.places):
                first = traced.places.index(k)
                if first != i:
                    np.copyto(self._arrays[i], self._arrays[first])

    def _check(self, results: Any) -> None:
        for i, (x, result) in enumerate(zip(self._arrays, results, strict=True)):
            if x.shape != result.shape:
                raise ShapeError(f"into(): {self._at(i)} has shape {x.shape}, the result has {result.shape}")
            if x.dtype != result.dtype:
                raise DTypeError(f"into(): {self._at(i)} has dtype {x.dtype}, the result has {result.dtype}")

    def _at(self, position: int) -> str:
        return "`out`" if len(self._arrays) == 1 else f"array {position} of `out`"
