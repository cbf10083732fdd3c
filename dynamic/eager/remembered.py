"""Public functions remember the ops that they apply, per form (shape and dtype) of their operands and other arguments.

A function such as ``avg_pool2d(x, 2)`` checks and completes its arguments in Python, and then applies a few ops. The
forms of its operands and its other arguments determine which. So in the call number `OFTEN` with the same ones the
function runs on stand-ins that know only a form, and the ops that it applies are written down: a *line*. Later calls
skip the Python and run the line (`python -m benchmarks.ops`): on arrays where no gradient is wanted; else each op is
recorded, with the same nodes, bits and errors.

Some functions depend on more and are never remembered: a stand-in refuses a function that asks for elements, writes,
draws random numbers, brings large arrays of its own, or records differently where gradients are off.

A function of sizes and numbers alone, such as ``linspace(0, 1, 100)``, remembers small results, and copies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from common.api.offered import Template
from common.core import mode
from common.core.dispatch import NO_ATTRS
from common.core.dtypes import default_changed
from common.core.op import Op
from common.core.plain_data import NotPlainError, identity
from common.core.spec import Spec
from common.evaluate import specialise as eager
from common.random.draw_counts import refuse_draws
from common.runtime.tape_state import KnownLine
from common.tensor.base import Tensor, wrap
from common.tensor.leaf import Buffer, Parameter
from dynamic.eager.op_lines import SMALL, OpLine

#: Classes of operands of which only the form counts.
KINDS: frozenset[Any] = frozenset((Tensor, Parameter, Buffer))

OFTEN = 12
"""The call that is written down: writing takes about as long as so many calls of the line save."""

_LIMIT = 256
"""Most forms that a function remembers."""


@eager.makes_memories
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

    def meet(self, arguments: tuple[Any, ...], function: Callable[..., Any]) -> Any:
        """Count a call for which `eager.recalled` has no line, and write the line down once it has come often.

        Returns the result of the line; NotImplemented where there is none, and the function is to be called.

        Parameters
        ----------
        arguments : tensors, lists and tuples of them, and plain data.
        """
        flat = [z for x in arguments for z in (x if _has_tensors(x) else (x,))]
        if mode.tracing or not self.takes(flat):
            return NotImplemented
        try:
            key = tuple([_identity(x) for x in arguments])
        except NotPlainError:
            return NotImplemented
        line = self.known.get(key)
        if line is None:
            calls = self._calls[key] = self._calls.get(key, 0) + 1
            if calls < OFTEN:
                if len(self._calls) > _LIMIT:
                    self.known.clear()
                    self._calls.clear()
                return NotImplemented
            line = self.known[key] = self.learnt(_of_flat(function, arguments), flat) or NotImplemented
        if line is NotImplemented:
            eager.keep(line, self, *arguments)
            return line
        if len(line.held) < _LIMIT:  # else arguments that are equal come as ever new objects
            line.held += [self, *(x for x in flat if type(x) not in KINDS)]
            eager.keep(line, self, *arguments)
        return line(*[x for x in flat if type(x) in KINDS])

    def takes(self, flat: Sequence[Any]) -> bool:
        """Whether calls with these arguments are remembered."""
        return any(type(x) in KINDS for x in flat)

    def learnt(self, function: Callable[..., Any], flat: Sequence[Any]) -> KnownLine | None:
        """The line of a function, if it has one."""
        return _learnt(function, flat)


class SmallResults(Memory):
    """The small results of one function of sizes and numbers; each call gets a copy."""

    def takes(self, flat: Sequence[Any]) -> bool:
        """Whether calls with these arguments are remembered."""
        return not any(type(x) in KINDS for x in flat)

    def learnt(self, function: Callable[..., Any], flat: Sequence[Any]) -> KnownLine | None:
        """The line that copies the result: of few elements, none of which is so small that a mode makes it zero."""
        y = function(*flat)
        array = y.payload if type(y) is Tensor else y
        if type(array) is not np.ndarray or array.size > SMALL or not array.flags.c_contiguous:
            return None
        if array.dtype.kind == "f" and np.any((array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)):
            return None
        kept = array.copy()
        return KnownLine(lambda: wrap(kept.copy()))


def _has_tensors(x: Any) -> bool:
    return type(x) in (list, tuple) and any(type(z) in KINDS for z in x)


def _identity(x: Any) -> Any:
    """The part of an argument on which a line depends: of tensors the form, of all else the value."""
    if type(x) in KINDS:
        return x.payload.shape, x.payload.dtype
    return (type(x), *map(_identity, x)) if type(x) is list or _has_tensors(x) else identity(x)


def _of_flat(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """A function of all that arguments hold, in one row."""

    def call(*flat: Any) -> Any:
        left = iter(flat)
        return function(*(type(x)(islice(left, len(x))) if _has_tensors(x) else next(left) for x in arguments))

    return call


def _learnt(function: Callable[..., Any], operands: Sequence[Any]) -> KnownLine | None:
    """The line of a function, or None: written down with gradients on and off, which must give the same."""
    forms = [Spec(x.payload.shape, x.payload.dtype) if type(x) in KINDS else x for x in operands]
    made = []
    try:
        for recorded in (True, False):
            with mode.GradSwitch(recorded), refuse_draws():
                line = OpLine(forms)
                result = function(*line.operands)
                made.append(line.function(result))
        (text, scope), (again, other) = made
        named = scope.keys() - {"straight"}  # which is made of the others
        if text != again or not all(_same(scope[name], other[name]) for name in named):
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
        return _body([*tensors, *sequences], call, general(tensors, sequences, call))

    return body, {"eager_": eager, "memory_": memory}


def remembering_results(general: Template, function: Any) -> tuple[Template, dict[str, Any]]:
    """The same of a function that makes tensors of sizes and numbers."""

    def body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
        alone = call.removeprefix("(_leaf(").partition(") if requires_grad else ")[0]
        others = _others([], alone)
        if others is None:
            return general(tensors, sequences, call)
        made = "_leaf(y_) if requires_grad else y_" if alone != call else "y_"
        return [*_one_by_one(alone), *_remembered(others, alone, made), *general(tensors, sequences, call)]

    return body, {"eager_": eager, "memory_": SmallResults()}


def _one_by_one(call: str) -> list[str]:
    """The lines that take sizes which are given as one tuple or list of ints as sizes given one by one."""
    if "*sizes" not in call:
        return []
    return [
        "if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) and sizes[0] and sizes[0][0].__class__ is int:",
        "    sizes = (*sizes[0],)",
    ]


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
    """The lines of a public function of tensors, and of sequences of them, that remembers.

    Parameters
    ----------
    general : the lines of one that does not.
    """
    others = _others(tensors, call)
    if not tensors or others is None:
        return general
    return _remembered([*tensors, *others], call, "y_") + general


def _remembered(names: list[str], call: str, made: str) -> list[str]:
    """The lines that return what is remembered for arguments, if anything is."""
    given = ", ".join(names)
    return [
        f"y_ = eager_.recalled(memory_, {given})",
        f"if y_ is None: y_ = memory_.meet(({given},), lambda {given}: {call})",
        f"if y_ is not NotImplemented: return {made}",
    ]


def _others(tensors: list[str], call: str) -> list[str] | None:
    """The names of what a call passes besides; None if it does more than to pass names."""
    _, listed, one_by_one = call.rpartition(" if listed else ")  # of a sequence that may come as one list
    text = one_by_one[:-1] if listed else call
    passed = text.removeprefix("_function(").removesuffix(")").split(", ")
    names = [x.rpartition("=")[2].removeprefix("*") for x in passed]
    if not text.startswith("_function(") or not all(map(str.isidentifier, names)) or not {*tensors} <= {*names}:
        return None
    return [*(name for name in names if name not in tensors), *(["listed"] if listed else [])]
