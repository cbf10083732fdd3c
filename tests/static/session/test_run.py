"""Fetching, feeding and what is refused; expectations from TensorFlow 1's documentation of tf.Session.run."""

from collections import namedtuple

import numpy as np
import pytest

import dynamic
import static as tw
from common.core.errors import ArgumentError, DTypeError, GraphError, SessionError, ShapeError

pytestmark = pytest.mark.quick

EAGER = dynamic.tensor(0.5)
Pair = namedtuple("Pair", ["first", "second"])


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("interpret", [False, True])
def test_fetches_nest_as_they_are_asked_for(graph, interpret):
    a, b = tw.constant([1.0, 2.0], name="a"), tw.constant(3.0, name="b")
    session = tw.Session(interpret=interpret)
    for _ in range(2):  # the second run is the short way
        assert session.run(b) == 3.0
        one = session.run([a])
        assert type(one) is list
        assert one[0].tolist() == [1.0, 2.0]
        found = session.run({"a": a, "more": (b, [a, b.op, Pair(b, a)]), "again": a, "name": "b:0"})
        assert found["a"].tolist() == found["again"].tolist() == [1.0, 2.0]
        assert not np.may_share_memory(found["a"], found["again"])
        b1, (a1, nothing, pair) = found["more"]
        assert type(found["more"]) is tuple
        assert type(pair) is Pair
        assert (float(b1), nothing, float(pair.first), float(found["name"])) == (3.0, None, 3.0, 3.0)
        assert a1.tolist() == pair.second.tolist() == [1.0, 2.0]
        assert session.run(b.op) is None
        assert session.run(Pair(a, b)).second == 3.0
        assert session.run([]) == []
        assert session.run([a, a])[1].tolist() == [1.0, 2.0]


def test_what_is_fetched_is_a_fresh_array(graph):
    w = tw.Variable([1.0, 2.0])
    c = tw.constant([1.0, 2.0])
    session = tw.Session()
    session.run(w.initializer)
    for x in (w, c):
        session.run(x)[...] = 7.0
        assert session.run(x).tolist() == [1.0, 2.0]


def test_arrays_are_copied_into_the_graph(graph):
    given = np.array([1.0, 2.0], np.float32)
    y, c, v = tw.constant([1.0, 1.0]) + given, tw.constant(given), tw.Variable(given)
    given[...] = 9.0
    session = tw.Session()
    session.run(v.initializer)
    assert [x.tolist() for x in session.run([y, c, v])] == [[2.0, 3.0], [1.0, 2.0], [1.0, 2.0]]


def test_any_tensor_can_be_fed(graph):
    x = tw.placeholder(tw.float32, [None], name="x")
    h = x * 2.0
    y = h + 1.0
    c = tw.constant([10.0])
    w = tw.Variable([5.0])
    z = y * c + w
    session = tw.Session()
    assert session.run(y, {x: [1.0, 2.0]}).tolist() == [3.0, 5.0]
    assert session.run(y, {h: [1.0, 2.0, 3.0]}).tolist() == [2.0, 3.0, 4.0]
    assert session.run(y, {"x:0": [1.0]}).tolist() == [3.0]
    assert session.run(z, {y: [1.0], c: [4.0], w: [0.5]}).tolist() == [4.5]
    assert session.run([y, h], {h: [1.0]})[1].tolist() == [1.0]
    assert session.run(y, {y: [8.0]}).tolist() == [8.0]


def test_feeding_one_result_of_an_operation_that_has_several(graph):
    x = tw.placeholder(tw.float32, [4], name="x")
    first, second = tw.split(x, 2)
    session = tw.Session()
    total = first + second
    assert session.run(total, {x: [1, 2, 3, 4], first: [10, 20]}).tolist() == [13.0, 24.0]


def test_placeholder_with_default(graph):
    base = tw.constant([[1.0, 2.0], [3.0, 4.0]])
    x = tw.placeholder_with_default(base, [None, 2], name="x")
    y = x.sum(dim=1)
    session = tw.Session()
    assert session.run(y).tolist() == [3.0, 7.0]
    assert session.run(y, {x: [[1.0, 1.0]]}).tolist() == [2.0]
    assert session.run(y, {x: np.ones((5, 2))}).tolist() == [2.0] * 5
    assert session.run(y, {base: [[1.0, 1.0], [2.0, 2.0]]}).tolist() == [2.0, 4.0]
    with pytest.raises(ShapeError, match="does not fit"):
        tw.placeholder_with_default(base, [3, 2])


