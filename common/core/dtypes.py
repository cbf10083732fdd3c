"""The dtypes, and PyTorch's promotion between them.

An operand belongs to one of three tiers: tensors with dimensions, 0-d tensors, weak numbers (Python
numbers). Inside a tier dtypes promote as usual; a lower tier changes the result only when its category
(bool < int < float) is higher. Source of the rule: PyTorch, "Tensor attributes: torch.dtype".

Dtypes are numpy's, so tensors and arrays share them, with the attributes that programs of PyTorch read:

>>> float32.is_floating_point, int64.is_signed, uint8.itemsize
(True, True, 1)
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from common.core.absent import why
from common.core.errors import DTypeError
from common.core.spec import Spec


class Elementwise(Hashable, Protocol):
    """Fields that decide the dtypes of an elementwise op; see `common.core.op.Op`."""

    name: str
    node_name: str
    inputs: tuple[str, ...]
    domain: str
    result: Any
    refuses: str
    refusals: tuple[str, ...]


# PyTorch's attributes of dtypes. numpy's class can be neither subclassed nor assigned to, so they stand in its
# dictionary; numpy has none of these names.


def _is_floating_point(self: np.dtype) -> bool:
    """Whether elements are floating point numbers; complex ones are not."""
    return self.kind == "f"


def _is_complex(self: np.dtype) -> bool:
    """Whether elements are complex numbers, which no tensor has."""
    return self.kind == "c"


def _is_signed(self: np.dtype) -> bool:
    """Whether there are negative numbers."""
    return self.kind in "ifc"


def _to_complex(self: np.dtype) -> np.dtype:
    """The dtype of complex numbers whose parts are of this one.

    Raises
    ------
    DTypeError : of integers and bools.
    """
    if self.kind not in "fc":
        raise DTypeError(f"to_complex(): there are no complex numbers with parts of {self}")
    return self if self.kind == "c" else np.result_type(self, np.complex64)


def _to_real(self: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; any other stays."""
    return np.empty(0, self).real.dtype if self.kind == "c" else self


ATTRIBUTES: dict[str, Any] = {
    "is_floating_point": property(_is_floating_point), "is_complex": property(_is_complex),
    "is_signed": property(_is_signed), "to_complex": _to_complex, "to_real": _to_real,
}  # fmt: skip


def _give_attributes() -> None:
    """Give numpy's dtypes these attributes."""
    (members,) = gc.get_referents(np.dtype.__dict__)  # the dictionary behind the read-only view of it
    for name, value in ATTRIBUTES.items():
        members.setdefault(name, value)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.dtype))  # what was looked up before is forgotten


_give_attributes()

float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
bool_ = np.dtype(np.bool_)

SUPPORTED = (bool_, uint8, int8, int16, int32, int64, float32, float64)


def name_of(dtype: np.dtype) -> str:
    """numpy's name of a dtype, which is not "bool" where a program has written ``np.bool = bool``: this one is."""
    return "bool" if dtype.kind == "b" else str(dtype.name)


def refuse(op: str, x: Spec | Any, kinds: str = "biu") -> None:
    """Refuse an operand of some kinds of dtype: by default those that are no floating point.

    Parameters
    ----------
    op : the function that the user has called.
    x : whatever has a dtype.
    kinds : those of numpy.

    Raises
    ------
    DTypeError : the dtype is of one of the kinds.
    """
    if x.dtype.kind in kinds:
        raise DTypeError(f'"{op}" not implemented for {x.dtype}; convert with .to(...)')


@lru_cache(maxsize=64)
def whole_range(dtype: np.dtype) -> tuple[int, int]:
    """The least and the largest number of a dtype of whole numbers, or of bools."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


class AbsentDType:
    """A dtype of PyTorch's that numpy has not either: programs may name it and compare with it; no tensor has it.

    Parameters
    ----------
    name : of the dtype, a floating point number.
    itemsize : its bytes.
    eps, max, tiny : its limits, as `finfo` has them.
    """

    __slots__ = ("name", "itemsize", "eps", "max", "tiny")
    kind, is_floating_point, is_complex, is_signed = "f", True, False, True

    def __init__(self, name: str, itemsize: int, eps: float, max: float, tiny: float) -> None:
        self.name, self.itemsize = name, itemsize
        self.eps, self.max, self.tiny = eps, max, tiny

    def __repr__(self) -> str:
        return self.name


#: Dtypes that no tensor has, under PyTorch's names: tables of dtypes and comparisons need them, whoever computes in
#: one is told why that cannot be.
ABSENT: dict[str, Any] = {
    **dict.fromkeys(("float16", "half"), np.dtype(np.float16)),
    **{
        limits[0]: AbsentDType(*limits)
        for limits in (
            ("bfloat16", 2, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
            ("float8_e4m3fn", 1, 2.0**-3, 448.0, 2.0**-6),
            ("float8_e4m3fnuz", 1, 2.0**-3, 240.0, 2.0**-7),
            ("float8_e5m2", 1, 2.0**-2, 57344.0, 2.0**-14),
            ("float8_e5m2fnuz", 1, 2.0**-2, 57344.0, 2.0**-15),
        )
    },
    **dict.fromkeys(("complex64", "cfloat"), np.dtype(np.complex64)),
    **dict.fromkeys(("complex128", "cdouble"), np.dtype(np.complex128)),
    "uint16": np.dtype(np.uint16), "uint32": np.dtype(np.uint32), "uint64": np.dtype(np.uint64),
}  # fmt: skip


def unsupported(dtype: Any, where: str = "") -> DTypeError:
    """The error for a dtype without ops: why there is none, or which there are.

    Parameters
    ----------
    dtype : numpy's, or an `AbsentDType`.
    where : what comes first: who was given it.
    """
    reason = why(dtype.name) if dtype in ABSENT.values() else None
    told = f": {reason}" if reason else f"; supported are {[d.name for d in SUPPORTED]}"
    return DTypeError(f"{where}dtype {dtype} is not supported{told}")


_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}
_default = float32

default_changed: list[Callable[[], object]] = []
"""Functions that forget results for a default dtype, called when that changes."""


def default_float() -> np.dtype:
    """The dtype of what is made of Python's floats, and of what a function of floats makes of ints."""
    return _default


