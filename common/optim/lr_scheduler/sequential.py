"""Several schedulers, one after the other or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import mapping, members
from common.optim.lr_scheduler.scheduler import LRScheduler
from common.optim.optimizer import Optimizer


class _Several(LRScheduler):
    """A schedule made of other schedulers."""

    schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedulers."""
        own = {k: v for k, v in super().state_dict().items() if k != "schedulers"}
        return {**own, "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        mapping(state_dict, "load_state_dict", "state_dict")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "schedulers"})
        for scheduler, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Several):
    """One scheduler after the other, each counting epochs from its milestone.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`.
    schedulers : of the same optimiser, in order.
    milestones : the epochs at which the second, third, ... begin.

    Raises
    ------
    ArgumentError : another number of milestones, or a scheduler of another optimiser.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and milestones {len(milestones)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ArgumentError("Sequential Schedulers expects all schedulers to belong to the same optimizer")
        self.schedulers = members(schedulers, "SequentialLR", "schedulers")
        self.milestones = members(milestones, "SequentialLR", "milestones")
        super().__init__(optimizer, last_epoch)

    def go_to(self, epoch: int) -> None:
        """Set the rates of an epoch."""
        self.last_epoch = epoch
        place = bisect_right(self.milestones, epoch)
        self.schedulers[place].go_to(epoch - (self.milestones[place - 1] if place else 0))
        self._last_lr = self.schedulers[place].get_last_lr()


class ChainedScheduler(_Several):
    """Several schedulers that step together; each scales the rate that the ones before it have set.

    Parameters
    ----------
    schedulers : of the same optimiser, in order.
    optimizer : theirs.

    Raises
    ------
    ArgumentError : no scheduler, or one of another optimiser.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ArgumentError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not self.optimizer:
                raise ArgumentError(
                    "ChainedScheduler expects all schedulers to belong to the same optimizer, but got scheduler at "
                    f"index {i} with another optimizer"
                )
        self.schedulers = members(schedulers, "ChainedScheduler", "schedulers")
        self.last_epoch = self.schedulers[-1].last_epoch
        self.base_lrs = self.schedulers[-1].base_lrs
        self._last_lr = self.schedulers[-1].get_last_lr()

    def _count_step(self) -> None:
        """Its schedulers do."""

    def go_to(self, epoch: int) -> None:
        """Set the rates of an epoch."""
        self.last_epoch = epoch
        for scheduler in self.schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
