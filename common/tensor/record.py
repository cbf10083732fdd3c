"""The record of ops on tensors: each runs, and puts a node on the tape where a gradient may be wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import NO_ATTRS, Attrs, apply_at_home, interned, interprets
from common.core.dtypes import default_changed, number_spec, operand_dtypes
from common.core.errors import EscapedTracerError
from common.core.interpretation import OpenTrace
from common.core.op import REGISTRY, Op
from common.core.operators import as_operand
from common.core.python_numbers import WEAK, as_array, plain, weak
from common.core.source_lines import own_files, user_files, user_frame
from common.core.spec import Spec
from common.evaluate import specialise as eager
from common.evaluate.specialise import Recipe
from common.runtime.tape_state import Tape
from common.tensor import tape_garbage
from common.tensor.base import NUMBERS, Tensor, TensorBase, spec_of, wrap
from common.tensor.external_writes import borrow, exposed, seal
from common.tensor.inference import mark_result, refuse_saving
from common.tensor.leaf import Buffer, Parameter
from common.tensor.node import Edge, Node, next_number, numbers
from common.tensor.observers import watch
from common.tensor.view_families import note_array

_new = object.__new__
_ndarray = np.ndarray
_grad_enabled = mode.grad_mode.get
_next_number = next_number


def cast_operands(op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """Operands of an elementwise op in the dtype in which it computes; numbers stay weak."""
    if op.attrs:
        return operands
    operands = [as_array(x) if isinstance(x, (np.generic, _ndarray)) else x for x in operands]  # native byte order
    targets = _cast_targets(op, tuple(_tier(x) for x in operands))
    if targets is None:
        return operands
    to = REGISTRY["to"]
    return [x if t is None else to(x, dtype=t, x_dtype=x.dtype) for x, t in zip(operands, targets)]


def _tier(x: Any) -> Any:
    """An operand's part in promotion: a number's type, or dtype, whether it has dimensions, and weakness."""
    if isinstance(x, NUMBERS):
        return type(x)
    spec = spec_of(x)
    return spec.dtype, len(spec.shape) > 0, spec.weak


@lru_cache(maxsize=4096)
def _cast_targets(op: Op, tiers: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Per operand the dtype to convert to, or None; None altogether if nothing is converted."""
    specs = [number_spec(t(0)) if isinstance(t, type) else Spec((2,) * t[1], t[0], t[2]) for t in tiers]
    wanted = operand_dtypes(op, specs)
    targets = tuple(None if isinstance(t, type) or t[0] == w else w for t, w in zip(tiers, wanted))
    return targets if any(t is not None for t in targets) else None


default_changed.append(_cast_targets.cache_clear)

_NO_EDGE: tuple[Edge, ...] = (None,)


def _operands(operands: Sequence[Any]) -> tuple[list[Any], list[Edge], bool]:
    """Payloads and edges of operands of any kind, and whether one requires grad."""
    payloads: list[Any] = []
    edges: list[Edge] = []
    wanted = False
    for x in operands:
        if isinstance(x, TensorBase):
            data = x.payload
            if type(data) is not _ndarray and not isinstance(data, _ndarray):
                raise EscapedTracerError(x.describe_escape())
            payloads.append(data)
            if not x._requires_grad:
                edges.append(None)
                continue
            node, wanted = x.grad_fn, True
            edges.append(x if node is None else (node, x.output_nr) if x.output_nr else node)
            continue
        if not isinstance(x, NUMBERS) or isinstance(x, np.generic):
            borrow(x, "the operand")
            x = as_array(x)
        payloads.append(x)
        edges.append(None)
    return payloads, edges, wanted


@eager.makes_tape
def _tape() -> Tape:
    """The engine's tensors and nodes for native code."""
    template: Any = _new(Tensor)
    template.grad_fn = template._grad = template._family = None
    template.output_nr, template._requires_grad = 0, False
    watching, places = (mode.tracing, exposed, NO_ATTRS, tape_garbage.due_word), (user_files, own_files, user_frame)
    kinds = (Tensor, Parameter, Buffer)
    return Tape(
        *watching, mode.grad_mode, numbers, *places, tape_garbage.look, seal, note_array, template, Node, kinds, Recipe
    )


