"""Mixed precision: there is none; programs that ask for it run in float32."""

from common.api.machine.precision import *  # noqa: F403
from common.api.machine.precision import __all__ as __all__
from common.api.places import publish

publish(__name__)
