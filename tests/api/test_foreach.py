"""Functions of lists of tensors: each is the op for one after the other."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])
rng = np.random.default_rng(0)
X, Y, Z = ([rng.uniform(0.5, 2, size).astype(np.float32) for size in ((3,), (2, 2))] for _ in range(3))
CALLS = {
    "_foreach_add": [((Y,), lambda x, y: x + y), ((2.0,), lambda x, s: x + np.float32(s))],
    "_foreach_mul": [(([2.0, 3.0],), lambda x, s: x * np.float32(s))],
    "_foreach_sub": [((Y,), lambda x, y: x - y)], "_foreach_neg": [((), np.negative)], "_foreach_sqrt": [((), np.sqrt)],
    "_foreach_maximum": [((Y,), np.maximum), ((1.0,), lambda x, s: np.maximum(x, np.float32(s)))],
    "_foreach_minimum": [((1.0,), lambda x, s: np.minimum(x, np.float32(s)))], "_foreach_sign": [((), np.sign)],
    "_foreach_clamp_max": [((1.0,), lambda x, s: np.minimum(x, np.float32(s)))],
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("name", CALLS)
def test_each_tensor_has_the_op(engine, name):
    for others, wanted in CALLS[name]:
        rest = [x if isinstance(x, list) else [x] * 2 for x in others]
        given = [[engine.tensor(v) if isinstance(v, np.ndarray) else v for v in x] if isinstance(x, list) else x
                 for x in others]  # fmt: skip
        results = [wanted(x, *(other[i] for other in rest)) for i, x in enumerate(X)]
        tensors = [engine.tensor(x) for x in X]
        assert_all_same_bits([x.numpy() for x in getattr(engine, name)(tensors, *given)], results, name)
        written = getattr(engine, f"{name}_")(tensors, *given)
        assert [a is b for a, b in zip(written, tensors, strict=True)] == [True, True]
        assert_all_same_bits([x.numpy() for x in tensors], results, f"{name}_")


@ENGINES
def test_steps_of_optimisers_by_lists_are_compiled_too(engine):
    @engine.function
    def step(p, q, g, h):
        moved = engine._foreach_lerp([p, q], [g, h], [0.1, 0.2])
        scaled = engine._foreach_addcdiv(moved, [g, h], engine._foreach_norm([p, q]), [2.0, -1.0])
        return *scaled, *engine._foreach_pow(2.0, [p, q]), *engine._foreach_addcmul(moved, [g, h], [p, q], value=0.5)

    found = [x.numpy() for x in step(*X, *Y)]
    moved = [x + (y - x) * w for x, y, w in zip(X, Y, (0.1, 0.2), strict=True)]
    wanted = [m + v * y / np.linalg.norm(x) for m, v, y, x in zip(moved, (2, -1), Y, X, strict=True)]
    wanted += [2.0**x for x in X] + [m + 0.5 * y * x for m, y, x in zip(moved, Y, X, strict=True)]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@ENGINES
def test_mistakes(engine):
    with pytest.raises(TypeError, match=r"_foreach_add\(\) takes lists of as many tensors, got \[2, 1\]"):
        engine._foreach_add([engine.ones(1)] * 2, [engine.ones(1)])
    for name in ("_foreach_powsum", "_foreach_zero", "_foreach_norm_"):
        with pytest.raises(AttributeError, match=name):
            getattr(engine, name)


@ENGINES
def test_lists_are_copied_and_cleared(engine):
    tensors, others = ([engine.tensor(x) for x in arrays] for arrays in (X, Y))
    engine._foreach_copy_(tensors, others)
    assert_all_same_bits([x.numpy() for x in tensors], Y, "copied")
    engine._foreach_zero_(tensors)
    assert_all_same_bits([x.numpy() for x in tensors], [0 * x for x in X], "cleared")
