"""The ops that a function applies, written down while it runs on stand-ins that know only a form: shape and dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import NO_ATTRS, Attrs, interned, known_attrs
from common.core.errors import EscapedTracerError
from common.core.interpretation import Interpretation
from common.core.op import Op
from common.core.spec import Spec, numel
from common.evaluate.specialise import NUMBERS, Recipe, recipe
from common.runtime.dispatch_text import MAX_OPERANDS
from common.runtime.tape_state import KnownLine
from common.tensor.base import Tensor, TensorBase, wrap
from common.tensor.record import record

SMALL = 4096
"""Most elements of a result that is remembered."""
_BROUGHT = 1 << 15
"""Most elements of an array that a function brings along, such as the bag of each place."""

_DETACHED = ".detach()"

_OPS = frozenset(("elementwise", "reduction", "view", "kernel", "composite"))


class MoreThanFormsError(Exception):
    """A function depends on more than the forms of its operands."""


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
    """In place of a node: the attributes under which a result is printed."""

    def __init__(self, attrs: Attrs) -> None:
        self.attrs = attrs


def _more_than_a_form(x: Any) -> Any:
    raise MoreThanFormsError


class StandIn(TensorBase):
    """A tensor of which only the form is known; ops on it are written down."""

    __slots__ = ("line", "name")
    #: Ops on tensors and a stand-in are written down too (`common.core.dispatch.apply_at_home`).
    __takes_tensors__ = True
    #: A function that asks for these depends on more, also one that would be content with a default.
    requires_grad = _requires_grad = is_leaf = grad = property(_more_than_a_form)

    def __init__(self, line: OpLine, name: str, spec: Spec, node: Any = None) -> None:
        self.payload, self.line, self.name, self.grad_fn = _Form(spec), line, name, node

    def detach(self) -> StandIn:
        """The same without history."""
        return StandIn(self.line, self.name.removesuffix(_DETACHED) + _DETACHED, self.payload.spec)

    def copy_(self, other: Any) -> StandIn:
        """Write down that an operand is written to."""
        self.line.write(self, other)
        return self

    def __getitem__(self, key: Any) -> Any:
        raise MoreThanFormsError  # the class of the tensor decides which node is printed

    def describe_escape(self) -> EscapedTracerError:
        """The error that is raised where an array is needed."""
        return EscapedTracerError(f"{self.name} stands for any tensor of its form")

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return next(x.line for x in operands if type(x) is StandIn).record(op, operands, attrs)


class OpLine(Interpretation):
    """The ops that a function applies, one after the other."""

    def __init__(self, forms: Sequence[Any]) -> None:
        self.steps: list[tuple[Op, list[Any], Attrs, list[_Result], list[str]]] = []
        self.recipes: list[Recipe] = []
        self.writes: dict[str, str] = {}
        self.grad = mode.grad_mode.get()
        self.operands = [StandIn(self, f"x{i}", form) if type(form) is Spec else form for i, form in enumerate(forms)]

    def write(self, target: StandIn, source: Any) -> None:
        """Write down that an operand takes over what an op has made; nothing may read it afterwards."""
        made = type(source) is StandIn and source.line is self and source.name[0] == "v"
        form = target.payload
        if not made or (form.shape, form.dtype) != (source.payload.shape, source.payload.dtype):
            raise MoreThanFormsError
        if not any(target is x for x in self.operands) or target.name in self.writes:
            raise MoreThanFormsError
        self.writes[target.name] = source.name

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Write down an op."""
        if op.kind not in _OPS or mode.grad_mode.get() != self.grad:
            raise MoreThanFormsError
        forms: list[Any] = []
        for x in operands:
            if type(x) is StandIn and x.line is self and x.name.removesuffix(_DETACHED) not in self.writes:
                forms.append((x.payload.shape, x.payload.dtype))
            elif type(x) in NUMBERS:
                forms.append(type(x))
            elif type(x) in (np.ndarray, Tensor) and x.dtype.kind != "O" and numel(x.shape) <= _BROUGHT:
                forms.append((x.shape, x.dtype))
            else:
                raise MoreThanFormsError
        known = attrs if type(attrs) is Attrs else interned(attrs)
        attrs = known if type(known) is Attrs else Attrs(**attrs)
        self.recipes.append(recipe(op, tuple(forms), attrs))
        spec = _spec(self.recipes[-1])
        specs = (spec,) if isinstance(spec, Spec) else tuple(spec)
        nodes = [_Result(attrs) for _ in specs]
        names = [f"v{len(self.steps)}_{i}" for i in range(len(specs))]
        self.steps.append((op, list(operands), attrs, nodes, names))
        made = tuple(StandIn(self, *each) for each in zip(names, specs, nodes, strict=True))
        return made[0] if isinstance(spec, Spec) else made

    def function(self, result: Any) -> tuple[str, dict[str, Any]]:
        """The text of a function that applies the ops, and what it names."""
        whole = result if isinstance(result, tuple) else (result,)
        parts = [x for x in whole if type(x) is StandIn and x.line is self]
        scope: dict[str, Any] = {"record": record, "made": getattr(type(result), "_make", tuple), "wrap": wrap}
        shown = []
        for i, x in enumerate(whole):
            if _is_empty(x):
                scope[f"e{i}"] = x.payload
            elif x is not None and (type(x) is not StandIn or x.line is not self):
                raise MoreThanFormsError
            shown.append("None" if x is None else f"wrap(e{i}.copy())" if _is_empty(x) else x.name)
        if not parts:
            raise MoreThanFormsError
        listed = ", ".join(shown)
        given = f"return made(({listed},))" if isinstance(result, tuple) else f"return {listed}"
        lines = [f"def line({', '.join(x.name for x in self.operands if type(x) is StandIn)}):"]
        if self.writes:
            scope["lie_apart"] = lie_apart
            lines.append(
                f"    if not lie_apart(({', '.join(self.names())},), {len(self.writes)}): return NotImplemented"
            )
        for at, (op, operands, attrs, _, _) in enumerate(self.steps):
            scope |= {f"op{at}": op, f"a{at}": attrs}
            scope |= {f"c{at}_{i}": _constant(x) for i, x in enumerate(operands) if type(x) is not StandIn}
        if not self.is_one_op(result):
            lines += self.unrecorded(parts, given, scope)
        for at, (_, _, attrs, nodes, names) in enumerate(self.steps):
            lines.append(f"    {', '.join(names)} = record(op{at}, ({', '.join(self.given(at))},), a{at})")
            for i, (name, node) in enumerate(zip(names, nodes, strict=True)):
                if node.attrs is not attrs:  # shown under the function's name
                    scope[f"n{at}_{i}"] = known_attrs(node.attrs.node_name) if not node.attrs else node.attrs
                    lines.append(f"    if {name}.grad_fn is not None: {name}.grad_fn.attrs = n{at}_{i}")
            lines += [f"    {x} = None" for x in self.done_with(at, parts)]
        lines += [*(f"    {x}.copy_({y})" for x, y in self.writes.items()), f"    {given}"]
        return "\n".join(lines), scope

    def is_one_op(self, result: Any) -> bool:
        """Whether the result is that of one op, which is shown under its own name."""
        if len(self.steps) != 1 or type(result) not in (tuple, StandIn) or self.writes:
            return False
        if any(x.endswith(_DETACHED) for x in self.given(0)):
            return False
        _, _, attrs, nodes, names = self.steps[0]
        parts = result if type(result) is tuple else (result,)
        if (
            not all(type(x) is StandIn for x in parts)
            or [x.name for x in parts] != names
            or (type(result) is tuple) != (len(names) > 1)
        ):
            return False
        return all(node.attrs is attrs for node in nodes)

    def describe(self, result: Any, scope: Mapping[str, Any], known: KnownLine) -> None:
        """Say of a line that is one op what it is."""
        if self.is_one_op(result) and len(self.given(0)) <= MAX_OPERANDS:
            op, _, attrs, _, _ = self.steps[0]
            tensors, given = [x.name for x in self.operands if type(x) is StandIn], self.given(0)
            order = [tensors.index(x) if x in tensors else -1 for x in given]
            known.is_one_op(op, attrs or NO_ATTRS, order, [scope[x] for x in given if x not in tensors])

    def names(self) -> list[str]:
        """The names of the operands that are tensors, those first that are written to."""
        names = [x.name for x in self.operands if type(x) is StandIn]
        return sorted(names, key=lambda x: x not in self.writes)

    def done_with(self, at: int, parts: Sequence[StandIn]) -> list[str]:
        """The names of results that nothing reads after a step: their memory is free for what follows."""
        later = {x.removesuffix(_DETACHED) for i in range(at + 1, len(self.steps)) for x in self.given(i)}
        later |= {x.name.removesuffix(_DETACHED) for x in parts} | {*self.writes.values()}
        now = {x.removesuffix(_DETACHED) for x in self.given(at)} & {x for step in self.steps[:at] for x in step[4]}
        return sorted(({*self.steps[at][4]} | now) - later)

    def given(self, at: int) -> list[str]:
        """The names of an op's operands."""
        operands = self.steps[at][1]
        return [x.name if type(x) is StandIn else f"c{at}_{i}" for i, x in enumerate(operands)]

    def unrecorded(self, parts: Sequence[StandIn], given: str, scope: dict[str, Any]) -> list[str]:
        """Text that applies the ops to arrays, for calls that record nothing; the caller's views are made of tensors.

        An exception there is dropped: the recorded way that follows raises it again, with its reason.

        Parameters
        ----------
        given : the statement that returns.
        """
        shown = {x.removesuffix(_DETACHED) for x in (*(x.name for x in parts), *self.writes.values())}
        for at in reversed(range(len(self.steps))):
            if self.may_show(at) and shown & set(self.steps[at][4]):
                shown.add(self.given(at)[0].removesuffix(_DETACHED))
        operands = [x.name for x in self.operands if type(x) is StandIn]
        if shown & set(operands):
            return []
        scope |= {"mode": mode, "ndarray": np.ndarray, "asarray": np.asarray}
        wanted = " or ".join(f"{x}._requires_grad" for x in operands)
        lines = [f"if not (mode.inference_seen or mode.grad_mode.get() and ({wanted})):", "    try:"]
        inner = self.straight(shown, scope) or self.one_by_one(shown, parts, scope)
        lines += [*(f"        {line}" for line in inner), "    except Exception: pass", "    else:"]
        lines += [*(f"        {x}.copy_({y})" for x, y in self.writes.items()), f"        {given}"]
        return [f"    {line}" for line in lines]

    def may_show(self, at: int) -> bool:
        """Whether results of a step may be views of its first operand, or parts of it, as those of a split."""
        op, operands, attrs, _, names = self.steps[at]
        if op.kind != "composite" or len(names) == 1:
            return op.kind == "view"
        assert op.forward is not None
        inner = OpLine([x.payload.spec if type(x) is StandIn else x for x in operands])
        try:
            made = {x.name for x in op.forward(*inner.operands, **attrs)}
        except Exception:  # it follows from more than forms
            return True
        views = {name for step in inner.steps if step[0].kind == "view" for name in step[4]}
        return not made.isdisjoint([*views, *(x.name for x in inner.operands if type(x) is StandIn)])

    def straight(self, shown: set[str], scope: dict[str, Any]) -> list[str]:
        """Text that applies the ops as straight lines, then to tensors those that make the caller's views; or nothing.

        Parameters
        ----------
        shown : names of results that become tensors.
        """
        views = [at for at, step in enumerate(self.steps) if self.may_show(at) and shown & {*step[4]}]
        viewed = {name for at in views for name in self.steps[at][4]}
        steps: list[tuple[Op, list[Any], Attrs, list[str]]] = []
        for at, (op, operands, attrs, _, names) in enumerate(self.steps):
            given = [x.name.removesuffix(_DETACHED) if type(x) is StandIn else _plain(x) for x in operands]
            if at not in views:
                if viewed & {x for x in given if type(x) is str}:
                    return []
                steps.append((op, given, attrs, names))
        specs = {x.name: x.payload.spec for x in self.operands if type(x) is StandIn}
        asked = sorted(shown - viewed)
        if len(steps) < 2:
            return []
        from common.evaluate.straight_line import straight_steps

        made = straight_steps(specs, steps, asked)
        if made is None:
            return []
        scope["straight"] = made
        lines = [f"{''.join(f'p_{x}, ' for x in asked)} = straight({', '.join(f'{x}.payload' for x in specs)})"]
        lines += [f"if p_{x}.__class__ is not ndarray: p_{x} = asarray(p_{x})" for x in asked]
        lines += [f"{x} = wrap(p_{x})" for x in asked]
        for at in views:
            read = ", ".join(x.removesuffix(_DETACHED) for x in self.given(at))
            lines.append(f"{', '.join(self.steps[at][4])} = record(op{at}, ({read},), a{at})")
        return lines

    def one_by_one(self, shown: set[str], parts: Sequence[StandIn], scope: dict[str, Any]) -> list[str]:
        """Text that applies the ops to arrays one after the other."""
        inner = [f"p_{x.name} = {x.name}.payload" for x in self.operands if type(x) is StandIn]
        for at, (*_, names) in enumerate(self.steps):
            given = [x.removesuffix(_DETACHED) for x in self.given(at)]
            if self.may_show(at) and shown & set(names):
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
                one = made if len(names) == 1 else f"t{at}"
                inner += [f"{one} = b{at}({arrays})", f"if {one} is None: {one} = r{at}({arrays})"]
                inner += [f"{made} = {one}"] if one != made else []
            inner += [f"if p_{x}.__class__ is not ndarray: p_{x} = asarray(p_{x})" for x in names]
            inner += [f"{x} = wrap(p_{x})" for x in names if x in shown]
            inner += [f"p_{x} = None" for x in self.done_with(at, parts)]
        return inner


