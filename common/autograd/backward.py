"""Derivatives of tensors: `backward` into `.grad`, and `grad` as values; the same for both engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from common.autograd.accumulate import accumulate, own
from common.autograd.backward_pass import backward_pass
from common.autograd.pass_callbacks import run_waiting, waiting
from common.autograd.recorded_graph import GradientEdge
from common.autograd.unused_inputs import refuse_unused, require_grad, unused
from common.core import mode
from common.core.errors import ArgumentError, GradientError, ShapeError
from common.core.int_arguments import shown
from common.core.shapes import plain_shape
from common.core.source_lines import user_frame, warn_user
from common.core.weak import Alive
from common.evaluate.immediate import Immediate
from common.ops._define import by_ops
from common.ops.math.arithmetic import ones_like, zeros_like
from common.ops.math.cast import to
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Node, next_number
from common.tensor.read_saved import relayed, saved_tensors

#: Leaves inside of transforms that nobody asks for the gradient of any more: what has them in its history only is not
#: being differentiated.
stand_ins: Alive[Any] = Alive()


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of the leaves.

    Parameters
    ----------
    tensors : a tensor or a sequence of them, the roots; or `GradientEdge`s, which need a cotangent.
    grad_tensors : their cotangents, of their shapes; None for scalars means 1.
    retain_graph : keep saved values for another pass; by default as `create_graph`.
    create_graph : record the backward pass itself, so that gradients can be differentiated.
    inputs : accumulate into these tensors only, leaves or not. An edge of a tensor that is no leaf has no `.grad`: its
        gradient is computed, which runs hooks, and not kept.

    Raises
    ------
    GradientError : a root or an input does not require grad, or a root is not a scalar and has no cotangent.
    ShapeError : a cotangent has another shape than its root.
    GraphFreedError : the graph was freed by an earlier pass.
    """
    roots, cotangents = _as_tuple(tensors), None if grad_tensors is None else _as_tuple(grad_tensors)
    if create_graph and mode.current_trace() is None:
        warn_user(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak."
        )
    retain = create_graph if retain_graph is None else retain_graph
    wanted: dict[Any, Any] | None = None
    if inputs is not None:
        targets = _as_tuple(inputs)
        if not targets:
            raise GradientError("`inputs` argument to `backward` cannot be empty.")
        require_grad(targets)
        wanted = {x.edge: x if isinstance(x, TensorBase) else x.edge for x in targets}
    seen = {id(x.payload if isinstance(x, TensorBase) else x) for x in cotangents or ()}

    def deposit(leaf: Any, total: Any) -> bool:
        if wanted is not None:
            leaf = wanted.get(leaf)
        if not isinstance(leaf, TensorBase):
            return False
        if not leaf.requires_grad and wanted is None:  # frozen since it was used
            return True
        if type(total) is np.ndarray:
            total = wrap(own(total, seen))
        elif not isinstance(total, TensorBase):
            total = wrap(_array(total))
        accumulate(leaf, total, create_graph)
        return True

    for edge, total in _run(roots, cotangents, create_graph, retain, wanted and set(wanted), deposit=deposit).items():
        deposit(edge, total)
    if waiting:
        run_waiting()


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of `outputs` with respect to `inputs`, as new tensors.

    Parameters
    ----------
    outputs, grad_outputs : roots and their cotangents, see `backward`.
    inputs : a tensor or a sequence of them, leaves or results of recorded ops; or a `GradientEdge`.
    only_inputs : accepted; gradients of other leaves are not accumulated in any case.
    allow_unused : give None for inputs that the outputs do not depend on, instead of raising; by default as
        `materialize_grads`.
    is_grads_batched : cotangents have a leading dimension, and so do the gradients: one pass for each.
    materialize_grads : give zeros for such inputs.

    Raises
    ------
    GradientError : an input does not require grad, or is not used in the graph.
    ArgumentError : `allow_unused` is False although `materialize_grads` is True.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([2.0, 3.0], requires_grad=True)
    >>> grad((x * x).sum(), x)
    (tensor([4., 6.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads)
    targets = _as_tuple(inputs)
    if not targets:
        raise GradientError("grad requires non-empty inputs: `inputs` of `grad` cannot be empty.")
    require_grad(targets)
    roots, order = _as_tuple(outputs), None
    if not (allow_unused or materialize_grads):  # before the pass frees what tells why
        order = refuse_unused(roots, targets)
    retain = create_graph if retain_graph is None else retain_graph
    totals = _run(roots, grad_outputs, create_graph, retain, {x.edge for x in targets}, order)
    if waiting:
        run_waiting()
    out = []
    for x in targets:
        total = totals.get(x.edge)
        if total is None and materialize_grads:
            with mode.no_grad():
                total = zeros_like(_with_shape(x, materialize=True)).requires_grad_(create_graph)
        if total is None and not allow_unused:
            raise unused(roots, targets, [x for x in targets if totals.get(x.edge) is None], order or [])
        out.append(total if total is None or isinstance(total, TensorBase) else wrap(_array(total)))
    return tuple(out)


def _batched(outputs: Any, inputs: Any, cotangents: Any, create_graph: bool, *options: bool) -> tuple[Any, ...]:
    """`grad` for each of the cotangents in a batch."""
    from common.ops.shape.cat import stack

    batches = _as_tuple(cotangents)
    counts = {len(batch) for batch in batches if batch is not None}
    if len(counts) != 1:
        raise GradientError(f"is_grads_batched: the cotangents have batches of sizes {sorted(counts)}; one is needed")
    (count,) = counts
    for position, (root, batch) in enumerate(zip(_as_tuple(outputs), batches)):
        given, wanted = tuple(np.shape(batch))[1:], tuple(root.shape) if isinstance(root, TensorBase) else None
        if batch is not None and wanted is not None and given != wanted:
            raise ShapeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{position}] has a shape of {np.shape(batch)} and "
                f"output[{position}] has a shape of {root.shape}."
            )
    rows = []
    for i in range(count):
        row = tuple(None if batch is None else batch[i] for batch in batches)
        allow_unused, materialize = options
        unused = None if materialize else allow_unused
        given = grad(outputs, inputs, row, True, create_graph, allow_unused=unused, materialize_grads=materialize)
        rows.append(given)
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


