"""Connectionist temporal classification: the probability of a short sequence, over all its alignments to a long one."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.control.iterate import scan
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.sizes import same
from common.evaluate.specialise import remembered
from common.nn import ctc_kernel
from common.nn import functions as F
from common.nn.ctc_kernel import NEVER
from common.nn.losses import _Loss
from common.nn.sequences import numbers
from common.ops.index.advanced_keys import along
from common.tensor.create import lift, operand


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Minus the log-probability that frames, each of a label or blank, read as the target once repeats are merged.

    The gradient is PyTorch's: with the probabilities added that make those of each frame sum up to 0, so that of
    `log_softmax` before changes nothing about it.

    Parameters
    ----------
    log_probs : (time, batch, classes) or (time, classes), logarithms of probabilities.
    targets : (batch, length) or (length,) ints; or those of all, (sum of `target_lengths`,).
    input_lengths, target_lengths : (batch,) or () ints: how many frames and labels count.
    blank : the class that is no label.
    reduction : "mean" (of losses divided by the lengths of their targets), "sum" or "none".
    zero_infinity : whether the loss of a target that no alignment fits, and its gradient, are 0.

    Returns
    -------
    tensor : () or, unreduced, (batch,).

    Raises
    ------
    ShapeError : sizes that do not belong together.
    ArgumentError : another `reduction`, or `blank` is no class; a length beyond the frames or labels that there are,
        of lengths known before a compiled program runs.
    DTypeError : targets or lengths that are no ints.

    References
    ----------
    Graves and others, Connectionist temporal classification, 2006.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")
    x, targets = operand(log_probs), operand(targets)
    if x.ndim not in (2, 3):
        raise ShapeError(f"ctc_loss(): expected log_probs of 2 or 3 dimensions, got {x.ndim}")
    refuse("ctc_loss", x)
    batched = x.ndim == 3
    x = x if batched else x.unsqueeze(1)
    _, batch, classes = x.shape
    if not (isinstance(blank, int) and 0 <= blank < int(classes)):
        raise ArgumentError(f"ctc_loss(): blank must be in label range, [0, {int(classes)}), got {blank}")
    if targets.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss(): expected targets to be ints, got {targets.dtype}")
    targets = targets if batched or targets.ndim != 1 else targets.unsqueeze(0)
    if targets.ndim == 1:
        target_lengths, targets = _in_rows(targets, target_lengths)
    frames = _lengths(input_lengths, batch, "input_lengths", x.shape[0])
    labels = _lengths(target_lengths, batch, "target_lengths", targets.shape[-1])
    if targets.ndim != 2 or not (same(targets.shape[0], batch) or targets.shape[0] == batch):
        raise ShapeError(f"ctc_loss(): expected targets (batch, length) for batch {batch}, got {tuple(targets.shape)}")
    p = _shares(x, frames)
    total = _log_probability(F.clamp(x, min=NEVER), targets.to(np.int64), frames, labels, blank)
    losses = _told(total, p, bool(zero_infinity))
    if reduction == "mean":
        return F.mean(losses / F.clamp(labels, min=1).to(losses.dtype))
    if reduction == "sum":
        return F.sum(losses)
    return losses if batched else losses[0]


@remembered
def _shares(x: Any, frames: Any) -> Any:
    """Probabilities of the frames that count."""
    return F.where((along(x.shape[0], 1) < frames).unsqueeze(2), F.exp(x), 0)


@remembered
def _told(total: Any, p: Any, zero_infinity: bool) -> Any:
    """Losses, and 0 with the gradient that `ctc_loss` says."""
    total = total - F.sum(p - p.detach(), (0, 2))
    return F.where(total < NEVER / 2, 0.0 if zero_infinity else float("inf"), -total)


@remembered
def _states(x: Any, targets: Any, labels: Any, blank: int) -> tuple[Any, Any, Any]:
    """What states emit in each frame, whether they may follow the last but one, and the state before all frames."""
    time, batch, _ = x.shape
    length = targets.shape[1]
    known = along(length, 0) < labels.unsqueeze(1)
    safe = F.where(known, targets, blank)
    between = F.full_like(safe, blank)
    # blank, label, blank, ..., label, blank: the states that an alignment goes through
    states = F.pad(F.reshape(F.stack((between, safe), 2), (batch, 2 * length)), (0, 1), value=blank)
    count = 2 * length + 1
    skips = F.ne(states, F.narrow(F.pad(states, (2, 0), value=blank), 1, 0, count))  # past a blank, to another label
    emitted = F.gather(x, 2, F.expand(states.unsqueeze(0), (time, batch, count)))
    place = along(count, 0)
    start = F.where(F.eq(place, 0), 0.0, NEVER).to(x.dtype) + F.zeros_like(F.select(emitted, 0, 0))
    return emitted, skips, start


@remembered
def _ended(last: Any, labels: Any) -> Any:
    """The logarithm of the probability of the two states in which an alignment may end."""
    ends = F.gather(last, 1, (2 * labels).unsqueeze(1))
    before = F.gather(last, 1, F.clamp(2 * labels - 1, min=0).unsqueeze(1))
    before = F.where((labels > 0).unsqueeze(1), before, NEVER)
    return F.logsumexp(F.cat((ends, before), 1), 1)


def _log_probability(x: Any, targets: Any, frames: Any, labels: Any, blank: int) -> Any:
    """The logarithm of the probability of each target, (batch,); see `ctc_loss`."""
    emitted, skips, start = _states(x, targets, labels, blank)
    time, _, count = emitted.shape
    # before the first frame: as if in a blank, from which the first blank and the first label are reached

    def step(reached: Any, row: Any) -> Any:
        now, t = row
        behind = F.pad(reached, (1, 0), value=NEVER)[:, :count]
        skipped = F.where(skips, F.pad(reached, (2, 0), value=NEVER)[:, :count], NEVER)
        new = F.logsumexp(F.stack((reached, behind, skipped)), 0) + now
        return F.where((t < frames).unsqueeze(1), new, reached), ()

    def run(emitted: Any) -> Any:
        return scan(step, start, (emitted, along(time, 0)))[0]

    one_kernel = ctc_kernel.is_one_kernel(emitted, skips, frames, start)
    last = ctc_kernel.last_reached(emitted, skips, frames, start, run) if one_kernel else run(emitted)
    return _ended(last, labels)


def _in_rows(targets: Any, lengths: Any) -> tuple[Any, Any]:
    """Targets of all sequences, one after the other, as rows (batch, length)."""
    many = numbers(lengths, "target_lengths")
    if not (same(targets.shape[0], int(many.sum())) or targets.shape[0] == int(many.sum())):
        raise ShapeError(f"ctc_loss(): {targets.shape[0]} targets for target_lengths of sum {many.sum()}")
    steps = np.arange(max(int(many.max(initial=0)), 1))
    places = np.where(steps < many[:, None], (np.cumsum(many) - many)[:, None] + steps, 0)
    if not int(many.sum()):
        return many, lift(np.zeros((len(many), 1), np.int64))
    return many, F.reshape(F.index_select(targets, 0, lift(places.reshape(-1))), places.shape)


def _lengths(given: Any, batch: Any, name: str, most: Any) -> Any:
    """(batch,) int64 lengths; those that are known before the program runs lie in [0, `most`]."""
    given = numbers(given, name) if isinstance(given, (list, tuple)) else given
    x = operand(given)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss(): {name} must be integral, got {x.dtype}")
    x = x.unsqueeze(0) if x.ndim == 0 else x
    if x.ndim != 1 or not (same(x.shape[0], batch) or x.shape[0] == batch):
        raise ShapeError(f"ctc_loss(): {name} must be of size batch_size {batch}, got {tuple(x.shape)}")
    known = given if isinstance(given, np.ndarray) else x.payload
    if type(known) is np.ndarray and known.size:
        least, longest = int(known.min()), int(known.max())
        if least < 0:
            raise ArgumentError(f"ctc_loss(): Expected {name} to have value at least 0, but got value {least}")
        if longest > most:
            raise ArgumentError(f"ctc_loss(): Expected {name} to have value at most {most}, but got value {longest}")
    return x.to(np.int64)


class CTCLoss(_Loss):
    """Minus the log-probability of targets over all their alignments, see `ctc_loss`.

    Parameters
    ----------
    blank : the class that is no label.
    reduction : "mean" (of losses divided by the lengths of their targets), "sum" or "none".
    zero_infinity : whether the loss of a target that no alignment fits, and its gradient, are 0.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        """Loss of log_probs (time, batch, classes) for targets (batch, length) or one after the other."""
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
