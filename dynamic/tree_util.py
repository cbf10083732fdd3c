"""Trees of Python objects, with the signatures of `jax.tree_util`: own classes as nodes, and maps over leaves."""

from typing import TYPE_CHECKING

from common.core import absent
from common.core.pytrees import *  # noqa: F403
from common.core.pytrees import __all__ as __all__
from common.tensor import boundary

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
