"""PyTorch's tensor methods, made of the public functions; one list for both engines."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from common.autograd import backward as autograd
from common.autograd import hooks, versions
from common.core import dtypes, mode
from common.core.aliases import OLDER_FACTORS, older_factors
from common.core.allocation import MOST_ROWS, refuse_endless
from common.core.errors import ArgumentError, DTypeError, GradientError
from common.core.int_arguments import shown
from common.core.op import REGISTRY
from common.core.operators import accepts, as_operand, install
from common.core.python_numbers import is_foreign
from common.core.spec import numel
from common.methods import conversions, in_place_functions, in_place_index, memory, named, numpy_functions
from common.methods.assign import assign, copy_, fill_, zero_
from common.ops import functional
from common.ops.shape import memory_order
from common.ops.shape.matrices import matrix_transposed
from common.ops.shape.unfold import unfold
from common.ops.shape.view import transposed
from common.tensor import boundary, leaf_status, printing
from common.tensor.arrays import concrete, lent
from common.tensor.base import Tensor, TensorBase
from common.tensor.create import lift
from common.tensor.to_python import index, item, number_of, tolist, truth, whole
from common.tensor.write_log import apart

#: Public functions that are no methods, as in PyTorch.
NOT_METHODS = frozenset(
    ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
     "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alias_copy", "as_strided_copy", "atleast_1d",
     "atleast_2d", "atleast_3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "block_diag", "broadcast_shapes",
     "broadcast_tensors", "broadcast_to", "bucketize", "cartesian_prod", "cat", "cdist", "celu", "chain_matmul",
     "channel_shuffle", "clone", "column_stack", "combinations", "concat", "concatenate", "constant_pad_nd", "conv1d",
     "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
     "cosine_similarity", "cross_entropy", "cumulative_trapezoid", "detach", "detach_copy", "diagonal_copy", "dstack",
     "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
     "dynamic_update_slice", "dynamic_update_slice_in_dim", "einsum", "elu", "embedding", "embedding_bag",
     "empty_like", "expand_copy", "fill", "fold", "full_like", "gaussian_nll_loss", "gelu", "getitem", "glu",
     "gradient", "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "group_norm", "hardsigmoid",
     "hardswish", "hardtanh", "hinge_embedding_loss", "histogramdd", "hstack", "huber_loss", "instance_norm",
     "interpolate", "is_same_size", "isin", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear",
     "linear_cross_entropy", "local_response_norm", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lu_unpack",
     "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
     "meshgrid", "mish", "mse_loss", "multi_dot", "multi_margin_loss",
     "multilabel_margin_loss", "multilabel_soft_margin_loss",
     "native_batch_norm", "native_group_norm", "native_layer_norm", "nll_loss", "normalize", "one_hot", "ones_like",
     "pad", "pairwise_distance", "pdist", "permute_copy", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss",
     "real", "relu6", "rms_norm", "row_stack", "rsub", "searchsorted", "segment_reduce", "select_copy",
     "selu", "silu", "slice_copy", "smooth_l1_loss", "soft_margin_loss", "softmin", "softplus", "softshrink",
     "softsign", "split_copy", "spmm", "split_with_sizes_copy", "squeeze_copy", "stack", "t", "t_copy", "tanhshrink",
     "tensordot",
     "threshold", "transpose_copy", "trapezoid", "trapz", "triplet_margin_loss", "triplet_margin_with_distance_loss",
     "unbind_copy", "unfold", "unfold_copy", "unravel_index", "unsqueeze_copy", "upsample", "upsample_bilinear",
     "upsample_nearest", "vander", "view", "view_copy", "vstack", "zeros_like"]
)  # fmt: skip


def install_methods(cls: type[TensorBase], more: Mapping[str, Any]) -> None:
    """Give `cls` operators, functions as methods, conversions, in-place forms, and more methods by name."""
    install(cls, REGISTRY)
    for name in functional.__all__:
        if name in NOT_METHODS:
            continue
        setattr(cls, name, named.Named(name, cls))
    for name, method in {
        **_METHODS,
        **conversions.METHODS,
        **memory.METHODS,
        **in_place_functions.OF_PYTHON,
        **memory_order.METHODS,
        **versions.METHODS,
        **leaf_status.METHODS,
        **in_place_index.METHODS,
        **more,
    }.items():
        setattr(cls, name, method)
    for name in in_place_functions.NAMES:
        setattr(cls, f"{name}_", in_place_functions.InPlace(name, cls))
    for dunder, name in IN_PLACE.items():
        in_place = _in_place(getattr(functional, name), name, f"__{dunder}__")
        setattr(cls, f"{name}_", in_place)
        setattr(cls, f"__i{dunder}__", _operator_in_place(in_place))
    setattr(cls, "__ipow__", _operator_in_place(lambda x, other: x.pow_(other)))  # noqa: B010  the class has no such attribute yet
    for dunder, name in _DIVIDING.items():
        setattr(cls, f"__{dunder}__", _dividing(name))
        setattr(cls, f"__r{dunder}__", _dividing(name, swapped=True))
    boundary.guard_operators(cls)
    boundary.guard_class(cls, anew=True)


#: Operators with an in-place form, and the function of each.
IN_PLACE = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
#: Operators that look for zeros among integer divisors.
_DIVIDING = {"floordiv": "floor_divide", "mod": "remainder"}


def _dividing(name: str, *, swapped: bool = False) -> Any:
    def operator(self: TensorBase, other: Any) -> Any:
        if not accepts(other):
            return NotImplemented
        operands = (self, as_operand(other))
        return getattr(functional, name)(*(operands[::-1] if swapped else operands))

    return operator


def _operator_in_place(write: Callable[[TensorBase, Any], Any]) -> Any:
    def operator(self: TensorBase, other: Any) -> Any:
        return write(self, other) if accepts(other) else NotImplemented

    return operator


def _reversed(self: TensorBase) -> TensorBase:
    """The tensor with its first dimension in reverse order."""
    return functional.flip(self, 0) if self.ndim else self


def _delete(self: TensorBase, key: Any) -> None:
    raise ArgumentError("Tensor does not support deleting items: cat or a mask keeps the others")


def _divmod(a: Any, b: Any) -> Any:
    return functional.floor_divide(a, b), functional.remainder(a, b)


def _in_place(function: Any, name: str, operator: str) -> Any:
    def method(self: TensorBase, other: Any, *factors: Any, **options: Any) -> TensorBase:
        if factors and name.removesuffix("_") in OLDER_FACTORS:
            (_, other), options = older_factors(name.removesuffix("_"), 2, (self, other, *factors), options)
        elif factors:
            raise ArgumentError(f"{name}() takes 2 positional arguments but {2 + len(factors)} were given")
        short = not options and isinstance(other, TensorBase)  # the eager engine's operators are its short path
        value = getattr(self, operator)(other) if short else function(self, as_operand(other), **options)
        node = value.grad_fn
        if node is not None and node.saved and isinstance(self.payload, np.ndarray):
            # the op's own rules need the operand as it was before this write
            if type(node.saved) is tuple:
                node.saved = tuple([apart(x, self.payload) for x in node.saved])
            else:
                node.saved.keep_apart(self.payload)
        return assign(self, value, name)

    return method


def _positive(self: TensorBase) -> TensorBase:
    """The tensor itself."""
    if self.dtype == dtypes.bool_:
        raise DTypeError("The `+` operator, on a bool tensor is not supported.")
    return self


def clone(self: TensorBase, *, memory_format: Any = None) -> TensorBase:
    """A copy with history.

    Parameters
    ----------
    memory_format : accepted; it changes nothing.
    """
    return REGISTRY["clone"](self)


def backward(
    self: TensorBase,
    gradient: Any = None,
    retain_graph: Any = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this tensor to `.grad` of the leaves; see `common.autograd.backward.backward`."""
    given = None if gradient is None else (gradient,)
    autograd.backward((self,), given, retain_graph, create_graph, inputs)


