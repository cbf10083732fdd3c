"""Gradients, optimisers, control flow and random numbers of a graph."""

import numpy as np
import pytest

import dynamic
import static as tw
from common.core import mode
from common.core.errors import GradientError, GraphError


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


def ready():
    session = tw.Session()
    session.run(tw.global_variables_initializer())
    return session


def test_gradients_are_those_of_the_sum(graph):
    x, y = tw.placeholder(tw.float32, [None], name="x"), tw.placeholder(tw.float32, [None], name="y")
    gx, gy, gz = tw.gradients([x * y, x], [x, y, tw.constant([1.0])])
    assert gz is None
    found = tw.Session().run([gx, gy], {x: [2.0, 3.0], y: [4.0, 5.0]})
    assert [g.tolist() for g in found] == [[5.0, 6.0], [2.0, 3.0]]


def test_cotangents_and_names(graph):
    x = tw.placeholder(tw.float32, [2], name="x")
    (g,) = tw.gradients(x * x, x, grad_ys=tw.constant([1.0, 10.0]))
    (h,) = tw.gradients(x * x, [x], grad_ys=[np.array([1.0, 10.0], np.float32)])
    assert g.name.startswith("gradients/")
    assert h.name.startswith("gradients_1/")
    for one in tw.Session().run([g, h], {x: [3.0, 4.0]}):
        assert one.tolist() == [6.0, 80.0]


def test_gradients_of_gradients(graph):
    x = tw.placeholder(tw.float64, [], name="x")
    y = x**4
    derivatives = [y]
    for _ in range(4):
        derivatives += tw.gradients(derivatives[-1], x)
    assert tw.Session().run(derivatives, {x: 3.0}) == [81.0, 108.0, 108.0, 72.0, 24.0]


def test_gradients_with_respect_to_an_intermediate_tensor(graph):
    x = tw.placeholder(tw.float32, [], name="x")
    h = x * 3.0
    (g,) = tw.gradients(h * h, h)
    assert tw.Session().run(g, {x: 2.0}) == 12.0
    assert tw.Session().run(g, {h: 5.0}) == 10.0


def test_integers_have_no_gradient(graph):
    i = tw.placeholder(tw.int64, [2], name="i")
    x = tw.constant([1.0, 2.0, 3.0])
    assert tw.gradients(x[i].sum(), i) == [None]
    assert tw.gradients(i, x) == [None]


def test_a_batch_of_one_has_the_bits_of_a_batch_of_one(graph):
    x, w = tw.placeholder(tw.float32, [None, 2], name="x"), tw.Variable([[1.0, 1.0]], name="w")
    (g,) = tw.gradients(x * w, w)
    session = ready()
    zero = np.array([[-0.0, 0.0]], np.float32)
    # a sum over one element would make +0 of -0
    assert np.signbit(session.run(g, {x: zero})).tolist() == [[True, False]]
    assert np.signbit(session.run(g, {x: np.repeat(zero, 2, 0)})).tolist() == [[False, False]]


def test_backward_writes_to_grad_of_tensors_of_the_graph():
    linear = tw.nn.Linear(2, 1)
    with tw.Graph().as_default():
        w = tw.Variable([2.0, 3.0])
        (w * w).sum().backward()
        assert ready().run(w.grad).tolist() == [4.0, 6.0]
    with pytest.raises(GraphError, match="gradients"):
        linear(w).sum().backward()


def test_minimize_by_parts(graph):
    w, b = tw.Variable([1.0, 2.0], name="w"), tw.Variable(5.0, name="b")
    step = tw.Variable(0, name="step", trainable=False)
    loss = (w * w).sum() + b * 0.5
    optimizer = tw.optim.SGD(tw.trainable_variables(), lr=0.5)
    pairs = optimizer.compute_gradients(loss, [w])
    assert pairs[0][1] is w
    train = optimizer.apply_gradients([(g * 0.5, v) for g, v in pairs], global_step=step, name="train")
    session = ready()
    session.run(train)
    assert [x.tolist() for x in session.run([w, b, step])] == [[0.5, 1.0], 5.0, 1]
    session.run(optimizer.minimize(loss))
    assert [x.tolist() for x in session.run([w, b, step])] == [[0.0, 0.0], 4.75, 1]
    assert train.name == "train/update"
    with pytest.raises(GradientError, match=r"no gradients .*'b:0'"):
        optimizer.minimize((w * w).sum(), var_list=[b])


