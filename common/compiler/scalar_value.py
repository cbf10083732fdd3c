"""The common base of values of scalar definitions: operators, and the dtypes they take."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np


class ScalarValue:
    """One scalar of a definition that is written down, not computed.

    Attributes
    ----------
    dtype : of the value; two operands of an operation have the same.
    """

    __slots__ = ("dtype",)
    __hash__ = None  # type: ignore[assignment]
    dtype: np.dtype[Any]

    def __bool__(self) -> bool:
        raise TypeError("a scalar definition must not branch on a value: use select(condition, x, y)")

    # ---------------------------------------------------------------- what each way of writing says
    @abstractmethod
    def constant(self, number: Any) -> Self:
        """Return ``number`` in this value's dtype, rounded once."""

    @abstractmethod
    def select(self, x: Any, y: Any) -> Any:
        """Return ``x`` where this bool holds, else ``y``."""

    @abstractmethod
    def _operation(self, sign: str, left: Any, right: Any) -> Self:
        """An operation on two values of this dtype."""

    @abstractmethod
    def _compare(self, sign: str, other: Any) -> Any:
        """A bool."""

    @abstractmethod
    def _exact(self, name: str, *others: Any) -> Self:
        """A function of floats that IEEE 754 defines: fabs, copysign, sqrt, fma, floor, ceil, trunc or rint."""

    # ---------------------------------------------------------------- operands
    def _coerce(self, other: Any) -> Any:
        if isinstance(other, ScalarValue):
            if other.dtype != self.dtype:
                raise TypeError(f"operands of one operation must have one dtype: {self.dtype} and {other.dtype}")
            return other
        if type(other) in (int, float, bool) or (isinstance(other, np.generic) and other.dtype == self.dtype):
            if type(other) is float and self.dtype.kind != "f":
                raise TypeError(f"a float constant cannot take the dtype {self.dtype}")
            return self.constant(other)
        raise TypeError(f"cannot combine a {self.dtype} value with {other!r}")

    @property
    def _float(self) -> bool:
        return self.dtype.kind == "f"

    def _binary(self, sign: str, other: Any, kinds: str, swap: bool = False) -> Self:
        if self.dtype.kind not in kinds:
            raise TypeError(f"operation {sign} is not defined for {self.dtype}")
        right = self._coerce(other)
        return self._operation(sign, right, self) if swap else self._operation(sign, self, right)

    # ---------------------------------------------------------------- arithmetic and bits
    def __add__(self, other: Any) -> Self:
        return self._binary("+", other, "fiu")

    def __radd__(self, other: Any) -> Self:
        return self._binary("+", other, "fiu", swap=True)

    def __sub__(self, other: Any) -> Self:
        return self._binary("-", other, "fiu")

    def __rsub__(self, other: Any) -> Self:
        return self._binary("-", other, "fiu", swap=True)

    def __mul__(self, other: Any) -> Self:
        return self._binary("*", other, "fiu")

    def __rmul__(self, other: Any) -> Self:
        return self._binary("*", other, "fiu", swap=True)

    def __truediv__(self, other: Any) -> Self:
        return self._binary("/", other, "f")

    def __rtruediv__(self, other: Any) -> Self:
        return self._binary("/", other, "f", swap=True)

    def __and__(self, other: Any) -> Self:
        return self._binary("&", other, "iub")

    def __or__(self, other: Any) -> Self:
        return self._binary("|", other, "iub")

    def __xor__(self, other: Any) -> Self:
        return self._binary("^", other, "iub")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    # ---------------------------------------------------------------- comparison
    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("!=", other)

    # ---------------------------------------------------------------- functions
    def _function(self, name: str, *others: Any) -> Self:
        if not self._float:
            raise TypeError(f"{name} is not defined for {self.dtype}")
        return self._exact(name, *others)

    def absolute(self) -> Any:
        """Magnitude; integers wrap."""
        if self._float:
            return self._function("fabs")
        return self if self.dtype.kind in "ub" else (self < 0).select(-self, self)  # type: ignore[operator]

    def transfer_sign(self, sign: Any) -> Self:
        """Magnitude of this value, sign bit of the other."""
        return self._function("copysign", self._coerce(sign))

    def sqrt(self) -> Self:
        """Correctly rounded square root."""
        return self._function("sqrt")

    def fused(self, factor: Any, term: Any) -> Self:
        """Return this value times a factor plus a term, rounded once."""
        return self._function("fma", self._coerce(factor), self._coerce(term))

    def floor(self) -> Self:
        """Round down."""
        return self._function("floor")

    def ceil(self) -> Self:
        """Round up."""
        return self._function("ceil")

    def trunc(self) -> Self:
        """Round towards zero."""
        return self._function("trunc")

    def rint(self) -> Self:
        """Round to nearest, ties to even (the rounding mode is never changed)."""
        return self._function("rint")
