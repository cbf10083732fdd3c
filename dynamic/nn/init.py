"""Values that parameters begin with; the same functions in both engines."""

from common.api.places import publish
from common.nn.initial import FUNCTIONS, _calculate_correct_fan, _calculate_fan_in_and_fan_out  # noqa: F401
from common.nn.initial import constant_ as _no_grad_fill_  # noqa: F401
from common.nn.initial import normal_ as _no_grad_normal_  # noqa: F401
from common.nn.initial import trunc_normal_ as _no_grad_trunc_normal_  # noqa: F401
from common.nn.initial import uniform_ as _no_grad_uniform_  # noqa: F401

__getattr__ = publish(__name__, FUNCTIONS)
