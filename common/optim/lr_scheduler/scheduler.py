"""The base of schedulers: an epoch, and rates that follow from it."""

from __future__ import annotations

from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, NotDefinedError, TraceError
from common.core.int_arguments import mapping
from common.core.pickling import FunctionHolder
from common.core.source_lines import warn_user
from common.optim.group import ParameterGroup
from common.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler. Where an epoch is given, the rates are its own"
)
"""Said where `LRScheduler.step` is given an epoch."""
_ORDER = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


class LRScheduler(FunctionHolder):
    """Base of schedulers: a subclass says what the rate is at an epoch.

    Parameters
    ----------
    optimizer : whose groups' rates are set; their present rates are the base, unless they have an "initial_lr".
    last_epoch : -1 to begin; the epoch to continue from.

    Attributes
    ----------
    last_epoch, base_lrs : the epoch that the rates are of, and the rates it began with.
    chainable : whether what others have done to a rate in between is kept, as a factor of what is above `floor`.
    floor : the rate to which the schedule goes down.
    continues : whether one that begins at a later epoch takes the present rates as those of its first.

    Raises
    ------
    ArgumentError : not an optimiser, or groups without "initial_lr" although training goes on from an epoch.
    """

    chainable = False
    continues = False
    floor = 0.0
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise ArgumentError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = self.base_lrs if last_epoch == -1 else [group["lr"] for group in optimizer.param_groups]
        self._step_count, self._first_step = 0, optimizer.step
        self._is_initial = True
        self.step()
        self._is_initial = False

    def lr_at(self, position: int, epoch: int) -> float:
        """The rate of a group at an epoch; a subclass defines this, or `get_lr`.

        Raises
        ------
        NotDefinedError : it defines neither.
        """
        raise NotDefinedError(f"{type(self).__name__} defines neither lr_at(position, epoch) nor get_lr()")

    def get_lr(self) -> list[Any]:
        """The rates at `last_epoch`, one per group; a subclass that defines it may use the groups' present rates."""
        return [self.lr_at(i, self.last_epoch) for i in range(len(self.base_lrs))]

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to one, which PyTorch no longer wants and this warns of.

        Raises
        ------
        TraceError : inside a traced function, where it would run once per trace.
        """
        if epoch is not None:
            warn_user(EPOCH_DEPRECATION_WARNING)
        refuse_trace()
        self._count_step()
        self.go_to(self.last_epoch + 1 if epoch is None else epoch)

    def _count_step(self) -> None:
        """Warn at the first step after the one that begins if the optimiser has made none before it."""
        if self._step_count == 1 and self.optimizer.step != self._first_step:
            warn_user(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                f"{_ORDER}"
            )
        elif self._step_count == 1 and not self.optimizer.has_stepped:
            warn_user(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of the "
                f"learning rate schedule is skipped. See more details at {_ORDER}"
            )
        self._step_count += 1

    def go_to(self, epoch: int) -> None:
        """Set the rates of an epoch."""
        refuse_trace()
        before, self.last_epoch = self.last_epoch, epoch
        own = type(self).get_lr is LRScheduler.get_lr
        if not (self._is_initial and self.continues and epoch > 0):
            for i, (group, rate) in enumerate(zip(self.optimizer.param_groups, self.get_lr(), strict=True)):
                if own and self.chainable and epoch == before + 1:
                    previous = self.lr_at(i, before) if epoch > 0 else self.base_lrs[i]
                    rate = self._chained(group["lr"], previous, rate)
                group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _chained(self, present: Any, previous: Any, rate: Any) -> Any:
        """The rate after `present`, which others may have made of `previous`."""
        if present == previous:
            return rate
        if previous == self.floor:
            return present + (rate - previous)
        return self.floor + (present - self.floor) * ((rate - self.floor) / (previous - self.floor))

    def get_last_lr(self) -> list[float]:
        """The rates set last, one per group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not _has_function(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; the optimiser has a state of its own."""
        mapping(state_dict, "load_state_dict", "state_dict")
        self.__dict__.update(state_dict)


def refuse_trace() -> None:
    """Refuse to run inside a traced function."""
    if mode.replayed():
        raise TraceError(
            "a scheduler's step() inside a traced function would run once per trace: call it outside; the learning "
            "rate is state, which the compiled program reads at each call"
        )


def _has_function(x: Any) -> bool:
    return callable(x) or (isinstance(x, list) and any(map(callable, x)))


def per_group(optimizer: Any, value: Any, name: str) -> list[Any]:
    """An argument as a list with one entry per group."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ArgumentError(f"Expected {count} {name}, but got {len(value)}")
    return list(value)


def group_values(optimizer: Optimizer, value: Any, name: str) -> list[tuple[ParameterGroup, Any]]:
    """Groups and their values of an argument."""
    return list(zip(optimizer.param_groups, per_group(optimizer, value, name), strict=True))
