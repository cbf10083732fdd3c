"""The recorded graph: look at it, draw it, hang hooks into it."""

from common.api.autograd_graph import *  # noqa: F403  the names are listed there
from common.api.autograd_graph import __all__ as __all__
from common.api.places import publish

publish(__name__)
