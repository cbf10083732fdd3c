"""What eager and traced tensors have in common: a payload, a place in the tape, and PyTorch's methods.

The `payload` is a numpy array in the eager engine and a value of a graph in a trace. Everything else is the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from common import mode
from common.apply import NO_ATTRS, apply_at_home
from common.autograd.exposed import borrow, exposed, seal
from common.autograd.node import Edge, Node, next_number
from common.dtypes import number_spec, operand_dtypes
from common.eager import recipes as eager
from common.eager.recipes import Recipe
from common.errors import EscapedTracerError, ShapeError
from common.frames import user_frame
from common.number import as_array
from common.op import REGISTRY, Op
from common.spec import Spec

NUMBERS = (bool, int, float)
_new = object.__new__
_ndarray = np.ndarray
_grad_enabled = mode.grad_mode.get
_next_number = next_number


class TensorBase:
    """A tensor of either engine.

    Attributes
    ----------
    payload : (...) array or value.
    data : the same elements as a tensor without history; assigning takes over another tensor's memory.
    requires_grad : whether ops on it are recorded.
    grad_fn : the node that made it, None for a leaf.
    grad : the gradient accumulated by `backward`, None or a tensor of the same shape.
    """

    __slots__ = ("payload", "_requires_grad", "grad_fn", "output_nr", "_grad", "_sink", "_family", "_hooks",
                 "__weakref__")  # fmt: skip
    #: Context in which functions of a tensor of a `static.Graph` are recorded; None for all others.
    home: Any = None
    __op_priority__ = 2
    __array_priority__ = 1000
    __array_ufunc__ = None

    payload: Any
    _requires_grad: bool
    grad_fn: Node | None
    output_nr: int
    _grad: Any
    _family: Any

    if TYPE_CHECKING:  # the methods of `common.tensor.methods` and the operators of `common.tensor.operators`
        data: Any
        requires_grad: bool

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, key: Any) -> Any: ...

        def __add__(self, other: Any) -> Any: ...

        def __mul__(self, other: Any) -> Any: ...

        def __neg__(self) -> Any: ...

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes of all dimensions."""
        return self.payload.shape

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype."""
        return self.payload.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.payload.shape)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made it."""
        return self.grad_fn is None

    @property
    def edge(self) -> Edge:
        """Where the tape sends this tensor's gradient."""
        node = self.grad_fn
        if node is None:
            return self if self._requires_grad else None
        return node if self.output_nr == 0 else (node, self.output_nr)

    @property
    def grad(self) -> Any:
        """The accumulated gradient, None or a tensor of the same shape and dtype."""
        trace = mode.current_trace()
        return self._grad if trace is None else trace.get_grad(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and (tuple(value.shape) != tuple(self.shape) or value.dtype != self.dtype):
            raise ShapeError(
                f"attempting to assign a gradient of size {tuple(value.shape)} and dtype {value.dtype} to a tensor of "
                f"size {tuple(self.shape)} and dtype {self.dtype}; they must be the same"
            )
        trace = mode.current_trace()
        if trace is None:
            self._grad = value
        else:
            trace.set_grad(self, value)

    __hash__ = object.__hash__

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return record(op, operands, attrs)


#: `common.autograd.inference`, which puts itself here.
_inference: Any = None

#: Notes that a result of a view op shows an operand's memory; `common.autograd.views` puts itself here.
_note_view: Any = None

#: The class of tensors outside a trace; `common.tensor.eager` puts it here.
eager_class: type[TensorBase] = TensorBase


def wrap(payload: Any) -> TensorBase:
    """A tensor without history over a payload: traced inside a trace, else eager."""
    trace = mode.current_trace()
    if trace is not None:
        return trace.wrap(payload)
    tensor: TensorBase = _new(eager_class)
    tensor.payload = payload if type(payload) is _ndarray else np.asarray(payload)
    tensor.grad_fn, tensor.output_nr, tensor._grad, tensor._requires_grad = None, 0, None, False
    if mode.tracing and mode.is_inference_mode_enabled():
        _inference.mark(tensor)
    return tensor


def spec_of(x: Any) -> Spec:
    """The spec of an operand: tensor, array, value or Python number."""
    if isinstance(x, NUMBERS):
        return number_spec(x)
    spec = getattr(x.payload if isinstance(x, TensorBase) else x, "spec", None)
    if spec is None:
        array = x if isinstance(x, (TensorBase, np.ndarray)) else as_array(x)
        spec = Spec(array.shape, array.dtype)
    return spec


def cast_operands(op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """Operands of an elementwise op in the dtype in which it computes; numbers stay weak."""
    if op.attrs:
        return operands
    # a numpy scalar is an array here, though it passes for a Python number; arrays may be in another byte order
    operands = [as_array(x) if isinstance(x, (np.generic, _ndarray)) else x for x in operands]
    targets = _cast_targets(op, tuple(_tier(x) for x in operands))
    if targets is None:
        return operands
    to = REGISTRY["to"]
    return [x if t is None else to(x, dtype=t, x_dtype=x.dtype) for x, t in zip(operands, targets)]


def _tier(x: Any) -> Any:
    """What promotion asks of an operand: a number's type, or dtype, whether it has dimensions, and weakness."""
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


def record(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on tensors and, where a gradient may be wanted, put a node on the tape."""
    if mode.tracing:
        if (trace := mode.current_trace()) is not None:
            return _record_traced(trace, op, operands, attrs)
        if (profile := mode.profiling.get()) is not None:
            profile.begin()
    payloads: Any
    edges: Any
    if not attrs:
        attrs = NO_ATTRS
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
    except (MemoryError, ValueError) as error:
        eager.refuse_large(op, error)
        raise
    if type(y) is tuple:
        tensors = [wrap(part) for part in y]
        if y[0].base is not None and isinstance(operands[0], TensorBase):  # such as the parts of a split
            for position, part in enumerate(tensors):
                _note_view(operands[0], part, op, attrs, position)
        several = None
        if mode.inference_seen:
            _inference.mark_result(op, operands, tensors)
        if wanted and op.differentiable and _grad_enabled():
            if mode.inference_seen:
                _inference.refuse_saving(op, operands, edges)
            several = _attach(op, attrs, payloads, y, tensors, edges, found)
        if mode.tracing:
            _watch(op, payloads, y, several)
        return tuple(tensors)
    t: Any = _new(eager_class)
    t.payload = y if type(y) is _ndarray else np.asarray(y)
    t.output_nr = 0
    t._grad = None
    if op.kind == "view" and isinstance(operands[0], TensorBase):
        _note_view(operands[0], t, op, attrs)
    if mode.inference_seen:
        _inference.mark_result(op, operands, (t,))
    if wanted and found.recorded and _grad_enabled():
        if mode.inference_seen:
            _inference.refuse_saving(op, operands, edges)
        node = _new(Node)
        node.number = _next_number()
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
    if mode.tracing:
        _watch(op, payloads, y, t.grad_fn)
    return t


def _watch(op: Op, payloads: list[Any], y: Any, node: Node | None) -> None:
    from common.autograd.observe import watch

    watch(op, payloads, y, node)


TensorBase.__apply_op__ = staticmethod(record)  # type: ignore[method-assign]


def _record_traced(trace: Any, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if op.kind == "elementwise":
        operands = cast_operands(op, operands)
    payloads = [trace.payload(x) for x in operands]
    inline = op.forward is not None and trace.inlines
    result = trace.record(op, payloads, attrs) if inline else op(*payloads, **attrs)
    tensors = [trace.wrap(y) for y in (result if type(result) is tuple else (result,))]
    trace.note_views(op, attrs, operands, tensors)
    if op.differentiable and _grad_enabled():
        edges = [x.edge if isinstance(x, TensorBase) else None for x in operands]
        if any(edge is not None for edge in edges):
            _attach(op, attrs, payloads, result, tensors, edges, None)
    return tuple(tensors) if type(result) is tuple else tensors[0]


def _attach(
    op: Op, attrs: Any, payloads: Any, result: Any, tensors: list[TensorBase], edges: Any, found: Recipe | None
) -> Node:
    fit = tuple([_form(x) if e is not None or type(x) in NUMBERS else None for x, e in zip(payloads, edges)])
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
    return type(x) if type(x) in NUMBERS else (x.shape, x.dtype)


def opened(node: Node) -> Any:
    """The saved payloads of a node, unpacked where `saved_tensors_hooks` have packed them."""
    saved = node.saved
    return saved if saved is None or type(saved) is tuple else saved.open()


def saved_tensors(node: Node) -> tuple[Any, ...]:
    """The saved payloads of a node as tensors with their history, for recording the backward pass itself."""
    assert node.saved is not None
    op = node.op
    out: list[Any] = []
    if op.kind in ("region", "function", "compiled"):
        return node.saved
    saved = opened(node)
    for position, index in enumerate(op.saved_inputs):
        payload = saved[position]
        out.append(payload if isinstance(payload, NUMBERS) else with_edge(payload, node.edges[index]))
    shapes = len(op.saved_inputs)
    out.extend(saved[shapes : shapes + len(op.saved_shapes)])
    if op.saves_output:
        y = saved[-1]
        if isinstance(y, tuple):
            edges = (node, *((node, i) for i in range(1, len(y))))
            out.append(tuple(None if p is None else with_edge(p, edge) for p, edge in zip(y, edges)))
        else:
            out.append(with_edge(y, node))
    return tuple(out)


def with_edge(payload: Any, edge: Edge) -> TensorBase:
    """A tensor over `payload` whose gradient goes to `edge`; a leaf itself where the edge is one."""
    if isinstance(edge, TensorBase):
        return edge
    tensor = wrap(payload)
    if edge is not None:
        tensor.grad_fn, tensor.output_nr = edge if type(edge) is tuple else (edge, 0)
        tensor._requires_grad = True
    return tensor
