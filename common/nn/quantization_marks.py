"""Where a quantised model would convert: as long as a model is not quantised, as here, these modules change nothing."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.nn.module import Module

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """The place where values become quantised; it returns its argument.

    Parameters
    ----------
    qconfig : None.

    Raises
    ------
    ArgumentError : another `qconfig`, because there is no quantisation.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig is not None:
            raise ArgumentError(f"{type(self).__name__}(): there is no quantisation; leave qconfig out")

    def forward(self, x: Any) -> Any:
        """The argument, any shape."""
        return x


class DeQuantStub(QuantStub):
    """The place where values are numbers again; it returns its argument.

    Raises
    ------
    ArgumentError : a `qconfig`, because there is no quantisation.
    """