def test_an_optimiser_takes_up_variables_that_it_is_given_later(graph):
    a, b = tw.Variable(1.0), tw.Variable(1.0)
    optimizer = tw.optim.Adam([a], lr=0.125)
    train = optimizer.minimize(a + b, var_list=[a, b])
    session = ready()
    session.run(train)
    assert session.run([a, b]) == [0.875, 0.875]


def test_state_of_an_optimiser_is_per_session_and_saved(graph, tmp_path):
    w = tw.Variable([1.0], name="w")
    train = tw.optim.SGD([w], lr=0.5, momentum=0.5).minimize(w.sum())
    assert [v.op.name for v in tw.global_variables()] == ["w", "w/momentum_buffer"]
    assert [v.op.name for v in tw.trainable_variables()] == ["w"]
    first, second = ready(), ready()
    first.run(train)
    saver = tw.Saver()
    path = saver.save(first, tmp_path / "s")
    first.run(train)
    second.run(train)
    saver.restore(second, path)
    second.run(train)
    assert first.run(w) == second.run(w) == -0.25


def test_the_learning_rate_is_read_in_each_run(graph):
    w = tw.Variable(0.0)
    optimizer = tw.optim.SGD([w], lr=1.0)
    train = optimizer.minimize(w * 1.0)
    scheduler = tw.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    session = ready()
    for _ in range(3):
        session.run(train)
        scheduler.step()
    assert session.run(w) == -1.75
    rate = tw.placeholder(tw.float32, [], name="rate")
    train = tw.optim.SGD([w], lr=rate).minimize(w * 1.0)
    session.run(train, {rate: 0.25})
    assert session.run(w) == -2.0


def test_minimize_acts_at_once_outside_of_a_graph():
    w = dynamic.nn.Parameter([1.0, 2.0])
    optimizer = dynamic.optim.SGD([w], lr=0.5)
    assert optimizer.minimize((w * w).sum()) is None
    assert w.detach().tolist() == [0.0, 0.0]
    assert w.grad is None
    v = dynamic.nn.Parameter([1.0])
    step = tw.function(lambda: tw.optim.SGD.minimize(other, (v * v).sum()))
    other = dynamic.optim.SGD([v], lr=0.25)
    step()
    step()
    assert v.detach().tolist() == [0.25]


def test_branches_and_loops(graph):
    x = tw.placeholder(tw.float32, [], name="x")
    w = tw.Variable(2.0, name="w")
    y = tw.cond(x > 0, lambda v: v * w, lambda v: -v, x)
    (gx, gw) = tw.gradients(y, [x, w])
    halved = tw.while_loop(lambda v: v > 1.0, lambda v: v / w, x)
    (gh,) = tw.gradients(halved, [w])
    carry, rows = tw.scan(lambda c, r: (c + r * w, c), x, tw.constant([1.0, 2.0, 3.0]))
    session = ready()
    assert session.run([y, gx, gw], {x: 3.0}) == [6.0, 2.0, 3.0]
    assert session.run([y, gx, gw], {x: -3.0}) == [3.0, -1.0, 0.0]
    assert session.run([halved, gh], {x: 12.0}) == [0.75, -1.5]
    assert session.run(carry, {x: 1.0}) == 13.0
    assert session.run(rows, {x: 1.0}).tolist() == [1.0, 3.0, 7.0]
    many = session.run(halved, {x: 2.0**120})  # more iterations than there is room for at first
    assert many == 1.0


