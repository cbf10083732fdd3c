"""Public functions remember which ops they come to, per shapes and dtypes of their operands and other arguments.

A function such as ``avg_pool2d(x, 2)`` checks and completes its arguments in Python, and applies a few ops. All of that
follows from the forms of its operands. So when the same question has come `OFTEN`, the function is run on stand-ins
that know nothing but a form, and the ops that it applies to them are written down. Later calls apply these ops only
(`python -m benchmarks.ops`): to arrays where no gradient is wanted; else each is recorded as ever, with the same nodes,
bits, and errors of kernels.

Functions of which that is not the whole truth are never remembered: a stand-in refuses what asks for elements, writes,
draws random numbers, brings large arrays of its own, or records differently where gradients are off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from common.api.offered import Template
from common.core import mode
from common.core.aliases import ABSENT
from common.core.dispatch import Attrs, known_attrs
from common.core.dtypes import default_changed
from common.core.errors import EscapedTracerError
from common.core.interpretation import Interpretation
from common.core.op import Op
from common.core.size_tuples import Size
from common.core.spec import Spec, numel
from common.evaluate.specialise import NUMBERS, Recipe, recipe
from common.random.draw_counts import refuse_draws
from common.tensor.base import Tensor, TensorBase, wrap
from common.tensor.leaf import Parameter
from common.tensor.record import record

__all__ = ["KINDS", "OpLine", "Memory", "MoreThanFormsError", "OFTEN", "StandIn", "remembering"]

#: Classes of operands of which nothing but the form counts.
KINDS: frozenset[Any] = frozenset((Tensor, Parameter))

#: Classes of operands that count as other arguments do.
_PLAIN = frozenset((bool, int, float, type(None)))

OFTEN = 12
"""The call that is written down: that takes about as long as it saves in so many."""

_LIMIT, _SMALL = 256, 4096
"""Most forms that a function remembers, and elements of an array that it brings along."""

_KEPT = frozenset((bool, int, float, str, tuple, Size, type(None), type(ABSENT), *map(type, map(np.dtype, "?bhilBfd"))))
_OPS = frozenset(("elementwise", "reduction", "view", "kernel", "composite"))


class MoreThanFormsError(Exception):
    """What a function does depends on more than forms."""


class _Form:
    """In place of an array: its shape and dtype."""

    __slots__ = ("dtype", "ndim", "shape", "spec")

    def __init__(self, spec: Spec) -> None:
        self.spec, self.shape, self.dtype, self.ndim = spec, spec.shape, spec.dtype, len(spec.shape)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise MoreThanFormsError  # numpy would make an array of one object of it

    def __bool__(self) -> bool:
        raise MoreThanFormsError


class _Result:
    """In place of a node: the attributes by which a result is shown."""

    def __init__(self, attrs: Attrs) -> None:
        self.attrs = attrs


class StandIn(TensorBase):
    """A tensor of which only the form is known; ops on it are written down."""

    __slots__ = ("line", "name")
    #: Ops on tensors and a stand-in are written down too (`common.core.dispatch.apply_at_home`).
    __takes_tensors__ = True

    def __init__(self, line: OpLine, name: str, spec: Spec, node: Any = None) -> None:
        self.payload, self.line, self.name, self.grad_fn = _Form(spec), line, name, node

    def __getitem__(self, key: Any) -> Any:
        raise MoreThanFormsError  # which node is shown, the class of a tensor decides

    def describe_escape(self) -> EscapedTracerError:
        """What is raised where an array is needed."""
        return EscapedTracerError(f"{self.name} stands for any tensor of its form")

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return next(x.line for x in operands if type(x) is StandIn).record(op, operands, attrs)


class OpLine(Interpretation):
    """The ops that a function applies, one after the other."""

    def __init__(self, forms: Sequence[Any]) -> None:
        self.steps: list[tuple[Op, list[Any], Attrs, list[_Result], list[str]]] = []
        self.recipes: list[Recipe] = []
        self.grad = mode.grad_mode.get()
        self.operands = [
            StandIn(self, f"x{i}", Spec(*form)) if type(form) is tuple else form for i, form in enumerate(forms)
        ]

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Write down an op."""
        if op.kind not in _OPS or mode.grad_mode.get() != self.grad:
            raise MoreThanFormsError
        forms: list[Any] = []
        for x in operands:
            if type(x) is StandIn and x.line is self:
                forms.append((x.payload.shape, x.payload.dtype))
            elif type(x) in NUMBERS:
                forms.append(type(x))
            elif type(x) in (np.ndarray, Tensor) and x.dtype.kind != "O" and numel(x.shape) <= _SMALL:
                forms.append((x.shape, x.dtype))
            else:
                raise MoreThanFormsError
        self.recipes.append(recipe(op, tuple(forms), attrs))
        spec = _spec(self.recipes[-1])
        attrs = attrs if type(attrs) is Attrs else Attrs(**attrs)
        specs = (spec,) if isinstance(spec, Spec) else tuple(spec)
        nodes = [_Result(attrs) for _ in specs]
        names = [f"v{len(self.steps)}_{i}" for i in range(len(specs))]
        self.steps.append((op, list(operands), attrs, nodes, names))
        made = tuple(StandIn(self, *each) for each in zip(names, specs, nodes, strict=True))
        return made[0] if isinstance(spec, Spec) else made

    def function(self, result: Any) -> tuple[str, dict[str, Any]]:
        """The text of a function that applies the ops, and what it names."""
        parts = result if isinstance(result, tuple) else (result,)
        if not all(type(x) is StandIn and x.line is self for x in parts):
            raise MoreThanFormsError
        scope: dict[str, Any] = {"record": record, "made": getattr(type(result), "_make", tuple)}
        lines = [f"def line({', '.join(f'x{i}' for i in range(len(self.operands)))}):"]
        for at, (op, operands, attrs, _, _) in enumerate(self.steps):
            scope |= {f"op{at}": op, f"a{at}": attrs}
            scope |= {f"c{at}_{i}": _constant(x) for i, x in enumerate(operands) if type(x) is not StandIn}
        lines += self.unrecorded(parts, isinstance(result, tuple), scope)
        for at, (_, _, attrs, nodes, names) in enumerate(self.steps):
            lines.append(f"    {', '.join(names)} = record(op{at}, ({', '.join(self.given(at))},), a{at})")
            for i, (name, node) in enumerate(zip(names, nodes, strict=True)):
                if node.attrs is not attrs:  # shown under the function's name
                    scope[f"n{at}_{i}"] = known_attrs(node.attrs.node_name) if not node.attrs else node.attrs
                    lines.append(f"    if {name}.grad_fn is not None: {name}.grad_fn.attrs = n{at}_{i}")
        names = [x.name for x in parts]
        lines.append(
            f"    return made(({', '.join(names)},))" if isinstance(result, tuple) else f"    return {names[0]}"
        )
        return "\n".join(lines), scope

    def given(self, at: int) -> list[str]:
        """The names of an op's operands."""
        operands = self.steps[at][1]
        return [x.name if type(x) is StandIn else f"c{at}_{i}" for i, x in enumerate(operands)]

    def unrecorded(self, parts: Sequence[StandIn], several: bool, scope: dict[str, Any]) -> list[str]:
        """The lines that do the same to arrays where nothing is recorded; views that a caller gets are made of tensors.

        Whatever goes wrong there, goes wrong again where it is recorded, which says what it was.
        """
        shown = {x.name for x in parts}
        for at in reversed(range(len(self.steps))):
            if _may_show(self.steps[at][0]) and shown & set(self.steps[at][4]):
                shown.add(self.given(at)[0])
        operands = [x.name for x in self.operands if type(x) is StandIn]
        if shown & set(operands):
            return []
        scope |= {"mode": mode, "ndarray": np.ndarray, "asarray": np.asarray, "wrap": wrap}
        wanted = " or ".join(f"{x}._requires_grad" for x in operands)
        lines = [f"if not (mode.inference_seen or mode.grad_mode.get() and ({wanted})):", "    try:"]
        inner = [f"p_{x} = {x}.payload" for x in operands]
        for at, (op, _, _, _, names) in enumerate(self.steps):
            given = self.given(at)
            if _may_show(op) and shown & set(names):
                inner.append(f"{', '.join(names)} = record(op{at}, ({', '.join(given)},), a{at})")
                inner += [f"p_{x} = {x}.payload" for x in names]
                continue
            found = self.recipes[at]
            scope |= {f"r{at}": found.run, f"b{at}": found.builtin}
            scope |= {f"p_{x}": scope[x].payload if type(scope[x]) is Tensor else scope[x] for x in given if x in scope}
            arrays = ", ".join(f"p_{x}" for x in given)
            made = ", ".join(f"p_{x}" for x in names)
            if found.builtin is None:
                inner.append(f"{made} = r{at}({arrays})")
            else:
                inner += [f"{made} = b{at}({arrays})", f"if {made} is None: {made} = r{at}({arrays})"]
            inner += [f"if p_{x}.__class__ is not ndarray: p_{x} = asarray(p_{x})" for x in names]
            inner += [f"{x} = wrap(p_{x})" for x in names if x in shown]
        results = [x.name for x in parts]
        inner.append(f"return made(({', '.join(results)},))" if several else f"return {results[0]}")
        return [
            f"    {line}" for line in [*lines, *(f"        {line}" for line in inner), "    except Exception: pass"]
        ]


