"""The leaves of a graph: placeholders, which a run feeds, and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED, unsupported
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import members
from common.core.op import COPY, REGISTRY
from common.core.sizes import Dim
from common.core.spec import Spec
from common.tensor.arrays import known_dtype, to_array
from common.tensor.base import TensorBase
from static.session.defaults import get_default_graph
from static.session.graph_tensor import GraphTensor
from static.session.open_sizes import HINT
from static.session.recording import DEFAULT, GraphTrace


def placeholder(dtype: Any, shape: Sequence[int | None], name: str | None = None) -> GraphTensor:
    """A tensor of the default graph that every run which needs it must feed.

    Parameters
    ----------
    dtype : of its elements.
    shape : sizes; None where a run decides. New sizes need no new program.
    name : "placeholder" by default.

    Raises
    ------
    DTypeError : no op takes the dtype.
    ArgumentError : the shape is unknown, or no sequence of sizes and None.

    Examples
    --------
    >>> import static as tw
    >>> with tw.Graph().as_default():
    ...     x = tw.placeholder(tw.float32, [None, 3], name="x")
    >>> x
    <tensor 'x:0' float32[?, 3], made at ...>
    """
    graph = get_default_graph()
    dtype = _dtype(dtype)
    with graph.building():
        value = graph.trace.input(Spec((), dtype), "placeholder", None, name or "placeholder")
        value.spec = Spec(_sizes(graph.trace, value, shape), dtype)
        return _leaf(graph.trace.wrap(value))


def placeholder_with_default(input: Any, shape: Sequence[int | None], name: str | None = None) -> GraphTensor:
    """A tensor that is `input` in runs that do not feed it.

    Parameters
    ----------
    input : tensor or array.
    shape : sizes of what is fed; None where a run decides.
    name : "placeholder_with_default" by default.

    Raises
    ------
    ShapeError : the shape of `input` is not of this form.
    """
    graph = input.graph if isinstance(input, GraphTensor) else get_default_graph()
    shape = members(shape, "placeholder_with_default", "shape")
    with graph.building():
        trace = graph.trace
        given = convert(graph, input)
        value = trace.payload(given)
        if len(shape) != len(value.shape) or any(n is not None and n != m for n, m in zip(shape, value.shape)):
            raise ShapeError(f"placeholder_with_default(): the default of shape {tuple(value.shape)} does not fit the "
                             f"shape {tuple(shape)}")  # fmt: skip
        trace.next_name = name
        node = trace.append(DEFAULT, (value,), {}, (Spec((), value.dtype),), trace._source())
        made = node.outputs[0]
        made.spec = Spec(_sizes(trace, made, shape), value.dtype)
        return _leaf(trace.wrap(made))


def _leaf(tensor: GraphTensor) -> GraphTensor:
    """A tensor with respect to which there are gradients, if it is floating point."""
    tensor._requires_grad = tensor.dtype.kind == "f"
    return tensor


def _dtype(dtype: Any) -> np.dtype:
    found = known_dtype(dtype)
    if found not in SUPPORTED:
        raise unsupported(found, "placeholder(): ")
    return found


def _sizes(trace: GraphTrace, value: Any, shape: Any) -> tuple[int | Dim, ...]:
    """Sizes, symbolic where the shape has None."""
    if not isinstance(shape, (list, tuple)):
        raise ArgumentError(
            f"the shape of a placeholder is a list of sizes and None, not {shape!r}: the number of dimensions must be "
            "known"
        )
    name, out = trace.graph.operation(value.node).name, []
    for axis, n in enumerate(shape):
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0):
            raise ArgumentError(f"a size of placeholder {name!r} is {n!r}, which is neither None nor a size")
        out.append(trace.dims.input(name, axis, HINT) if n is None else int(n))
    return tuple(out)


def constant(value: Any, dtype: Any = None, shape: Sequence[int] | None = None, name: str = "const") -> GraphTensor:
    """A tensor of the default graph with these elements.

    Parameters
    ----------
    value : number, array or nested lists; copied.
    dtype : by default that of the array; float32 for floats, int64 for ints.
    shape : the shape into which the elements are brought; one number fills it.
    name : of the operation.

    Raises
    ------
    ShapeError : the elements do not fill the shape.
    """
    graph = get_default_graph()
    array = to_array(value, dtype)
    if shape is not None:
        count = int(np.prod(shape, dtype=np.int64))
        if array.size not in (1, count):
            raise ShapeError(f"constant(): {array.size} elements do not fill the shape {tuple(shape)}")
        array = np.full(shape, array.reshape(())) if array.size == 1 else array.reshape(tuple(shape))
    with graph.building():
        return _leaf(graph.trace.wrap(graph.trace.array(array, name)))


def convert(graph: Any, x: Any, dtype: Any = None) -> Any:
    """A tensor as it is, anything else as a constant of the graph."""
    if isinstance(x, TensorBase):
        return x
    return graph.trace.wrap(graph.trace.array(to_array(x, dtype)))


def identity(input: Any, name: str | None = None) -> GraphTensor:
    """The same elements as an operation of its own: to have a name, or to be run after control dependencies."""
    graph = input.graph if isinstance(input, GraphTensor) else get_default_graph()
    with graph.building():
        x = convert(graph, input)
        graph.trace.payload(x)  # a variable is read before the name is given
        graph.trace.next_name = name or "identity"
        made: GraphTensor = REGISTRY[COPY](x)
        return made
