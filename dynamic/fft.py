"""The part of `torch.fft` for real numbers: the order of frequencies, and the frequencies; other names are refused."""

from typing import Any

from common.api import surface
from common.api.complex_spectra import REFUSED
from common.ops.shape import spectra
from dynamic.eager.binding import bind, bind_creation

_NAMES: dict[str, Any] = {**spectra.CREATION, **spectra.FUNCTIONS}
__all__ = list(_NAMES)

__getattr__, __dir__ = surface.on_demand(
    globals(),
    (bind, spectra.FUNCTIONS),
    (bind_creation, spectra.CREATION),
    (surface.as_they_are, REFUSED),
)
