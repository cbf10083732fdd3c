"""Parameters with elements set to 0; the same functions in both engines."""

from common.api.places import publish
from common.nn.prune import *  # noqa: F403
from common.nn.prune import __all__ as __all__

publish(__name__)
