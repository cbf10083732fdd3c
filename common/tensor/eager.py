"""The tensor outside a trace, which both engines share: an array, and its place in the tape.

Its ops take the general path of `common.tensor.base.record`. `dynamic` puts short paths with the same results in the
place of the commonest methods; in a process that has imported it, all tensors have them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from common.autograd import collector, inference
from common.autograd.exposed import borrow
from common.create import to_array
from common.errors import GradientError
from common.frames import is_user_file
from common.tensor import base
from common.tensor.base import TensorBase
from common.tensor.methods import install_methods

_getframe = sys._getframe


class _TensorType(type):
    """Makes every tensor an instance: parameters, and tracers."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase)


class Tensor(TensorBase, metaclass=_TensorType):
    """A multi-dimensional array whose operations are recorded as they run.

    Parameters
    ----------
    data : (...) ndarray, used as it is, not copied; or what `tensor` takes.
    requires_grad : record operations on it.

    Raises
    ------
    DTypeError : `requires_grad` for a dtype that is not floating point.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        self.payload = data if type(data) is np.ndarray else to_array(data)
        if data is self.payload and is_user_file(_getframe(1).f_code.co_filename):
            borrow(data, "Tensor()")
        self._requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = None
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = memo[id(self)] = Tensor(self._own_data("deepcopied").copy(), self._requires_grad)
        if self._grad is not None:
            copy._grad = Tensor(self._grad.payload.copy())
        return copy

    def __reduce__(self) -> Any:
        return Tensor, (self._own_data("pickled"), self._requires_grad)

    def _own_data(self, action: str) -> np.ndarray:
        if self.grad_fn is not None:
            raise GradientError(
                f"Only Tensors created explicitly by the user (graph leaves) can be {action}; use .detach() or .clone()"
            )
        return self.payload


class InferenceTensor(Tensor):
    """A tensor that was made under `inference_mode`, see `common.autograd.inference`."""

    __slots__ = ()


install_methods(TensorBase)
base.eager_class = Tensor
inference.normal, inference.marked = Tensor, InferenceTensor
collector.install()
