"""Values that parameters begin with; the same functions in both engines."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.initial import FUNCTIONS, _calculate_correct_fan, _calculate_fan_in_and_fan_out  # noqa: F401

globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
