"""Averages of a model's parameters over training, and the learning rate that goes with them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.nn.module import Module
from common.nn.normalization import _BatchNorm
from common.optim.lr_scheduler.scheduler import LRScheduler


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that averages exponentially, for `AveragedModel`'s ``multi_avg_fn``.

    Raises
    ------
    ArgumentError : `decay` outside [0, 1].
    """
    average = get_ema_avg_fn(decay)

    def update(averages: Any, current: Any, number: Any) -> None:
        for a, p in zip(averages, current, strict=True):
            a.copy_(average(a, p, number))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """A function that averages exponentially, for `AveragedModel`'s ``avg_fn``.

    Raises
    ------
    ArgumentError : `decay` outside [0, 1].
    """
    if not 0 <= decay <= 1:
        raise ArgumentError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda average, current, number: decay * average + (1 - decay) * current


def get_swa_avg_fn() -> Callable[..., Any]:
    """A function that averages all models with equal weights."""
    return lambda average, current, number: average + (current - average) / (number + 1)


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that averages all models with equal weights, for ``multi_avg_fn``."""
    average = get_swa_avg_fn()

    def update(averages: Any, current: Any, number: Any) -> None:
        for a, p in zip(averages, current, strict=True):
            a.copy_(average(a, p, number))

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that it is given.

    Parameters
    ----------
    model : is copied.
    device : accepted; there is only the CPU.
    avg_fn : ``avg_fn(average, current, number)`` is the next average; by default all models weigh the same.
    multi_avg_fn : the same for lists, in place.
    use_buffers : whether buffers are averaged, too, instead of copied.

    References
    ----------
    Izmailov and others, Averaging weights leads to wider optima and better generalization, 2018.
    """

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Any = None, multi_avg_fn: Any = None, use_buffers: bool = False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", np.array(0, np.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the averages."""

        def leaves(m: Module) -> list[Any]:
            return [*m.parameters(), *(m.buffers() if self.use_buffers else ())]

        with mode.GradSwitch(False):
            own, new = leaves(self.module), [x.detach() for x in leaves(model)]
            if int(self.n_averaged.item()) == 0:
                for a, p in zip(own, new, strict=True):
                    a.copy_(p)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn([a.detach() for a in own], new, self.n_averaged)
            else:
                average, number = self.avg_fn or get_swa_avg_fn(), self.n_averaged
                for a, p in zip(own, new, strict=True):
                    a.copy_(average(a.detach(), p, number.to(p.dtype) if p.dtype.kind == "f" else number))
            if not self.use_buffers:
                for a, b in zip(self.module.buffers(), model.buffers(), strict=True):
                    a.copy_(b)
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch normalisations anew, from batches.

    Parameters
    ----------
    loader : batches; of tuples and lists the first entry is the input.
    model : is run on each.
    device : accepted; there is only the CPU.
    """
    norms: list[Any] = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    if not norms:
        return
    momenta, training = [m.momentum for m in norms], model.training
    model.train()
    with mode.GradSwitch(False):
        for m in norms:
            m.running_mean.zero_()
            m.running_var.copy_(m.running_var * 0 + 1)
            m.num_batches_tracked.zero_()
            m.momentum = None
        for batch in loader:
            model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """The learning rate goes to a constant within a few epochs.

    Parameters
    ----------
    optimizer : whose rates are set.
    swa_lr : the constant, one or one per group.
    anneal_epochs : how many steps that takes.
    anneal_strategy : "cos" or "linear".
    last_epoch : -1 at first.
    """

    chainable = False  # it begins with the rate that another scheduler has left

    def __init__(
        self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ArgumentError(
                "swa_lr must have the same length as optimizer.param_groups: swa_lr has "
                f"{len(rates)}, optimizer.param_groups has {len(optimizer.param_groups)}"
            )
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def lr_at(self, position: int, epoch: int) -> float:
        """The rate of a group: on the way from what it is now."""
        group = self.optimizer.param_groups[position]
        step = epoch if self.anneal_epochs else max(1, epoch)
        before, now = self._share(step - 1), self._share(step)
        if epoch <= 0 and self.anneal_epochs:
            return float(group["lr"])
        first = group["swa_lr"] if before == 1 else (float(group["lr"]) - before * group["swa_lr"]) / (1 - before)
        return float(group["swa_lr"] * now + first * (1 - now))


__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip
