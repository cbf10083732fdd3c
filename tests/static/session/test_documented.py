"""Examples and promises of TensorFlow 1's documentation: tf.Graph, tf.Session, tf.gradients, tf.Variable."""

import numpy as np
import pytest

import static as tw
from common.core.errors import ArgumentError, GraphError, SessionError


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


def run(fetches, feeds=None):
    session = tw.Session()
    session.run(tw.global_variables_initializer())
    return session.run(fetches, feeds)


def test_name_scopes_as_in_the_example_of_tf_graph_name_scope(graph):
    names = [tw.constant(5.0, name="c").op.name, tw.constant(6.0, name="c").op.name]
    with graph.name_scope("nested") as scope:
        names.append(tw.constant(10.0, name="c").op.name)
        with graph.name_scope("inner"):
            names.append(tw.constant(20.0, name="c").op.name)
        with graph.name_scope("inner"):
            names.append(tw.constant(30.0, name="c").op.name)
            with graph.name_scope(scope):
                names.append(tw.constant(40.0, name="d").op.name)
                with graph.name_scope(""):
                    names.append(tw.constant(50.0, name="e").op.name)
    assert names == ["c", "c_1", "nested/c", "nested/inner/c", "nested/inner_1/c", "nested/d", "e"]


def test_stop_gradients_as_in_the_example_of_tf_gradients(graph):
    a = tw.constant(0.0)
    b = 2.0 * a
    assert run(tw.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert run(tw.gradients(a + b, [a, b])) == [3.0, 1.0]


def test_what_is_behind_a_stopped_tensor_gets_nothing_through_it(graph):
    x = tw.placeholder(tw.float32, [2], name="x")
    w = tw.Variable([3.0, 5.0], name="w")
    h = x * w
    y = tw.tanh(h) * w + h * h
    through, none = tw.gradients(y, [w, x], stop_gradients=h)
    assert none is None, "x reaches y through h only"
    given = np.array([0.1, -0.2], np.float32)
    np.testing.assert_allclose(run(through, {x: given}), np.tanh(given * [3, 5]), rtol=1e-6)
    zero = tw.gradients(y, x, stop_gradients=[h], unconnected_gradients="zero")
    assert run(zero, {x: given})[0].tolist() == [0.0, 0.0]
    last, rows = tw.scan(lambda c, v: (c + v, c * v), 0.0, x)
    for one in (last, rows):
        with pytest.raises(ArgumentError, match=r"one of several results of Scan.*use identity\(\)"):
            tw.gradients(last + rows.sum(), x, stop_gradients=one)
    own = tw.identity(last)
    assert tw.gradients(own, x, stop_gradients=own) == [None]
    with pytest.raises(ArgumentError, match='"none" or "zero"'):
        tw.gradients(y, x, unconnected_gradients="maybe")


def test_grad_ys_begin_the_sum_and_none_stands_for_ones(graph):
    x = tw.constant([1.0, 2.0])
    y, z = x * x, 3.0 * x
    assert run(tw.gradients([y, z], x, grad_ys=[[10.0, 100.0], None]))[0].tolist() == [23.0, 403.0]
    with pytest.raises(ArgumentError, match="2 tensors and 1 grad_ys"):
        tw.gradients([y, z], x, grad_ys=[None])


def test_gradients_are_none_where_there_is_no_path(graph):
    x, other = tw.constant(1.0), tw.constant(2.0)
    assert tw.gradients(x * 2.0, other) == [None]
    assert tw.gradients(x.detach() * 2.0, x) == [None]
    assert run(tw.gradients(x * 2.0, [other], unconnected_gradients="zero")) == [0.0]


def test_control_dependencies_of_both_blocks_hold_and_none_clears(graph):
    count = tw.Variable(0, name="count")
    one, two = count.assign_add(1), count.assign_add(10)
    with graph.control_dependencies([one]), graph.control_dependencies([two]):
        both = tw.no_op()
        with graph.control_dependencies(None):
            neither = tw.no_op()
        again = tw.no_op()
    session = tw.Session()
    found = []
    for op in (both, neither, again):
        session.run(count.initializer)
        session.run(op)
        found.append(int(session.run(count)))
    assert found == [11, 0, 11]
    assert {x.name for x in both.control_inputs} == {one.op.name, two.op.name}
    assert neither.control_inputs == ()


def test_a_tensor_that_is_returned_inside_a_block_does_not_wait_as_the_documentation_warns(graph):
    flag = tw.Variable(0)
    mark = flag.assign_add(1)
    x = tw.constant(2.0)
    outside = x * 3.0
    with tw.control_dependencies([mark]):
        wrong, right = outside, x * 3.0
    session = tw.Session()
    session.run(flag.initializer)
    assert session.run(wrong) == 6.0
    assert session.run(flag) == 0
    assert session.run(right) == 6.0
    assert session.run(flag) == 1


def test_the_result_of_an_assign_holds_the_new_value_and_later_reads_see_it(graph):
    v = tw.Variable(1.0)
    early = v.read_value()
    new = v.assign(5.0)
    late = v.read_value()
    with tw.control_dependencies([new]):
        waits = v.read_value()
    session = tw.Session()
    session.run(v.initializer)
    assert session.run([early, late]) == [1.0, 1.0], "nothing asked for the assign"
    assert session.run([early, new, late, waits]) == [1.0, 5.0, 5.0, 5.0]
    assert session.run(new + 1.0) == 6.0
    twice = v.assign_add(1.0) * v.assign_add(1.0)
    session.run(v.initializer)
    assert session.run(twice) == 6.0


def test_any_tensor_may_be_fed_a_constant_and_an_intermediate_result_too(graph):
    a = tw.constant(5.0)
    b = a * 2.0
    c = b + 1.0
    assert run([a, b, c], {b: 20.0}) == [5.0, 20.0, 21.0]
    assert run([a, b, c], {a: 1.0}) == [1.0, 2.0, 3.0]
    assert run({"x": [c, (b.op, {"y": a})]}, {c: 0.0}) == {"x": [0.0, (None, {"y": 5.0})]}


def test_a_run_of_an_initializer_that_reads_another_variable_needs_that_one(graph):
    first = tw.Variable([1.0, 2.0], name="first")
    second = tw.Variable(first * 2.0, name="second")
    session = tw.Session()
    with pytest.raises(SessionError, match=r"uninitialized value 'first:0' \(made at .*test_documented\.py"):
        session.run(second.initializer)
    session.run(first.initializer)
    session.run(second.initializer)
    assert session.run(second).tolist() == [2.0, 4.0]


def test_a_session_knows_nothing_of_what_another_one_has_written(graph):
    v = tw.Variable(0.0)
    up = v.assign_add(1.0)
    one, two = tw.Session(), tw.Session()
    one.run(v.initializer)
    one.run(up)
    with pytest.raises(SessionError, match="uninitialized"):
        two.run(up)
    two.run(v.initializer)
    assert [one.run(up), two.run(up)] == [2.0, 1.0]


def test_names_that_nothing_has_are_value_errors_of_run(graph):
    tw.constant(1.0, name="c")
    session = tw.Session()
    assert session.run("c:0") == 1.0
    for wrong in ("d", "d:0", "c:1"):
        with pytest.raises(ValueError, match=r"'[cd](:1)?'"):
            session.run(wrong)


def test_a_finalized_graph_runs_but_does_not_grow(graph):
    x = tw.placeholder(tw.float32, [])
    y = x * 2.0
    graph.finalize()
    assert graph.finalized
    with tw.Session(graph) as session:
        assert session.run(y, {x: 2.0}) == 4.0
        assert session.make_callable(y, [x])(3.0) == 6.0
    for build in (lambda: tw.gradients(y, x), lambda: tw.group(y), lambda: x + 1.0):
        with pytest.raises(GraphError, match="finalized"):
            build()


def test_collections_are_lists_by_name(graph):
    tw.add_to_collection("a", 1)
    tw.add_to_collection("a", 1)
    copy = tw.get_collection("a")
    copy.append(2)
    assert tw.get_collection("a") == [1, 1], "a copy, and nothing is made unique"
    graph.get_collection_ref("a").append(3)
    assert tw.get_collection("a") == [1, 1, 3]
    assert graph.get_all_collection_keys() == ["a"]
    graph.clear_collection("a")
    assert tw.get_collection("a") == []
    assert graph.get_all_collection_keys() == []
