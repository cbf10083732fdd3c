"""The short way of ops inside a mapped function: one native call outside, where nothing there watches.

It takes elementwise ops on examples of one dtype and as many dimensions, and numbers, and reductions of one operand.
Everything else, and all that the native call declines, goes the general way (`batch_trace.BatchTrace.record`), with
the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import NO_ATTRS, Attrs, interned
from common.core.dtypes import default_changed
from common.core.op import Op, rules_changed
from common.core.python_numbers import Int, Number, plain
from common.core.unbroadcast import INTS
from common.evaluate import specialise as eager
from common.evaluate.specialise import Recipe
from common.tensor.base import wrap
from common.tensor.node import Node
from common.transforms.batching.batch_rules import moved, moved_attributes, rule_of
from common.transforms.batching.batched import Batched, BatchedTensor


def shortly(trace: Any, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Values of the operands, and what the op makes of them; None where the general way is to be taken."""
    if not _is_bare(trace):
        return None
    payloads = _payloads(trace, operands)
    y = None if payloads is None else _at_once(trace, op, payloads, attrs)
    if y is None:
        return None
    return payloads, tuple([Batched(part, True, trace) for part in y]) if type(y) is tuple else Batched(y, True, trace)


def pulled(trace: Any, node: Node, g: Any, needs: Sequence[Any]) -> list[Any] | None:
    """What a node contributes to its operands, by the rules of its op on all examples; None as for `shortly`."""
    op, attrs = node.op, node.attrs or NO_ATTRS
    if not _is_mapped(trace, g) or type(attrs) is not Attrs or not _is_bare(trace):
        return None
    saved = _saved(trace, node)
    if saved is None or (rules := _rules(op, attrs, _forms(node, saved, g, trace.count), trace.count)) is None:
        return None
    found, attrs = rules
    contributions = _outside(trace, _contributions, found, saved, attrs, g.value.payload, needs)
    return [None if c is None else Batched(c, True, trace) for c in contributions]


def _is_mapped(trace: Any, x: Any) -> bool:
    return type(x) is Batched and x.mapped and x.trace is trace


def _contributions(found: Recipe, *given: Any) -> list[Any]:
    return [None if c is None else wrap(c) for c in found.backward(*given)]


def _saved(trace: Any, node: Node) -> tuple[Any, ...] | None:
    """What a node has saved, of all examples: arrays, numbers and shapes."""
    if type(node.saved) is not tuple or node.fit is None:
        return None
    saved: list[Any] = []
    for x in plain(node.saved):
        if _is_mapped(trace, x):
            saved.append(x.value.payload)
        elif type(x) is tuple and INTS.issuperset(map(type, x)):
            saved.append((trace.count, *x))
        elif type(x) is float or type(x) is int:
            saved.append(x)
        else:
            return None
    return tuple(saved)


def _forms(node: Node, saved: Sequence[Any], g: Batched, count: int) -> tuple[Any, ...]:
    """The forms of a node's operands with all examples; one that is not known is that of the cotangent."""
    forms: list[Any] = []
    for i, own in enumerate(node.fit):
        if own is None:
            x = saved[node.op.saved_inputs.index(i)] if i in node.op.saved_inputs else g.value.payload
            forms.append((x.shape, x.dtype) if type(x) is np.ndarray else type(x))
        else:
            forms.append(_PLAIN.get(own, own) if isinstance(own, type) else ((count, *own[0]), own[1]))
    return (*forms, (g.value.payload.shape, g.value.payload.dtype))


_PLAIN: dict[type, type] = {Number: float, Int: int}


@lru_cache(maxsize=4096)
def _rules(op: Op, attrs: Attrs, forms: tuple[Any, ...], count: int) -> tuple[Recipe, Attrs] | None:
    """The recipe of an op on all examples, and its attributes; the last form is the cotangent's."""
    *own, form = forms
    known: Any = attrs
    if op.kind == "elementwise":
        if any(type(x) is tuple and x[0] != form[0] for x in own):  # contributions are sums over what is repeated
            return None
    elif len(own) > 1 or rule_of(op) is not moved:
        return None
    else:
        known = _moved(op, attrs, count)
    if type(known) is not Attrs:
        return None
    found = eager.recipe(op, tuple(own), known)
    return None if found.plan is None else (found, known)


rules_changed.append(lambda op: _rules.cache_clear())
default_changed.append(_rules.cache_clear)


def _payloads(trace: Any, operands: Sequence[Any]) -> list[Any] | None:
    """Values of a call, of one dtype and as many dimensions, and numbers; None where an operand is something else."""
    payloads: list[Any] = []
    like = None
    for x in plain(operands):
        kind = type(x)
        if kind is BatchedTensor:
            x, kind = x.payload, Batched
        if kind is Batched:
            if x.trace is not trace or not x.mapped:
                return None
            spec = x.spec
            if like is None:
                like = spec
            elif spec.dtype != like.dtype or len(spec.shape) != len(like.shape):
                return None
        elif kind is not float and kind is not int:
            return None
        payloads.append(x)
    return None if like is None else payloads


def _at_once(trace: Any, op: Op, payloads: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The op on all examples, outside; None where the general way is to be taken."""
    if op.kind == "reduction":
        if len(payloads) > 1 or type(attrs) is not Attrs or rule_of(op) is not moved:
            return None
        attrs = _moved(op, attrs, trace.count)
    elif op.kind != "elementwise":
        return None
    elif not attrs:
        attrs = NO_ATTRS
    if type(attrs) is not Attrs:
        return None
    return _outside(trace, eager.applied, op, attrs, *[x.value if type(x) is Batched else x for x in payloads])


def _is_bare(trace: Any) -> bool:
    """Whether nothing is around a call of `vmap`, and the function not in a branch of some examples."""
    return not (trace.branches or trace.outer is not None or trace.packers or trace.level is not None)


def _outside(trace: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function outside of a call of `vmap` that nothing is around."""
    watcher = mode.leave(trace.key)
    mode.switch_trace(None)
    try:
        return function(*arguments)
    finally:
        mode.switch_trace(trace)
        mode.come_back(trace.key, watcher)


@lru_cache(maxsize=4096)
def _moved(op: Op, attrs: Attrs, count: int) -> Mapping[str, Any]:
    return interned(moved_attributes(op, attrs, count))