def test_only_what_is_needed_is_run(graph):
    x, y = tw.placeholder(tw.float32, [1], name="x"), tw.placeholder(tw.float32, [1], name="y")
    a, _ = x + 1.0, y + 1.0
    assert tw.Session().run(a, {x: [1.0]}).tolist() == [2.0]


def test_an_unfed_placeholder_is_named_with_its_line_and_who_needs_it(graph):
    x = tw.placeholder(tw.float32, [None, 3], name="x")
    y = tw.identity(x.sum(), name="y")
    with pytest.raises(SessionError, match=r"must feed .*'x:0' .*test_run\.py:\d+.*'sum'.*test_run\.py:\d+"):
        tw.Session().run(y)
    with pytest.raises(SessionError, match="'x:0'"):
        tw.Session().run(x)


def test_a_wrong_shape_is_refused_with_name_and_line(graph):
    x = tw.placeholder(tw.float32, [None, 3], name="x")
    session = tw.Session()
    y = x + 1.0
    session.run(y, {x: np.ones((2, 3))})
    for wrong in (np.ones((2, 4)), np.ones(3), np.ones((1, 2, 3)), 1.0):
        with pytest.raises(ValueError, match=r"cannot feed .*shape .*'x:0'.*test_run\.py:\d+.*\(\?, 3\)"):
            session.run(y, {x: wrong})
    assert session.run(y, {x: np.ones((2, 3))}).shape == (2, 3)


def test_a_wrong_dtype_is_refused_with_name_and_line(graph):
    x = tw.placeholder(tw.int32, [2], name="x")
    session = tw.Session()
    for wrong in ([0.5, 1.0], np.ones(2), ["a", "b"], np.ones(2, complex), [2**40, 0]):
        with pytest.raises(DTypeError, match=r"cannot feed .*'x:0'.*test_run\.py:\d+"):
            session.run(x, {x: wrong})
    assert session.run(x, {x: [1, 2]}).dtype == np.int32
    with pytest.raises(ArgumentError, match="'x:0'"):
        session.run(x, {x: [[1, 2], [3]]})
    f = tw.placeholder(tw.float32, [], name="f")
    assert session.run(f, {f: 2}) == 2.0
    assert session.run(f, {f: np.float64(0.5)}).dtype == np.float32
    assert session.run(f, {f: EAGER}) == 0.5


def test_arrays_of_any_layout_can_be_fed(graph):
    x = tw.placeholder(tw.float32, [3, 2], name="x")
    y = x * 2.0
    session = tw.Session()
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        assert (session.run(y, {x: given.T}) == given.T * 2).all()
        assert (session.run(y, {x: given.T.astype(">f4")}) == given.T * 2).all()
        assert (session.run(y, {x: given.T.tolist()}) == given.T * 2).all()


def test_what_cannot_be_fetched_or_fed(graph):
    x = tw.placeholder(tw.float32, [1], name="x")
    session = tw.Session()
    for wrong in (3, None, [None, 3], object()):
        with pytest.raises(TypeError):
            session.run(wrong)
    with pytest.raises(KeyError, match="no operation 'q'"):
        session.run("q")
    with pytest.raises(TypeError, match="no tensor"):
        session.run(x, {3: [1.0]})
    with pytest.raises(TypeError, match="cannot be fed"):
        session.run(x, {x.op: [1.0]})
    with pytest.raises(TypeError, match="cannot be a tensor of a graph"):
        session.run(x, {x: x})
    endless = []
    endless.append(endless)
    with pytest.raises(ArgumentError, match="contain themselves"):
        session.run(endless)


def test_another_graphs_tensors_are_refused(graph):
    with tw.Graph().as_default():
        other = tw.placeholder(tw.float32, [1], name="other")
    x = tw.placeholder(tw.float32, [1], name="x")
    session = tw.Session()
    with pytest.raises(ValueError, match=r"'other:0' .*test_run\.py:\d+.* not an element of this graph"):
        session.run(other)
    with pytest.raises(GraphError, match="'other:0'"):
        session.run(x, {other: [1.0]})
    for build in (lambda: x + other, lambda: tw.maximum(x, other), lambda: other.sum()):
        with pytest.raises(GraphError, match=r"'other:0'.*test_run\.py:\d+"):
            build()


