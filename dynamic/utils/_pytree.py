"""Trees, with PyTorch's signatures; those of `jax.tree_util` are in `tree_util`."""

from common.api.places import publish
from common.core.torch_trees import *  # noqa: F403
from common.core.torch_trees import __all__ as __all__

publish(__name__)
