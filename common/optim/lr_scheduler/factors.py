"""The base rate times a factor that follows from the epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ArgumentError
from common.core.int_arguments import mapping, members
from common.optim.lr_scheduler.scheduler import LRScheduler, per_group
from common.optim.optimizer import Optimizer


def _attributes(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object; None for functions, classes, and what has none."""
    own = getattr(function, "__dict__", None)
    return own if type(own) is dict and not isinstance(function, FunctionType) else None


class _OfFunctions(LRScheduler):
    """A schedule by functions of the epoch; callable objects among them have a state."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = per_group(optimizer, lr_lambda, "lr_lambdas")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; attributes of callable objects, None for functions."""
        attributes = [None if (own := _attributes(f)) is None else dict(own) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": attributes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; the optimiser has a state of its own."""
        mapping(state_dict, "load_state_dict", "state_dict")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ())):
            if attributes and (own := _attributes(f)) is not None:
                own.update(attributes)


class LambdaLR(_OfFunctions):
    """base f(epoch).

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    lr_lambda : f, or a list with one per group.

    Raises
    ------
    ArgumentError : a list of another length.
    """

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * self.lr_lambdas[position](epoch)


@sections_of(LambdaLR)
class MultiplicativeLR(_OfFunctions):
    """The present rate times f(epoch), at every epoch but the first."""

    continues = True

    def get_lr(self) -> list[Any]:
        """See the class."""
        factors = [1.0 if self._is_initial else f(self.last_epoch) for f in self.lr_lambdas]
        return [group["lr"] * x for group, x in zip(self.optimizer.param_groups, factors, strict=True)]


class StepLR(LRScheduler):
    """base gamma^(epoch // step_size).

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    step_size, gamma : see the formula.

    Examples
    --------
    >>> import dynamic as tw
    >>> optimizer = tw.optim.SGD([tw.nn.Parameter([1.0])], lr=1.0)
    >>> scheduler = tw.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(optimizer.param_groups[0]["lr"])
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    chainable = True

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """base gamma^(number of milestones <= epoch).

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    milestones, gamma : see the formula.
    """

    chainable = True

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(members(milestones, "MultiStepLR", "milestones")), gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """base gamma^epoch.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    gamma : see the formula.
    """

    chainable = continues = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * self.gamma**epoch


class LinearLR(LRScheduler):
    """base times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs, and stays.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    start_factor, end_factor, total_iters : see the formula.

    Raises
    ------
    ArgumentError : start_factor outside (0, 1], end_factor outside [0, 1].
    """

    chainable = continues = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ArgumentError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ArgumentError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        if epoch >= self.total_iters:
            return self.base_lrs[position] * self.end_factor
        change = (self.end_factor - self.start_factor) * epoch / self.total_iters
        return self.base_lrs[position] * (self.start_factor + change)


class ConstantLR(LRScheduler):
    """base factor in the first `total_iters` epochs, then base.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    factor, total_iters : see the formula.

    Raises
    ------
    ArgumentError : factor outside [0, 1].
    """

    chainable = True

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * (self.factor if epoch < self.total_iters else 1.0)


class PolynomialLR(LRScheduler):
    """base (1 - min(epoch, total_iters) / total_iters)^power.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    total_iters, power : see the formula.
    """

    chainable = continues = True

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self.base_lrs[position] * (1 - min(epoch, self.total_iters) / self.total_iters) ** self.power