def test_a_function_that_is_traced_refuses_tensors_of_a_graph():
    graph = tw.Graph()
    with graph.as_default():
        x = tw.placeholder(tw.float32, [1], name="x")
    kept = []

    @tw.function
    def f(y):
        kept.append(x)
        return y + x

    with pytest.raises(GraphError, match="'x:0'"):
        f(np.ones(1, np.float32))
    with pytest.raises(GraphError, match="'x:0'"):
        tw.function(lambda y: y + 1)(x)


def test_a_traced_function_inside_a_block_adds_its_operations(graph):
    double = tw.function(lambda x: x * 2.0)
    x = tw.placeholder(tw.float32, [1], name="x")
    assert tw.Session().run(double(x), {x: [2.0]}) == [4.0]


def test_a_closed_session(graph):
    x = tw.constant(1.0)
    session = tw.Session()
    call = session.make_callable(x)
    assert session.run(x) == call() == 1.0
    session.close()
    assert hasattr(session, "__enter__")  # whoever only looks is refused nothing
    for use in (lambda: session.run(x), call, session.__enter__):
        with pytest.raises(RuntimeError, match="closed Session"):
            use()
    with pytest.raises(SessionError, match="closed Session"), session:
        pass
    with tw.Session() as inside:
        inside.run(x)
    with pytest.raises(SessionError, match="closed Session"):
        inside.run(x)


def test_the_default_session(graph):
    x = tw.placeholder(tw.float32, [], name="x")
    y = x * 2.0
    with pytest.raises(SessionError, match="no default session"):
        y.eval({x: 1.0})
    session = tw.Session()
    assert y.eval({x: 1.0}, session) == 2.0
    with session.as_default():
        assert tw.get_default_session() is session
        assert y.eval({x: 3.0}) == 6.0
        w = tw.Variable(2.0)
        w.initializer.run()
        assert w.eval() == 2.0
    assert tw.get_default_session() is None
    assert session.run(y, {x: 1.0}) == 2.0  # that block closes nothing
    with tw.Graph().as_default(), tw.Session(), pytest.raises(SessionError, match="another graph"):
        y.eval({x: 1.0})


def test_an_interactive_session_is_the_default_until_it_is_closed():
    graph = tw.Graph()
    before = tw.get_default_graph()
    session = tw.InteractiveSession(graph)
    try:
        assert tw.get_default_graph() is graph
        assert (tw.constant(2.0) * 3.0).eval() == 6.0
    finally:
        session.close()
    assert tw.get_default_graph() is before
    assert tw.get_default_session() is None


def test_make_callable(graph):
    x, y = tw.placeholder(tw.float32, [None], name="x"), tw.placeholder(tw.float32, [], name="y")
    session = tw.Session()
    call = session.make_callable([x * y, x.sum()], [x, y])
    for n in (2, 3, 3, 1, 2):
        product, total = call(np.ones(n, np.float32), 2.0)
        assert product.tolist() == [2.0] * n
        assert total == n
    with pytest.raises(ArgumentError, match="takes 2 values, got 1"):
        call([1.0])
    with pytest.raises(ShapeError, match="'x:0'"):
        call(1.0, 2.0)
    assert session.make_callable({"a": x}, [x])([1.0])["a"].tolist() == [1.0]


def test_sessions_of_one_graph_share_what_is_compiled(graph):
    x = tw.placeholder(tw.float32, [2], name="x")
    y = x + 1.0
    for _ in range(3):
        tw.Session().run(y, {x: [1.0, 2.0]})
    assert len(graph.compiled) == 1


def test_elements_are_not_there_while_a_graph_is_built(graph):
    x = tw.placeholder(tw.float32, [], name="x")
    for use in (lambda: bool(x > 0), lambda: float(x), x.item, x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="exist only in a run"):
            use()


def test_a_failed_run_changes_no_variable(graph):
    w = tw.Variable([1.0, 2.0], name="w")
    i = tw.placeholder(tw.int64, [1], name="i")
    up = w.assign_add([1.0, 1.0])
    picked = tw.index_select(up, 0, i)
    session = tw.Session()
    session.run(w.initializer)
    with pytest.raises(IndexError, match=r"test_run\.py:\d+"):
        session.run([picked, up], {i: [7]})
    assert session.run(w).tolist() == [1.0, 2.0]
    assert session.run([picked, up], {i: [1]})[0].tolist() == [3.0]
