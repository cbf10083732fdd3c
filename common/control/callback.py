"""`pure_callback`: Python that a program calls, in a compiled program too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import SUPPORTED, unsupported
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.int_arguments import members
from common.core.sizes import Dim
from common.core.source_lines import locate, user_frame
from common.core.spec import Spec
from common.core.tree import Structure, flatten, unflatten
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Node

Form = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and dtype of an array."""


class ShapeDtypeStruct:
    """The form of a result of `pure_callback`, without elements; JAX's name.

    Parameters
    ----------
    shape : sizes; those of a traced tensor may be among them.
    dtype : dtype.

    Raises
    ------
    DTypeError : a dtype without ops.
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Sequence[Any], dtype: Any) -> None:
        self.shape, self.dtype = tuple(members(shape, "ShapeDtypeStruct", "shape")), np.dtype(dtype)
        if self.dtype not in SUPPORTED:
            raise unsupported(self.dtype)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"


class Callback:
    """A Python function and how it is called; what a compiled program keeps of a `pure_callback`.

    Parameters
    ----------
    function : of arrays.
    structure, leaves : its arguments; None in place of arrays.
    results : the structure of what it returns.
    frame : the user's, for messages.
    """

    __slots__ = ("function", "structure", "leaves", "results", "frame")

    def __init__(
        self, function: Callable[..., Any], structure: Structure, leaves: list[Any], results: Structure, frame: Any
    ) -> None:
        self.function, self.structure, self.leaves = function, structure, leaves
        self.results, self.frame = results, frame

    @property
    def name(self) -> str:
        """The function's."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def place(self) -> str:
        """The user's file, line and function."""
        return "{}:{} in {}".format(*locate(*self.frame))

    def __repr__(self) -> str:
        return self.name

    def __call__(self, arrays: Sequence[Any], forms: Sequence[Form]) -> list[np.ndarray]:
        """Call the function on arrays, which it cannot write to, outside of any trace.

        Parameters
        ----------
        forms : what its results have to be; more than there are results are left alone.

        Raises
        ------
        ArgumentError, ShapeError, DTypeError : they are something else.
        """
        given, leaves = iter(arrays), list(self.leaves)
        for i, x in enumerate(leaves):
            if x is None:
                leaves[i] = np.asarray(next(given), order="C").view()
                leaves[i].flags.writeable = False
        args, kwargs = unflatten(self.structure, leaves)
        if mode.current_trace() is None and mode.is_grad_enabled():
            returned = self.function(*args, **kwargs)
        else:
            with mode.activate_trace(None), mode.enable_grad():
                returned = self.function(*args, **kwargs)
        found, structure = flatten(returned)
        if structure != self.results:
            raise ArgumentError(f"{self._told()} returned {structure}, which is nested otherwise than {self.results}")
        return [self._checked(i, x, *form) for i, (x, form) in enumerate(zip(found, forms))]

    def _checked(self, position: int, x: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        array = np.array(x.payload if isinstance(x, TensorBase) else x, order="C")
        if array.shape == shape and array.dtype == dtype:
            return array
        found, wanted = f"{array.dtype}{list(array.shape)}", f"{dtype}{list(shape)}"
        told = f"{self._told()} returned {found} as result {position}, not {wanted}"
        if array.shape != shape:
            raise ShapeError(f"{told} as result_shape_dtypes says")
        raise DTypeError(f"{told} as result_shape_dtypes says: convert it with .astype, or declare what it is")

    def _told(self) -> str:
        return f"pure_callback: {self.name}, called at {self.place},"


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Python function of arrays; in a compiled program whenever it gets there.

    Signature and name are those of `jax.pure_callback`. Calls keep their order among each other, `print` and `assert_`,
    and are never left out. An exception leaves the program as it is, before any state is written. The function has to
    be pure: where a gradient, a repeated run or a checkpoint computes something again, it is called again.

    Parameters
    ----------
    callback : takes numpy arrays, which are contiguous and read-only, in place of tensors, arrays and numbers; anything
        else among `args` and `kwargs` as it is. It must not call the program that calls it.
    result_shape_dtypes : nested like its results; leaves have a shape and a dtype, such as `ShapeDtypeStruct` or a
        tensor. None if there are no results.

    Returns
    -------
    tensors, nested like `result_shape_dtypes`; arrays where `static` is called outside a trace.

    Raises
    ------
    GradientError : in a backward pass, that a gradient is to go through the call. Call it in the `forward` of an
        `autograd.Function`, whose `backward` may call another one, or detach its arguments.
    ArgumentError, ShapeError, DTypeError : the results are not what `result_shape_dtypes` says.

    Examples
    --------
    >>> import numpy as np, static
    >>> @static.function
    ... def f(x):
    ...     order = static.pure_callback(np.argsort, static.ShapeDtypeStruct(x.shape, np.int64), x)
    ...     return x.index_select(0, order) * 2
    >>> f(np.array([3.0, 1.0, 2.0]))
    tensor([2., 4., 6.], dtype=float64)
    """
    if not callable(callback):
        raise ArgumentError(f"pure_callback() takes a callable, not {type(callback).__name__}")
    leaves, structure = flatten((args, kwargs))
    given = [i for i, x in enumerate(leaves) if _is_data(x)]
    wanted, results = flatten(result_shape_dtypes)
    specs = [_spec(x) for x in wanted]
    call = Callback(callback, structure, [None if _is_data(x) else x for x in leaves], results, user_frame(2))
    trace = mode.current_trace()
    run = call_now if trace is None else trace.callback
    tensors = [wrap(x) for x in run(call, [leaves[i] for i in given], specs)]
    edges = tuple(x.edge if isinstance(x, TensorBase) else None for x in (leaves[i] for i in given))
    if mode.is_grad_enabled() and any(edge is not None for edge in edges):
        op: Any = CallbackOp(call, len(tensors))
        node = Node(op, None, edges, (), None, *user_frame(2))
        for i, x in enumerate(tensors):
            if x.dtype.kind == "f":
                x.grad_fn, x.output_nr, x._requires_grad = node, i, True
        if trace is not None and trace.note_node is not None:
            trace.note_node(node, [leaves[i] for i in given], tensors)
    return unflatten(results, tensors)


class CallbackOp:
    """The op of the nodes of callbacks whose arguments require grad: a gradient gets no further.

    Parameters
    ----------
    call : what is called.
    nout : number of results.
    """

    kind = "region"
    name, node_name = "pure_callback", "PureCallbackBackward"
    saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, call: Callback, nout: int) -> None:
        self.call, self.nout = call, nout

    def arrays(self, saved: Any) -> list[np.ndarray]:
        """None: nothing is saved."""
        return []

    def backward(self, saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Refuse.

        Raises
        ------
        GradientError : always.
        """
        raise GradientError(
            f"pure_callback: the gradient of {self.call.name}, called at {self.call.place}, is not known: call it in "
            "the forward of an autograd.Function whose backward gives the gradient, or detach() its arguments"
        )


def call_now(call: Callback, operands: Sequence[Any], specs: Sequence[Spec]) -> list[np.ndarray]:
    arrays = [x.payload if isinstance(x, TensorBase) else np.asarray(x) for x in operands]
    return call(arrays, [(tuple(map(int, spec.shape)), spec.dtype) for spec in specs])


def _is_data(x: Any) -> bool:
    """Whether a leaf of the arguments is passed as an array."""
    return isinstance(x, (TensorBase, np.ndarray, np.generic, Dim, float)) or type(x) is int


def _spec(x: Any) -> Spec:
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise ArgumentError(
            f"pure_callback: result_shape_dtypes has a {type(x).__name__}, but its leaves need a shape and a dtype: "
            "use ShapeDtypeStruct(shape, dtype), or a tensor like the result"
        )
    return Spec(tuple(x.shape), np.dtype(x.dtype))


__all__ = ["ShapeDtypeStruct", "pure_callback"]
