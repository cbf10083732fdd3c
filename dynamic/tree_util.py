"""Trees of Python objects, with the signatures of `jax.tree_util`: own classes as nodes, and maps over leaves."""

from common.api.places import publish
from common.core.pytrees import *  # noqa: F403
from common.core.pytrees import __all__ as __all__

publish(__name__)
