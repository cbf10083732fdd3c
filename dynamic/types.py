"""What annotations of programs call the kinds of arguments."""

from common.api.places import publish
from common.api.type_names import *  # noqa: F403
from common.api.type_names import __all__ as __all__

publish(__name__)
