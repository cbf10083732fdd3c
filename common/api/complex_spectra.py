"""Functions of PyTorch whose results or operands are complex: they can be named and imported; a call is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from common.core.errors import NotDefinedError

_REASON = (
    "there are no complex numbers; numpy.fft has it, for x.numpy(), without derivatives; in a trace by pure_callback. "
    "With derivatives, products with the matrices of cos(2 pi j k / n) and sin(2 pi j k / n) give the real and the "
    "imaginary part, and nn.functional.conv1d convolves"
)


def _refusal(space: str, name: str, reason: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise NotDefinedError(f"{space}{name}(): {reason}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {reason}.\n\nRaises\n------\nNotDefinedError : always.\n"
    return refuse


complex_, polar, view_as_complex, view_as_real = (
    _refusal("", name, "there are no complex numbers; keep real and imaginary parts as two tensors")
    for name in ("complex", "polar", "view_as_complex", "view_as_real")
)
#: Those of `fft` by name, for both engines.
REFUSED: dict[str, Callable[..., NoReturn]] = {
    f"{kind}{dims}": _refusal("fft.", f"{kind}{dims}", _REASON)
    for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    for dims in ("", "2", "n")
}
