"""Gate: a user's program has the same numbers in PyTorch. Without PyTorch nothing is compared."""

from importlib.util import find_spec
from typing import Any

import numpy as np

import dynamic
from benchmarks.gates.frame import record


def test_pytorch_draws_our_data_and_parameters(benchmark: Any) -> None:
    """Values, parameters of layers and inits; a call that names a generator of PyTorch's draws from that."""
    if find_spec("torch") is None:
        record(benchmark, lambda: None, [()])
        return
    import torch

    from benchmarks.peers.torch_draws import OurDraws

    def drawn(tw: Any) -> list[Any]:
        made = [tw.rand(2, 3), tw.randint(0, 9, (4,)), tw.randn(2, dtype=tw.float64), tw.randperm(5)]
        made += [tw.empty(3).uniform_(-1, 2), tw.nn.init.xavier_normal_(tw.empty(2, 2)), tw.rand_like(made[0])]
        module = tw.nn.LSTM(4, 2)
        return [*made, *module.parameters(), *tw.nn.Conv1d(2, 3, 2).parameters()]

    dynamic.manual_seed(5)
    ours = drawn(dynamic)
    dynamic.manual_seed(5)
    with OurDraws():
        theirs = drawn(torch)
    own = torch.rand(3, generator=torch.Generator().manual_seed(1))
    with OurDraws():
        assert torch.equal(torch.rand(3, generator=torch.Generator().manual_seed(1)), own)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
    record(benchmark, lambda: drawn(dynamic), [()])
