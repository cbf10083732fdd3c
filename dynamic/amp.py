"""Mixed precision: there is none; programs that ask for it run in float32."""

from common.api.machine.precision import *  # noqa: F403
from common.api.machine.precision import __all__ as __all__
from common.api.places import open_places
from common.tensor import boundary

open_places(__name__)
boundary.close(__name__)