def differentiate(
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    inputs: Sequence[Any],
    *,
    create_graph: bool,
    retain: bool,
    order: list[Node],
    only: bool,
) -> list[Any]:
    """Cotangents of `inputs`, zeros where the outputs do not depend on one: the pullback of the transforms.

    Parameters
    ----------
    order : the nodes to handle, in descending number.
    only : whether the outputs depend on more than the inputs; then paths that lead elsewhere are left out.
    """
    totals: dict[Any, Any] = {}
    if outputs:
        wanted = {x.edge for x in inputs} if only else None
        totals = _run(tuple(outputs), tuple(cotangents), create_graph, retain, wanted, order)
    found = []
    for x in inputs:
        total = totals.get(x.edge)
        if total is None:
            with mode.no_grad():
                total = zeros_like(x)
        found.append(total if isinstance(total, TensorBase) else wrap(_array(total)))
    return found


def reached(
    outputs: Sequence[Any], cotangents: Sequence[Any], inputs: Sequence[Any], order: list[Node] | None
) -> list[Any]:
    """Recorded cotangents of `inputs`; None for those that the outputs do not reach.

    Parameters
    ----------
    order : the nodes to handle, in descending number; None for all.
    """
    totals = _run(tuple(outputs), tuple(cotangents), True, True, {x.edge for x in inputs}, order)
    return [totals.get(x.edge) for x in inputs]


def view_of(x: TensorBase) -> TensorBase:
    """All of `x` as a view with history: a slot of its own in which gradients are totalled before they reach `x`."""
    from common.ops.shape.view import reshape_

    view: TensorBase = reshape_(x, new_shape=tuple(x.shape))
    return view


