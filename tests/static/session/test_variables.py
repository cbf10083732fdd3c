"""Variables, the order of reads and writes, and control dependencies; expectations from TensorFlow 1's documentation
of tf.Variable and tf.control_dependencies, and from the order that docs/session.md defines where that has none."""

import numpy as np
import pytest

import dynamic
import static as tw
from common.core.errors import DTypeError, GraphError, SessionError, ShapeError

pytestmark = pytest.mark.quick


@pytest.fixture
def graph():
    with tw.Graph().as_default() as made:
        yield made


def ready():
    session = tw.Session()
    session.run(tw.global_variables_initializer())
    return session


def test_an_uninitialised_variable_is_named_with_its_line(graph):
    w = tw.Variable([1.0], name="w")
    y = w * 2.0
    session = tw.Session()
    for use in (w, y, w.assign_add([1.0])):
        with pytest.raises(SessionError, match=r"uninitialized value 'w:0' \(made at .*test_variables\.py:\d+\)"):
            session.run(use)
    session.run(w.initializer)
    assert session.run(y) == 2.0
    assert tw.Session().run(w.assign([5.0])) == 5.0  # a write needs no value


def test_sessions_have_values_of_their_own(graph):
    w = tw.Variable(0, name="w")
    up = w.assign_add(1)
    first, second = ready(), ready()
    assert [first.run(up) for _ in range(3)] == [1, 2, 3]
    assert second.run(up) == 1
    assert (first.run(w), second.run(w)) == (3, 1)
    first.run(w.initializer)
    assert (first.run(w), second.run(w)) == (0, 1)


def test_initial_values(graph):
    values = {
        "list": tw.Variable([1.0, 2.0]),
        "int": tw.Variable(3),
        "double": tw.Variable([1.0], dtype=tw.float64),
        "array": tw.Variable(np.arange(3, dtype=np.int32)),
        "tensor": tw.Variable(tw.constant([2.0]) * 3.0),
        "function": tw.Variable(lambda: tw.zeros((2,)) + 1.0),
    }
    found = ready().run(values)
    assert {name: x.dtype.name for name, x in found.items()} == {
        "list": "float32", "int": "int64", "double": "float64", "array": "int32", "tensor": "float32",
        "function": "float32",
    }  # fmt: skip
    assert found["tensor"] == 6.0
    assert found["function"].tolist() == [1.0, 1.0]


def test_a_variable_initialised_by_another_one(graph):
    a = tw.Variable(2.0, name="a")
    b = tw.Variable(a * 3.0, name="b")
    session = ready()
    assert session.run([a, b]) == [2.0, 6.0]
    session.run(tw.assign(a, 5.0))
    session.run(tw.variables_initializer([b]))
    assert session.run(b) == 15.0


def test_the_shape_of_a_variable_is_known(graph):
    x = tw.placeholder(tw.float32, [None], name="x")
    with pytest.raises(ShapeError, match="'w': its initial value has the size"):
        tw.Variable(x * 2.0, name="w")


def test_assign_returns_the_new_value(graph):
    w = tw.Variable([1.0, 2.0], name="w")
    to, add, sub = tw.assign(w, [5.0, 6.0]), tw.assign_add(w, [1.0, 1.0]), w.assign_sub([2.0, 2.0])
    session = ready()
    assert session.run(to).tolist() == [5.0, 6.0]
    assert session.run(add).tolist() == [6.0, 7.0]
    assert session.run(sub).tolist() == [4.0, 5.0]
    assert session.run(w).tolist() == [4.0, 5.0]
    assert [x.op.name for x in (to, add, sub)] == ["w/Assign_1", "w/AssignAdd", "w/AssignSub"]


def test_assign_checks_shape_and_dtype(graph):
    w = tw.Variable([1, 2], name="w")
    with pytest.raises(ShapeError, match=r"shape \(3,\) cannot be assigned to <variable 'w:0'"):
        w.assign([1, 2, 3])
    with pytest.raises(DTypeError, match="'w:0'"):
        w.assign([0.5, 1.0])
    with pytest.raises(DTypeError, match="float32 cannot be assigned"):
        w.assign(tw.constant([0.5, 1.0]))
    with pytest.raises(TypeError, match="writes to a Variable"):
        tw.assign(tw.constant(1.0), 2.0)


def test_operations_run_in_the_order_in_which_they_were_made(graph):
    w = tw.Variable(1.0, name="w")
    before = w * 10.0
    up = w.assign_add(1.0)
    between = w * 10.0
    double = w.assign(w * 2.0)
    after = w * 10.0
    session = ready()
    assert session.run([after, double, between, up, before]) == [40.0, 4.0, 20.0, 2.0, 10.0]
    assert session.run([before, between, after]) == [40.0, 40.0, 40.0]  # nothing is written unless it is asked for
    assert session.run([before, up]) == [40.0, 5.0]
    assert session.run([between, double]) == [50.0, 10.0]


