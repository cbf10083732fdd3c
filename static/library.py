"""Operators of users' own, under the names of `torch.library`; the same in both engines."""

from common.api.places import publish
from common.control.custom_ops import *  # noqa: F403
from common.control.custom_ops import __all__ as __all__

publish(__name__)