def _may_show(op: Op) -> bool:
    """Whether results may be views of the operand: also parts, several of which are results of one composite."""
    return op.kind == "view" or (op.kind == "composite" and op.nout > 1)


def _spec(found: Recipe) -> Any:
    """What an op's result is like, or results; a composite that has not run as straight lines yet is written down."""
    if found.spec is None and found.op.kind == "composite":
        from common.evaluate.straight_line import straight_forward

        straight_forward(found)
    if found.spec is None:
        raise MoreThanFormsError
    return found.spec


class Memory:
    """What one public function comes to.

    Attributes
    ----------
    known : per forms and arguments a function of the operands; False where nothing can be remembered.
    """

    __slots__ = ("known", "_calls")

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self._calls: dict[Any, int] = {}
        default_changed.append(self.known.clear)

    def meet(self, key: Any, others: tuple[Any, ...], function: Callable[..., Any], *operands: Any) -> Any:
        """Take note of a call that is not known; when it has come often, return what is known of it from now on."""
        if not all(map(_is_kept, others)):  # nor is it kept alive
            return False
        calls = self._calls[key] = self._calls.get(key, 0) + 1
        if calls < OFTEN:
            if len(self._calls) > _LIMIT:
                self.known.clear()
                self._calls.clear()
            return False
        made = self.known[key] = _learnt(function, operands)
        return made


