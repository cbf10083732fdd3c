"""Calls in a mapped function that are more than an op: Python, output, and functions with own gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from common.autograd.function import Function
from common.control.body import payload_of, tensor_of
from common.control.callback import call_now
from common.control.print_assert import show
from common.core import mode
from common.core.errors import ArgumentError, GradientError, NotDefinedError, ShapeError
from common.core.int_arguments import shown
from common.core.source_lines import user_frame
from common.core.spec import Spec
from common.core.tree import flatten, unflatten
from common.ops.reduce.truth import all as all_of
from common.ops.shape.cat import stack
from common.ops.shape.split import unbind
from common.random.draw_counts import drawn_by as asked
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Node
from common.tensor.read_saved import saved_tensors
from common.transforms.batching import batch_operands
from common.transforms.batching.batched import Batched, BatchedTensor
from common.transforms.batching.spread_dims import spread_dims


def act(trace: Any, kind: str, operands: Sequence[Any], attrs: Any) -> None:
    """Print the values of all examples, or check them, at once."""
    payloads = [trace.payload(x) for x in operands]
    with trace.outside:
        values = [all_of(x.value) if kind == "assert" else x.value for x in payloads]
        (show if trace.outer is None else trace.outer.act)(kind, values, attrs)


def callback(trace: Any, call: Any, operands: Sequence[Any], specs: Sequence[Spec]) -> list[Any]:
    """Call Python once per example."""
    payloads = [trace.payload(x) for x in operands]
    with trace.outside:
        run = call_now if trace.outer is None else trace.outer.callback
        values = [batch_operands.bare(x) for x in payloads]
        if not any(map(batch_operands.is_mapped, payloads)):
            return [Batched(wrap(y), False, trace) for y in run(call, values, specs)]
        columns = [unbind(x.value, 0) if batch_operands.is_mapped(x) else None for x in payloads]
        rows = [
            [wrap(y) for y in run(call, [v if c is None else c[i] for v, c in zip(values, columns)], specs)]
            for i in range(int(trace.count))
        ]
        return [Batched(stack(column, 0), True, trace) for column in zip(*rows, strict=True)]


class BatchInfo(NamedTuple):
    """The size and randomness of a batch, for the rule `vmap` of a user's Function.

    Attributes
    ----------
    batch_size : the number of examples.
    randomness : see `common.transforms.vmap.vmap`.
    """

    batch_size: Any
    randomness: str


def map_function(trace: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of a user's Function by its rule `vmap`, which no call needs whose arguments all examples share.

    Raises
    ------
    GradientError : the class has no `setup_context`, or `generate_vmap_rule` too.
    NotDefinedError : there are keyword-only arguments.
    ArgumentError, ShapeError : the rule returns something else than results and their dimensions.
    """
    name = function.__name__
    if function.generate_vmap_rule:
        raise GradientError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod"
        )
    if function.setup_context is Function.setup_context:
        raise GradientError(
            f"In order to use the vmap staticmethod of {name}, an autograd.Function must override the setup_context "
            "staticmethod: forward takes no ctx then"
        )
    if kwargs:
        raise NotDefinedError(
            f"{name}: kwarg-only Tensor args are not supported by a vmap staticmethod: {list(kwargs)}"
        )
    leaves, structure = flatten(args)
    payloads = [trace.payload(x) if isinstance(x, TensorBase) else x for x in leaves]
    values = unflatten(structure, [batch_operands.bare(x) for x in payloads])
    in_dims = [0 if batch_operands.is_mapped(x) else None for x in payloads]
    with trace.outside:
        if not any(map(batch_operands.is_mapped, payloads)):
            output, out_dims = function.apply(*values), None
        else:
            returned = function.vmap(BatchInfo(trace.count, trace.randomness), unflatten(structure, in_dims), *values)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ArgumentError(
                    f"Expected the vmap staticmethod of {name} to have two returns, an output and out_dims with "
                    f"structure compatible with the output. Got a {shown(returned)}"
                )
            output, out_dims = returned
        flat, shape = flatten(output)
        try:
            dims = spread_dims(out_dims, shape, "out_dims")
        except ArgumentError as error:
            raise ArgumentError(
                f"The vmap staticmethod of {name} returned an incompatible (output, out_dims) tuple: {error}"
            ) from None
        results = [y if not isinstance(y, TensorBase) else _of_all(trace, name, y, d) for y, d in zip(flat, dims)]
    return unflatten(shape, [trace.wrap(y) if type(y) is Batched else y for y in results])


