"""Running a function for its shapes only: the eager engine does so with the branch that is not taken.

Both branches of a `cond` are traced, in both engines, and one of them runs. So errors in the other are found, and
what it captures is known: the gradient of that is zero, not missing, as in a compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_changed, number_spec
from common.core.errors import EscapedTracerError, TraceError
from common.core.interpretation import OpenTrace
from common.core.op import REGISTRY, Op, out_specs
from common.core.operators import install
from common.core.python_numbers import plain
from common.core.source_lines import locate, user_frame
from common.core.spec import Spec, Specified
from common.tensor.base import NUMBERS, TensorBase, spec_of


class Abstract(Specified):
    """A value of which only the spec is known."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return _record(op, operands, attrs)


class AbstractTensor(TensorBase):
    """A tensor inside such a run."""

    __slots__ = ()
    __op_priority__ = 3

    def __init__(self, data: Abstract) -> None:
        self.payload = data
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = None

    def describe_escape(self) -> EscapedTracerError:
        """The error for such a tensor after the run."""
        return EscapedTracerError(
            "a tensor from inside a branch or a loop's body that ran for its shapes only is used afterwards. It has no "
            "elements: return it from the function instead of storing it in a global, an attribute or a list"
        )


class AbstractTrace(OpenTrace):
    """The interpretation that takes the place of a trace where only shapes are asked for.

    Parameters
    ----------
    name : of the function, for messages.
    """

    replays = True
    decide = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.families: dict[int, Any] = {}
        self.origin: Any = None
        self.hooks = 0
        self.scope: list[str] = []
        self._grads: dict[int, tuple[TensorBase, Any]] = {}

    def wrap(self, payload: Any) -> AbstractTensor:
        """A tensor without history."""
        return AbstractTensor(self.payload(payload))

    def payload(self, x: Any) -> Any:
        """The value that stands for an operand; numbers as they are."""
        if type(x) is Abstract or (isinstance(x, NUMBERS) and not isinstance(x, np.generic)):
            return x
        return x.payload if isinstance(x, AbstractTensor) else Abstract(spec_of(x))

    def shortly(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The spec of an elementwise op of tensors of one floating point dtype, and of numbers; None for others."""
        if op.kind != "elementwise" or attrs:
            return None
        payloads: list[Any] = []
        dtype = None
        for x in plain(operands):
            kind = type(x)
            if kind is float or kind is int:
                payloads.append(x)
                continue
            payload = x.payload if isinstance(x, TensorBase) else x
            if kind is not Abstract and type(payload) is not Abstract:
                if type(payload) is not np.ndarray:
                    return None
                payload = Abstract(Spec(payload.shape, payload.dtype))
            if payload.spec.weak or (dtype is not None and payload.spec.dtype != dtype):
                return None
            dtype = payload.spec.dtype
            payloads.append(payload)
        if dtype is None or dtype.kind != "f":
            return None
        return payloads, Abstract(_spec(op, tuple([x.spec if type(x) is Abstract else type(x) for x in payloads])))

    def constant(self, value: Any) -> Abstract:
        """A number."""
        return Abstract(number_spec(value))

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The specs of an op's results."""
        if op.forward is not None:
            return op.forward(*operands, **attrs)
        specs = op.spec(*(spec_of(self.payload(x)) for x in operands), **attrs)
        values = tuple(map(Abstract, out_specs(specs)))
        return values[0] if op.nout == 1 else values

    def repeated(self, name: Any, given: Any, make: Callable[[], Any]) -> Any:
        """Call ``make()``: nothing is recorded."""
        return make()

    def note_views(self, *how: Any) -> None:
        """Nothing: there is no memory."""

    def act(self, kind: str, operands: Sequence[Any], attrs: Any) -> None:
        """Nothing: the function does not run."""

    def callback(self, call: Any, operands: Sequence[Any], specs: Sequence[Spec]) -> list[Abstract]:
        """The specs of a callback's results."""
        return [Abstract(spec) for spec in specs]

    def run_loop(self, request: Any) -> Any:
        """A loop runs its body once, see `common.control.loop.Request.for_shapes`."""
        return request.for_shapes()

    def run_choice(self, choice: Any) -> Any:
        """Every branch runs once, see `common.control.branches.Choice.for_shapes`."""
        return choice.for_shapes()

    def note_module(self, module: Any, whole: bool = True) -> None:
        """Nothing: no program relies on it."""

    def note_alias(self, *tensors: Any, **how: Any) -> None:
        """Nothing, for the same reason."""

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """Nothing: state is written when the function runs."""

    def get_grad(self, x: TensorBase) -> Any:
        """`.grad` as the function sees it."""
        return self._grads[id(x)][1] if id(x) in self._grads else x._grad

    def set_grad(self, x: TensorBase, grad: Any) -> None:
        """`.grad = ...`, forgotten afterwards."""
        self._grads[id(x)] = x, grad

    def adds_in_place(self, grad: TensorBase) -> bool:
        """No: nothing is written to memory here."""
        return False

    def refuse_value(self, x: TensorBase) -> None:
        """Explain that there are no elements.

        Raises
        ------
        TraceError : always.
        """
        file, line, place = locate(*user_frame(2))
        raise TraceError(
            f"{file}:{line} in {place}: the elements of a tensor are needed in {self.name}, which is traced for its "
            "shapes but does not run: use where, or cond inside it"
        )

    def refuse_size(self, function: str, instead: str) -> None:
        """Explain that the size of a result would depend on the elements.

        Raises
        ------
        TraceError : always.
        """
        file, line, place = locate(*user_frame(2))
        raise TraceError(
            f"{file}:{line} in {place}: {function}(): the size of the result depends on the data, but {self.name} is "
            f"traced for its shapes only: {instead}"
        )

    def refuse_data(self, x: TensorBase) -> None:
        """Explain how state is written.

        Raises
        ------
        TraceError : always.
        """
        raise TraceError(f"{self.name} replaces `.data` of a tensor; write to the tensor instead: `p.copy_(value)`")


@lru_cache(maxsize=4096)
def _spec(op: Op, forms: tuple[Any, ...]) -> Any:
    """The spec of an elementwise op for specs, and types of numbers."""
    return op.spec(*[number_spec(form(0)) if isinstance(form, type) else form for form in forms])


default_changed.append(_spec.cache_clear)


def _record(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    trace = mode.current_trace()
    if trace is None:
        raise TraceError(f"{op.name} meets a value of a branch that did not run")
    return trace.record(op, operands, attrs)


install(Abstract, REGISTRY, comparisons=False)
