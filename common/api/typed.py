"""Classes that name types of tensors, sizes, and limits of dtypes, as PyTorch's programs use them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core import dtypes, mode
from common.core.dtypes import result_dtype
from common.core.errors import ArgumentError, DTypeError, TraceError
from common.core.size_tuples import Size
from common.methods.memory import constructed
from common.ops.create import creation
from common.tensor import boundary
from common.tensor.arrays import dtype_or, known_dtype
from common.tensor.base import TensorBase, spec_of
from common.tensor.create import lift


class _Typed(type):
    """Makes every tensor of the dtype an instance."""

    tensor_dtype: np.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase) and instance.dtype == cls.tensor_dtype

    @property
    def dtype(cls) -> np.dtype:
        """The dtype of its instances."""
        return cls.tensor_dtype


def _typed(name: str, dtype: np.dtype) -> Any:
    def new(cls: Any, *args: Any, device: Any = None) -> Any:
        from common.core.devices import on_cpu

        on_cpu(device, name)
        return constructed(args, dtype)

    says = (f"Tensors of {dtype.name}. Called with sizes, it makes a tensor to be written to, of zeros; with data, a "
            "copy of them.")  # fmt: skip
    return _Typed(
        name,
        (),
        {"__new__": boundary.guarded(new, name), "__doc__": says, "__module__": __name__, "tensor_dtype": dtype},
    )


TYPED: dict[str, Any] = {
    name: _typed(name, dtype)
    for name, dtype in {
        "BoolTensor": dtypes.bool_, "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
        "DoubleTensor": dtypes.float64, "FloatTensor": dtypes.float32, "IntTensor": dtypes.int32,
        "LongTensor": dtypes.int64, "ShortTensor": dtypes.int16,
        "BFloat16Tensor": dtypes.ABSENT["bfloat16"], "HalfTensor": dtypes.ABSENT["float16"],
    }.items()
}  # fmt: skip
globals().update(TYPED)


class finfo:
    """Limits of a floating-point dtype, as Python's floats.

    Parameters
    ----------
    type : the dtype, float32 by default.

    Attributes
    ----------
    bits : of an element.
    eps : the distance from 1 to the next number.
    max, min : the largest number and the smallest, which is negative.
    tiny, smallest_normal : the smallest positive number with all digits.
    resolution : 10 to the number of decimal digits that are exact.
    dtype : its name.

    Raises
    ------
    DTypeError : the dtype is not floating point.
    """

    def __init__(self, type: Any = None) -> None:
        absent = type in dtypes.ABSENT.values() and type.kind == "f"  # its limits are known all the same
        known = type if absent else known_dtype(dtypes.default_float() if type is None else type)
        if known.kind != "f":
            raise DTypeError(f"torch.finfo() requires a floating point input type, got {known}; use iinfo")
        limits = known if isinstance(known, dtypes.AbsentDType) else np.finfo(known)
        self.bits, self.dtype = 8 * known.itemsize, known.name
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), -float(limits.max)
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(f"1e-{math.floor(-math.log10(self.eps))}")

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")  # fmt: skip


class iinfo:
    """Limits of an integer dtype, as Python's ints.

    Parameters
    ----------
    type : the dtype.

    Attributes
    ----------
    bits : of an element.
    max, min : the largest number and the smallest.
    dtype : its name.

    Raises
    ------
    DTypeError : the dtype is not one of integers.
    """

    def __init__(self, type: Any) -> None:
        known = known_dtype(type)
        if known.kind not in "iu":
            raise DTypeError(f"torch.iinfo() requires an integer input type, got {known}; use finfo")
        limits = np.iinfo(known)
        self.bits, self.max, self.min, self.dtype = int(limits.bits), int(limits.max), int(limits.min), known.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def get_default_dtype() -> np.dtype:
    """The dtype of what is made of Python's floats: float32, if `set_default_dtype` has not changed it."""
    return dtypes.default_float()


