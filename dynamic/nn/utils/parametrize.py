"""Parameters as functions of others; the same functions in both engines."""

from common.api.places import publish
from common.nn.parametrize import *  # noqa: F403
from common.nn.parametrize import __all__ as __all__

publish(__name__)
