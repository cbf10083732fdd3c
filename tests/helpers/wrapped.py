"""Tensors over arrays of any dtype, which `Tensor(...)` would make float32."""

from typing import Any

import dynamic


def wrap(data: Any, requires_grad: bool = False) -> Any:
    """A tensor of an array's dtype, in its memory."""
    x = dynamic.as_tensor(data)
    return x.requires_grad_() if requires_grad else x