def numpy(self: TensorBase, *, force: bool = False) -> np.ndarray:
    """The array of elements; shares memory.

    Parameters
    ----------
    force : give the array of a tensor that requires grad as well.

    Raises
    ------
    GradientError : the tensor requires grad, and ops are recorded: use ``.detach().numpy()``.
    """
    if self.requires_grad and not force and mode.is_grad_enabled():
        raise GradientError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return lent(self, "numpy()")


def _len(self: TensorBase) -> Any:
    if self.ndim == 0:
        raise ArgumentError("len() of a 0-d tensor")
    extent = self.shape[0]
    return extent if isinstance(extent, int) else extent.__index__()


def _iter(self: TensorBase) -> Any:
    if self.ndim == 0:
        raise ArgumentError("iteration over a 0-d tensor")
    refuse_endless("iteration", (count := _len(self),), MOST_ROWS)
    if isinstance(self.payload, np.ndarray):
        refuse_endless("iteration", self.payload.shape)
    return (self[i] for i in range(count))


def _contains(self: TensorBase, element: Any) -> bool:
    """Whether an element equals `element`."""
    if not accepts(element):
        raise ArgumentError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element).__name__}"
        )
    return truth(functional.any(functional.eq(self, as_operand(element))))


def _array(self: TensorBase, dtype: Any = None, copy: Any = None) -> np.ndarray:
    array = numpy(self)
    return array if dtype is None and not copy else np.array(array, dtype)


def _repr(self: TensorBase) -> str:
    if not isinstance(self.payload, np.ndarray):
        return f"Tracer({self.payload.spec})"
    extra = []
    try:
        node = self.grad_fn
        made = None if node is None else node.name()
    except GradientError:  # a view whose history is not known
        made = "Invalid"
    if made is not None:
        extra.append(f"grad_fn=<{made}>")
    elif self.requires_grad:
        extra.append("requires_grad=True")
    if mode.tracing and (level := mode.dual_level.get()) is not None and (tangent := level.tangent(self)) is not None:
        extra.append(f"tangent={printing.text(tangent.payload, [])}")
    return printing.text(self.payload, extra, self._shown_as)


