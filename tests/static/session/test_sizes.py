"""Sizes that a placeholder leaves open."""

import numpy as np
import pytest

import dynamic
import static as tw
from benchmarks.bits import difference
from common.core.errors import ArgumentError, DTypeError, ShapeError


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


def test_new_sizes_compile_nothing(graph):
    x = tw.placeholder(tw.float32, [None, 3], name="x")
    w = tw.Variable(np.ones((3, 2), np.float32))
    y = tw.tanh(x @ w).sum(dim=1)
    session = tw.Session()
    session.run(w.initializer)
    for n in (5, 2, 7, 0, 1, 5, 64):
        given = np.full((n, 3), 0.25, np.float32)
        np.testing.assert_allclose(session.run(y, {x: given}), np.tanh(np.full(n, 0.75)) * 2, rtol=1e-6)
    (compiled,) = (c for key, c in graph.compiled.items() if key[0] == (y,) or key[0][0] is y)
    assert len(compiled.variants) == 2  # any size, and 1


DERIVED = {
    "n - 1": lambda _, x: x[1:] * x[:1],
    "n - 2": lambda _, x: x[2:] + x[:1] * x[1:2],
    "2 n": lambda tw, x: tw.cat([x, x]) * x[:1],
    "n // 2": lambda _, x: x[::2] * x[:1],
    "m - 1": lambda _, x: (x[:, 1:] * x[:, :1]).sum(1),
}


@pytest.mark.parametrize("name", DERIVED)
def test_sizes_that_are_one_because_others_are_not(name):
    with tw.Graph().as_default() as graph:
        x = tw.placeholder(tw.float32, [None, None], name="x")
        y = DERIVED[name](tw, x)
        fetches = [y, *tw.gradients((y * y).sum(), x)]
    for order in ((2, 3, 4, 5), (5, 4, 3, 2), (4, 2, 3, 6)):
        session = tw.Session(graph)
        for n in order:
            leaf = dynamic.tensor(np.random.default_rng(n).standard_normal((n, n)), dtype="float32").requires_grad_()
            value = DERIVED[name](dynamic, leaf)
            (value * value).sum().backward()
            for found, wanted in zip(session.run(fetches, {x: leaf.detach()}), (value, leaf.grad), strict=True):
                assert difference(found, wanted.detach().numpy()) is None


@pytest.mark.parametrize("program", [lambda x: x.roll(1, 0), lambda x: x[1:], lambda x: x.var(0)])
def test_sizes_of_zero_work_or_are_refused_in_words(graph, program):
    x = tw.placeholder(tw.float32, [None, 2], name="x")
    y, session = program(x), tw.Session()
    assert session.run(y, {x: np.ones((3, 2), np.float32)}).size
    with pytest.raises(ShapeError, match=r"built for sizes with .* but dimension 0 of x = 0 in this run"):
        session.run(y, {x: np.ones((0, 2), np.float32)})


def test_sizes_on_which_the_graph_relies(graph):
    x, t = tw.placeholder(tw.float32, [None, 2], name="x"), tw.placeholder(tw.float32, [None, 2], name="t")
    y = x * t
    session = tw.Session()
    assert session.run(y, {x: np.ones((3, 2)), t: np.ones((3, 2))}).shape == (3, 2)
    message = r"t\.shape\[0\] == x\.shape\[0\].*dimension 0 of t = 4.*dimension 0 of x = 3.*test_sizes\.py:\d+"
    with pytest.raises(ShapeError, match=message):
        session.run(y, {x: np.ones((3, 2)), t: np.ones((4, 2))})
    assert session.run(x + 1.0, {x: np.ones((4, 2))}).shape == (4, 2)


def test_an_open_size_that_meets_a_number_is_that_number(graph):
    x = tw.placeholder(tw.float32, [None, None], name="x")
    w = tw.Variable(np.ones((3, 2), np.float32))
    before = x.sum()
    y = (x @ w) + tw.constant(np.zeros((5, 1), np.float32))
    (g,) = tw.gradients(y, w)
    session = tw.Session()
    session.run(w.initializer)
    assert session.run(y, {x: np.ones((5, 3))}).tolist() == [[3.0, 3.0]] * 5
    assert session.run(g, {x: np.ones((5, 3))}).tolist() == [[5.0, 5.0]] * 3
    for wrong in ((4, 3), (5, 4)):
        with pytest.raises(ShapeError, match=r"x\.shape\[\d\] == .*test_sizes\.py:\d+"):
            session.run(y, {x: np.ones(wrong)})
    other = x + tw.constant(np.zeros((7, 1), np.float32))  # on this line it is another number
    assert session.run(other, {x: np.ones((7, 2))}).shape == (7, 2)
    with pytest.raises(ShapeError, match="built for sizes"):
        session.run([y, other], {x: np.ones((7, 3))})
    assert session.run(before, {x: np.ones((5, 3))}) == 15.0


