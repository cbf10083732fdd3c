"""`vmap` against the function on each example: the same bits, by every op and in both engines."""

import itertools

import numpy as np
import pytest

import dynamic
import static
from common.core.dispatch import apply
from common.core.op import REGISTRY
from common.tensor.create import lift
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, share

X = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

#: Ops without a rule: they run example by example. `rand` and `randn` never meet an example.
ONE_BY_ONE = {"index_clear", "index_last", "put_zeros", "rand", "randn", "view_set", "weights"}


def rows_of(y):
    return [np.asarray(part.detach()) for part in (y if isinstance(y, tuple) else (y,))]


def mapped_samples(op):
    """Three draws of each sample of an op, as ``(operands of three examples, attributes)``."""
    draws = [op.samples(np.random.default_rng(seed), np.dtype(np.float32)) for seed in range(3)]
    for case in range(len(draws[0])):
        yield [draw[case][0] for draw in draws], draws[0][case][1]


def operand(x):
    return lift(np.array(x)) if isinstance(x, np.ndarray) else x


WITH_SAMPLES = [name for name in REGISTRY if REGISTRY[name].samples is not None and REGISTRY[name].inputs]


@pytest.mark.parametrize("name", core(WITH_SAMPLES, lambda name: share(name, 20) == 0))
def test_ops_of_examples_have_the_bits_that_they_have_alone(name):
    op = REGISTRY[name]
    cases = list(mapped_samples(op))
    for examples, attrs in (cases[share(name, len(cases))],):
        arrays = [i for i, x in enumerate(examples[0]) if isinstance(x, np.ndarray)]
        masks = [mask for n in range(1, len(arrays) + 1) for mask in itertools.combinations(arrays, n)]
        for mask in masks[:3] + masks[3:][-1:]:
            if name == "mv" and mask == (1,):
                continue  # the order of a product of matrices, see below
            given = [[x if i in mask else examples[0][i] for i, x in enumerate(one)] for one in examples]
            alone = [rows_of(apply(op, [operand(x) for x in one], attrs)) for one in given]

            def f(*xs, mask=mask, attrs=attrs, first=examples[0]):
                operands = [operand(x) for x in first]
                for i, x in zip(mask, xs, strict=True):
                    operands[i] = x
                return apply(op, operands, attrs)

            found = rows_of(dynamic.vmap(f)(*(np.stack([one[i] for one in given]) for i in mask)))
            for k, part in enumerate(found):
                assert_same_bits(part, np.stack([one[k] for one in alone]), f"{name}{mask} {attrs}, result {k}")


def test_ops_without_a_rule_are_known():
    """A new op has a rule, or is named here."""
    from common.transforms.batching.batch_rules import rule_of

    dynamic.cat([dynamic.ones(2)] * 2), dynamic.stack([dynamic.ones(2)] * 2)  # of two operands there are ops now
    kernels = [(name, op) for name, op in REGISTRY.items() if op.kind == "kernel" and op.inputs]
    assert {name.rstrip("0123456789") for name, op in kernels if rule_of(op) is None} == ONE_BY_ONE


def scanned(tw, r):
    carry, ys = tw.scan(lambda c, x: (c * 0.5 + tw.sin(x) * c, c * x), r.sum(), r)
    return carry + ys.sum()


def until(tw, r):
    return tw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + abs(r.mean()) + 0.1, s[1] * 0.9 + r), (r.sum() * 0, r))[
        1
    ]


def counted(tw, r):
    return tw.fori_loop(0, 3, lambda i, y: y * tw.cos(y) + i, r)


def branching(tw, r):
    return tw.cond(r.sum() > 0, lambda r: tw.sin(r) * 2, lambda r: r * r, r)


def branching_alike(tw, r):
    p = tw.tensor(0.5)
    inner = [lambda x: x * r, lambda x: tw.cond(x.sum() > 0, lambda y: tw.sin(y) * r, lambda y: y - r * y * y, x)]
    return tw.cond(p > 0, lambda x: tw.switch(p.long() + 1, inner, x), lambda x: x * x, r)


