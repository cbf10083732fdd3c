"""What parameters and values of distributions have to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.ops import functional as F


class Constraint:
    """A condition on elements; PyTorch's names and texts.

    Parameters
    ----------
    text : what messages call it.
    holds : ``holds(x)`` is a tensor of truth values.
    event_dim : how many last dimensions it looks at together.
    """

    is_discrete = False

    def __init__(self, text: str, holds: Callable[[Any], Any], event_dim: int = 0, discrete: bool = False) -> None:
        self.text, self.holds, self.event_dim, self.is_discrete = text, holds, event_dim, discrete

    def check(self, value: Any) -> Any:
        """Whether the condition holds, element by element."""
        return self.holds(value)

    def __repr__(self) -> str:
        return self.text


real = Constraint("Real()", lambda x: x == x)
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
unit_interval = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: F.logical_and(x >= 0, x <= 1))
boolean = Constraint("Boolean()", lambda x: F.logical_or(x == 0, x == 1), discrete=True)
simplex = Constraint(
    "Simplex()",
    lambda x: F.logical_and(F.all(x >= 0, -1), F.abs(F.sum(x, -1) - 1) < 1e-6),
    event_dim=1,
)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda x: F.all(x == x, -1), event_dim=1)
lower_cholesky = Constraint(
    "LowerCholesky()",
    lambda x: F.logical_and(F.all(F.flatten(F.tril(x) == x, -2), -1), F.all(F.diagonal(x, 0, -2, -1) > 0, -1)),
    event_dim=2,
)


def integer_interval(low: int, high: Any) -> Constraint:
    """Whole numbers from low to high, both included."""
    return Constraint(
        f"IntegerInterval(lower_bound={low}, upper_bound={high})",
        lambda x: F.logical_and(F.logical_and(x >= low, x <= high), x == F.floor(x)),
        discrete=True,
    )


def interval(low: Any, high: Any) -> Constraint:
    """Numbers from low to high, both included."""
    return Constraint(f"Interval(lower_bound={low}, upper_bound={high})", lambda x: F.logical_and(x >= low, x <= high))


__all__ = [
    "Constraint", "boolean", "integer_interval", "interval", "lower_cholesky", "nonnegative", "positive", "real",
    "real_vector", "simplex", "unit_interval",
]  # fmt: skip
