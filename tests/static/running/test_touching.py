"""Which arrays of a call touch what it writes: beside numpy's own comparison of every pair."""

import numpy as np

import dynamic
import static
from static.running.overlaps import touching
from tests.bits import assert_all_same_bits


def _part(rng, memory):
    x = memory[rng.integers(0, 40) : rng.integers(40, 80) : rng.choice([1, 2, 3])]
    x = x[::-1] if rng.random() < 0.3 else x
    n = x.size // 4
    return x[: 4 * n].reshape(n, 4).T if rng.random() < 0.5 else x


def test_pairs_are_those_of_numpy():
    rng = np.random.default_rng(4)
    for _ in range(300):
        memories = [np.zeros(80, np.float32) for _ in range(3)]
        arrays = [_part(rng, memories[rng.integers(3)]) for _ in range(8)]
        arrays = [*(x for x in arrays if isinstance(x, np.ndarray)), 2.0, np.zeros(0), np.float32(1)]
        written = {i for i, x in enumerate(arrays) if isinstance(x, np.ndarray) and x.size and rng.random() < 0.4}
        expected = [
            (i, j)
            for i in sorted(written)
            for j, x in enumerate(arrays)
            if i != j and isinstance(x, np.ndarray) and x.size and np.may_share_memory(arrays[i], x)
        ]
        assert touching(arrays, written) == expected


def test_turned_parameters_are_trained():
    """Their memory is not in the order in which a program reads and writes: it goes by copies."""
    results = []
    for tw in (static, dynamic):
        table = tw.arange(6.0).reshape(2, 3) / 10
        p, q = tw.nn.Parameter(table.t()), tw.nn.Parameter(tw.ones(3))
        optimizer = tw.optim.Adam([p, q], lr=0.1)

        def step(x, tw=tw, p=p, q=q, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((p @ x) * q).sum() ** 2
            loss.backward()
            optimizer.step()
            return loss.detach()

        program = static.function(step) if tw is static else step
        losses = [program(tw.tensor([0.5, -1.0])) for _ in range(4)]
        assert p.t().tolist() == table.tolist()
        results.append([x.detach().numpy() for x in (*losses, table, q)])
    assert_all_same_bits(*results, "turned")