@by_ops.append
def _by_ops(op: Any, saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
    """Contributions to the operands of a composite that saves them all: of the tape of its ops, which run again."""
    recording = mode.is_grad_enabled() and isinstance(g, TensorBase)
    level = mode.tangents_around()
    with mode.enable_grad():
        given = [_again(x, need is not None) for x, need in zip(saved, needs, strict=True)]
        start = next_number()
        made = op.forward(*given, **attrs)
    unpack = level.saved_tensors if level is not None else saved_tensors if recording else None
    seed = g.payload if type(g) is Immediate else g
    totals = backward_pass([(made.edge, seed)], unpack, retain=recording, first=start)
    return tuple(None if need is None else totals.get(x.edge) for x, need in zip(given, needs, strict=True))


def _again(x: Any, wanted: bool) -> TensorBase:
    """A tensor, an array or a value as an operand of ops that run again, with a slot of its own."""
    if isinstance(x, TensorBase) and x.requires_grad:
        return view_of(x)
    made = wrap(x.payload if isinstance(x, (TensorBase, Immediate)) else x)
    made._requires_grad = wanted
    return made


def relay(x: TensorBase) -> TensorBase:
    """A tensor that shows the same elements, and hands its gradient on to `x`: one that may be written to."""
    trace = mode.current_trace()
    own = relayed(x.payload if trace is None else trace.payload(x), x.edge)
    if trace is not None:
        shown = own.payload
        trace.note_alias(own, x, same=True)
        own.payload = shown  # its history around a call of `vmap` too, which what is detached has not
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        level.hand_on(x, own)
    return own


def without_history(x: TensorBase) -> TensorBase:
    """A leaf that shows the same elements, and carries the same forward-mode tangent."""
    alias: TensorBase = x.detach()
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        level.hand_on(x, alias)
    return alias


def cotangent_like(root: TensorBase) -> Any:
    """The cotangent 1 of a scalar."""
    return _seed(root, None)


def _run(
    roots: tuple[Any, ...],
    cotangents: Any,
    create_graph: bool,
    retain: bool,
    wanted: Any,
    order: Any = None,
    deposit: Any = None,
) -> dict[Any, Any]:
    seeds = []
    given = _as_tuple(cotangents) if cotangents is not None else (None,) * len(roots)
    if len(given) != len(roots):
        raise GradientError(f"got {len(roots)} tensors and {len(given)} gradients")
    trace = inner = mode.current_trace()
    while inner is not None:
        inner.differentiates, inner = True, getattr(inner, "outer", None)
    level = mode.tangents_around()
    unpack = saved_tensors if create_graph else None
    if level is not None:  # rules run on tensors, which carry tangents
        unpack = level.saved_tensors
    for position, (root, cotangent) in enumerate(zip(roots, given)):
        if not isinstance(root, (TensorBase, GradientEdge)) or root.edge is None:
            raise GradientError(f"element {position} of tensors does not require grad and does not have a grad_fn")
        seed = _seed(root if isinstance(root, TensorBase) else _with_shape(root, cotangent), cotangent)
        payload = seed.payload if isinstance(seed, TensorBase) and trace is None else seed
        if unpack is not None:
            payload = seed if isinstance(seed, TensorBase) else wrap(seed)
        elif trace is not None:
            payload = trace.payload(seed)
        seeds.append((root.edge, payload))
    with mode.GradSwitch(create_graph):
        return backward_pass(
            seeds,
            unpack,
            retain=retain,
            wanted=wanted,
            consumer=user_frame(3),
            order=order,
            deposit=deposit,
        )


def _with_shape(x: Any, cotangent: Any = None, materialize: bool = False) -> Any:
    """A tensor that has the shape and dtype of what an edge stands for: the leaf, or the cotangent."""
    if isinstance(x, TensorBase):
        return x
    if isinstance(x.edge, TensorBase):
        return x.edge
    if x.form is not None and not materialize:
        shape, dtype = x.form
        return wrap(np.broadcast_to(np.zeros((), dtype), shape))
    if cotangent is None:
        why = "materialize_grads cannot be used when the given input is a GradientEdge: " if materialize else ""
        raise GradientError(
            f"{why}a GradientEdge to {x.node.name()} does not know its tensor's shape: pass a gradient of that shape"
        )
    return cotangent if isinstance(cotangent, TensorBase) else wrap(np.asarray(cotangent))


def _seed(root: TensorBase, cotangent: Any) -> Any:
    if cotangent is None:
        if (shape := root.payload.shape) and any(n != 1 for n in shape):
            raise GradientError(
                f"grad can be implicitly created only for scalar outputs; this one has shape {tuple(root.shape)}: pass "
                "a gradient of that shape, or reduce it first, for example with .sum()"
            )
        if not mode.tracing and type(root.payload) is np.ndarray:
            return wrap(np.array(1, root.payload.dtype, ndmin=len(shape)))
        with mode.no_grad():
            return ones_like(root)
    if not isinstance(cotangent, TensorBase):
        try:
            cotangent = np.asarray(cotangent, root.dtype)
        except (TypeError, ValueError, OverflowError, MemoryError) as error:
            raise ArgumentError(
                f"gradients can be either Tensors, numbers or None, but got {type(cotangent).__name__} "
                f"({shown(cotangent)})"
            ) from error
    given, wanted = plain_shape(cotangent), root.payload.shape
    if len(given) != len(wanted) or any(m != n for m, n in zip(given, wanted)):
        raise ShapeError(
            f"Mismatch in shape: grad_output[0] has a shape of {cotangent.shape} and output[0] has a shape of "
            f"{root.shape}."
        )
    if cotangent.dtype != root.dtype:
        cotangent = to(cotangent, dtype=root.dtype, x_dtype=cotangent.dtype)
    return cotangent


def _as_tuple(x: Any) -> tuple[Any, ...]:
    if type(x) is tuple:
        return x
    if isinstance(x, (TensorBase, GradientEdge, Mapping)) or hasattr(x, "__array__") or not isinstance(x, Iterable):
        return (x,)
    return tuple(x)  # generators, `params.values()` and a ParameterList as well


def _array(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, np.generic) else x