def branching_in_a_loop(tw, r):
    return tw.scan(lambda c, x: (tw.cond(x > 0, lambda c: c * x, lambda c: c - x, c), c), r.sum(), r)[0]


def of_a_user(tw, r):
    class Cube(tw.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x**3 * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * 6 * x * x * w, (g * x**3).sum(0)

    return Cube.apply(r, tw.tensor(1.5))


def checkpointed(tw, r):
    return tw.utils.checkpoint.checkpoint(lambda r: tw.sin(r) * r, r, use_reentrant=False)


def written(tw, r):
    y = r * 2
    y[1:3] += r[0]
    y.mul_(r)
    y[2:].add_(1)
    return y


def half_detached(tw, r):
    return r * r.detach()


def with_gradients_inside(tw, r):
    leaf = r.detach().requires_grad_()
    return tw.autograd.grad((leaf**3).sum(), leaf)[0] * r


def sorted_by_index(tw, r):
    return r[r.argsort()] * tw.softmax(r, 0)


def with_another_dtype(tw, r):
    return (r.sum().double() * r).to(r.dtype) + (r > 0).sum() * r.double().mean()


PROGRAMS = [
    scanned, until, counted, branching, branching_alike, branching_in_a_loop, of_a_user, checkpointed, written,
    half_detached, with_gradients_inside, sorted_by_index, with_another_dtype,
]  # fmt: skip


def ways(tw, f):
    """Ways to map a program, each with the same of one example."""

    def value(r):
        return f(tw, r)

    def total(r):
        return value(r).sum()

    slope = tw.func.grad(total)
    curve = tw.func.grad(lambda r: slope(r).sum())
    return {
        "values": (tw.vmap(value), value),
        "gradients": (tw.vmap(slope), slope),
        "jacobians": (tw.vmap(tw.func.jacrev(value)), tw.func.jacrev(value)),
        "gradient of the batch": (tw.func.grad(lambda x: tw.vmap(value)(x).sum()), slope),
        "second order": (tw.vmap(curve), curve),
        "second order of the batch": (tw.func.grad(lambda x: tw.vmap(slope)(x).sum()), curve),
        "twice": (lambda x: tw.vmap(tw.vmap(value))(x.reshape(2, 2, 5)).flatten(0, 1), value),
    }


@pytest.mark.parametrize("program", core(PROGRAMS, lambda f: f in (scanned, written)))
def test_programs_of_examples_have_the_bits_that_they_have_alone(program):
    names = list(ways(dynamic, program))
    for name in {names[share(program.__name__, len(names))], "second order of the batch"}:
        alone = ways(dynamic, program)[name][1]
        expected = np.stack([np.asarray(alone(dynamic.tensor(x)).detach()) for x in X])
        for tw in (dynamic, static):
            found = tw.function(ways(tw, program)[name][0])(X)
            assert_same_bits(np.asarray(found.detach()), expected, f"{program.__name__}, {name}, {tw.__name__}")


def pulled_back(tw, f, x):
    """The Jacobian by a pullback from outside, for all rows at once."""
    _, pull = tw.func.vjp(lambda r: f(tw, r), x)
    return tw.vmap(lambda c: pull(c)[0])(tw.eye(5))


@pytest.mark.parametrize("program", [counted, until, branching, written], ids=lambda f: f.__name__)
def test_pullbacks_of_outside_are_mapped(program):
    expected = None
    for tw in (dynamic, static):
        for rows in (lambda x, tw=tw: pulled_back(tw, program, x), tw.func.jacrev(lambda r, tw=tw: program(tw, r))):
            found = np.asarray(tw.function(rows)(X[0]))
            expected = found if expected is None else expected
            assert_same_bits(found, expected, f"{program.__name__}, {tw.__name__}")
    basis = np.eye(5, dtype=np.float32)
    _, pull = dynamic.func.vjp(lambda r: program(dynamic, r), dynamic.tensor(X[0]))
    assert_same_bits(expected, np.stack([np.asarray(pull(dynamic.tensor(c))[0]) for c in basis]), "row by row")


def mixed(tw):
    """Gradients inside of what is captured, recorded outside, or differentiated twice."""

    def program(x, c, d):
        plain = tw.vmap(lambda r: (tw.func.grad(lambda w: (w * c).sum())(d) * r).sum())(x).sum()
        curved = tw.vmap(lambda r: (tw.func.grad(lambda w: (w**3 * c).sum())(d) * r).sum())(x).sum()
        _, pull = tw.func.vjp(lambda q: q**3 * c, d)
        pulled = tw.vmap(lambda g: (pull(g)[0] * d).sum())(x).sum()
        curvature = (tw.func.hessian(lambda q: (q**3 * c).sum())(d) * c).sum()
        return plain + curved * 2 + pulled * 3 + curvature * 4

    return program


def test_gradients_of_the_batch_reach_what_is_captured():
    given = [X.astype(np.float64), X[0].astype(np.float64), X[1].astype(np.float64)]
    slopes = [tw.func.grad(mixed(tw), argnums=(0, 1, 2))(*map(tw.tensor, given)) for tw in (dynamic, static)]
    for k, (a, b) in enumerate(zip(*slopes, strict=True)):
        assert_same_bits(np.asarray(b), np.asarray(a), f"argument {k}")
        step = np.random.default_rng(k).standard_normal(given[k].shape)
        around = [[x + s * 1e-5 * step if i == k else x for i, x in enumerate(given)] for s in (1, -1)]
        up, down = (float(mixed(dynamic)(*map(dynamic.tensor, xs))) for xs in around)
        np.testing.assert_allclose((np.asarray(a) * step).sum(), (up - down) / 2e-5, rtol=1e-6)


def test_vectors_of_a_batch_are_multiplied_as_the_rows_of_a_matrix():
    rng = np.random.default_rng(1)
    rows, w = rng.standard_normal((6, 300)).astype(np.float32), rng.standard_normal((7, 300)).astype(np.float32)
    expected = np.asarray(dynamic.tensor(rows) @ dynamic.tensor(w).T)
    for tw in (dynamic, static):
        weights = tw.tensor(w)
        for f in (lambda r: weights @ r, lambda r: r @ weights.T, lambda r: tw.nn.functional.linear(r, weights)):  # noqa: B023
            assert_same_bits(np.asarray(tw.vmap(f)(rows)), expected, tw.__name__)


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_a_mapped_function_runs_once(tw):
    calls = []
    tw.vmap(lambda r: calls.append(1) or tw.sin(r))(X)
    assert calls == [1]
    calls.clear()
    found = tw.vmap(lambda r: calls.append(r.shape[0]) or r * 2, chunk_size=3)(X)
    assert (calls, found.shape) == ([5, 5], (4, 5))


def test_a_batch_of_another_size_is_the_same_program():
    mapped = static.function(static.vmap(static.grad(lambda r: (r**3).sum())))
    mapped(X)
    first = mapped.newest
    mapped(np.repeat(X, 50, 0))
    assert mapped.newest is first


def test_what_runs_one_by_one_says_so():
    mapped = static.function(static.vmap(lambda r: static.multinomial(r.exp(), 2), randomness="different"))
    mapped(X)
    assert any("one by one" in node.scope for node in mapped.newest.raw.nodes)


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_random_numbers_of_examples(tw):
    def draw(randomness):
        tw.manual_seed(3)
        return np.asarray(tw.vmap(lambda r: r * 0 + tw.rand(5), randomness=randomness)(X))

    tw.manual_seed(3)
    expected = np.asarray(tw.rand(4, 5))
    assert_same_bits(draw("different"), expected, "different")
    assert_same_bits(draw("same"), np.stack([expected[0]] * 4), "same")
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        draw("error")


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_writes_inside(tw):
    x, y = tw.tensor(X), tw.zeros(5)
    tw.vmap(lambda r: r.mul_(2))(x)
    assert_same_bits(np.asarray(x), X * 2, "an argument")
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        tw.vmap(lambda r: y.add_(r))(x)


#: A function of `vmap`, an argument's shape; then, with it doubled, PyTorch's result, which shows its memory, and size.
SHOWN = [
    (lambda v: v(v(lambda r: r.abs_(), in_dims=2), 2, 2), (2, 1, 2, 2), [6, 2, 2, 6, 4, 0, 4, 8], (2, 2, 2, 1)),
    (lambda v: v(lambda r: (r.abs_(), r.T)[1], 2, 2), (2, 2, 2), [6, 4, 2, 4, 2, 0, 6, 8], (2, 2, 2)),
    (lambda v: v(v(lambda r: r.T.abs_(), 2, 1), 2, 1), (2, 2, 1, 2), [6, 2, 4, 4, 2, 6, 0, 8], (2, 1, 2, 2)),
    (lambda v: v(v(lambda r: [p.abs_() for p in r.split(1)][-2], 1), 1, 2), (2, 2, 2), [6, 2, 4, 0], (2, 1, 2)),
    (lambda v: v(lambda r: r.abs_(), 1, 1, chunk_size=1), (2, 2, 2), [3, 2, 1, 0, 1, 2, 3, 4], (2, 2, 2)),
    (lambda v: v(lambda a: v(lambda b, c: (c.abs_(), b)[1], (0, None))(a * 0, a), 1), (2, 2, 2), [0] * 8, (2, 2, 2)),
]


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_results_show_arguments_that_are_written(tw):
    for make, shape, expected, size in SHOWN:
        x = tw.arange(8.0).reshape(shape) - 3
        y = tw.function(lambda x: (make(tw.vmap)(x), x.mul_(2))[0])(x)  # noqa: B023
        assert (tuple(y.shape), y.flatten().tolist()) == (size, expected)
        assert x.flatten().tolist() == [6, 4, 2, 0, 2, 4, 6, 8]


@pytest.mark.parametrize("tw", [dynamic, static], ids=lambda tw: tw.__name__)
def test_what_no_example_knows(tw):
    with pytest.raises(RuntimeError, match=r"calling \.item\(\) on a Tensor or"):
        tw.vmap(lambda r: r if r.sum() > 0 else -r)(X)
    with pytest.raises(RuntimeError, match="dynamic shape"):
        tw.vmap(lambda r: tw.nonzero(r))(X)
    kept = []
    tw.vmap(lambda r: kept.append(r) or r)(X)
    with pytest.raises(TypeError, match="used after"):
        kept[0] + 1
    with pytest.raises(ValueError, match="when out_dim is None"):
        tw.vmap(lambda r: r, out_dims=None)(X)
    with pytest.raises(TypeError, match="chunk_size"):
        tw.vmap(lambda r: r, chunk_size=1.5)
    with pytest.raises(IndexError, match="out_dim=2"):
        tw.vmap(lambda r: r, out_dims=2)(X)
    shared = tw.tensor(2.0)
    assert tw.vmap(lambda r: shared * 3, out_dims=None)(X).item() == 6.0
    assert dynamic.vmap(lambda r: r * int(shared), out_dims=1)(X).shape == (5, 4)
    every_second = dynamic.tensor([True, False, True, False, True])
    assert dynamic.vmap(lambda r: r[every_second])(X).shape == (4, 3)


def guarded_root(tw, x):
    return tw.cond(x > 0, lambda: tw.cond(x > 1, lambda: tw.sqrt(x - 1), lambda: tw.log(x)), lambda: x * 3)


def guarded_root_of_operand(tw, x):
    return tw.cond(x > 0, lambda y: tw.cond(y > 1, lambda z: tw.sqrt(z - 1), tw.log, y), lambda y: y * 3, x)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize("program", [guarded_root, guarded_root_of_operand], ids=lambda f: f.__name__)
def test_examples_have_no_part_in_derivatives_of_branches_that_they_do_not_take(tw, program):
    x = np.array([0, 0.5, 1, 2, -1], np.float32)
    mapped = tw.vmap(lambda r: program(tw, r))
    expected = np.array([3, 2, 1, 0.5, 3], np.float32)
    assert_same_bits(np.asarray(tw.func.grad(lambda r: mapped(r).sum())(x)), expected, program.__name__)
    assert_same_bits(np.asarray(tw.vmap(tw.func.grad(lambda r: program(tw, r)))(x)), expected, program.__name__)


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_of_branches_that_examples_choose_alike_one_runs(tw):
    runs = []

    def told(i, x):
        return tw.pure_callback(lambda a: runs.append(i) or a, tw.ShapeDtypeStruct(x.shape, x.dtype), x.detach()) * x

    def f(i, r, w):
        branches = [lambda x: (told(0, x) * w, 2, w * 3), lambda x: (told(1, tw.sin(x)), x.sum(), w)]
        first = tw.switch(i, branches, r)
        return *first, tw.cond(i > 0, lambda: told(2, r), lambda: told(3, w) * r)

    mapped = tw.function(tw.vmap(f, in_dims=(None, 0, None), out_dims=(0, 0, None, 0)))
    for i, expected in ((0, {0, 3}), (1, {1, 2})):
        index, w = tw.tensor(i), tw.tensor(1.5)
        found = mapped(index, tw.tensor(X), w)
        assert set(runs) == expected
        alone = [f(index, tw.tensor(x), w) for x in X]
        for k in (0, 1, 3):
            assert_same_bits(
                np.asarray(found[k]), np.stack([np.asarray(y[k]) for y in alone]), f"branch {i}, result {k}"
            )
        assert found[2].item() == (4.5, 1.5)[i]
        runs.clear()
        slopes = tw.func.grad(lambda x, w, i=index: sum(y.sum() for y in mapped(i, x, w)), argnums=(0, 1))
        dx, dw = slopes(tw.tensor(X.astype(np.float64)), tw.tensor(1.5, dtype=tw.float64))
        assert set(runs) == expected
        x = X.astype(np.float64)  # the callback's result counts as a constant
        np.testing.assert_allclose(dx, (x * 1.5 + 1.5**2, np.sin(x) * np.cos(x) + 1 + x)[i], rtol=1e-12)
        np.testing.assert_allclose(dw, ((x * x).sum() + 3 + 1.5 * x.sum(), 1.0)[i], rtol=1e-12)
        runs.clear()


def test_a_branch_that_does_not_run_writes_nothing():
    for p, expected in ((1, [[6, 6]]), (0, [[4, 4]])):
        x = dynamic.full((1, 2), 3.0)
        y = dynamic.vmap(lambda r: dynamic.cond(p, lambda: r.mul_(2), lambda: r.add_(1)))(x)  # noqa: B023
        assert y.tolist() == x.tolist() == expected


@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
def test_what_branches_and_loops_hand_through_stays_shared(tw):
    def f(x, y):
        def scanned(_, y):
            return tw.scan(lambda c, _: (c, None), y, None, length=2)[0]

        n, same, z = tw.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (x, y, x * 0 + 1))
        return n, same, z, tw.cond(x < 0, scanned, scanned, x, y)

    x, y = tw.tensor([1.0, 4.0], requires_grad=True), tw.tensor(3.0, requires_grad=True)
    n, same, z, scanned = tw.vmap(f, in_dims=(0, None), out_dims=(0, None, 0, None))(x, y)
    assert (n.tolist(), z.tolist(), same.item(), scanned.item()) == ([5, 5], [81, 3], 3, 3)
    (z.sum() + same + scanned).backward()
    assert y.grad.item() == 4 * 3.0**3 + 1 + 2
