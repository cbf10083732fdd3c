"""Names, scopes, lookup and collections of a graph; expectations from TensorFlow 1's documentation of tf.Graph."""

import networkx as nx
import numpy as np
import pytest

import static as tw
from common.core.errors import ArgumentError, GraphError, MissingNameError


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


def test_operations_get_unique_names(graph):
    x = tw.placeholder(tw.float32, [2], name="x")
    assert [(x + 1.0).name, (x + 2.0).name, (x + x).name] == ["add:0", "add_1:0", "add_2:0"]
    assert [tw.constant(1.0, name="c").name, tw.constant(1.0, name="c").name] == ["c:0", "c_1:0"]


def test_a_name_that_was_given_out_as_unique_is_not_given_again(graph):
    names = [tw.constant(0.0, name=name).op.name for name in ("c", "c", "c_1", "c")]
    assert len(set(names)) == 4
    assert names[:2] == ["c", "c_1"]


def test_name_scopes_nest_and_are_unique(graph):
    with tw.name_scope("outer") as first:
        with tw.name_scope("inner"):
            a = tw.constant(1.0, name="c")
        b = tw.constant(1.0, name="c")
    with tw.name_scope("outer") as second:
        c = tw.constant(1.0, name="c")
    assert (first, second) == ("outer/", "outer_1/")
    assert [x.name for x in (a, b, c)] == ["outer/inner/c:0", "outer/c:0", "outer_1/c:0"]


def test_a_scope_that_ends_in_a_slash_is_entered_again(graph):
    with tw.name_scope("s") as scope:
        pass
    with tw.name_scope(scope):
        assert tw.constant(1.0, name="c").name == "s/c:0"


def test_a_name_must_be_a_name(graph):
    with pytest.raises(ArgumentError, match="not a valid name"):
        tw.constant(1.0, name="a b")


@pytest.mark.parametrize("name", [len, b"s", 3, ["s"]])
def test_a_name_that_is_no_text_is_refused(graph, name):
    uses = [
        lambda: tw.name_scope(name).__enter__(), lambda: graph.unique_name(name), lambda: tw.constant(1.0, name=name),
        lambda: tw.placeholder(tw.float32, [2], name=name), lambda: tw.Variable(1.0, name=name),
        lambda: tw.no_op(name=name),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ArgumentError, match=f"'name' must be str, not {type(name).__name__}"):
            use()
    with tw.name_scope("s"):
        assert tw.constant(1.0, name="c").name == "s/c:0"


def test_lookup_by_name(graph):
    x = tw.placeholder(tw.float32, [None], name="x")
    y = tw.identity(x * 2.0, name="y")
    w = tw.Variable(1.0, name="w")
    assert graph.get_tensor_by_name("y:0") is y
    assert graph.get_tensor_by_name("w:0") is w
    assert graph.get_operation_by_name("x") is x.op
    assert graph.as_graph_element("y") is y.op
    assert y.op.outputs[0] is y
    assert [op.name for op in graph.get_operations()[:1]] == ["x"]
    assert y.op.inputs[0].op.inputs[0] is x


@pytest.mark.parametrize(
    ("name", "error"),
    [("nothing:0", MissingNameError), ("x:1", MissingNameError), ("x", ArgumentError), ("x:y", ArgumentError)],
)
def test_a_tensor_that_does_not_exist(graph, name, error):
    tw.placeholder(tw.float32, [1], name="x")
    with pytest.raises(error):
        graph.get_tensor_by_name(name)


def test_a_missing_operation_is_a_key_error_that_knows_others(graph):
    with tw.name_scope("s"):
        tw.constant(1.0, name="c")
    with pytest.raises(KeyError, match="there is 's/c'"):
        graph.get_operation_by_name("c")


def test_default_graphs_are_a_stack():
    outer, inner = tw.Graph(), tw.Graph()
    before = tw.get_default_graph()
    with outer.as_default():
        with inner.as_default():
            assert tw.get_default_graph() is inner
            x = tw.constant(1.0)
        assert tw.get_default_graph() is outer
        y = tw.constant(1.0)
    assert tw.get_default_graph() is before
    assert x.graph is inner
    assert y.graph is outer


