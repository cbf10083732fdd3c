"""Public functions remember the ops that they apply, per form (shape and dtype) of their operands and other arguments.

A function such as ``avg_pool2d(x, 2)`` checks and completes its arguments in Python, and then applies a few ops. The
forms of its operands and its other arguments determine which. So in the call number `OFTEN` with the same ones the
function runs on stand-ins that know only a form, and the ops that it applies are written down: a *line*. Later calls
skip the Python and run the line (`python -m benchmarks.ops`): on arrays where no gradient is wanted; else each op is
recorded, with the same nodes, bits and errors.

Some functions depend on more and are never remembered: a stand-in refuses a function that asks for elements, writes,
draws random numbers, brings large arrays of its own, or records differently where gradients are off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from common.api.offered import Template
from common.core import mode
from common.core.aliases import ABSENT
from common.core.dispatch import NO_ATTRS
from common.core.dtypes import default_changed
from common.core.op import Op
from common.core.size_tuples import Size
from common.evaluate import specialise as eager
from common.random.draw_counts import refuse_draws
from common.runtime.tape_state import KnownLine
from common.tensor.base import Tensor
from common.tensor.leaf import Parameter
from dynamic.eager.op_lines import OpLine

#: Classes of operands of which only the form counts.
KINDS: frozenset[Any] = frozenset((Tensor, Parameter))

#: Classes of operands that count as other arguments do.
_PLAIN = frozenset((bool, int, float, type(None)))

OFTEN = 12
"""The call that is written down: writing takes about as long as so many calls of the line save."""

_LIMIT = 256
"""Most forms that a function remembers."""

_KEPT = frozenset((bool, int, float, str, tuple, Size, type(None), type(ABSENT), *map(type, map(np.dtype, "?bhilBfd"))))


class Memory:
    """The lines of one public function.

    Attributes
    ----------
    known : per forms and other arguments a line; NotImplemented where the function depends on more.
    """

    __slots__ = ("known", "_calls")

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self._calls: dict[Any, int] = {}
        default_changed.append(self.known.clear)

    def meet(self, tensors: tuple[Any, ...], others: tuple[Any, ...], function: Callable[..., Any]) -> Any:
        """Count a call for which `eager.recalled` has no line, and write the line down once it has come often.

        Returns the result of the line; NotImplemented where there is none, and the function is to be called.

        Parameters
        ----------
        tensors : arguments that may be tensors, numbers, or one list or tuple of tensors.
        others : all other arguments.
        function : of `tensors`.
        """
        operands = tensors[0] if type(tensors[0]) in (list, tuple) else tensors
        if mode.tracing or not all(map(_is_operand, operands)) or type(next(iter(operands), None)) not in KINDS:
            return NotImplemented
        if not all(map(_is_kept, others)):  # nor is it kept alive, or asked whether it is true
            return NotImplemented
        key = tuple(map(_identity, (*operands, len(operands), *others)))
        line = self.known.get(key)
        if line is None:
            calls = self._calls[key] = self._calls.get(key, 0) + 1
            if calls < OFTEN:
                if len(self._calls) > _LIMIT:
                    self.known.clear()
                    self._calls.clear()
                return NotImplemented
            line = _learnt(function if operands is tensors else lambda *x: function(x), operands) or NotImplemented
            self.known[key] = line
        if line is NotImplemented:
            eager.keep(line, self, *tensors, *others)
            return line
        if len(line.held) < _LIMIT:  # else arguments that are equal come as ever new objects
            line.held += [self, others]
            eager.keep(line, self, *tensors, *others)
        return line(*[x for x in operands if type(x) in KINDS])


def _is_operand(x: Any) -> bool:
    return type(x) in KINDS or type(x) in _PLAIN


def _identity(x: Any) -> Any:
    """What tells an argument from others: equality does not tell 1 from 1.0 and True, nor 0.0 from -0.0."""
    if type(x) in KINDS:
        return x.payload.shape, x.payload.dtype
    return (tuple(map(type, x)) if type(x) is tuple else type(x)), (
        x if x or x is None or type(x) is tuple else repr(x)
    )


def _is_kept(x: Any) -> bool:
    """Whether an argument is plain data, and equal to itself, which NaN is not."""
    return type(x) in _KEPT and x == x and (type(x) is not tuple or all(type(n) is int for n in x))


def _learnt(function: Callable[..., Any], operands: Sequence[Any]) -> KnownLine | None:
    """The line of a function, or None: written down with gradients on and off, which must give the same."""
    forms = [(x.payload.shape, x.payload.dtype) if type(x) in KINDS else x for x in operands]
    made = []
    try:
        for recorded in (True, False):
            with mode.GradSwitch(recorded), refuse_draws():
                line = OpLine(forms)
                result = function(*line.operands)
                made.append(line.function(result))
        (text, scope), (again, other) = made
        if text != again or not all(_same(scope[name], other[name]) for name in scope):
            return None
    except Exception:  # the function raises it again for the operands, unless only stand-ins cause it
        return None
    exec(compile(text, f"{__file__}: remembered", "exec"), scope)
    known = KnownLine(scope["line"])
    line.describe(result, scope, known)
    return known


def _same(x: Any, y: Any) -> bool:
    if type(x) is Tensor:
        x, y = x.payload, y.payload
    if type(x) is np.ndarray:
        return type(y) is np.ndarray and x.dtype == y.dtype and np.array_equal(x, y)
    return type(x) is type(y) and bool(x == y)


def remembering(general: Template, function: Any) -> tuple[Template, dict[str, Any]]:
    """A template that does the same as another, or what is remembered; and the names that it uses."""
    if isinstance(function, Op):  # one op has nothing to remember
        return applying(general), applied(function)
    memory = Memory()

    def body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
        lines = general(tensors, sequences, call)
        if not sequences:
            return _body(tensors, call, lines)
        return lines if tensors or len(sequences) > 1 else _sequence_body(sequences[0], call, lines)

    return body, {"eager_": eager, "memory_": memory}


def applied(op: Op, attrs: Mapping[str, Any] = NO_ATTRS) -> dict[str, Any]:
    """The names that the lines of `applying` use."""
    return {"eager_": eager, "op_": op, "attrs_": attrs}


def applying(general: Template) -> Template:
    """A template that applies one op at once, where no argument is given besides its operands and the op is known."""

    def body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
        passed = call.removeprefix("_function(").removesuffix(")").split(", ")
        left = [x.partition("=")[0] for x in passed if "=" in x]
        given = ", ".join(x for x in passed if "=" not in x)
        known = " and ".join(
            [*(f"{x} is _{x}" for x in left), f"(y_ := eager_.applied(op_, attrs_, {given})) is not None"]
        )
        return [f"if {known}: return y_", *general(tensors, sequences, call)]

    return body


def _body(tensors: list[str], call: str, general: list[str]) -> list[str]:
    """The lines of a public function of tensors that remembers; `general` are those of one that does not."""
    others = _others(tensors, call)
    if not tensors or others is None:
        return general
    return _remembering(tensors, others, ", ".join(tensors), call, general)


def _sequence_body(sequence: str, call: str, general: list[str]) -> list[str]:
    """The same of a function of one sequence of tensors."""
    others = _others([sequence], call)
    return general if others is None else _remembering([sequence], others, sequence, call, general)


def _others(tensors: list[str], call: str) -> list[str] | None:
    """The names of what a call passes besides; None if it does more than to pass names."""
    _, listed, one_by_one = call.rpartition(" if listed else ")  # of a sequence that may come as one list
    text = one_by_one[:-1] if listed else call
    passed = text.removeprefix("_function(").removesuffix(")").split(", ")
    names = [x.rpartition("=")[2].removeprefix("*") for x in passed]
    if not text.startswith("_function(") or not all(map(str.isidentifier, names)) or not {*tensors} <= {*names}:
        return None
    return [*(name for name in names if name not in tensors), *(["listed"] if listed else [])]


def _remembering(tensors: list[str], others: list[str], given: str, call: str, general: list[str]) -> list[str]:
    passed, apart = "".join(f"{x}, " for x in tensors), "".join(f"{x}, " for x in others)
    return [
        f"y_ = eager_.recalled(memory_, {passed}{apart})",
        f"if y_ is None: y_ = memory_.meet(({passed}), ({apart}), lambda {given}: {call})",
        "if y_ is not NotImplemented: return y_",
        *general,
    ]
