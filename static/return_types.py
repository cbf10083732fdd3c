"""The named tuples of functions that return several tensors, such as `return_types.max`."""

from common.core.return_types import KINDS, kind

__all__: list[str] = []


def __getattr__(name: str) -> type:
    return kind(__name__, name)


def __dir__() -> list[str]:
    return list(KINDS)
