"""Forward-mode derivatives: tensors that carry tangents."""

from typing import Any

from common.api.places import publish
from common.autograd.forward_mode import *  # noqa: F403  the names are listed there
from common.autograd.forward_mode import __all__ as __all__
from common.autograd.forward_mode import current_level
from common.core.errors import MissingAttributeError


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # PyTorch's own tests look at it
        return current_level()
    raise MissingAttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
