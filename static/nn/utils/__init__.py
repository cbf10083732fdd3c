"""Gradients and parameters as a whole; the same functions in both engines."""

from common.api.places import publish
from common.nn.former_norms import remove_spectral_norm as remove_spectral_norm
from common.nn.former_norms import remove_weight_norm as remove_weight_norm
from common.nn.former_norms import spectral_norm as spectral_norm
from common.nn.former_norms import weight_norm as weight_norm
from common.nn.fusion import *  # noqa: F403
from common.nn.fusion import __all__ as _fusing
from common.nn.utils import *  # noqa: F403
from common.nn.utils import __all__ as _names
from static.nn.utils import parametrizations, parametrize, prune, rnn

__all__ = list(_names + _fusing)

publish(__name__)
