"""The base of eager and traced tensors: a payload, a place in the tape, and PyTorch's methods.

The `payload` is a numpy array in the eager engine and a value of a graph in a trace. Everything else is the same code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from common.core import mode
from common.core.allocation import allocation_error
from common.core.dtypes import default_float, number_spec
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import number, shown
from common.core.python_numbers import as_array
from common.core.size_tuples import Size
from common.core.sizes import Dim
from common.core.source_lines import is_user_file, warn_user
from common.core.spec import Spec
from common.tensor.arrays import to_array
from common.tensor.external_writes import borrow
from common.tensor.node import Edge, Node

NUMBERS = (bool, int, float)
_new = object.__new__
_getframe = sys._getframe


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
    #: What stands before the elements when they are printed.
    _shown_as = "tensor"
    __op_priority__ = 2
    __array_priority__ = 1000
    __array_ufunc__: Any = None  # `common.methods.numpy_functions` answers numpy's functions

    payload: Any
    _requires_grad: bool
    grad_fn: Node | None
    output_nr: int
    _grad: Any
    _family: Any

    if TYPE_CHECKING:  # the methods of `common.methods.install` and the operators of `common.core.operators`
        data: Any
        requires_grad: bool

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, key: Any) -> Any: ...

        def __add__(self, other: Any) -> Any: ...

        def __mul__(self, other: Any) -> Any: ...

        def __neg__(self) -> Any: ...

    @property
    def shape(self) -> Size:
        """Sizes of all dimensions."""
        return Size(self.payload.shape)

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
    def _cdata(self) -> int:
        """A number that is the same for the same tensor only; programs compare parameters by it."""
        return id(self)

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
        value = self._grad if trace is None else trace.get_grad(self)
        if value is None and self.grad_fn is not None and not self.retains_grad:
            warn_user(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor."
            )
        return value

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is self or not (value is None or isinstance(value, TensorBase)):
            kind = "its own gradient" if value is self else f"a gradient of type {type(value).__name__}"
            raise ArgumentError(f"assigned grad expected to be a Tensor or None, and no tensor's own, but got {kind}")
        if value is not None and (value.payload.shape != self.payload.shape or value.dtype != self.dtype):
            raise ShapeError(
                f"attempting to assign a gradient of size {tuple(value.shape)} and dtype {value.dtype} to a tensor of "
                f"size {tuple(self.shape)} and dtype {self.dtype}; they must be the same"
            )
        trace = mode.current_trace()
        if trace is None:
            self._grad = value
        else:
            trace.set_grad(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    __hash__ = object.__hash__


def wrap(payload: Any) -> TensorBase:
    """A tensor without history over a payload: traced inside a trace, else eager."""
    kind = Tensor
    if mode.tracing:
        if (trace := mode.current_trace()) is not None:
            return trace.wrap(payload)
        kind = InferenceTensor if mode.is_inference_mode_enabled() else Tensor
    tensor: TensorBase = _new(kind)
    tensor.payload = payload if type(payload) is np.ndarray else np.asarray(payload)
    tensor.grad_fn = tensor._grad = tensor._family = None
    tensor.output_nr, tensor._requires_grad = 0, False
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


class _TensorType(type):
    """Makes every tensor an instance, parameters and tracers too, and gives a program's own classes their base.

    Attributes
    ----------
    of_program : gives the class from which these inherit in place of `Tensor`, see `common.methods.torch_function`.
    """

    of_program: Callable[[], type]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], own: bool = False, **options: Any
    ) -> Any:
        if not own:
            bases = tuple(mcs.of_program() if x is Tensor else x for x in bases)
        return super().__new__(mcs, name, bases, namespace, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase) if cls is Tensor else super().__instancecheck__(instance)


class Tensor(TensorBase, metaclass=_TensorType, own=True):
    """A multi-dimensional array whose operations are recorded as they run.

    Parameters
    ----------
    data : (...) ndarray; one of float32 is not copied, another becomes float32, as numbers in lists do; or a `Size`, or
        the first of several sizes, for a tensor of zeros to be written to.
    requires_grad : record operations on it; or the second size.
    sizes : further sizes.

    Raises
    ------
    DTypeError : `requires_grad` for a dtype that is not floating point.
    """

    __slots__ = ("__dict__",)  # attributes that a program gives
    __guards_itself__ = True  # the short paths of an engine give way to methods that are guarded

    def __init__(self, data: Any = (), requires_grad: Any = False, *sizes: int) -> None:
        if type(data) is np.ndarray:
            self.payload = data
            if is_user_file(_getframe(1).f_code.co_filename):
                if data.dtype == default_float() and data.dtype.isnative:
                    borrow(data, "Tensor()")
                else:
                    self.payload = to_array(data, default_float())
        elif type(data) is Size:
            self.payload = _of_sizes(data)
        elif type(data) is int or isinstance(data, (np.integer, Dim)):
            self.payload, requires_grad = _of_sizes((data, requires_grad, *sizes)), False
        else:
            self.payload = to_array(data, default_float() if isinstance(data, (list, tuple)) else None)
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = self._family = None
        if requires_grad is not False:
            if not isinstance(requires_grad, bool):
                raise ArgumentError(
                    f"Tensor(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}"
                )
            self.requires_grad_()


def _of_sizes(sizes: tuple[Any, ...]) -> np.ndarray:
    """Zeros of the sizes that a constructor is given; False in second place stands for no size."""
    sizes = sizes[:1] if len(sizes) == 2 and sizes[1] is False else sizes
    try:
        known = tuple(index(number(n)) for n in sizes)
    except TypeError:
        known = (-1,)
    if min(known, default=0) < 0 or bool in map(type, sizes):
        raise ShapeError(f"Tensor(): sizes must be ints that are not negative, got {shown(sizes)}")
    try:
        return np.zeros(known, default_float())
    except (ValueError, MemoryError) as error:
        raise allocation_error("Tensor", error) from error


class InferenceTensor(Tensor, own=True):
    """A tensor that was made under `inference_mode`, see `common.tensor.inference`."""

    __slots__ = ()
