"""PyTorch's paths of modules, and hooks of all modules."""

from typing import TYPE_CHECKING

from common.api.places import open_places
from static.nn.modules import module

open_places(__name__)

__all__ = ["module"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import common.nn  # the same classes in both engines

        return getattr(common.nn, name)
