"""PyTorch's paths of modules, and hooks of all modules."""

from typing import TYPE_CHECKING

from common.api.places import publish
from static.nn.modules import module

__all__ = ["module"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import common.nn  # the same classes in both engines

        return getattr(common.nn, name)


publish(__name__)
