"""Numbers of a call are arguments of the compiled function: dimensions, sizes, factors, bounds, all at once."""

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from common.core.sizes import Dim
from common.core.tree import flatten, unflatten
from tests.bits import assert_all_same_bits
from tests.helpers.cases import CASES
from tests.helpers.proofs import core, examples, no, share

PER_FUNCTION = examples(2)


class Taken:
    """Stands for a public function: its first calls note their numbers, later ones take others in their place."""

    def __init__(self, function):
        self.function, self.noted, self.given = function, [], None

    def __call__(self, *args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if type(x) in (int, float) or isinstance(x, Dim)]
        if self.given is None:
            self.noted += [leaves[i] for i in places]
        else:
            for i in places:
                x = next(self.given)
                leaves[i] = leaves[i] if isinstance(leaves[i], Dim) else x  # a size stays the operand's
        args, kwargs = unflatten(structure, leaves)
        return self.function(*args, **kwargs)


@pytest.mark.parametrize("name", core([n for n in CASES if hasattr(F, n)], no, seldom=lambda n: share(n, 2) == 1))
def test_numbers_are_arguments(name, monkeypatch):
    """The first cases of each function that give it numbers."""
    found = 0
    for case in CASES[name]:
        taken = Taken(getattr(F, name))
        with monkeypatch.context() as patched:
            patched.setattr(F, name, taken)
            found += compared(case.label, case.f, lambda c=case: c.draw(np.random.default_rng(7), "float64", 3), taken)
        if found == PER_FUNCTION:
            return


def compared(label, f, draw, taken):
    """Whether numbers were taken; then both engines give the same results with these as arguments."""
    dynamic.function(f)(*draw())
    if not taken.noted:
        return False
    # no fraction is a float32, so that none can pass through that dtype unnoticed
    numbers = [x if type(x) is int or x.is_integer() else x * (1 + 2.0**-40) for x in taken.noted]

    def program(numbers, *operands):
        taken.given = iter(numbers)
        return f(*operands)

    results = []
    for engine in (dynamic, static):
        y = engine.function(program, interpret=True)(numbers, *draw())
        results.append([np.asarray(x) for x in flatten(y)[0]])
    assert_all_same_bits(results[1], results[0], label)
    return True


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_number_beside_max_and_min_is_a_dimension(name):
    """A tensor there is one to compare with."""
    x = np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 6.0]], np.float32)
    for f in (lambda x, d: getattr(F, name)(x, d), lambda x, d: getattr(x, name)(d - 1)):
        results = [[np.asarray(part) for part in engine.function(f)(x, 1)] for engine in (dynamic, static)]
        assert results[0][1].dtype == np.int64
        assert_all_same_bits(results[1], results[0], name)
    other = [np.asarray(engine.function(getattr(F, name))(x, np.float32(3))) for engine in (dynamic, static)]
    assert_all_same_bits(other[1:], [getattr(np, f"{name}imum")(x, np.float32(3))], name)
    assert_all_same_bits(other[:1], other[1:], name)


def test_a_number_that_is_written_is_rounded_once():
    x, i, v = np.array([1.5, 2.0]), np.array([0]), -4.826984902407649

    def program(x, v):
        y = x * 1
        y[0] = v
        y[1:].fill_(v)
        return y, x.index_fill(0, i, v), x.masked_fill(x > 1.7, v), static.full_like(x, v)

    results = [[np.asarray(y) for y in engine.function(program)(x, v)] for engine in (dynamic, static)]
    assert_all_same_bits(results[1], results[0], "written")
    assert all(v in y for y in results[0])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
@pytest.mark.parametrize(
    "f",
    {
        "bound": lambda tw, k, n: (k.clamp(max=n - 1), k.clamp(n - 4, n), tw.clip(k, min=n)),
        "factor": lambda tw, k, n: (tw.addcmul(k, k, k, value=n), tw.add(k, k, alpha=n), tw.lerp(k * 1.0, k * 2.0, n)),
        "operand": lambda tw, k, n: (tw.maximum(k, n), tw.fmod(k, n), tw.where(k > 1, n, k), tw.clamp_max(k, n)),
        "value": lambda tw, k, n: (k.masked_fill(k > 1, n), tw.full_like(k, n)),
    }.values(),
    ids=["bound", "factor", "operand", "value"],
)
def test_a_size_is_a_number(f, dtype):
    program = static.function(lambda x, k: f(static, k, x.shape[0]))
    for n in (5, 3):
        found = program(np.ones(n), np.arange(6, dtype=dtype))
        wanted = f(dynamic, dynamic.tensor(np.arange(6, dtype=dtype)), n)
        assert_all_same_bits([np.asarray(y) for y in found], [np.asarray(y) for y in wanted], "sizes")
    assert len(program.traces) == 1


def test_what_a_condition_chooses_between_numbers_is_no_number():
    """It has the dtype and the dimensions of a tensor, whatever it meets, and may be carried by a loop."""

    def program(tw, x, i):
        chosen, half = tw.where(x > 0, 0, 3), tw.where(x > 0, 0.5, 1.5)
        one = tw.where(x.sum() > 0, 1, 2)
        end = tw.scan(lambda c, k: (tw.roll(c, 1, 0) + k, c[0]), chosen, i)
        return chosen + i, chosen / 3, half * i, half.to(tw.float64) / 3, one + i[0], one / 3, tw.stack([chosen]), *end

    x, i = np.arange(-3, 4), np.arange(7, dtype=np.int32)
    compiled = static.function(lambda x, i: program(static, x, i))(x, i)
    eager = program(dynamic, dynamic.tensor(x), dynamic.tensor(i))
    assert [r.dtype for r in compiled] == [r.dtype for r in eager]
    assert_all_same_bits([np.asarray(r) for r in compiled], [np.asarray(r) for r in eager], "chosen")
