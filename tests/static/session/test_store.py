"""Sessions whose programs come from the disk."""

import numpy as np
import pytest

import static as tw
from common.core.errors import IndexRangeError
from static.lowering import lowered_program
from static.tracing import optimised
from tests.bits import assert_all_same_bits
from tests.static.stored import programs

F32 = np.float32
X = np.linspace(-1, 1, 15, dtype=F32).reshape(5, 3)


def trained(steps=3, rate=0.5):
    """Losses and weights of a graph that is built anew."""
    with tw.Graph().as_default():
        x = tw.placeholder(tw.float32, [None, 3], name="x")
        w = tw.Variable(np.full((3, 3), 0.25, F32))
        y = tw.fori_loop(0, 2, lambda i, c: tw.tanh(c @ w) + c, x)
        loss = (y * y).sum()
        (g,) = tw.gradients(loss, w)
        update = w.assign_sub(g * rate)
        session = tw.Session()
        session.run(w.initializer)
        found = [session.run([loss, update], {x: X[:n]})[0] for n in (5, 1, 4, 5)[:steps]]
        return [*found, session.run(w)]


def test_a_second_process_builds_its_graph_and_lowers_nothing(disk, monkeypatch):
    cold = trained()
    count = len(programs(disk))
    monkeypatch.setattr(optimised, "run_passes", None)
    monkeypatch.setattr(lowered_program, "LoweredProgram", None)
    assert_all_same_bits(cold, trained(), "losses and weights")
    assert len(programs(disk)) == count


def test_another_graph_is_another_program(disk):
    trained(1)
    count = len(programs(disk))
    trained(1)
    assert len(programs(disk)) == count
    trained(1, rate=0.25)
    assert len(programs(disk)) == count + 1


def test_sizes_that_one_graph_relies_on_are_part_of_the_key(disk):
    """The nodes are the same; in the first graph both sizes are one."""
    for same in (True, False):
        with tw.Graph().as_default():
            x, t = (tw.placeholder(tw.float32, [None], name=name) for name in "xt")
            if same:
                assert x.shape[0] == t.shape[0]
            y = x * 2, t * 3
            session = tw.Session()
            a, b = session.run(y, {x: X[0], t: X[1]})
            assert_all_same_bits([a, b], [X[0] * 2, X[1] * 3], "results")
            if not same:
                a, b = session.run(y, {x: X[0, :2], t: X[1]})
                assert_all_same_bits([a, b], [X[0, :2] * 2, X[1] * 3], "results")


def test_errors_name_the_line_of_this_process(disk):
    def run(more):
        with tw.Graph().as_default():
            x = tw.placeholder(tw.float32, [None, 3], name="x")
            i = tw.placeholder(tw.int64, [1], name="i")
            if more:
                y = x.index_select(0, i) * 2
            else:
                y = x.index_select(0, i) * 2
            tw.Session().run(y, {x: X, i: np.array([9])})

    for more, line in ((True, 5), (False, 7)):
        with pytest.raises(IndexRangeError, match=rf"test_store\.py:{run.__code__.co_firstlineno + line}"):
            run(more)
    assert len(programs(disk)) == 1
