"""One cycle of rates and momenta."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError
from common.optim.group import ParameterGroup
from common.optim.lr_scheduler.annealing import cosine, linear
from common.optim.lr_scheduler.scheduler import LRScheduler, group_values
from common.optim.optimizer import Optimizer


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, and down to the first rate / final_div_factor.

    The rise takes ``pct_start total_steps - 1`` steps; with `three_phase` the fall to the first rate takes as many, and
    the rest falls further. Momentum, or the first of the betas, goes the other way round.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`; call step() after every batch.
    max_lr : the highest rate, or a list with one per group.
    total_steps : of the cycle; or `epochs` times `steps_per_epoch`.
    pct_start : the part of the steps in which the rate rises.
    anneal_strategy : "cos" or "linear".
    cycle_momentum, base_momentum, max_momentum : whether the momentum cycles, and between which values.
    div_factor, final_div_factor, three_phase : see above.

    Raises
    ------
    ArgumentError : no number of steps, an argument outside its range, or an optimiser without momentum.

    References
    ----------
    Smith and Topin, Super-convergence: very fast training of neural networks using large learning rates, 2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ArgumentError(f"Expected positive integer total_steps, but got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        self.cycle_momentum = cycle_momentum
        rise = pct_start * total_steps - 1
        middle = [2 * rise] if three_phase else []
        #: last step of each phase; rates and momenta at all borders
        self.ends = [rise, *middle, total_steps - 1]
        self.rates: list[list[float]] = []
        self.momenta: list[list[float]] = []
        for group, top in group_values(optimizer, max_lr, "max_lr"):
            first = top / div_factor
            self.rates.append([first, top, *([first] if three_phase else []), first / final_div_factor])
            if last_epoch == -1:
                group.update({"initial_lr": first, "max_lr": top, "min_lr": first / final_div_factor})
        if cycle_momentum:
            need_momentum(optimizer)
            low = [x for _, x in group_values(optimizer, base_momentum, "base_momentum")]
            high = [x for _, x in group_values(optimizer, max_momentum, "max_momentum")]
            last = [[h] if three_phase else [] for h in high]
            self.momenta = [[h, b, *more, h] for b, h, more in zip(low, high, last, strict=True)]
        super().__init__(optimizer, last_epoch)

    def _at(self, borders: list[float], epoch: int) -> float:
        anneal = cosine if self.anneal_strategy == "cos" else linear
        phase = next(i for i, end in enumerate(self.ends) if epoch <= end or i == len(self.ends) - 1)
        start, end = (self.ends[phase - 1] if phase else 0), self.ends[phase]
        return anneal(borders[phase], borders[phase + 1], (epoch - start) / (end - start) if end != start else 1.0)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        return self._at(self.rates[position], epoch)

    def go_to(self, epoch: int) -> None:
        """Set the rates and momenta of a step.

        Raises
        ------
        ArgumentError : the cycle has ended.
        """
        if epoch > self.total_steps:
            raise ArgumentError(
                f"Tried to step {epoch} times. The specified number of total steps is {self.total_steps}"
            )
        super().go_to(epoch)
        for group, borders in zip(self.optimizer.param_groups, self.momenta):
            set_momentum(group, self._at(borders, epoch))


def set_momentum(group: ParameterGroup, value: float) -> None:
    """Write the momentum of a group, or the first of its betas."""
    if "betas" in group.numbers:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def need_momentum(optimizer: Optimizer) -> None:
    """Refuse an optimiser whose momentum cannot cycle."""
    if any("momentum" not in group and "betas" not in group for group in optimizer.param_groups):
        raise ArgumentError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
