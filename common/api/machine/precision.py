"""`amp`: there is no mixed precision; programs that ask for it run in float32, and are told so once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from common.core.devices import KINDS
from common.core.errors import ArgumentError
from common.core.source_lines import warn_user

F = TypeVar("F", bound=Callable[..., Any])


class autocast:
    """A block, or a function, in lower precision: here it computes in the dtypes of its operands.

    Parameters
    ----------
    device_type : such as "cuda" or "cpu".
    dtype : of the lower precision; it is not used.
    enabled : whether the block asks for it; then a warning says that there is no half precision.
    cache_enabled : accepted; it changes nothing.

    Examples
    --------
    >>> import dynamic as tw
    >>> with autocast("cpu", enabled=False):
    ...     (tw.ones(2) @ tw.ones(2)).dtype
    dtype('float32')
    """

    def __init__(
        self, device_type: Any = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if isinstance(device_type, bool):  # the first argument of cuda.amp.autocast
            device_type, enabled = "cuda", device_type
        if device_type not in KINDS:
            raise ArgumentError(f"autocast(): unknown device_type {device_type!r}; use one of {list(KINDS)}")
        self.device, self.fast_dtype = device_type, dtype
        if enabled:
            warn_user(
                "autocast(): there is no half precision; the block computes in float32. Say enabled=False to be told "
                "no more",
                UserWarning,
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: F) -> F:
        """Decorate a function: it is called as it is."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        made: Any = call
        return made


class GradScaler:
    """Scales losses, so that gradients of half precision do not vanish; in float32 the scale is 1.

    Parameters
    ----------
    device : accepted.
    options : PyTorch's, accepted: `init_scale`, `growth_factor`, `backoff_factor`, `growth_interval`, `enabled`.
    """

    def __init__(self, device: Any = "cuda", **options: Any) -> None:
        known = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"}
        if other := set(options) - known:
            raise ArgumentError(f"GradScaler() got an unexpected keyword argument {min(other)!r}")

    def scale(self, outputs: Any) -> Any:
        """The losses themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing: gradients are not scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()``."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Nothing: the scale stays 1."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Empty, as of a scaler that is not enabled."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Accept a state, which changes nothing."""


def is_autocast_available(device_type: str) -> bool:
    """False: there is no half precision."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False, in a block of `autocast` too: nothing computes in lower precision."""
    return False


def custom_fwd(fwd: Any = None, **options: Any) -> Any:
    """A decorator for `Function.forward` that leaves it as it is."""
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd: Any = None, **options: Any) -> Any:
    """A decorator for `Function.backward` that leaves it as it is."""
    return bwd if bwd is not None else lambda function: function


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "is_autocast_enabled"]