def _format(self: TensorBase, spec: str) -> str:
    """A number as Python writes one by a format such as ".4f"; other tensors know no format but the empty one."""
    if self.ndim == 0 and (spec or isinstance(self.payload, np.ndarray)):
        return format(item(self), spec)
    if spec:
        raise ArgumentError(f"unsupported format string passed to {type(self).__name__}.__format__: {shown(spec)}")
    return str(self)


def _dlpack(
    self: TensorBase, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
) -> Any:
    """A DLPack capsule of the array, which shares its memory; numpy makes it, options are those of its method."""
    if self.requires_grad:
        raise GradientError("Can't export tensors that require gradient, use tensor.detach()")
    asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return lent(self, "DLPack").__dlpack__(**{name: x for name, x in asked.items() if x is not None})


def _buffer(self: TensorBase, flags: int) -> memoryview:
    """The memory of the array for the buffer protocol, which asks Python classes from Python 3.12 on."""
    array: Any = numpy(self)  # a buffer, as every array is; Python 3.11 has no type for that
    return memoryview(array)


def _dlpack_device(self: TensorBase) -> tuple[int, int]:
    """Where the array is: the CPU."""
    return concrete(self).__dlpack_device__()


def _view(self: TensorBase, *shape: Any, size: Any = None, dtype: Any = None) -> TensorBase:
    """The same memory in another shape, or as elements of another dtype."""
    if dtype is None and len(shape) == 1 and isinstance(shape[0], np.dtype):
        dtype = shape[0]
    return functional.view(self, *shape, size=size) if dtype is None else memory.as_dtype(self, dtype)


def _numel(self: TensorBase) -> Any:
    """The number of elements."""
    return x.size if type(x := self.payload) is np.ndarray else numel(self.shape)


def _of_own_classes(name: str) -> Any:
    """A function of `common.methods.own_classes`, which is loaded when it is first called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module("common.methods.own_classes"), name)(*args, **kwargs)

    return function


type(Tensor).of_program = staticmethod(_of_own_classes("of_program"))
_METHODS = {
    "as_subclass": _of_own_classes("as_subclass"), "_make_subclass": staticmethod(_of_own_classes("make_subclass")),
    "__torch_function__": classmethod(_of_own_classes("torch_function")),
    "copy_": copy_, "zero_": zero_, "fill_": fill_, "clone": clone, "backward": backward,
    "numpy": numpy, "item": item, "__bool__": truth, "__len__": _len,
    "__contains__": _contains, "__iter__": _iter, "__array__": _array,
    "__array_ufunc__": numpy_functions.array_ufunc,
    "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device, "__buffer__": _buffer,
    "__pos__": _positive, "__delitem__": _delete, "__reversed__": _reversed,
    "__repr__": _repr, "__format__": _format, "__index__": index,
    "_backward_hooks": hooks.BACKWARD_HOOKS, "register_hook": hooks.register_hook, "retain_grad": hooks.retain_grad,
    "retains_grad": property(hooks.retains_grad),
    "register_post_accumulate_grad_hook": hooks.register_post_accumulate_grad_hook,
    "tolist": tolist,
    "__float__": lambda self: float(number_of(self)),
    "__complex__": lambda self: complex(number_of(self)),
    "__int__": whole,
    "__getitem__": lambda self, key: functional.getitem(self, key),
    "size": lambda self, dim=None: self.shape if dim is None else self.payload.shape[dim],
    "dim": lambda self: len(self.payload.shape),
    "numel": _numel,
    "where": lambda self, condition, other: functional.where(condition, self, other),
    "unfold": unfold,
    "split": lambda self, split_size, dim=0, **axis: functional.split(self, split_size, **(axis or {"dim": dim})),
    "polygamma": lambda self, n: functional.polygamma(n, self),
    "view": _view,
    "t": transposed,
    "broadcast_to": lambda self, *shape, size=None: functional.expand(self, *shape, size=size),
    "__divmod__": lambda self, other: _divmod(self, as_operand(other)) if accepts(other) else NotImplemented,
    "__rdivmod__": lambda self, other: _divmod(as_operand(other), self) if accepts(other) else NotImplemented,
    "__matmul__": lambda self, other: _matmul(self, other),
    "__rmatmul__": lambda self, other: _matmul(other, self),
    "T": property(lambda self: REGISTRY["permute"](self, dims=tuple(range(len(self.shape)))[::-1])),
    "mT": property(lambda self: matrix_transposed(self, "mT")),
    "H": property(lambda self: matrix_transposed(self, "H"), doc="A matrix transposed, as `T`: its numbers are real."),
    "mH": property(lambda self: matrix_transposed(self, "mH"), doc="As `mT`: the numbers are real."),
    "real": property(lambda self: self, doc="The tensor itself: its numbers are real."),
    "__rdiv__": lambda self, other: other / self,
}  # fmt: skip


def _matmul(a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, (TensorBase, np.ndarray)) and not is_foreign(x):
            return NotImplemented
    return functional.matmul(lift(a), lift(b))
