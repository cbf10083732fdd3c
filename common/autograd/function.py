"""`autograd.Function`: operations with a gradient rule of the user's own."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from common.autograd.nested_backward import nested
from common.autograd.view_histories import rebind, require_writable
from common.core import mode
from common.core.errors import ArgumentError, GradientError, GraphFreedError, NotDefinedError, ShapeError
from common.core.source_lines import user_frame
from common.core.spec import Spec
from common.core.unbroadcast import fit
from common.ops.create.creation import zeros
from common.tensor.base import TensorBase, wrap
from common.tensor.external_writes import exposed, seal
from common.tensor.inference import is_inference, saving
from common.tensor.node import Edge, Node
from common.tensor.observers import packers
from common.tensor.packed_values import PackedValue, pack
from common.tensor.read_saved import unpacked, with_edge
from common.tensor.view_families import is_recorded, make_opaque


class FunctionCtx:
    """What `forward` hands to `backward`; takes any attributes.

    Attributes
    ----------
    needs_input_grad : per argument of `apply`, whether its gradient is asked for.
    """

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._node: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors, or None, for `backward`, which finds them in `saved_tensors`.

        Overwriting one of them before `backward` is noticed; inputs and results keep their history.

        Raises
        ------
        ArgumentError : something that is no tensor; keep that as an attribute.
        """
        for x in tensors:
            if x is not None and not isinstance(x, TensorBase):
                raise ArgumentError(
                    f"save_for_backward can only save variables, but got an object of type {type(x).__name__}"
                )
        self._to_save = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which arguments `forward` has overwritten; they must be among its results."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for results that no gradient reached."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept.

        Raises
        ------
        GraphFreedError : a backward pass without `retain_graph` has freed it.
        """
        node = self._node() if self._node is not None else None
        if node is None or node.saved is None:
            if node is None:
                return self._to_save
            raise GraphFreedError(
                "Trying to access saved tensors after they have already been freed. Specify retain_graph=True if you "
                "need to backward through the graph a second time."
            )
        return tuple(None if x is None else x.restore(node) for x in node.saved)


class _Saved(NamedTuple):
    """A saved tensor without its history, which would be a cycle if it is a result.

    Attributes
    ----------
    edge : where its gradient goes.
    output : which result it is, None for an argument or anything else.
    """

    payload: Any
    edge: Edge
    output: int | None

    def restore(self, node: Node) -> TensorBase:
        """The tensor with its history."""
        edge = self.edge if self.output is None else (node, self.output) if self.output else node
        return with_edge(self.payload, edge)


class _Packed(NamedTuple):
    """What a pack hook made of a saved tensor; `edge` and `output` as for `_Saved`."""

    slot: PackedValue
    edge: Edge
    output: int | None
    payload: None = None  # no array that a write could reach

    def restore(self, node: Node) -> TensorBase:
        """What the unpack hook returns, with the history of the saved tensor."""
        edge = self.edge if self.output is None else (node, self.output) if self.output else node
        return unpacked(self.slot.open(), edge)


class Function:
    """Base of operations with a gradient rule of their own.

    A subclass defines static methods: ``forward(ctx, *args)``, or ``forward(*args)`` with ``setup_context(ctx, inputs,
    output)``; and ``backward(ctx, *grads)``, which gets one gradient per result and returns one per argument, None for
    those without. It is called by ``apply(*args)``. `forward` is not recorded. In the tape it is one node.

    Examples
    --------
    >>> import dynamic as tw
    >>> class Cube(tw.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = tw.tensor([2.0], requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor([12.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results; defined by the subclass."""
        raise NotDefinedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what `backward` needs; then `forward` takes no ctx."""
        raise NotDefinedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the arguments from those of the results; defined by the subclass."""
        raise NotDefinedError(
            "You must implement the backward function for your custom autograd.Function to differentiate it."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of `backward`."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom Function.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and put one node on the tape."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _bound(cls.forward, args, kwargs)
        recording = mode.is_grad_enabled()
        ctx = FunctionCtx(tuple(recording and isinstance(x, TensorBase) and x.requires_grad for x in args))
        edges = [x.edge if isinstance(x, TensorBase) and recording else None for x in args]
        with mode.no_grad():
            result = cls.forward(*args, **kwargs) if separate else cls.forward(ctx, *args, **kwargs)
            if separate:
                cls.setup_context(ctx, args, result)
        outputs = list(result) if isinstance(result, tuple) else [result]
        for x in ctx._dirty:
            if not any(x is y for y in outputs):
                raise GradientError(
                    f"{cls.__name__}: Some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the Function."
                )
        if recording:
            _require_writable(ctx._dirty, any(edge is not None for edge in edges))
        if any(edge is not None for edge in edges):
            outputs = _recorded(cls, ctx, args, edges, outputs)
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def _recorded(cls: Any, ctx: FunctionCtx, args: Sequence[Any], edges: list[Edge], outputs: list[Any]) -> list[Any]:
    """The results as outputs of one node."""
    # a result that is an argument becomes a tensor of its own, unless the function has overwritten it
    returned = [_shown(cls, y, args) if not _among(y, ctx._dirty) else y for y in outputs]
    op: Any = _FunctionOp(cls, [_spec(y) for y in returned], [_spec(x) for x in args])
    saved = tuple(_keep(x, args, edges, outputs) for x in ctx._to_save)
    ctx._to_save = ()
    node = Node(op, ctx, tuple(edges), saved, None, *user_frame(3))
    if mode.tracing and packers.get() and mode.current_trace() is None:
        node.saved = tuple(x if x is None else _Packed(pack(x.payload, packers.get()[-1]), *x[1:]) for x in saved)
    if exposed:
        seal(node)
    ctx._node = weakref.ref(node)
    for position, y in enumerate(returned):
        if isinstance(y, TensorBase) and y.dtype.kind == "f" and not _among(outputs[position], ctx._constant):
            if _among(y, ctx._dirty):
                written = wrap(_payload(y))
                written.grad_fn, written.output_nr, written._requires_grad = node, position, True
                rebind(y, written, cls.__name__, True)
                y._grad = None  # as in PyTorch: it was that of what has been overwritten
            else:
                y.grad_fn, y.output_nr, y._requires_grad = node, position, True
    return returned


def _bound(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position, defaults included, as `setup_context` gets them; and what only keywords can say."""
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs  # the call itself says what is wrong
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _require_writable(dirty: Sequence[Any], recorded: bool) -> None:
    """Refuse a function that has written to a leaf, or to a view that may have no history, where that is for the tape.

    Parameters
    ----------
    recorded : whether an argument requires grad.
    """
    for x in dirty:
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"mark_dirty only accepts input tensors, but got an object of type {type(x).__name__}")
        if not (recorded or is_recorded(x)):
            continue
        if x._requires_grad and x.grad_fn is None:
            raise GradientError("a leaf Variable that requires grad has been used in an in-place operation.")
        require_writable(x, "mark_dirty")


def _shown(function: Any, y: Any, args: Sequence[Any]) -> Any:
    """A result that may show memory of an argument: an argument itself becomes a tensor of its own."""
    if not isinstance(y, TensorBase):
        return y
    if any(y is x for x in args):
        shown = y.detach()
        make_opaque(shown, y, function.__name__)
        return shown
    if type(getattr(y, "_family", None)) is tuple:
        make_opaque(y, y, function.__name__)
    return y


def _payload(x: TensorBase) -> Any:
    trace = mode.current_trace()
    return x.payload if trace is None else trace.payload(x)


def _among(x: Any, tensors: Sequence[Any]) -> bool:
    return any(x is y for y in tensors)


def _spec(x: Any) -> Spec | None:
    return Spec(x.shape, x.dtype) if isinstance(x, TensorBase) else None


def _keep(x: Any, args: Sequence[Any], edges: list[Edge], outputs: Sequence[Any]) -> Any:
    if x is None:
        return None
    if mode.inference_seen and is_inference(x):
        raise saving("a Function")
    data = _payload(x)
    for y, edge in zip(args, edges):
        if y is x:
            return _Saved(data, edge, None)
    for position, y in enumerate(outputs):
        if y is x:
            return _Saved(data, None, position)
    return _Saved(data, None, None)


class _FunctionOp:
    """The op of a Function's node.

    Parameters
    ----------
    outputs, inputs : specs of the results and arguments, None for what is no tensor.
    """

    kind = "function"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = True
    frees = True

    def __init__(self, function: Any, outputs: Sequence[Spec | None], inputs: Sequence[Spec | None]) -> None:
        self.function, self.outputs, self.inputs = function, outputs, inputs
        self.nout = len(outputs)
        self.name = function.__name__
        self.node_name = f"{self.name}Backward"

    def backward(self, saved: Any, ctx: FunctionCtx, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the arguments, of their shapes and dtypes."""
        bare = not mode.is_grad_enabled()
        grads = [self._gradient(ctx, y, spec) for y, spec in zip((g,) if self.nout == 1 else g, self.outputs)]
        function = self.function
        if function.backward is Function.backward and function.vjp is not Function.vjp:
            returned = nested(function.vjp, ctx, *grads)
        else:
            returned = nested(function.backward, ctx, *grads)
        found = list(returned) if isinstance(returned, tuple) else [returned]
        while len(found) > len(self.inputs) and found[-1] is None:
            found.pop()
        if len(found) != len(self.inputs):
            raise GradientError(
                f"function {self.node_name} returned an incorrect number of gradients (expected {len(self.inputs)}, "
                f"got {len(found)})"
            )
        return tuple(self._contribution(i, c, needs[i], bare) for i, c in enumerate(found))

    def _gradient(self, ctx: FunctionCtx, g: Any, spec: Spec | None) -> Any:
        if g is not None:
            return g if isinstance(g, TensorBase) else wrap(g)
        if not ctx._materialize or spec is None:
            return None
        with mode.no_grad():
            zero = zeros(spec.shape, dtype=spec.dtype)
        return zero if isinstance(zero, TensorBase) else wrap(zero)

    def _contribution(self, position: int, c: Any, edge: Edge, bare: bool) -> Any:
        if c is None or edge is None:
            return None
        spec = self.inputs[position]
        assert spec is not None, "only tensors have edges"
        if not isinstance(c, TensorBase):
            raise GradientError(
                f"expected {self.node_name} to return a tensor or None at index {position}, got {type(c).__name__}"
            )
        got, wanted = tuple(c.shape), tuple(spec.shape)
        extra = len(got) - len(wanted)
        if extra < 0 or any(n != 1 and n != m for m, n in zip(got[extra:], wanted)):
            raise ShapeError(
                f"Function {self.node_name} returned an invalid gradient at index {position} - got {list(got)} but "
                f"expected shape compatible with {list(wanted)}"
            )
        c = fit(c, spec.shape, spec.dtype)
        if not bare:
            return c
        trace = mode.current_trace()
        return c.payload if trace is None else trace.payload(c)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` that must not be differentiated: its gradients refuse to be.

    Examples
    --------
    >>> class Sign(Function):
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, g):
    ...         return g
    """

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        with mode.no_grad():
            returned = backward(ctx, *grads)
        if not mode.is_grad_enabled() or not any(isinstance(g, TensorBase) and g.requires_grad for g in grads):
            return returned
        found = returned if isinstance(returned, tuple) else (returned,)
        refused = tuple(_Refused.apply(g, *grads) if isinstance(g, TensorBase) else g for g in found)
        return refused if isinstance(returned, tuple) else refused[0]

    return wrapped


class _Refused(Function):
    """The identity, with a gradient that explains why there is none."""

    @staticmethod
    def forward(ctx: Any, x: Any, *grads: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise GradientError("trying to differentiate twice a function that was marked with @once_differentiable")


__all__ = ["Function", "FunctionCtx", "once_differentiable"]
