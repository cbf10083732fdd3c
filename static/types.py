"""PyTorch's names of argument types, for annotations."""

from common.api.places import publish
from common.api.type_names import *  # noqa: F403
from common.api.type_names import __all__ as __all__

publish(__name__)
