"""Names of `torch.fft` whose results or operands are complex: they can be imported; a call is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from common.core.errors import NotDefinedError

_REASON = (
    "there are no complex numbers; numpy.fft has it, for x.numpy(), without derivatives; in a trace by pure_callback. "
    "With derivatives, products with the matrices of cos(2 pi j k / n) and sin(2 pi j k / n) give the real and the "
    "imaginary part, and nn.functional.conv1d convolves"
)


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise NotDefinedError(f"fft.{name}(): {_REASON}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {_REASON}.\n\nRaises\n------\nNotDefinedError : always.\n"
    return refuse


#: By name, for both engines.
REFUSED: dict[str, Callable[..., NoReturn]] = {
    f"{kind}{dims}": _refusal(f"{kind}{dims}")
    for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for dims in ("", "2", "n")
}
