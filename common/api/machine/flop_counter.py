"""PyTorch's counter of operations, which counts none here: a block in it is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from common.core.errors import ArgumentError


class FlopCounterMode:
    """What a program that may count operations makes beforehand.

    Parameters
    ----------
    mods, depth, display, custom_mapping : PyTorch's, accepted.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None, **options: Any
    ) -> None:
        self.depth, self.display = depth, display

    def get_total_flops(self) -> int:
        """0: nothing has run in a block of it."""
        return 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """None, by module and operator."""
        return {}

    def __enter__(self) -> NoReturn:
        raise ArgumentError(
            "FlopCounterMode: operations are not counted; profiler.profile measures where the time goes"
        )

    def __exit__(self, *error: Any) -> None:
        """Nothing: no block has begun."""