def test_writes_inside_a_branch_happen_if_it_is_taken_and_needed(graph):
    w = tw.Variable(1.0, name="w")
    p = tw.placeholder(tw.bool, [], name="p")
    y = tw.cond(p, lambda: w.assign_add(1.0), lambda: w * 10.0)
    later = w * 100.0
    session = ready()
    assert session.run(later) == 100.0
    assert session.run([y, later], {p: True}) == [2.0, 200.0]
    assert session.run([y, later], {p: False}) == [20.0, 200.0]
    assert session.run(w) == 2.0


def test_a_variable_is_not_made_inside_a_branch(graph):
    p = tw.placeholder(tw.bool, [], name="p")
    with pytest.raises(GraphError, match="inside a branch"):
        tw.cond(p, lambda: tw.Variable(1.0) * 1.0, lambda: tw.constant(1.0))


def test_random_numbers_are_new_in_each_run_and_the_same_in_each_session(graph):
    tw.set_random_seed(7)
    a, b = tw.rand(3), tw.randn(2)
    first, second = tw.Session(), tw.Session()
    runs = [first.run([a, b]) for _ in range(3)]
    assert len({np.asarray(x[0]).tobytes() for x in runs}) == 3
    again = [second.run([a, b]) for _ in range(3)]
    assert [np.asarray(x).tobytes() for run in runs for x in run] == [
        np.asarray(x).tobytes() for run in again for x in run
    ]


def test_random_numbers_are_those_of_the_eager_engine():
    dynamic.manual_seed(11)
    with tw.Graph().as_default():
        a, b, c = tw.rand(3), tw.randn(2), tw.nn.functional.dropout(tw.ones((8,)), 0.5)
        session = tw.Session()
        found = [session.run([a, b, c]), session.run([b]), session.run([c, a])]
    drawn = dynamic.random.get_rng_state()
    dynamic.manual_seed(11)
    one = [dynamic.rand(3), dynamic.randn(2), dynamic.nn.functional.dropout(dynamic.ones(8), 0.5)]
    two = [dynamic.randn(2)]
    three = [dynamic.rand(3), dynamic.nn.functional.dropout(dynamic.ones(8), 0.5)][::-1]
    for run, expected in zip(found, (one, two, three), strict=True):
        for x, y in zip(run, expected, strict=True):
            assert np.asarray(x).tobytes() == y.numpy().tobytes()
    dynamic.manual_seed(11)
    assert (dynamic.random.get_rng_state() == drawn).all()  # a session draws from a stream of its own


def test_a_run_draws_only_what_it_needs(graph):
    tw.set_random_seed(0)
    a = tw.rand(4)
    b = tw.rand(4)
    first, second = tw.Session(), tw.Session()
    assert first.run(b).tobytes() == second.run(a).tobytes()


def test_dropout_outside_of_a_block_draws_in_each_run():
    graph = tw.Graph()
    with graph.as_default():
        x = tw.placeholder(tw.float32, [64], name="x")
    y = tw.nn.Dropout(0.5)(x)
    z = tw.nn.functional.dropout(x)
    session = tw.Session(graph)
    ones = np.ones(64, np.float32)
    assert session.run(y, {x: ones}).tobytes() != session.run(y, {x: ones}).tobytes()
    assert session.run(z, {x: ones}).tobytes() != session.run(z, {x: ones}).tobytes()


def test_draws_inside_a_loop(graph):
    tw.set_random_seed(3)
    n = tw.placeholder(tw.int64, [], name="n")
    start = tw.constant(0), tw.constant(0.0)
    _, total = tw.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + tw.rand(())), start)
    after = tw.rand(())
    session = tw.Session()
    drawn = []
    generator = dynamic.Generator(3)
    for _ in range(7):
        with mode.activate_trace(None):
            drawn.append(dynamic.rand((), generator=generator).item())
    for k, first in ((2, 0), (3, 3)):
        found = session.run([total, after], {n: k})
        expected = np.float32(0)
        for x in drawn[first : first + k]:
            expected += np.float32(x)
        assert found == [expected, np.float32(drawn[first + k])]
