"""`GlobalBatch`: one training step of several processes, with the bits that one process would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.autograd.hooks import register_post_accumulate_grad_hook
from common.core import mode
from common.core.dtypes import int64
from common.core.errors import ArgumentError
from common.nn.module import Module
from common.parallel.addition_tree import share_of
from common.parallel.buckets import Bucket, bucketed
from common.parallel.ranks import Ranks, world
from common.random.generator import default_generator, randint
from common.tensor.base import TensorBase, wrap
from common.tensor.create import as_tensor

BUCKET_BYTES = 1 << 20


class GlobalBatch:
    """Divides a batch into micro-batches, these among ranks, and adds up their gradients in one tree.

    Each micro-batch is computed by itself and its contributions are added in a tree that only their number decides. So
    1 rank and 8 ranks have the same bits, in losses, gradients and buffers, as long as `micro_batches` is the same.

    Parameters
    ----------
    module : its parameters' gradients and its buffers are shared.
    micro_batches : into how many a batch is divided; as many ranks have something to do.
    ranks : who takes part, by default `world()`.
    bucket_bytes : about how many bytes of gradients are sent together. A bucket is sent while the backward pass of the
        rank's last micro-batch still computes the others.

    Attributes
    ----------
    nbytes_sent : how many bytes this rank has sent to others in all.

    Raises
    ------
    ArgumentError : a number below 1, or no module.

    Examples
    --------
    >>> import dynamic as tw
    >>> _ = tw.manual_seed(0)
    >>> model = tw.nn.Linear(3, 1)
    >>> batch = tw.parallel.GlobalBatch(model, micro_batches=4)
    >>> x, y = tw.ones(8, 3), tw.zeros(8, 1)
    >>> loss = batch.backward(lambda x, y: tw.nn.functional.mse_loss(model(x), y), x, y)
    >>> bool(tw.isclose(loss, tw.nn.functional.mse_loss(model(x), y))), tuple(model.weight.grad.shape)
    (True, (1, 3))

    Notes
    -----
    Ranks start from the same state: seed them alike, or restore one checkpoint. Each micro-batch draws random numbers
    of a seed of its own, which one draw of the default generator gives. Buffers of floats become the mean over
    micro-batches of what each of them makes of the buffers before the step, others those of the last one.
    """

    def __init__(
        self, module: Module, micro_batches: int = 8, ranks: Ranks | None = None, *, bucket_bytes: int = BUCKET_BYTES
    ) -> None:
        if not isinstance(module, Module):
            raise ArgumentError(f"GlobalBatch(): argument 'module' must be Module, not {type(module).__name__}")
        for name, number in (("micro_batches", micro_batches), ("bucket_bytes", bucket_bytes)):
            if type(number) is not int or number < 1:
                raise ArgumentError(f"GlobalBatch(): {name} must be an int of at least 1, not {number!r}")
        self.module, self.micro_batches, self.ranks = module, micro_batches, world() if ranks is None else ranks
        self._parameters = [p for p in module.parameters() if p.requires_grad][::-1]  # as a backward pass reaches them
        self._buffers = [b for b in module.buffers() if b is not None]
        floats = [i for i, b in enumerate(self._buffers) if b.dtype.kind == "f"]
        groups = bucketed([(p.dtype, p.payload.nbytes) for p in self._parameters], bucket_bytes)
        more = bucketed([(self._buffers[i].dtype, self._buffers[i].payload.nbytes) for i in floats], bucket_bytes)
        self._floats = [[floats[i] for i in members] for members in more]
        tree = 0, micro_batches
        payloads = [[self._parameters[i].payload for i in members] for members in groups]
        payloads += [[self._buffers[i].payload for i in members] for members in self._floats]
        made = [Bucket(n, (x.shape for x in xs), xs[0].dtype, tree, self.ranks) for n, xs in enumerate(payloads)]
        self._gradients, self._states = made[: len(groups)], made[len(groups) :]
        self._members = groups
        counts = [(len(self._parameters),), ()]
        self._numbers = Bucket(len(made), counts, np.float64, tree, self.ranks)  # which gradients are there; the loss
        integers = [self._buffers[i].payload.shape for i in range(len(self._buffers)) if i not in floats]
        self._integers = [i for i in range(len(self._buffers)) if i not in floats]
        self._counters = Bucket(len(made) + 1, integers, np.int64, tree, self.ranks)

    @property
    def nbytes_sent(self) -> int:
        """How many bytes this rank has sent to others in all."""
        return sum(bucket.nbytes_sent for bucket in self._buckets())

    def _dtype(self, loss: Any) -> Any:
        """Of the mean loss; a rank without micro-batches takes that of the parameters."""
        return loss.dtype if loss is not None else self._parameters[0].dtype if self._parameters else np.float32

    def _buckets(self) -> list[Bucket]:
        return [*self._gradients, *self._states, self._numbers, self._counters]

    def backward(self, loss_of: Callable[..., Any], *arrays: Any) -> Any:
        """Add the gradients of a batch's mean loss to `.grad` of the parameters.

        Parameters
        ----------
        loss_of : ``loss_of(*arrays) -> loss``, the mean over its samples, a scalar; a compiled function or not.
        arrays : the whole batch, in every rank; samples along the first dimension.

        Returns
        -------
        Tensor
            The mean loss, (), without history.

        Raises
        ------
        ArgumentError : no arrays, arrays of different lengths, fewer samples than micro-batches, or in a trace.
        """
        if mode.current_trace() is not None:
            raise ArgumentError("GlobalBatch.backward() sends arrays to other processes: call it outside `function`, "
                                "and give it a compiled loss")  # fmt: skip
        batch = [as_tensor(x) for x in arrays]
        lengths = {x.shape[0] if x.ndim else 0 for x in batch}
        if len(lengths) != 1:
            raise ArgumentError("GlobalBatch.backward(): the arrays of a batch have one length, these have "
                                f"{sorted(lengths)}")  # fmt: skip
        (count,) = lengths
        if count < self.micro_batches:
            raise ArgumentError(f"GlobalBatch.backward(): {count} samples are fewer than {self.micro_batches} "
                                "micro-batches")  # fmt: skip
        seeds = randint(0, 2**53, (self.micro_batches,)).tolist()
        generator, before = default_generator.get_state(), [b.payload.copy() for b in self._buffers]
        grads = [p.grad for p in self._parameters]
        first, last = share_of(self.ranks.rank, self.ranks.size, self.micro_batches)
        loss: Any = None
        for bucket in self._buckets():
            bucket.clear()
        try:
            for number in range(first, last):
                for buffer, payload in zip(self._buffers, before, strict=True):
                    buffer.payload[...] = payload
                default_generator.manual_seed(seeds[number])
                start, stop = share_of(number, self.micro_batches, count)
                part = [x[start:stop] for x in batch]
                loss = self._micro_batch(loss_of, part, number, (stop - start) / count, final=number == last - 1)
        finally:
            default_generator.set_state(generator)
            for p, grad in zip(self._parameters, grads, strict=True):
                p.grad = grad
        return self._combined(grads, loss)

    def _micro_batch(self, loss_of: Any, part: Sequence[Any], number: int, weight: float, *, final: bool) -> Any:
        """Compute one micro-batch; what it contributes is in the buckets, and of the last one on its way."""
        for p in self._parameters:
            p.grad = None
        waiting = [len(members) for members in self._members]
        arrived: set[int] = set()

        def take(bucket: int, position: int, p: TensorBase) -> None:
            """Move a gradient into its bucket; a bucket that is complete is sent."""
            self._gradients[bucket].put(number, position, np.asarray(p.grad.detach()))
            i = self._members[bucket][position]
            if i not in arrived:
                arrived.add(i)
                waiting[bucket] -= 1
                if final and waiting[bucket] == 0 and self.ranks.size > 1:
                    self._gradients[bucket].begin()

        handles = []
        for b, members in enumerate(self._members):
            for position, i in enumerate(members):
                p = self._parameters[i]
                handles.append(register_post_accumulate_grad_hook(p, partial(take, b, position)))
        try:
            loss = loss_of(*part)
            if not isinstance(loss, TensorBase) or loss.ndim:
                raise ArgumentError("GlobalBatch.backward(): loss_of returns the mean loss, a scalar tensor")
            loss.backward(as_tensor(np.asarray(weight, loss.dtype)))
        finally:
            for handle in handles:
                handle.remove()
        present = np.zeros(len(self._parameters))
        present[list(arrived)] = 1.0
        self._numbers.put(number, 0, present)
        self._numbers.put(number, 1, np.asarray(weight * float(loss.detach())))
        for bucket in self._gradients:
            if not bucket.sent:
                bucket.vector(number)  # zeros where no gradient has come
        for bucket, members in zip(self._states, self._floats, strict=True):
            for position, i in enumerate(members):
                bucket.put(number, position, self._buffers[i].payload * self._buffers[i].dtype.type(weight))
        self._counters.vector(number)
        if number == self.micro_batches - 1:
            for position, i in enumerate(self._integers):
                self._counters.put(number, position, self._buffers[i].payload.astype(int64))
        return loss

    def _combined(self, grads: Sequence[Any], loss: Any) -> Any:
        """Exchange what has not been sent, and write the totals to gradients and buffers."""
        for bucket in self._buckets():
            if not bucket.sent:
                bucket.begin()
        totals = [bucket.total() for bucket in self._gradients]
        states = [bucket.total() for bucket in self._states]
        numbers, counters = self._numbers.total(), self._counters.total()
        present = self._numbers.get(numbers, 0)
        for bucket, members, total in zip(self._gradients, self._members, totals, strict=True):
            for position, i in enumerate(members):
                if present[i]:
                    made = wrap(bucket.get(total, position).copy())
                    self._parameters[i].grad = made if grads[i] is None else grads[i] + made
        for bucket, members, total in zip(self._states, self._floats, states, strict=True):
            for position, i in enumerate(members):
                self._buffers[i].payload[...] = bucket.get(total, position)
        for position, i in enumerate(self._integers):
            self._buffers[i].payload[...] = self._counters.get(counters, position)
        return wrap(np.asarray(self._numbers.get(numbers, 1), self._dtype(loss)))