def test_two_variables_change_places(graph):
    a, b = tw.Variable([1.0, 2.0]), tw.Variable([3.0, 4.0])
    old = tw.identity(a)
    swap = tw.group(a.assign(b), b.assign(old))
    session = ready()
    session.run(swap)
    assert [x.tolist() for x in session.run([a, b])] == [[3.0, 4.0], [1.0, 2.0]]
    session.run(swap)
    assert [x.tolist() for x in session.run([a, b])] == [[1.0, 2.0], [3.0, 4.0]]


def test_control_dependencies_run_what_is_not_fetched(graph):
    w = tw.Variable(1.0)
    up = w.assign_add(1.0)
    with tw.control_dependencies([up]):
        read, plain = tw.identity(w), w.read_value()
    outside = tw.identity(w)
    session = ready()
    assert session.run(read) == 2.0
    assert session.run(plain) == 3.0
    assert session.run(outside) == 3.0
    assert session.run([outside, read]) == [4.0, 4.0]
    assert read.op.control_inputs == (up.op,)


def test_a_tensor_made_outside_does_not_wait(graph):
    w = tw.Variable(1.0)
    y = w * 10.0
    with tw.control_dependencies([w.assign_add(1.0)]):
        kept = y  # no operation is made here
    session = ready()
    assert session.run(kept) == 10.0
    assert session.run(w) == 1.0


def test_control_dependencies_nest_and_none_forgets_them(graph):
    a, b = tw.Variable(0), tw.Variable(0)
    with tw.control_dependencies([a.assign_add(1)]):
        with tw.control_dependencies([b.assign_add(1)]):
            both = tw.no_op()
            with tw.control_dependencies(None):
                none = tw.no_op()
        one = tw.no_op()
    session = ready()
    for op, expected in ((both, [1, 1]), (one, [2, 1]), (none, [2, 1])):
        session.run(op)
        assert session.run([a, b]) == expected
    assert len(both.control_inputs) == 2


def test_group_and_no_op(graph):
    a, b = tw.Variable(0), tw.Variable(0)
    both = tw.group(a.assign_add(1), b.assign_add(2), name="both")
    session = ready()
    assert session.run(both) is None
    assert session.run([a, b, both]) == [1, 2, None]
    assert session.run([a, b]) == [2, 4]
    assert session.run(tw.no_op()) is None
    assert both.name == "both"
    assert both.type == "group"
    assert len(both.control_inputs) == 2


def test_a_cycle_is_refused_with_names_and_lines(graph):
    a = tw.constant(1.0, name="a")
    b = tw.identity(a * 2.0, name="b")
    c = tw.no_op(name="c")
    with pytest.raises(GraphError, match=r"a cycle: .*b \(.*test_variables\.py:\d+\) <- .*mul .* <- a"):
        a.op.add_control_input(b)
    with pytest.raises(GraphError, match="a cycle"):
        c.add_control_input(c)
    with pytest.raises(GraphError, match="made later"):
        a.op.add_control_input(c)


def test_a_control_input_that_is_added_later_is_run(graph):
    w = tw.Variable(0)
    up = w.assign_add(1)
    c = tw.constant(1.0)
    session = ready()
    session.run(c)
    assert session.run(w) == 0
    c.op.add_control_input(up)
    session.run(c)
    assert session.run(w) == 1


def test_feeding_a_write_leaves_it_out(graph):
    w = tw.Variable(1.0)
    up = w.assign_add(1.0)
    y = up * 10.0
    session = ready()
    assert session.run(y, {up: 7.0}) == 70.0
    assert session.run(w) == 1.0
    assert session.run([y, w], {w: 4.0}) == [50.0, 4.0]
    assert session.run(w) == 5.0
    later = w * 100.0  # another read of the variable
    assert session.run([later, w], {w: 3.0}) == [300.0, 3.0]
    assert session.run([later, up], {w: 3.0}) == [400.0, 4.0]


def test_a_write_in_place_is_refused(graph):
    w = tw.Variable([1.0])
    with tw.no_grad(), pytest.raises(GraphError, match="assign"):
        w.add_(1.0)
    with pytest.raises(RuntimeError, match="in-place"):
        w.add_(1.0)


def test_load_and_values(graph):
    w = tw.Variable([1.0, 2.0], name="w")
    y = w * 2.0
    session = tw.Session()
    session.load({w: [3.0, 4.0]})
    assert session.run(y).tolist() == [6.0, 8.0]
    with session.as_default():
        w.load([5.0, 6.0])
    assert session.run(y).tolist() == [10.0, 12.0]
    with pytest.raises(ShapeError, match="'w:0'"):
        session.load({w: [1.0]})


def test_parameters_and_buffers_share_their_memory_with_the_graph():
    linear = dynamic.nn.Linear(2, 1)
    graph = tw.Graph()
    x = np.ones((3, 2), np.float32)
    with graph.as_default():
        given = tw.placeholder(tw.float32, [None, 2])
        y = linear(given)
    session = tw.Session(graph)
    for scale in (1.0, 2.0):
        with dynamic.no_grad():
            linear.weight.mul_(scale)
        assert (session.run(y, {given: x}) == linear(dynamic.tensor(x)).detach().numpy()).all()


