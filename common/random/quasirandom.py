"""Points that fill a cube evenly: Sobol's sequence, by SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, TraceError
from common.core.int_arguments import integer
from common.random.generator import randint
from common.tensor.arrays import dtype_or
from common.tensor.create import lift

_BITS = 30


class SobolEngine:
    """Sobol's sequence in a cube of `dimension` sides, half open: [0, 1).

    Parameters
    ----------
    dimension : int from 1 to 21201.
    scramble : whether digits are exchanged at random. The points are SciPy's then, not PyTorch's.
    seed : of the scrambling; by default an int that the generator draws.

    Raises
    ------
    ArgumentError : `dimension` is outside the range.
    TraceError : a draw inside a traced function, whose points each call would repeat.

    Examples
    --------
    >>> import dynamic as tw
    >>> engine = tw.quasirandom.SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])

    References
    ----------
    Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections, 2008.
    """

    MAXBIT, MAXDIM = _BITS, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: Any = None) -> None:
        dimension = integer(dimension, "SobolEngine", "dimension")
        if not 1 <= dimension <= self.MAXDIM:
            raise ArgumentError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}"
            )
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, bool(scramble), seed, 0
        drawn = seed
        if self.scramble and seed is None:
            drawn = int(randint(0, 2**31, (1,)).item())
        from scipy.stats.qmc import Sobol

        self._points = Sobol(dimension, scramble=self.scramble, bits=_BITS, rng=None if drawn is None else int(drawn))

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next `n` points.

        Parameters
        ----------
        n : how many.
        out : tensor that is written to, and returned.
        dtype : of the points; the default dtype if None.

        Returns
        -------
        points : (n, dimension)
        """
        if mode.replayed():
            raise TraceError(
                "SobolEngine.draw() inside a traced function would give each call the same points: draw outside"
            )
        n = integer(n, "draw", "n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # for numbers that are no powers of two
            points = self._points.random(n)
        self.num_generated += n
        drawn = lift(np.asarray(points, dtype_or(dtype, default_float())).reshape(n, self.dimension))
        if out is None:
            return drawn
        out.resize_(drawn.shape)
        return out.copy_(drawn)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next 2^m points; with those before they have to be a power of two.

        Parameters
        ----------
        m : the exponent.
        out, dtype : see `draw`.

        Raises
        ------
        ArgumentError : the points so far and the next are no power of two together.
        """
        n = 1 << integer(m, "draw_base2", "m")
        total = self.num_generated + n
        if total & (total - 1):
            raise ArgumentError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={total - n}+2**{m}={total}. "
                "If you still want to do this, please use draw() instead."
            )
        return self.draw(n, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        n = integer(n, "fast_forward", "n")
        if n:
            self._points.fast_forward(n)
        self.num_generated += n
        return self

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        self._points.reset()
        self.num_generated = 0
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(parts)})"


__all__ = ["SobolEngine"]
