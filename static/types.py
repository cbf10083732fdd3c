"""PyTorch's names of argument types, for annotations."""

from common.api import type_names
from common.api.places import publish
from common.api.type_names import *  # noqa: F403
from common.api.type_names import __all__ as __all__

globals().update({name: getattr(type_names, name) for name in type_names.UNLISTED})

publish(__name__)