def _of_all(trace: Any, name: str, y: TensorBase, dim: int | None) -> Batched:
    """A result of a user's rule, with the dimension of the examples in front."""
    if dim is None:
        return Batched(y, False, trace)
    if not -y.ndim <= dim < y.ndim or y.shape[dim] != trace.count:
        raise ShapeError(
            f"The vmap staticmethod of {name} returned out_dim={dim} for a result of shape {tuple(y.shape)}: it has no "
            f"{trace.count} examples there"
        )
    return Batched(batch_operands.in_front(y, dim % y.ndim), True, trace)


def note_node(trace: Any, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Give the results of all examples a history outside, where that of an example has a node with its own gradient."""
    given = [trace.payload(x) if isinstance(x, TensorBase) else None for x in operands]
    edges = [None if x is None else x.value.edge for x in given]
    if all(edge is None for edge in edges):
        return
    op: Any = _OpOfAll(trace, node, [x is not None and x.mapped for x in given])
    outer = Node(op, None, tuple(edges), (node,), None, *user_frame(3))
    for position, y in enumerate(results):
        if isinstance(y, TensorBase) and y.grad_fn is node:
            with trace.outside:
                value = y.payload.value.detach()
            value.grad_fn, value.output_nr, value._requires_grad = outer, position, True
            y.payload = Batched(value, y.payload.mapped, trace)
            op.results[position] = y.payload.mapped


class _OpOfAll:
    """The op of a node of all examples, whose rule is that of a node of one.

    Parameters
    ----------
    trace : the call of `vmap`.
    node : of one example.
    operands : which of them differ between examples.
    """

    kind = "region"
    saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, trace: Any, node: Node, operands: Sequence[bool]) -> None:
        self.trace, self.operands = trace, operands
        self.name, self.node_name, self.nout = node.op.name, node.op.node_name, node.op.nout
        self.results: dict[int, bool] = {}

    def arrays(self, saved: Any) -> list[Any]:
        """None: what is saved belongs to the node of one example."""
        return []

    def backward(self, saved: tuple[Node], attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions of all examples; those to what they share are added up."""
        (node,) = saved
        trace, recording = self.trace, mode.is_grad_enabled()
        cotangents = [None if c is None else tensor_of(c) for c in ((g,) if self.nout == 1 else g)]
        with trace.reopened():
            inside: list[Any] = []
            for position, c in enumerate(cotangents):
                if c is None:
                    inside.append(None)
                    continue
                x = trace.wrap(Batched(c, self.results.get(position, True), trace))
                x._requires_grad = recording and c._requires_grad
                inside.append(x if recording else x.payload)
            unpacked = saved_tensors(node) if recording else node.saved
            parts = node.op.backward(unpacked, node.attrs, inside[0] if self.nout == 1 else tuple(inside), node.edges)
            found = [None if c is None else trace.payload(c) for c in parts]
        out: list[Any] = []
        for c, differs, need in zip(found, self.operands, needs):
            if c is None or need is None:
                out.append(None)
                continue
            value = batch_operands.spread(c, trace.count) if differs else c.value
            if c.mapped and not differs:
                value = value.sum(0)
            out.append(value if recording else payload_of(value))
        return tuple(out)


def require_randomness(trace: Any) -> None:
    """Refuse a draw.

    Raises
    ------
    GradientError : `randomness` is "error".
    """
    if trace.randomness == "error":
        raise GradientError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )


def drawn_by(trace: Any, parameters: Sequence[Any], into: Any) -> None:
    """Refuse draws that cannot be the same, or different, for all examples.

    Parameters
    ----------
    trace : a `BatchTrace`.
    parameters : tensors that say how numbers are distributed.
    into : a tensor that takes them; or None.

    Raises
    ------
    GradientError : `randomness` is "error"; or "same", and the parameters differ between examples; or "different", and
        the numbers go to a tensor that all examples share.
    """
    require_randomness(trace)
    values = [trace.payload(x) for x in parameters]
    mapped = any(x.mapped for x in values)
    if trace.randomness == "same" and mapped:
        raise GradientError(
            "Vmap does not currently support same randomness with a batched tensor input: draw numbers in the shape of "
            "one example, with rand or randn, and compute the rest from them and the input"
        )
    inside = type(into) is BatchedTensor and into.trace is trace
    if into is not None and not inside and not mapped and trace.randomness == "different":
        raise GradientError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor: all examples share it. Draw "
            "into a tensor that is mapped over, or out of place"
        )
    with trace.outside:
        asked(*(x.value for x in values), into=None if inside else into)
