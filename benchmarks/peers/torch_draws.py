"""Random numbers of ours in PyTorch: a user's file draws the same data and parameters whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

import dynamic

MAKERS = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "rand_like", "randn_like", "randint_like")
WRITERS = ("normal_", "uniform_", "bernoulli_", "exponential_", "random_", "log_normal_", "geometric_", "cauchy_")


class OurDraws(TorchFunctionMode):  # type: ignore[misc]  # torch is Any where it is not installed
    """While it is entered, PyTorch's functions that draw return what `dynamic`'s draw.

    A call that names a generator draws from that.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        name, options = getattr(func, "__name__", ""), dict(kwargs or {})
        if options.get("generator") is None:
            if name in MAKERS:
                return _made(name, args, options)
            if hasattr(dynamic.nn.init, name) and not hasattr(
                func, "__objclass__"
            ):  # nn.init hides its calls from modes
                target, *rest = args or (options.pop("tensor"),)
                return _written(target, lambda ours: getattr(dynamic.nn.init, name)(ours, *rest, **options))
            if name in WRITERS:
                given = {k: _ours(x) for k, x in options.items() if k != "generator"}
                return _written(args[0], lambda ours: getattr(ours, name)(*map(_ours, args[1:]), **given))
        return func(*args, **options)


def _made(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> torch.Tensor:
    requires_grad = options.pop("requires_grad", False)
    given = {k: _ours(x) for k, x in options.items() if k in ("size", "low", "high", "mean", "std", "p", "n", "dtype")}
    drawn = getattr(dynamic, name)(*map(_ours, args), **given)
    return torch.from_numpy(drawn.numpy().copy()).requires_grad_(requires_grad)


def _written(target: torch.Tensor, write: Callable[[Any], Any]) -> torch.Tensor:
    ours = dynamic.empty(tuple(target.shape), dtype=_ours(target.dtype))
    write(ours)
    with torch.no_grad():
        return target.copy_(torch.from_numpy(ours.numpy()))


def _ours(value: Any) -> Any:
    """A tensor or dtype of PyTorch as one of ours; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return dynamic.tensor(value.detach().numpy())
    return np.dtype(str(value).removeprefix("torch.")) if isinstance(value, torch.dtype) else value
