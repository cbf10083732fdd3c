"""`Variable`, which PyTorch's programs of long ago wrap around tensors."""

from __future__ import annotations

from typing import Any

from common.autograd.pass_callbacks import ExecutionEngine
from common.core.errors import ArgumentError
from common.tensor.base import TensorBase


class _VariableType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase)


class Variable(metaclass=_VariableType):
    """A tensor that shares the memory of another one, without its history. Every tensor counts as an instance.

    Parameters
    ----------
    data : tensor.
    requires_grad : record operations on it.
    volatile : as PyTorch, it changes nothing; use `no_grad`.

    Raises
    ------
    ArgumentError : `data` is no tensor.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.autograd.Variable(tw.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        """Share the memory of `data`."""
        if not isinstance(data, TensorBase):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = data.detach()
        return made.requires_grad_() if requires_grad else made
