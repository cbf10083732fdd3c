"""Comparisons for tests, and tensors made for them."""

from common.api.places import publish
from common.tools.testing import *  # noqa: F403
from common.tools.testing import __all__ as __all__

publish(__name__)