def test_without_a_block_there_is_one_graph_of_the_process():
    tw.reset_default_graph()
    x = tw.placeholder(tw.float32, [2], name="x")
    w = tw.Variable([1.0, 2.0])
    y = tw.tanh(x * w).sum() + tw.nn.functional.softmax(x, dim=0)[0]
    assert y.graph is tw.get_default_graph()
    session = tw.Session()
    session.run(tw.global_variables_initializer())
    given = np.array([0.5, -1.0], np.float32)
    e = np.exp(given.astype(np.float64))
    expected = np.tanh(given * [1.0, 2.0]).sum() + e[0] / e.sum()
    np.testing.assert_allclose(session.run(y, {x: given}), expected, rtol=1e-6)
    old = tw.get_default_graph()
    tw.reset_default_graph()
    assert tw.get_default_graph() is not old


def test_reset_inside_a_block_is_refused(graph):
    with pytest.raises(GraphError, match="leave the block"):
        tw.reset_default_graph()


def test_collections(graph):
    w = tw.Variable(1.0, name="layer/w")
    step = tw.Variable(0, name="step", trainable=False)
    assert [v.name for v in tw.global_variables()] == [w.name, step.name] == ["layer/w:0", "step:0"]
    assert [v.name for v in tw.trainable_variables()] == ["layer/w:0"]
    assert [v.name for v in tw.get_collection(tw.GraphKeys.GLOBAL_VARIABLES, scope="layer")] == ["layer/w:0"]
    tw.add_to_collection("losses", 3)
    assert tw.get_collection("losses") == [3]
    assert tw.get_collection("nothing") == []


def test_a_finalized_graph_takes_nothing(graph):
    x = tw.placeholder(tw.float32, [1], name="x")
    y = x + 1.0
    graph.finalize()
    assert graph.finalized
    builds = [lambda: x + 2.0, lambda: tw.constant(1.0), lambda: tw.placeholder(tw.float32, [1])]
    for build in (*builds, tw.no_op, lambda: tw.Variable(1.0)):
        with pytest.raises(GraphError, match=r"test_names\.py:\d+ in .*finalized and cannot be modified"):
            build()
    assert tw.Session(graph).run(y, {x: [1.0]}) == [2.0]


def test_get_variable_shares_by_scope(graph):
    with tw.variable_scope("layer"):
        w = tw.get_variable("w", [2, 3])
        with pytest.raises(GraphError, match=r"'layer/w' exists already, made at .*test_names\.py:\d+"):
            tw.get_variable("w", [2, 3])
    with tw.variable_scope("layer", reuse=True):
        assert tw.get_variable("w", [2, 3]) is w
        with pytest.raises(GraphError, match="does not exist"):
            tw.get_variable("b", [3])
        with pytest.raises(ValueError, match=r"has shape \(2, 3\)"):
            tw.get_variable("w", [3, 2])
    with tw.variable_scope("layer", reuse=tw.AUTO_REUSE):
        assert tw.get_variable("w") is w
        b = tw.get_variable("b", [3], initializer=lambda shape, dtype: np.full(shape, 2.0, dtype))
    assert (w.name, b.name) == ("layer/w:0", "layer/b:0")
    session = tw.Session()
    session.run(tw.global_variables_initializer())
    values = session.run([w, b])
    assert values[0].shape == (2, 3)
    assert (np.abs(values[0]) <= np.sqrt(6 / 5)).all()
    assert len(np.unique(values[0])) == 6
    assert (values[1] == 2.0).all()


def test_operations_inside_a_variable_scope_have_its_name(graph):
    with tw.variable_scope("a"), tw.variable_scope("b"):
        assert tw.get_variable("v", [1]).name == "a/b/v:0"
        assert tw.constant(0.0, name="c").name == "a/b/c:0"


def test_text_networkx_and_picture(graph):
    x = tw.placeholder(tw.float32, [None, 2], name="x")
    w = tw.Variable(np.ones((2, 1), np.float32), name="w")
    with tw.control_dependencies([w.initializer]):
        tw.identity(x @ w, name="y")
    text = graph.as_graph_def()
    lines = {line.partition(" = ")[0]: line for line in text.splitlines()}
    assert set(lines) == {op.name for op in graph.get_operations()}
    assert "y = clone(mm:0, ^w/Assign) -> float32[x.shape[0]=97, 1]" in lines["y"]
    assert "test_names.py:" in lines["w"]
    assert nx.is_directed_acyclic_graph(graph.dag)
    assert {data["op"] for _, data in graph.dag.nodes(data=True)} >= {"input", "mm", "assign", "clone"}
    assert "mm" in str(graph.picture)
    graph.group(name="nothing")
    assert "nothing = group()" in graph.as_graph_def()


def test_open_sizes_are_shown_as_such():
    with tw.Graph().as_default():
        assert "<tensor 'x:0' float32[?, 3], made at" in repr(tw.placeholder(tw.float32, [None, 3], name="x"))
