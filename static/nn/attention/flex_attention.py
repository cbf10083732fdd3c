"""Attention whose scores a function changes and masks; the same in both engines."""

from common.api.places import publish
from common.nn.flex_attention import *  # noqa: F403
from common.nn.flex_attention import _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE
from common.nn.flex_attention import __all__ as __all__

publish(__name__)
