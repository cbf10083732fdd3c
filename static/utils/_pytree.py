"""Trees, with PyTorch's signatures; those of `jax.tree_util` are in `tree_util`."""

from common.api.places import publish
from common.core.torch_trees import *  # noqa: F403
from common.core.torch_trees import __all__ as __all__
from common.core.torch_trees import _dict_flatten as _dict_flatten
from common.core.torch_trees import _dict_flatten_with_keys as _dict_flatten_with_keys
from common.core.torch_trees import _dict_unflatten as _dict_unflatten
from common.core.torch_trees import _get_node_type as _get_node_type

publish(__name__)
