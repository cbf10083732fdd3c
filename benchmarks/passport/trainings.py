"""Training runs of the passport: a model each, with what training has besides: schedules, dropout, clipping, loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.passport.exact_numbers import Array, ExactNumbers

Training = Callable[[Any, ExactNumbers], "tuple[list[Array], list[Any]]"]
STEPS = 12


def trained(
    tw: Any,
    parameters: list[Any],
    optimizer: Any,
    loss_of: Callable[..., Any],
    batches: list[Any],
    in_step: Callable[[], Any] | None = None,
    between: Callable[[], Any] | None = None,
) -> tuple[list[Array], list[Any]]:
    """Train on the batches in turn; return what went in, and losses, parameters and the optimiser's state.

    Parameters
    ----------
    parameters : parameters and buffers.
    in_step : called between gradients and update, as part of the compiled step.
    between : called after each step.
    """

    @tw.function  # type: ignore[untyped-decorator]
    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        if in_step is not None:
            in_step()
        optimizer.step()
        return loss

    losses = []
    for batch in islice(cycle(batches), STEPS):
        losses.append(step(*batch))
        if between is not None:
            between()
    return [x for batch in batches for x in batch], [*losses, *parameters, *_arrays(optimizer.state_dict()["state"])]


def _arrays(tree: Any) -> Iterator[Any]:
    """All arrays and numbers of nested dictionaries, in the order of their keys."""
    if isinstance(tree, dict):
        for key in sorted(tree, key=str):
            yield from _arrays(tree[key])
    elif hasattr(tree, "shape") or isinstance(tree, int | float):
        yield tree


def rows(numbers: ExactNumbers, *shape: int) -> Array:
    """Numbers with a bell curve, float32."""
    return np.asarray(numbers.normal(size=shape), np.float32)


def classifier(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """A perceptron with dropout and batch norm; AdamW, a cosine schedule, gradients clipped."""
    nn = tw.nn
    model = nn.Sequential(nn.Linear(20, 33), nn.BatchNorm1d(33), nn.GELU(), nn.Dropout(0.25), nn.Linear(33, 5))
    optimizer = tw.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.02)
    schedule = tw.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)
    batches = [(rows(numbers, 17, 20), numbers.integers(5, size=17)) for _ in range(3)]
    state = [*model.parameters(), *model.buffers()]
    return trained(
        tw, state, optimizer, lambda x, y: nn.functional.cross_entropy(model(x), y), batches,
        lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5), schedule.step,
    )  # fmt: skip


def images(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """Convolutions and pooling; SGD with Nesterov's momentum."""
    nn = tw.nn
    model = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 4, 3), nn.SiLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = tw.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    batches = [(rows(numbers, 6, 2, 12, 12), numbers.integers(3, size=6)) for _ in range(2)]
    return trained(tw, [*model.parameters()], optimizer, lambda x, y: nn.functional.cross_entropy(model(x), y), batches)


def sequences(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """An embedding and an LSTM of two layers; RMSprop."""
    nn = tw.nn
    parts = nn.ModuleList([nn.Embedding(11, 8), nn.LSTM(8, 9, num_layers=2, batch_first=True), nn.Linear(9, 11)])

    def loss_of(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(parts[2](parts[1](parts[0](x))[0]).reshape(-1, 11), y.reshape(-1))

    optimizer = tw.optim.RMSprop(parts.parameters(), lr=0.003, momentum=0.5)
    batches = [(numbers.integers(11, size=(4, 7)), numbers.integers(11, size=(4, 7))) for _ in range(2)]
    return trained(tw, [*parts.parameters()], optimizer, loss_of, batches)


def attention(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """A layer of a transformer with dropout; Adam with AMSGrad."""
    nn = tw.nn
    model = nn.TransformerEncoderLayer(16, 4, dim_feedforward=24, dropout=0.1, batch_first=True)
    optimizer = tw.optim.Adam(model.parameters(), lr=0.002, amsgrad=True)
    batches = [(rows(numbers, 3, 6, 16), rows(numbers, 3, 6, 16)) for _ in range(2)]
    return trained(tw, [*model.parameters()], optimizer, lambda x, y: nn.functional.huber_loss(model(x), y), batches)


def loops(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """A scan with a branch in it, in float64; Adagrad."""
    model = tw.nn.Linear(5, 5, dtype=tw.float64)
    optimizer = tw.optim.Adagrad(model.parameters(), lr=0.05)

    def loss_of(x: Any, y: Any) -> Any:
        def body(h: Any, row: Any) -> tuple[Any, Any]:
            h = tw.cond((h * row).sum() > 0, lambda: tw.tanh(model(h) + row), lambda: tw.sin(model(h)) - row)
            return h, (h * h).mean()

        h, costs = tw.scan(body, tw.zeros(5, dtype=tw.float64), x)
        return costs.sum() + ((h - y) ** 2).mean()

    batches = [(numbers.normal(size=(9, 5)), numbers.normal(size=5)) for _ in range(2)]
    return trained(tw, [*model.parameters()], optimizer, loss_of, batches)


def ranks(tw: Any, numbers: ExactNumbers) -> tuple[list[Array], list[Any]]:
    """Dropout and running statistics over eight micro-batches, on all ranks that mpiexec has started; Adam."""
    nn = tw.nn
    model = nn.Sequential(nn.Linear(9, 14), nn.BatchNorm1d(14), nn.Dropout(0.3), nn.Tanh(), nn.Linear(14, 3))
    optimizer = tw.optim.Adam(model.parameters(), lr=0.05)
    batch = tw.parallel.GlobalBatch(model, 8, tw.parallel.world(), bucket_bytes=300)
    loss_of = tw.function(lambda x, y: nn.functional.cross_entropy(model(x), y))
    batches = [(rows(numbers, 21, 9), numbers.integers(3, size=21)) for _ in range(2)]
    losses = []
    for x, y in islice(cycle(batches), STEPS):
        optimizer.zero_grad()
        losses.append(batch.backward(loss_of, x, y))
        optimizer.step()
    state = [*model.parameters(), *model.buffers(), *_arrays(optimizer.state_dict()["state"])]
    return [x for batch in batches for x in batch], [*losses, *state]


TRAININGS: dict[str, Training] = {f.__name__: f for f in (classifier, images, sequences, attention, loops, ranks)}
"""The training runs by name."""