def _is_kept(x: Any) -> bool:
    """Whether an argument is plain data, and equal to itself, which NaN is not."""
    return type(x) in _KEPT and x == x and (type(x) is not tuple or all(type(n) is int for n in x))


def _learnt(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The function of operands that applies what `function` does, or False; written down twice, and compared."""
    forms = [(x.payload.shape, x.payload.dtype) if type(x) in KINDS else x for x in operands]
    made = []
    try:
        for recorded in (True, False):
            with mode.GradSwitch(recorded), refuse_draws():
                line = OpLine(forms)
                made.append(line.function(function(*line.operands)))
        (text, scope), (again, other) = made
        if text != again or not all(_same(scope[name], other[name]) for name in scope):
            return False
    except Exception:  # what is not special to stand-ins comes again from the operands
        return False
    exec(compile(text, f"{__file__}: remembered", "exec"), scope)
    return scope["line"]


def _constant(x: Any) -> Any:
    """A number, or a tensor that nothing else writes to."""
    return x if type(x) in NUMBERS else wrap(np.array(x.payload if type(x) is Tensor else x))


def _same(x: Any, y: Any) -> bool:
    if type(x) is Tensor:
        x, y = x.payload, y.payload
    if type(x) is np.ndarray:
        return type(y) is np.ndarray and x.dtype == y.dtype and np.array_equal(x, y)
    return type(x) is type(y) and bool(x == y)


def remembering(general: Template, function: Any) -> tuple[Template, dict[str, Any]]:
    """A template that does the same as another, or what is remembered; and the names that it uses."""
    if isinstance(function, Op):  # one op has nothing to remember
        return general, {}
    memory = Memory()

    def body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
        lines = general(tensors, sequences, call)
        if not sequences:
            return _body(tensors, call, lines)
        return lines if tensors or len(sequences) > 1 else _sequence_body(sequences[0], call, lines)

    return body, {"known_": memory.known, "meet_": memory.meet, "kinds_": KINDS, "plain_": _PLAIN, "mode_": mode}


def _body(tensors: list[str], call: str, general: list[str]) -> list[str]:
    """The lines of a public function of tensors that remembers; `general` are those of one that does not."""
    others = _others(tensors, call)
    if not tensors or others is None:
        return general
    first, *rest = tensors
    exact = [f"{first}.__class__ in kinds_", *(f"({x}.__class__ in kinds_ or {x}.__class__ in plain_)" for x in rest)]
    key = [f"{first}.payload.shape", f"{first}.payload.dtype"]
    key += [
        f"({x}.payload.shape, {x}.payload.dtype) if {x}.__class__ in kinds_ else ({x}.__class__, {x} or repr({x}))"
        for x in rest
    ]
    return _remembering(" and ".join(exact), key, others, ", ".join(tensors), call, general)


def _sequence_body(sequence: str, call: str, general: list[str]) -> list[str]:
    """The same of a function of one sequence of tensors."""
    others = _others([sequence], call)
    if others is None:
        return general
    exact = f"{sequence}.__class__ in (list, tuple) and all([x.__class__ in kinds_ for x in {sequence}])"
    key = [f"*[(x.payload.shape, x.payload.dtype) for x in {sequence}]"]
    return _remembering(exact, key, others, f"*{sequence}", call, general)


def _others(tensors: list[str], call: str) -> list[str] | None:
    """The names of what a call passes besides; None if it does more than to pass names."""
    _, listed, one_by_one = call.rpartition(" if listed else ")  # of a sequence that may come as one list
    text = one_by_one[:-1] if listed else call
    passed = text.removeprefix("_function(").removesuffix(")").split(", ")
    names = [x.rpartition("=")[2].removeprefix("*") for x in passed]
    if not text.startswith("_function(") or not all(map(str.isidentifier, names)) or not {*tensors} <= {*names}:
        return None
    return [*(name for name in names if name not in tensors), *(["listed"] if listed else [])]


def _remembering(
    exact: str, key: list[str], others: list[str], given: str, call: str, general: list[str]
) -> list[str]:  # fmt: skip
    # equality does not tell 1 from 1.0 and True, nor 0.0 from -0.0
    same = "(*map(type, {0}),) if {0}.__class__ is tuple else {0}.__class__ if {0} or {0} is None else repr({0})"
    key += chain.from_iterable((x, same.format(x)) for x in others)
    kept = "".join(f"{x}, " for x in others)
    return [
        f"if {exact} and not mode_.tracing:",
        "    try:",
        f"        key_ = ({', '.join(key)},)",
        "        line_ = known_.get(key_)",
        "    except Exception: line_ = False",  # an argument without a hash, or a truth value
        f"    if line_ is None: line_ = meet_(key_, ({kept}), lambda {given}: {call}, {given})",
        f"    if line_: return line_({given})",
        *general,
    ]
