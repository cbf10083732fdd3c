"""Random numbers of several programs in one process: each goes on where it stopped, as if it ran alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from common.random.generator import default_generator


def seed(engine: Any) -> None:
    """Begin all generators of the process at 0: the engine's, Python's and numpy's."""
    engine.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what users draw from


class Draws:
    """The generators of the process as one program has left them.

    Attributes
    ----------
    elsewhere : whether the program has drawn from Python's or numpy's generator, which a compiled program does once.

    Examples
    --------
    >>> import dynamic
    >>> seed(dynamic)
    >>> one, other = Draws(), Draws()
    >>> first, same, second = (draws(dynamic.rand, 1).item() for draws in (one, other, one))
    >>> first == same, first == second
    (True, False)
    """

    def __init__(self) -> None:
        self._states, self.elsewhere = _states(), False

    def __call__(self, call: Callable[..., Any], *args: Any) -> Any:
        """``call(*args)``, drawing from where the program's last call ended."""
        ours, pythons, numpys = self._states
        default_generator.set_state(ours)
        random.setstate(pythons)
        np.random.set_state(numpys)  # noqa: NPY002
        try:
            return call(*args)
        finally:
            self._states = _states()
            self.elsewhere |= str(self._states[1:]) != str((pythons, numpys))

    def warning(self) -> list[str]:
        """The reason why a compiled program differs, if it draws from Python's or numpy's generator."""
        text = "it draws from random or numpy.random, which a compiled program does once, while it is traced: "
        return [f"{text}draw by rand, randn or randint of the engine"] if self.elsewhere else []


def _states() -> tuple[Any, Any, Any]:
    return default_generator.get_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
