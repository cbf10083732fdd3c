"""`autograd.Function`: operations with a gradient rule of the user's own."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from common.autograd.function_context import FunctionCtx, PackedForBackward, SavedForBackward
from common.autograd.function_marks import among, require_views, require_writable_arguments
from common.autograd.nested_backward import nested
from common.autograd.view_histories import rebind
from common.core import mode
from common.core.errors import (
    GradientError,
    MissingAttributeError,
    NotDefinedError,
    ShapeError,
)
from common.core.source_lines import user_frame, warn_user
from common.core.spec import Spec
from common.core.unbroadcast import fit
from common.ops.create.creation import zeros
from common.tensor.base import TensorBase, wrap
from common.tensor.external_writes import exposed, seal
from common.tensor.inference import is_inference, saving
from common.tensor.node import Edge, FunctionNode, shown_class
from common.tensor.observers import packers
from common.tensor.packed_values import pack
from common.tensor.view_families import make_opaque
from common.tensor.write_log import log_write


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

    #: PyTorch's switch for a rule of `vmap` that is made of `forward` and `backward`; here that is so without `vmap`.
    generate_vmap_rule = False
    _backward_cls: type

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._backward_cls = shown_class(f"{cls.__name__}Backward")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_user(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
        )

    def __getattr__(self, name: str) -> Any:
        """Refuse what only nodes have: in PyTorch of long ago an instance was one."""
        if name in ("name", "next_functions", "register_hook", "_register_hook_dict", "metadata"):
            raise GradientError(
                f"Attribute '{name}' is invalid for this instance of {type(self).__name__}: it is no node of a graph, "
                "or the underlying PyNode has already been deallocated. A result's grad_fn is the node"
            )
        raise MissingAttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse what PyTorch of long ago did."""
        raise GradientError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: {type(self).__name__}.apply(...)"
        )

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
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of `backward`."""
        raise NotDefinedError("You must implement the backward or vjp method for your custom autograd.Function.")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the results from those of the arguments, None for those without; for `forward_ad`."""
        raise NotDefinedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The results of all examples of a batch at once; without this rule `vmap` maps `forward` itself.

        Parameters
        ----------
        info : its `batch_size` is the number of examples, `randomness` what `vmap` was told.
        in_dims : per argument, in its structure, the dimension of the examples; None for what they share.
        args : of `forward`, with all examples.

        Returns
        -------
        output, out_dims : what `forward` returns, with all examples; and where it has their dimension, None for no
            result.
        """
        raise NotDefinedError("To use autograd.Function with vmap, nothing is needed: its forward is mapped itself.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and put one node on the tape."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _bound(cls.forward, args, kwargs)
        recording = mode.is_grad_enabled()
        ctx = FunctionCtx(tuple(recording and isinstance(x, TensorBase) and x.requires_grad for x in args))
        edges = [x.edge if isinstance(x, TensorBase) and recording else None for x in args]
        level: Any = mode.dual_level.get() if mode.tracing else None
        tangents = () if level is None else tuple(map(level.tangent, args))
        with mode.no_grad(), nullcontext() if level is None else mode.activate_dual_level(None):
            if cls.vmap is not Function.vmap and (trace := mode.current_trace()) is not None and trace.map_function:
                result = trace.map_function(cls, args, kwargs)
            else:
                result = cls.forward(*args, **kwargs) if separate else cls.forward(ctx, *args, **kwargs)
            if separate:
                cls.setup_context(ctx, args, result)
        outputs = list(result) if isinstance(result, tuple) else [result]
        if separate:
            require_views(cls, ctx, args, outputs)
        for x in ctx._dirty:
            if not among(x, outputs):
                raise GradientError(
                    f"{cls.__name__}: Some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the Function."
                )
            if isinstance(x.payload, np.ndarray) and mode.current_trace() is None:
                log_write(x.payload, *user_frame(2))
        if recording:
            require_writable_arguments(ctx._dirty, args, any(edge is not None for edge in edges), len(outputs))
        shown = outputs
        wanted, pushed = edges.count(None) < len(edges), tangents.count(None) < len(tangents)
        if wanted:
            outputs = _recorded(cls, ctx, args, edges, outputs)
        elif recording or pushed:
            outputs = _shown(cls, ctx, args, outputs)
        made = tuple(outputs) if isinstance(result, tuple) else outputs[0]
        if pushed:
            constant = tuple(new for old, new in zip(shown, outputs, strict=True) if among(old, ctx._constant))
            ctx._for_forward = ctx._for_forward or ()
            level.carry(cls, ctx, args, tangents, made, constant)
        ctx._for_forward = None
        return made


def _recorded(cls: Any, ctx: FunctionCtx, args: Sequence[Any], edges: list[Edge], outputs: list[Any]) -> list[Any]:
    """The results as outputs of one node."""
    returned = _shown(cls, ctx, args, outputs)
    constant = [among(y, ctx._constant) for y in outputs]
    op: Any = _FunctionOp(cls, [_spec(y) for y in returned], [_spec(x) for x in args], constant)
    saved = tuple(_keep(x, args, edges, outputs) for x in ctx._to_save)
    ctx._to_save = ()
    node = FunctionNode(op, ctx, tuple(edges), saved, None, *user_frame(3))
    if mode.tracing and packers.get() and mode.current_trace() is None:
        hooks = packers.get()[-1]
        node.saved = tuple(x if x is None else PackedForBackward(pack(x.payload, hooks), *x[1:3]) for x in saved)
    if exposed:
        seal(node)
    ctx._node = weakref.ref(node)
    for position, y in enumerate(returned):
        if isinstance(y, TensorBase) and y.dtype.kind == "f" and not constant[position]:
            if among(y, ctx._dirty) and among(y, args):
                written = wrap(_payload(y))
                written.grad_fn, written.output_nr, written._requires_grad = node, position, True
                rebind(y, written, cls.__name__, True)
                y._grad = None  # as in PyTorch: it was that of what has been overwritten
            else:
                y.grad_fn, y.output_nr, y._requires_grad = node, position, True
    if mode.tracing and (trace := mode.current_trace()) is not None and trace.note_node is not None:
        trace.note_node(node, args, returned)
    return returned


def _bound(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position, defaults included, as `setup_context` gets them; and what only keywords can say."""
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs  # the call itself says what is wrong
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _shown(function: Any, ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Results that may show memory of arguments: an argument that was not overwritten becomes a tensor of its own."""
    several = len(outputs) > 1 and sum(isinstance(y, TensorBase) and not among(y, ctx._constant) for y in outputs) > 1
    shown = list(outputs)
    for position, y in enumerate(outputs):
        if not isinstance(y, TensorBase) or among(y, ctx._dirty):
            continue
        if among(y, args):
            shown[position] = y.detach()
            make_opaque(shown[position], y, function.__name__, several)
        elif type(getattr(y, "_family", None)) is tuple:
            make_opaque(y, y, function.__name__, several)
    return shown


def _payload(x: TensorBase) -> Any:
    trace = mode.current_trace()
    return x.payload if trace is None else trace.payload(x)


def _spec(x: Any) -> Spec | None:
    return Spec(x.payload.shape, x.payload.dtype) if isinstance(x, TensorBase) else None


def _keep(x: Any, args: Sequence[Any], edges: list[Edge], outputs: Sequence[Any]) -> Any:
    if x is None:
        return None
    if mode.inference_seen and is_inference(x):
        raise saving("a Function")
    data = _payload(x)
    for y, edge in zip(args, edges):
        if y is x:
            return SavedForBackward(data, edge, None, _lone(x) if edge is None else None)
    for position, y in enumerate(outputs):
        if y is x:
            return SavedForBackward(data, None, position)
    return SavedForBackward(data, None, None, _lone(x))


def _lone(x: TensorBase) -> Any:
    """A tensor that may be kept as it is: it has no history, which would keep more alive, and belongs to no trace."""
    return x if x.grad_fn is None and not x._requires_grad and mode.current_trace() is None else None


class _FunctionOp:
    """The op of a Function's node.

    Parameters
    ----------
    outputs, inputs : specs of the results and arguments, None for what is no tensor.
    constant : per result, whether it was marked as without gradient.
    """

    kind = "function"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = True
    frees = True

    def __init__(
        self, function: Any, outputs: Sequence[Spec | None], inputs: Sequence[Spec | None], constant: Sequence[bool]
    ) -> None:
        self.function, self.outputs, self.inputs, self.constant = function, outputs, inputs, constant
        self.nout = len(outputs)
        self.name = function.__name__
        self.node_name = f"{self.name}Backward"

    def backward(self, saved: Any, ctx: FunctionCtx, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the arguments, of their shapes and dtypes."""
        bare = not mode.is_grad_enabled() and mode.dual_level.get() is None
        given = zip((g,) if self.nout == 1 else g, self.outputs, self.constant)
        grads = [self._gradient(ctx, y, spec, constant) for y, spec, constant in given]
        function = self.function
        if function.backward is not Function.backward and function.vjp is not Function.vjp:
            raise GradientError(
                f"Implementing both 'backward' and 'vjp' for a custom Function is not allowed: {self.name} should have "
                "one of them"
            )
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

    def _gradient(self, ctx: FunctionCtx, g: Any, spec: Spec | None, constant: bool) -> Any:
        if g is not None:
            return g if isinstance(g, TensorBase) else wrap(g)
        if not ctx._materialize or spec is None or (constant and not ctx._materialize_non_diff_grads):
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
        own, known = c.payload, bare and type(c.payload) is np.ndarray and not mode.tracing
        if known and own.shape == spec.shape and own.dtype == spec.dtype:
            return own
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


class InplaceFunction(Function):
    """PyTorch's name for a `Function` that may overwrite its argument; it says so by ``ctx.mark_dirty``."""


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


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