def set_default_float(dtype: np.dtype) -> None:
    """Change it for the whole process; programs that are traced already keep theirs."""
    global _default
    if dtype != _default:
        _default = dtype
        for forget in default_changed:
            forget()


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype of one tier that holds both; int64 with float32 is float32, as in PyTorch."""
    if a is b:
        return a
    if a.kind == "f" and b.kind != "f":
        return a
    if b.kind == "f" and a.kind != "f":
        return b
    return np.promote_types(a, b)


def result_dtype(specs: Iterable[Spec]) -> tuple[np.dtype, bool]:
    """The dtype in which an elementwise op computes, and whether its result is weak.

    Parameters
    ----------
    specs : the operands' specs; Python numbers come as 0-d weak specs.
    """
    tiers: list[np.dtype | None] = [None, None, None]
    for spec in specs:
        tier = 2 if spec.weak else (0 if spec.shape else 1)
        known = tiers[tier]
        tiers[tier] = spec.dtype if known is None else promote(known, spec.dtype)
    dims, zero, weak = tiers
    if dims is None and zero is None:
        assert weak is not None
        return weak, True
    if weak is not None:
        weak = _default if weak.kind == "f" else weak
    result = None
    for tier_dtype in (dims, zero, weak):
        if tier_dtype is None:
            continue
        if result is None:
            result = tier_dtype
        elif _CATEGORY[tier_dtype.kind] > _CATEGORY[result.kind]:
            result = promote(result, tier_dtype)
    assert result is not None
    return result, False


def compute_dtypes(op: Elementwise, specs: Sequence[Spec]) -> tuple[np.dtype, np.dtype, bool]:
    """Dtype in which an elementwise op computes, dtype of its result, and whether that is weak.

    Raises
    ------
    DTypeError : the op is not defined for the dtype.
    """
    return _compute_dtypes(op, tuple([(spec.dtype, bool(spec.shape), spec.weak) for spec in specs]))


@lru_cache(maxsize=8192)
def _compute_dtypes(op: Elementwise, kinds: tuple[tuple[np.dtype, bool, bool], ...]) -> tuple[np.dtype, np.dtype, bool]:
    """The same, of what it depends on: per operand dtype, whether it has dimensions, and weakness."""
    specs = [Spec((2,) * dimensions, dtype, weak) for dtype, dimensions, weak in kinds]
    dtype, weak = result_dtype(spec for name, spec in zip(op.inputs, specs) if name != "condition")
    bools = sum(spec.dtype == bool_ for spec in specs)
    if dtype.kind in op.refuses or ("B" in op.refuses and bools):
        said = f"{op.refusals[: max(bools, 1)][-1]} " if op.refusals else ""
        raise DTypeError(f"{said}{op.name}(): not implemented for {'bool' if 'B' in op.refuses else dtype.name}")
    if op.domain == "real" and not weak:
        refuse(shown_name(op), Spec((), result_dtype(spec for spec in specs if not spec.weak)[0]))
    if op.domain in ("float", "real") and dtype.kind != "f":
        dtype = float64 if weak else _default
    elif op.domain == "bool":
        dtype = bool_
    elif op.domain == "number" and dtype == bool_:
        dtype = int64
    weak = weak and all(spec.weak for spec in specs)  # chosen by a condition that has elements, a number is none
    return dtype, (bool_ if op.result == "bool" else dtype), weak


default_changed.append(_compute_dtypes.cache_clear)


def shown_name(op: Elementwise) -> str:
    """PyTorch's name of an op, from that of its nodes: "leaky_relu" of LeakyReluBackward0."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op.node_name.removesuffix("Backward0")).lower()


def operand_dtypes(op: Elementwise, specs: Sequence[Spec]) -> tuple[np.dtype, ...]:
    """The dtype to which each operand of an elementwise op is brought."""
    dtype = compute_dtypes(op, specs)[0]
    return tuple(bool_ if name == "condition" else dtype for name in op.inputs)


def number_spec(value: bool | int | float) -> Spec:
    """The weak 0-d spec of a Python number."""
    if isinstance(value, bool):
        return Spec((), bool_, True)
    return Spec((), float64 if isinstance(value, float) else int64, True)