def test_what_one_line_relies_on_does_not_bind_others(graph):
    x, t = tw.placeholder(tw.float32, [None], name="x"), tw.placeholder(tw.float32, [None], name="t")
    a = x * t
    b = x * tw.constant([1.0, 2.0, 3.0])
    c = x[4]
    d = x.sum() + t.sum()
    session = tw.Session()
    assert session.run(d, {x: [1.0, 2.0], t: []}) == 3.0
    assert session.run(a, {x: [1.0, 2.0], t: [3.0, 4.0]}).tolist() == [3.0, 8.0]
    assert session.run(b, {x: [1.0, 1.0, 1.0]}).tolist() == [1.0, 2.0, 3.0]
    assert session.run(c, {x: np.arange(6)}) == 4.0
    for fetch, feeds in ((a, {x: [1.0], t: [1.0, 2.0]}), (b, {x: [1.0]}), (c, {x: [1.0, 2.0]})):
        with pytest.raises(ShapeError, match=r"built for sizes with .*test_sizes\.py:\d+"):
            session.run(fetch, feeds)


def test_equal_sizes_that_a_gradient_relies_on(graph):
    x, t = tw.placeholder(tw.float32, [None, 2], name="x"), tw.placeholder(tw.float32, [None, 2], name="t")
    loss = (x * t).sum()
    gx, gt = tw.gradients(loss, [x, t])
    both = gx.tanh() + gt.tanh()
    session = tw.Session()
    for n in (3, 1, 5):
        assert session.run(both, {x: np.ones((n, 2)), t: np.ones((n, 2))}).shape == (n, 2)
    for fetch in (both, gx, [gx, gt]):
        with pytest.raises(ShapeError, match="built for sizes"):
            session.run(fetch, {x: np.ones((3, 2)), t: np.ones((4, 2))})


def test_sizes_of_unrelated_tensors_are_not_mixed_up_in_one_kernel(graph):
    x, t = tw.placeholder(tw.float32, [None, 3], name="x"), tw.placeholder(tw.float32, [None, 3], name="t")
    _ = x + t
    a, b = tw.tanh(x) * 2.0, tw.tanh(t) * 2.0
    session = tw.Session()
    for n, m in ((2, 700), (700, 2), (3, 3)):
        found = session.run([a, b], {x: np.full((n, 3), 0.5), t: np.full((m, 3), 0.5)})
        for y, count in zip(found, (n, m), strict=True):
            assert y.shape == (count, 3)
            assert (y == y[0, 0]).all()


def test_what_a_branch_relies_on_holds_for_all_of_it(graph):
    x, t = tw.placeholder(tw.float32, [None], name="x"), tw.placeholder(tw.float32, [None], name="t")

    def product():
        return x * t

    y = tw.cond(x.sum() > 0, product, lambda: x)
    session = tw.Session()
    assert session.run(y, {x: [2.0], t: [3.0]}).tolist() == [6.0]
    with pytest.raises(ShapeError, match=r"t\.shape\[0\] == x\.shape\[0\].*test_sizes\.py:\d+ in product"):
        session.run(y, {x: [2.0, 1.0], t: [3.0]})


def test_the_number_of_an_open_size_is_not_known(graph):
    x = tw.placeholder(tw.float32, [None, 2], name="x")
    for use in (lambda: int(x.shape[0]), lambda: len(x), lambda: list(x), lambda: range(x.shape[0])):
        with pytest.raises(TypeError, match=r"test_sizes\.py:\d+ .*x\.shape\[0\], which only a run knows"):
            use()
    assert len(list(x.sum(dim=0))) == 2
    assert tw.Session().run(x * x.shape[0], {x: np.ones((3, 2))}).tolist() == [[3.0, 3.0]] * 3
    assert tw.Session().run(x.reshape(x.shape[0] * 2, 1), {x: np.ones((3, 2))}).shape == (6, 1)


def test_two_arrays_that_do_not_agree_on_a_size(graph):
    x = tw.placeholder(tw.float32, [None, 2], name="x")
    h = x * 2.0
    with pytest.raises(ShapeError, match=r"'mul:0'.*dimension 0 is 4, and not 3"):
        tw.Session().run(x.sum() + h.sum(), {x: np.ones((3, 2)), h: np.ones((4, 2))})


def test_a_size_is_found_from_what_is_fed_for_an_intermediate_tensor(graph):
    x = tw.placeholder(tw.float32, [None, 2], name="x")
    flat = x.reshape(-1)
    y = flat.reshape(-1, 2).sum(dim=1)
    assert tw.Session().run(y, {flat: [1.0, 2.0, 3.0, 4.0]}).tolist() == [3.0, 7.0]
    with pytest.raises(ShapeError, match="'reshape:0'"):
        tw.Session().run(y, {flat: [1.0, 2.0, 3.0]})


def test_a_placeholder_needs_to_know_its_number_of_dimensions(graph):
    with pytest.raises(ArgumentError, match="number of dimensions must be known"):
        tw.placeholder(tw.float32, None)
    with pytest.raises(ArgumentError, match="neither None nor a size"):
        tw.placeholder(tw.float32, [-1])
    with pytest.raises(DTypeError, match="complex"):
        tw.placeholder(np.complex64, [1])


def test_a_slice_may_become_empty():
    with tw.Graph().as_default(), tw.Session() as session:
        x = tw.placeholder(tw.float32, [None, 2])
        y = (x[1:] * 2).sum()
        for n in (3, 1, 2):
            assert session.run(y, {x: np.ones((n, 2), np.float32)}) == 4 * (n - 1)
