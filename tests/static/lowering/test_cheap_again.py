"""Cheap values of large arrays are computed again by the kernels that read them."""

import numpy as np
import pytest

import static as tw
from static.lowering.fusion import cheap_again
from tests.static.compare import assert_compiles, program_of


def arrays(*shapes):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def standardised(x):
    d = x - x.mean(0)
    s = ((d * d).mean(0) + 1e-6).sqrt()
    return (d / s).clamp(-2, 2)


def stored(compiled):
    """Elements of the arrays that kernels keep for other ones, of those with two dimensions."""
    program = program_of(compiled)
    made = {b.id: b for group in program.groups for item in group.items for b in item.results}
    results = {b.id for b, _ in program.work.outputs}
    return sum(len(b.shape) == 2 for i, b in made.items() if i in program.escaping - results)


def quotients(d):
    return d / (d * d).sum(0)


PROGRAMS = {
    "a z-score": lambda x, m: standardised(x),
    "with its gradient": lambda x, m: tw.grad(lambda x: (standardised(x) * m).sum())(x),
    "a number for all": lambda x, m: (lambda d: d / (d * d).mean())(x * 3 - 1),
    "of columns, in a kernel without any": lambda x, m: (lambda d: d * (d * d).sum(0).cumsum(0)[-1])(x - m),
    "read by two later kernels": lambda x, m: (lambda d: (quotients(d), (d * m).sum(1) * (d * d).sum()))(x + 1),
    "a chain": lambda x, m: quotients((x - m).abs() * 2),
    "a chain that is too long": lambda x, m: quotients(((x - m).abs() * 2 + m).abs()),
    "of two arrays": lambda x, m: quotients(x - x.exp()),
    "of a column": lambda x, m: quotients(x - x[:, :1]),
    "another order": lambda x, m: (lambda d: (d * d).sum(1) + d.t())(x[:40] - m),
    "a result, too": lambda x, m: (lambda d: (d, quotients(d)))(x - m),
    "of a part": lambda x, m: quotients(x[1:] - m),
    "of whole numbers": lambda x, m: quotients((x * 8).to(tw.int32) - 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_stay(name, monkeypatch):
    monkeypatch.setattr(cheap_again, "WORTHWHILE", 0)
    monkeypatch.setattr(cheap_again, "FEWEST_COLUMNS", 1)
    assert_compiles(PROGRAMS[name], arrays((70, 40), (40,)), arrays((90, 40), (40,)))


def test_a_difference_is_not_stored():
    compiled = tw.function(standardised)
    compiled(*arrays((3000, 40)))
    assert stored(compiled) == 0


def test_what_is_dear_or_small_or_reads_more_is_stored():
    for program, shapes in [
        (lambda x: (lambda d: d / (d * d).sum(0))(x.exp()), [(3000, 40)]),
        (lambda x: (lambda d: d / (d * d).sum(0))(x - 1), [(30, 40)]),
        (lambda x, y: (lambda d: d / (d * d).sum(0))(x - y), [(3000, 40), (3000, 40)]),
    ]:
        compiled = tw.function(program)
        compiled(*arrays(*shapes))
        assert stored(compiled) == 1


def test_state_that_changes_is_not_read_later():
    state, m = tw.tensor(arrays((3000, 40))[0]), arrays((40,))[0]
    before = state.numpy().copy()

    @tw.function
    def step(m):
        d = state - m
        result = d / (d * d).sum(0)
        state.copy_(d * 2)
        return result

    d = before - m
    expected = tw.tensor(d) / tw.tensor(d * d).sum(0)
    assert np.array_equal(np.asarray(step(m)), np.asarray(expected))
    assert np.array_equal(np.asarray(state), d * 2)
