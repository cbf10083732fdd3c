"""Methods about a tensor's memory: layout, tensors made like it, and changes of its shape in place."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from mmap import mmap
from typing import Any

import numpy as np

from common.autograd.view_histories import require_writable
from common.core import mode
from common.core.devices import STRIDED, dense, on_cpu
from common.core.errors import ArgumentError, DTypeError, GradientError, NotDefinedError, ShapeError
from common.core.int_arguments import is_whole_number
from common.core.shapes import contiguous_strides
from common.core.size_tuples import Size
from common.core.sizes import Dim
from common.core.source_lines import user_frame
from common.core.spec import numel
from common.ops import functional
from common.ops.create import creation
from common.ops.shape.memory_order import _in_order
from common.ops.shape.view import transposed
from common.tensor.arrays import concrete, known_dtype, to_array
from common.tensor.base import TensorBase, wrap
from common.tensor.create import lift, tensor
from common.tensor.inference import refuse_write
from common.tensor.read_saved import with_edge
from common.tensor.storage import Storage
from common.tensor.view_families import is_recorded, leave_family
from common.tensor.write_log import count_write, log_write, owner_of, share_count


def stride(self: TensorBase, dim: Any = None) -> Any:
    """Steps in elements from one index to the next, of all dimensions or of one.

    Of a traced tensor those of its elements in C order.
    """
    array = self.payload
    if type(array) is np.ndarray:
        in_order = array.flags.c_contiguous or not array.size
        steps = _known_order(array.shape) if in_order else tuple([s // array.itemsize for s in array.strides])
    else:
        steps = _in_c_order(self.shape)
    return steps if dim is None else steps[dim]


def as_dtype(self: TensorBase, dtype: Any) -> TensorBase:
    """The same memory, its bytes taken as elements of another dtype; without history. Sizes of the last dimension
    change where the dtypes' do.

    Parameters
    ----------
    dtype : of m bytes, where the elements now have n: (..., k) becomes (..., k * n / m).

    Raises
    ------
    DTypeError : no dtype, or bytes other than 0 and 1 as bools.
    ShapeError : the last dimension cannot be divided like that, or does not lie one element after the other.
    NotDefinedError : in a trace, where tensors have no memory.
    """
    if mode.current_trace() is not None:
        raise NotDefinedError("view(dtype) is not possible in a trace, where tensors have no memory; use .to(dtype)")
    dtype, array = known_dtype(dtype), concrete(self)
    own, size = self.dtype.itemsize, dtype.itemsize
    if own != size:
        steps = (*array.strides[:-1], array.__array_interface__["data"][0])
        lies = array.ndim and array.shape[-1] * own % size == 0
        if not lies or (array.size and (array.strides[-1] != own or any(step % size for step in steps))):
            raise ShapeError(
                f"view(): self.size(-1) must be divisible by {max(size // own, 1)} to view {self.dtype} as {dtype} "
                f"(different element sizes), and self.stride(-1) must be 1; its shape is {tuple(self.shape)}, its "
                f"strides {stride(self)}"
            )
        if not array.size:
            return wrap(np.empty((*array.shape[:-1], array.shape[-1] * own // size), dtype))
    if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise DTypeError("view(): bytes other than 0 and 1 are no bools; use .to(bool) or != 0")
    return wrap(array.view(dtype))


def _in_c_order(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(prod(n or 1 if isinstance(n, int) else n for n in shape[i + 1 :]) for i in range(len(shape)))


_known_order = lru_cache(maxsize=1024)(_in_c_order)


def is_contiguous(self: TensorBase, memory_format: Any = None) -> bool:
    """Whether the elements lie one after the other in C order."""
    return _in_order(self)


def data_ptr(self: TensorBase) -> int:
    """The address of the first element."""
    array = concrete(self)
    return array.ctypes.data if array.size else 0


def storage_offset(self: TensorBase) -> int:
    """How many elements of the memory lie before the first, counted from the array that owns it."""
    array = concrete(self)
    if array.base is None:
        return 0
    return (array.ctypes.data - owner_of(array).ctypes.data) // array.itemsize


def is_set_to(self: TensorBase, tensor: TensorBase) -> bool:
    """Whether both show the same elements of the same memory."""
    a, b = concrete(self), concrete(tensor)
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype


def _placed(made: Any, requires_grad: bool) -> Any:
    made = lift(made)
    return made.requires_grad_() if requires_grad else made


def _new(create: Any, name: str) -> Any:
    def method(
        self: TensorBase,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
        **named: Any,
    ) -> Any:
        on_cpu(device, name)
        dense(layout, name)
        sizes = named.pop("size", None)
        if named:
            raise ArgumentError(f"{name}() got an unexpected keyword argument {next(iter(named))!r}")
        return _placed(create(*size, size=sizes, dtype=dtype or self.dtype), requires_grad)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{create.__name__}` of sizes, in the dtype of this tensor."
    return method


def new_full(
    self: TensorBase,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """A number everywhere, in the dtype of this tensor."""
    on_cpu(device, "new_full")
    dense(layout, "new_full")
    return _placed(creation.full(size, fill_value, dtype=dtype or self.dtype), requires_grad)


def new_empty_strided(
    self: TensorBase,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """`empty_strided` in the dtype of this tensor."""
    from common.ops.create.by_strides import empty_strided

    on_cpu(device, "new_empty_strided")
    dense(layout, "new_empty_strided")
    return _placed(empty_strided(size, stride, dtype=dtype or self.dtype), requires_grad)


def new_tensor(
    self: TensorBase,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """A copy of data in the dtype of this tensor."""
    on_cpu(device, "new_tensor")
    dense(layout, "new_tensor")
    return tensor(data, dtype=dtype or self.dtype, requires_grad=requires_grad)


def new(self: TensorBase, *args: Any, device: Any = None) -> Any:
    """A tensor of this dtype: of sizes, of zeros to be written to; or of data, a copy."""
    on_cpu(device, "new")
    if mode.current_trace() is not None and len(args) == 1 and type(args[0]) is tuple:
        return lift(creation.zeros(args[0], dtype=self.dtype))  # of what `size()` gives in a trace
    return constructed(args, self.dtype)


def constructed(args: tuple[Any, ...], dtype: Any) -> Any:
    """Construct a tensor of a typed class: sizes give zeros to be written to, data are copied.

    Parameters
    ----------
    args : sizes one by one, a `Size`, or nested lists, an array or a tensor; nothing is no elements.
    """
    if not args:
        return lift(creation.zeros(0, dtype=dtype))
    data = args[0]
    if len(args) > 1 or isinstance(data, (int, np.integer, Dim)) or is_whole_number(data) or type(data) is Size:
        return lift(creation.zeros(*args, dtype=dtype))
    if isinstance(data, TensorBase):
        return data.detach().to(dtype)
    return lift(to_array(data, dtype))


def resize_(self: TensorBase, *sizes: Any, memory_format: Any = None) -> TensorBase:
    """Other sizes, in place: the first elements stay, in the same memory where it has room for all.

    Raises
    ------
    GradientError : the tensor requires grad.
    ShapeError : its elements do not lie in C order.
    """
    if is_recorded(self) and not mode.is_inference_mode_enabled():
        raise GradientError("cannot resize variables that require grad")
    array, shape = concrete(self), creation.known_sizes(sizes)
    if array.shape == tuple(shape):
        return self
    if not array.flags.c_contiguous:
        raise ShapeError("resize_(): the elements do not lie in C order; call contiguous() first")
    count = numel(shape)
    if count > array.size:
        longer = np.zeros(count, array.dtype)
        longer[: array.size] = array.reshape(-1)
        leave_family(self)
        self.payload = longer.reshape(shape)
        share_count(self.payload, array)
    else:
        self.payload = array.reshape(-1)[:count].reshape(shape)
    log_write(self.payload, *user_frame(2))
    return self


def resize_as_(self: TensorBase, other: TensorBase, memory_format: Any = None) -> TensorBase:
    """`resize_` to the sizes of another tensor."""
    return resize_(self, *other.shape)


def share_memory_(self: TensorBase) -> TensorBase:
    """Move the elements to memory that processes forked from this one share with it; nothing if they are there.

    Views of the tensor keep the old memory. Such a process sees what any of them writes; a queue still carries copies.

    Raises
    ------
    TraceError : in a trace.
    """
    trace = mode.current_trace()
    if trace is not None:
        trace.refuse_data(self)
    if not is_shared(self) and self.payload.size:
        shared = np.frombuffer(mmap(-1, self.payload.nbytes), self.payload.dtype).reshape(self.payload.shape)
        shared[...] = self.payload
        leave_family(self)
        self.payload = shared
    return self


def is_shared(self: TensorBase) -> bool:
    """Whether `share_memory_` has moved the elements, of this tensor or of what it is a view of."""
    owner = self.payload
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner.obj if isinstance(owner, memoryview) else owner, mmap)


def set_(
    self: TensorBase, source: TensorBase | Storage, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> TensorBase:
    """Take over the memory of another tensor, of any shape, as ``x.data = source`` does; or a part of a storage.

    Parameters
    ----------
    storage_offset : the first element, counted from that of `source`.
    size, stride : of the tensor then; without them that of `source`, or all of a storage; steps in C order.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError : no tensor or storage; another dtype; a part that does not lie in it.
    GradientError : the tensor requires grad, and ops are recorded.
    """
    if not isinstance(source, (TensorBase, Storage)):
        raise ArgumentError(f"set_(): argument 'source' must be a Tensor or Storage, not {type(source).__name__}")
    if source.dtype not in (self.dtype, np.uint8 if isinstance(source, Storage) else self.dtype):
        raise DTypeError(f"set_(): the source is {source.dtype}, which is not the tensor's {self.dtype}")
    if mode.is_grad_enabled() and is_recorded(self):
        raise GradientError(
            "a Variable that requires grad is being used in an in-place operation (set_): use no_grad(), or detach()"
        )
    if isinstance(source, TensorBase) and size is not None:
        storage_offset += source.storage_offset()
        source = Storage(owner_of(concrete(source)), self.dtype)
    if isinstance(source, Storage):
        memory = wrap(source.elements(self.dtype))
        size = (numel(memory.shape) - storage_offset,) if size is None else tuple(size)
        source = functional.as_strided(memory, size, stride or contiguous_strides(size), storage_offset)
    self.data = source
    count_write(self.payload)
    return self


def _viewed(function: Any, name: str) -> Any:
    """A method that shows the memory of a tensor in another shape, in place."""

    def method(self: TensorBase, *args: Any, **options: Any) -> TensorBase:
        if mode.inference_seen:
            refuse_write(self, name[:-1])
        known, traced = getattr(self, "_family", None), mode.current_trace() is not None
        is_view = type(known) is tuple
        if known is not None and (traced or is_recorded(self)) and mode.is_grad_enabled():
            require_writable(self, name[:-1])
        if self.requires_grad and self.is_leaf and mode.is_grad_enabled():
            raise GradientError(f"a leaf Variable that requires grad is being used in an in-place operation ({name}).")
        if known is not None and (traced or is_recorded(self)):
            if traced or (not is_view and known.alive()):
                raise GradientError(
                    f"{name}(): other tensors show this memory, and writes to it are recorded; use "
                    f"x = x.{name[:-1]}(...)"
                )
        if not is_view:
            leave_family(self)
        if not traced:
            count_write(self.payload)
        source = with_edge(self.payload, self.edge) if not self.is_leaf else self.detach()
        source._family = known if is_view else None
        with mode.GradSwitch(is_view or not self.is_leaf or mode.is_grad_enabled()):
            view = function(source, *args, **options)
        self.payload = view.payload
        if is_view:  # what it is a view of stays; the chain to it has one step more
            self._family = view._family
        if not self.is_leaf:
            self.grad_fn, self.output_nr = view.grad_fn, view.output_nr
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name[:-1]}` in place: the tensor gets the other shape; the memory is the same."
    return method


METHODS: dict[str, Any] = {
    "stride": stride,
    "is_contiguous": is_contiguous,
    "data_ptr": data_ptr,
    "storage_offset": storage_offset,
    "is_set_to": is_set_to,
    "set_": set_,
    "storage": lambda self: Storage(owner_of(concrete(self)), self.dtype),
    "untyped_storage": lambda self: Storage(owner_of(concrete(self)), np.dtype(np.uint8)),
    "element_size": lambda self: self.dtype.itemsize,
    "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of an element."),
    "nbytes": property(lambda self: numel(self.shape) * self.dtype.itemsize, doc="Bytes of all elements."),
    "nelement": lambda self: numel(self.shape),
    "ndimension": lambda self: self.ndim,
    "is_floating_point": lambda self: self.dtype.kind == "f",
    "is_complex": lambda self: False,
    "is_signed": lambda self: self.dtype.kind in "if",
    "is_nonzero": lambda self: bool(self),
    "is_same_size": lambda self, other: tuple(self.shape) == tuple(other.shape),
    "new_zeros": _new(creation.zeros, "new_zeros"),
    "new_ones": _new(creation.ones, "new_ones"),
    "new_empty": _new(creation.empty, "new_empty"),
    "new_full": new_full,
    "new_tensor": new_tensor,
    "new_empty_strided": new_empty_strided,
    "layout": property(lambda self: STRIDED, doc="torch.strided: all tensors are dense."),
    "new": new,
    "share_memory_": share_memory_,
    "is_shared": is_shared,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "as_strided_": _viewed(functional.as_strided, "as_strided_"),
    "t_": _viewed(transposed, "t_"),
    "squeeze_": _viewed(functional.squeeze, "squeeze_"),
    "unsqueeze_": _viewed(functional.unsqueeze, "unsqueeze_"),
    "transpose_": _viewed(functional.transpose, "transpose_"),
    "swapaxes_": _viewed(functional.transpose, "swapaxes_"),
    "swapdims_": _viewed(functional.transpose, "swapdims_"),
}
for _name, _says in {
    "element_size": "Bytes of an element.", "nelement": "The number of elements.",
    "ndimension": "The number of dimensions.", "is_floating_point": "Whether the dtype is float32 or float64.",
    "is_complex": "False: there are no complex numbers.", "is_signed": "Whether the dtype has negative numbers.",
    "is_nonzero": "Whether the only element is not 0.", "is_same_size": "Whether both have the same sizes.",
}.items():  # fmt: skip
    METHODS[_name].__doc__ = _says
