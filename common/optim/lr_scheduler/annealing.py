"""Annealing along half a cosine wave."""

from __future__ import annotations

import math

from common.core.errors import ArgumentError
from common.optim.lr_scheduler.scheduler import LRScheduler
from common.optim.optimizer import Optimizer


def cosine(start: float, end: float, part: float) -> float:
    """From start at part 0 to end at part 1 along half a cosine wave."""
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


def linear(start: float, end: float, part: float) -> float:
    """From start at part 0 to end at part 1."""
    return start + (end - start) * part


class CosineAnnealingLR(LRScheduler):
    """eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    T_max, eta_min : see the formula.

    References
    ----------
    Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, 2017.
    """

    chainable = continues = True

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        self.floor = eta_min
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return cosine(self.base_lrs[position], self.eta_min, epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """`CosineAnnealingLR` that begins anew after T_0 epochs, then after T_0 T_mult, T_0 T_mult^2, ...

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    T_0, T_mult, eta_min : see the formula.

    Raises
    ------
    ArgumentError : T_0 or T_mult is not a positive integer.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        for name, value, least in (("T_0", T_0, "positive integer"), ("T_mult", T_mult, "integer >= 1")):
            if value < 1 or not isinstance(value, int):
                raise ArgumentError(f"Expected {least} {name}, but got {value}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to any: a fraction is a place inside one."""
        self.go_to(self.last_epoch + 1 if epoch is None else epoch)  # type: ignore[arg-type]

    def lr_at(self, position: int, epoch: float) -> float:
        """See the class."""
        period, since = self.T_0, epoch
        if self.T_mult == 1:
            since = epoch % period
        while since >= period:
            since -= period
            period *= self.T_mult
        return cosine(self.base_lrs[position], self.eta_min, since / period)