@interprets(TensorBase)
def record(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on tensors and, where a gradient may be wanted, put a node on the tape."""
    if not attrs:
        attrs = NO_ATTRS
    elif type(attrs) is not Attrs and not mode.tracing:
        attrs = interned(attrs)
    if (made := eager.applied(op, attrs, *operands)) is not None:
        return made
    if not WEAK.isdisjoint(map(type, operands)):
        return record(op, plain(operands), attrs)
    if mode.tracing:
        if (level := mode.dual_level.get()) is not None:
            return level.record(op, operands, attrs)
        if (trace := mode.current_trace()) is not None:
            return _record_traced(trace, op, operands, attrs)
        if (profile := mode.profiling.get()) is not None:
            profile.begin()
    payloads: Any
    edges: Any
    if len(operands) == 1 and isinstance(x := operands[0], TensorBase) and type(data := x.payload) is _ndarray:
        payloads = (data,)
        found = eager.find(op, attrs, data)
        wanted = x._requires_grad
        edges = (x.edge,) if wanted else _NO_EDGE
    elif (
        len(operands) == 2
        and isinstance(x := operands[0], TensorBase)
        and isinstance(z := operands[1], TensorBase)
        and type(data := x.payload) is _ndarray
        and type(other := z.payload) is _ndarray
    ):
        payloads = (data, other)
        found = eager.find(op, attrs, data, other)
        wanted = x._requires_grad or z._requires_grad
        edges = (x.edge, z.edge) if wanted else _NO_EDGE
    else:
        try:
            payloads, edges, wanted = _operands(operands)
        except EscapedTracerError:
            return apply_at_home(op, operands, attrs)
        found = eager.find(op, attrs, *payloads)
    if found is None:
        found = eager.prepare(op, payloads, attrs)
    if found.casts:
        return record(op, cast_operands(op, operands), attrs)
    try:
        if (builtin := found.builtin) is None or (y := builtin(*payloads)) is None:
            y = found.run(*payloads)
    except (MemoryError, ValueError, IndexError) as error:
        eager.refuse_large(op, error)
        raise
    if type(y) is tuple:
        tensors = [wrap(part) for part in y]
        if y[0].base is not None and isinstance(operands[0], TensorBase):  # such as the parts of a split
            for position, part in enumerate(tensors):
                note_array(operands[0], part, op, attrs, position)
        several = None
        if wanted and op.differentiable and _grad_enabled():
            if mode.inference_seen:
                refuse_saving(op, operands, edges)
            several = _attach(op, attrs, payloads, y, tensors, edges, found)
        if mode.inference_seen:
            mark_result(op, operands, tensors)
        if mode.tracing:
            watch(op, payloads, y, several)
        return tuple(tensors)
    t: Any = _new(Tensor)
    t.payload = y if type(y) is _ndarray else np.asarray(y)
    t.output_nr = 0
    t._grad = t._family = None
    if op.kind == "view" and isinstance(operands[0], TensorBase):
        note_array(operands[0], t, op, attrs)
    if wanted and found.recorded and _grad_enabled():
        if mode.inference_seen:
            refuse_saving(op, operands, edges)
        node = _new(Node)
        node.number = number = _next_number()
        if number >= tape_garbage.due:
            tape_garbage.look(number)
        node.op = op
        node.attrs = found.attrs
        node.backward = found.backward
        node.fit = found.forms
        node.edges = tuple(edges)
        node.saved = op.save(payloads, y)
        node.freed_by = None
        node.code, node.lasti = user_frame(2)
        if exposed:
            seal(node)
        t.grad_fn = node
        t._requires_grad = True
    else:
        t.grad_fn = None
        t._requires_grad = False
    if mode.inference_seen:
        mark_result(op, operands, (t,))
    if mode.tracing:
        watch(op, payloads, y, t.grad_fn)
    return t


def _record_traced(trace: OpenTrace, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    found = None if trace.shortly is None else trace.shortly(op, operands, attrs)
    if found is not None:
        payloads, result = found
    else:
        if op.kind == "elementwise":
            operands = cast_operands(op, [as_operand(x) for x in operands])  # a size is a number
        payloads = [trace.payload(x) for x in operands]
        result = trace.record(op, payloads, attrs) if op.forward is not None else op(*payloads, **attrs)
    tensors = [trace.wrap(y) for y in (result if type(result) is tuple else (result,))]
    trace.note_views(op, attrs, operands, tensors)
    if op.differentiable and _grad_enabled():
        edges = [x.edge if isinstance(x, TensorBase) else None for x in operands]
        if any(edge is not None for edge in edges):
            _attach(op, attrs, [weak(x) for x in payloads], result, tensors, edges, None)
    return tuple(tensors) if type(result) is tuple else tensors[0]


def _attach(
    op: Op, attrs: Any, payloads: Any, result: Any, tensors: list[TensorBase], edges: Any, found: Recipe | None
) -> Node:
    fit = tuple([_form(x) if e is not None or isinstance(x, NUMBERS) else None for x, e in zip(payloads, edges)])
    node = Node(op, attrs, tuple(edges), op.save(payloads, result), fit, *user_frame(3))
    if found is not None:
        node.backward = found.backward
        if exposed:
            seal(node)
    for position, tensor in enumerate(tensors):
        if tensor.dtype.kind == "f":
            tensor.grad_fn, tensor.output_nr, tensor._requires_grad = node, position, True
    return node


def _form(x: Any) -> Any:
    """Shape and dtype, or the type of a number."""
    return type(x) if isinstance(x, NUMBERS) else (x.shape, x.dtype)
