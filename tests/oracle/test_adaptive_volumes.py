"""Adaptive pooling of volumes beside its definition, where there are more windows than elements, too."""

import itertools

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.helpers import proofs


def pooled(x, counts, reduce):
    """Window i of m over n elements goes from floor(i n / m) to ceil((i + 1) n / m)."""
    bounds = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(x.shape[2:], counts, strict=True)]
    cells = [reduce(x[:, :, a:b, c:d, e:f], axis=(2, 3, 4)) for (a, b), (c, d), (e, f) in itertools.product(*bounds)]
    return np.stack(cells, -1).reshape(*x.shape[:2], *counts)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_volumes_of_any_depth(depth, count):
    """Each pair of heights and widths with a third of depths and counts: a kernel is made for each pair of sizes."""
    rng = np.random.default_rng(depth * 10 + count)
    pairs = itertools.product(enumerate([(1, 1), (4, 4), (4, 2)]), enumerate([(1, 1), (8, 4), (6, 3)]))
    for (i, (h, oh)), (k, (w, ow)) in pairs:
        if proofs.sampled and (i + k + depth + count) % 3:
            continue
        x = rng.normal(size=(2, 3, depth, h, w)).astype(np.float32)
        for kind, reduce in (("avg", np.mean), ("max", np.max)):
            results = []
            for tw in (dynamic, static):
                call = getattr(tw.nn.functional, f"adaptive_{kind}_pool3d")
                results.append(tw.function(lambda x, call=call, to=(count, oh, ow): call(x, to))(x).numpy())
            assert_all_same_bits([results[0]], [results[1]], f"adaptive_{kind}_pool3d")
            np.testing.assert_allclose(results[0], pooled(x, (count, oh, ow), reduce), rtol=1e-5, atol=1e-6)