def _is_empty(x: Any) -> bool:
    """Whether a result is a tensor without elements that no operand has part in, as the residuals of `lstsq` may be."""
    return type(x) is Tensor and type(x.payload) is np.ndarray and not x.payload.size and not x._requires_grad


def lie_apart(tensors: Sequence[Any], written: int) -> bool:
    """Whether the first tensors of some, which are written to, share no memory with each other and the others."""
    arrays = [x.payload for x in tensors]
    for i, x in enumerate(arrays[:written]):
        for z in arrays[i + 1 :]:
            if z is x or ((x.base is not None or z.base is not None) and np.may_share_memory(x, z)):
                return False
    return True


def _spec(found: Recipe) -> Any:
    """The spec of an op's result, or of each; a composite that has not run yet is written down first."""
    if found.spec is None and found.op.kind == "composite":
        from common.evaluate.straight_line import straight_forward

        straight_forward(found)
    if found.spec is None:
        raise MoreThanFormsError
    return found.spec


def _plain(x: Any) -> Any:
    """A number, or the array of a constant."""
    return x if type(x) in NUMBERS else np.array(x.payload if type(x) is Tensor else x)


def _constant(x: Any) -> Any:
    """A number, or a tensor that nothing else writes to."""
    return x if type(x) in NUMBERS else wrap(_plain(x))
