"""The namespace of the Python array API standard, which `x.__array_namespace__()` gives; see docs/ecosystem.md."""

from typing import Any

from common.api import standard

__all__ = list(standard.__all__)


def __getattr__(name: str) -> Any:
    return getattr(standard, name)