def test_a_module_may_be_made_inside_a_block():
    dynamic.manual_seed(4)
    expected = dynamic.nn.Sequential(dynamic.nn.Linear(2, 3), dynamic.nn.Embedding(4, 2))
    dynamic.manual_seed(4)
    with tw.Graph().as_default() as graph:
        model = tw.nn.Sequential(tw.nn.Linear(2, 3), tw.nn.Embedding(4, 2))
        assert graph.get_operations() == []
        optimizer = tw.optim.SGD(model.parameters(), lr=0.5)
        train = optimizer.minimize(model[0](tw.ones((1, 2))).sum())
    for p, q in zip(model.parameters(), expected.parameters(), strict=True):
        assert (p.numpy() == q.numpy()).all()
    before = model[0].bias.numpy().copy()
    tw.Session(graph).run(train)
    assert (model[0].bias.numpy() == before - np.float32(0.5)).all()


def test_statistics_of_a_batch_norm_are_update_ops():
    norm = dynamic.nn.BatchNorm1d(2)
    graph = tw.Graph()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 2)).astype(np.float32)
    with graph.as_default():
        given = tw.placeholder(tw.float32, [None, 2])
        y = norm(given)
        updates = tw.get_collection(tw.GraphKeys.UPDATE_OPS)
    session = tw.Session(graph)
    session.run(y, {given: x})
    assert (norm.running_mean.numpy() == 0).all()
    other = dynamic.nn.BatchNorm1d(2)
    for _ in range(2):
        session.run(updates, {given: x})
        other(dynamic.tensor(x))
    assert (norm.running_mean.numpy() == other.running_mean.numpy()).all()
    assert (norm.running_var.numpy() == other.running_var.numpy()).all()


def test_saving_and_restoring(graph, tmp_path):
    w, step = tw.Variable([1.0, 2.0], name="w"), tw.Variable(3, name="step", trainable=False)
    saver = tw.Saver()
    path = saver.save(ready(), tmp_path / "model", global_step=step)
    assert path == str(tmp_path / "model-3.safetensors")
    assert sorted(tw.load_file(path)) == ["step", "w"]
    session = tw.Session()
    saver.restore(session, path)
    values = session.run([w, step])
    assert values[0].tolist() == [1.0, 2.0]
    assert values[1] == 3
    with tw.Graph().as_default():
        renamed = tw.Variable([0.0, 0.0], name="other")
        session = tw.Session()
        tw.Saver({"w": renamed}).restore(session, path)
        assert session.run(renamed).tolist() == [1.0, 2.0]
        with pytest.raises(KeyError, match=r"no values for \['other'\]"):
            tw.Saver([renamed]).restore(session, path)
        with pytest.raises(ShapeError, match="'other:0'"):
            tw.Saver({"step": renamed}).restore(session, path)
    with pytest.raises(SessionError, match="uninitialized"):
        saver.save(tw.Session(), tmp_path / "model")


@pytest.mark.parametrize(
    ("dtype", "held", "lost"),
    [
        ("float32", np.array([0.5, np.inf, np.nan, 2.0**-149]), np.array([0.5, 0.1])),
        ("float32", np.array([1, 2**24]), np.array([1, 2**24 + 1])),
        ("float32", np.array([True, False]), np.array([1e300])),
        ("float64", np.array([0.1], np.float32), np.array([2**53 + 1])),
        ("int32", np.array([-(2**31)]), np.array([2**31])),
        ("uint8", np.array([True]), np.array([1.0])),
    ],
)
def test_a_restored_value_is_the_one_of_the_file(graph, tmp_path, dtype, held, lost):
    w = tw.Variable(np.zeros(held.shape, dtype), name="w")
    v = tw.Variable(np.ones(lost.shape, dtype), name="v")
    session, file = ready(), tmp_path / "model.safetensors"
    tw.save_file({"w": held}, file)
    tw.Saver([w]).restore(session, file)
    assert np.array_equal(session.run(w).astype(held.dtype), held, equal_nan=True)
    tw.save_file({"w": np.zeros_like(held), "v": lost}, file)
    with pytest.raises(DTypeError, match=r"0\.1|16777217|1e\+300|9007199254740993|2147483648|float64"):
        tw.Saver([w, v]).restore(session, file)
    assert np.array_equal(session.run(w).astype(held.dtype), held, equal_nan=True)  # nothing is changed


def test_only_the_newest_files_are_kept(graph, tmp_path):
    tw.Variable([1.0], name="w")
    saver, session = tw.Saver(max_to_keep=2), ready()
    for i in range(4):
        saver.save(session, tmp_path / "m", global_step=i)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["m-2.safetensors", "m-3.safetensors"]