def set_default_dtype(d: Any) -> None:
    """Say what is made of Python's floats, and of ints by functions of floats: float32 or float64.

    It holds for the whole process, for what is made from then on. Programs are traced again under another default; one
    in a file keeps the dtypes that it was saved with.

    Parameters
    ----------
    d : the dtype, or the typed class of one.

    Raises
    ------
    DTypeError : a dtype that is not float32 or float64.
    TraceError : in a traced function, whose program would do so once and not at each call.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.set_default_dtype(tw.float64)
    >>> tw.tensor([1, 2]) / 3
    tensor([0.3333, 0.6667])
    >>> tw.set_default_dtype(tw.float32)
    """
    own = getattr(d, "tensor_dtype", None)
    wanted = known_dtype(d if own is None else own)
    if wanted.kind != "f":
        raise DTypeError(f"only floating-point types are supported as the default type, not {wanted}")
    if wanted not in dtypes.SUPPORTED:
        raise dtypes.unsupported(wanted, "set_default_dtype(): ")
    if mode.current_trace() is not None:
        raise TraceError("set_default_dtype() in a traced function would run once, while it is traced: call it before")
    dtypes.set_default_float(wanted)


def set_default_tensor_type(t: Any) -> None:
    """`set_default_dtype` by a typed class, or PyTorch's name of one."""
    from common.methods.conversions import dtype_of

    set_default_dtype(dtype_of(t))


def is_tensor(obj: Any) -> bool:
    """Whether something is a tensor."""
    return isinstance(obj, TensorBase)


def _tensor(x: Any, name: str) -> TensorBase:
    if not isinstance(x, TensorBase):
        raise ArgumentError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    return x


def is_floating_point(input: Any) -> bool:
    """Whether the dtype of a tensor is float32 or float64."""
    return _tensor(input, "is_floating_point").dtype.kind == "f"


def is_complex(input: Any) -> bool:
    """False: there are no complex numbers."""
    return bool(_tensor(input, "is_complex") is None)


def is_signed(input: Any) -> bool:
    """Whether the dtype of a tensor has negative numbers."""
    return _tensor(input, "is_signed").dtype.kind in "if"


def is_nonzero(input: Any) -> bool:
    """Whether the only element of a tensor is not 0."""
    return bool(_tensor(input, "is_nonzero"))


def is_storage(obj: Any) -> bool:
    """False: there are no storages."""
    return False


def numel(input: Any) -> Any:
    """The number of elements of a tensor."""
    return _tensor(input, "numel").numel()


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The smallest dtype that PyTorch computes two in: int64 with float32 is float32."""
    return dtypes.promote(dtype_or(type1, None), dtype_or(type2, None))


def result_type(tensor1: Any, tensor2: Any) -> np.dtype:
    """The dtype of what is computed of two tensors or numbers."""
    dtype, weak = result_dtype([spec_of(tensor1), spec_of(tensor2)])
    return dtypes.default_float() if weak and dtype.kind == "f" else dtype


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a result of one dtype may be written to a tensor of another: not from floats to ints."""
    order = "biuf".index
    a, b = known_dtype(from_), known_dtype(to)
    return (a.kind != "f" or b.kind == "f") and (b.kind != "b" or a.kind == "b") and order(a.kind) >= 0


def typename(obj: Any) -> str:
    """PyTorch's name of a tensor's type, or the name of an object's class with its module."""
    if isinstance(obj, TensorBase):
        name: str = obj.type()
        return name
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def scalar_tensor(s: Any, dtype: Any = None) -> Any:
    """A tensor without dimensions of a number.

    Parameters
    ----------
    s : number.
    dtype : float32 by default.
    """
    return lift(creation.full((), s, dtype or dtypes.default_float()))


PLAIN: dict[str, Any] = {
    f.__name__: f
    for f in (Size, finfo, iinfo, get_default_dtype, set_default_dtype, set_default_tensor_type, is_tensor,
              is_floating_point, is_complex, is_signed, is_nonzero, is_storage, numel, promote_types, result_type,
              can_cast, typename)
}  # fmt: skip
