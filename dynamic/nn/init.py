"""Values that parameters begin with; the same functions in both engines."""

from common.api.places import publish
from common.nn.initial import FUNCTIONS, _calculate_correct_fan, _calculate_fan_in_and_fan_out  # noqa: F401

__getattr__ = publish(__name__, FUNCTIONS)
