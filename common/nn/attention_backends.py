"""The implementation of attention: there is one, and a block may ask for it by any of PyTorch's names."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from typing import Any

from common.core.errors import ArgumentError

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's implementations of attention; here all of them are one kernel over blocks of rows."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Sequence[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[Any]:
    """A block, or a function, whose attention is computed by one of these implementations: always the same one.

    Parameters
    ----------
    backends : `SDPBackend`, or a list of them.
    set_priority : accepted.

    Raises
    ------
    ArgumentError : something else, or none.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.ones(1, 1, 2, 3)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     tw.nn.functional.scaled_dot_product_attention(x, x, x).shape
    torch.Size([1, 1, 2, 3])
    """
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, (list, tuple)) or not given or not all(isinstance(one, SDPBackend) for one in given):
        raise ArgumentError(f"sdpa_kernel(): backends must be SDPBackend or a list of them, got {backends!r}")
    yield {}
