"""Tools that look at programs look at runs of sessions: debug, nan_watch, compare, explain, anomalies, profiles."""

import io

import numpy as np
import pytest

import dynamic
import static as tw
from common.core.errors import ArgumentError, GradientError, SessionError
from static.graph import rebuild


class Model:
    """A loss of a variable and a placeholder, and a step that changes the variable."""

    def __init__(self):
        with tw.Graph().as_default() as self.graph:
            self.x = tw.placeholder(tw.float32, [None], name="x")
            self.w = tw.Variable([1.0, 2.0], name="w")
            self.loss = tw.log(self.x * self.w).sum()
            self.up = self.w.assign_add([1.0, 1.0])
            self.root = tw.while_loop(lambda s: s * s < self.loss, lambda s: s + 1.0, 0.0)
        self.session = tw.Session(self.graph)
        self.session.run(self.w.initializer)

    def value(self):
        return self.session.run(self.w).tolist()


@pytest.fixture
def model():
    return Model()


GOOD, BAD = [1.0, 2.0], [1.0, -2.0]


@pytest.mark.parametrize("way", ["run", "callable"])
def test_the_debugger_steps_through_a_run(model, way):
    out = io.StringIO()
    stdin = io.StringIO("p operands[0]\ns\np result\nc\n")
    if way == "run":
        results = tw.debug(model.session.run, [model.loss, model.up], {model.x: GOOD}, stdin=stdin, stdout=out)
    else:
        made = model.session.make_callable([model.loss, model.up], [model.x])
        results = tw.debug(made, GOOD, stdin=stdin, stdout=out)
    assert [x.tolist() for x in results] == [pytest.approx(np.log(4.0)), [2.0, 3.0]]
    text = out.getvalue()
    assert "-> self.loss = tw.log(self.x * self.w).sum()" in text
    assert "test_looking.py(" in text
    assert model.value() == [1.0, 2.0], "what the run would write is not written"


def test_nan_watch_names_the_operation_that_made_it(model):
    assert tw.nan_watch(model.session.run, model.loss, {model.x: GOOD}) is None
    found = tw.nan_watch(model.session.run, [model.loss, model.up], {model.x: BAD})
    assert (found.op, found.kind, found.index, found.phase) == ("log", "nan", (1,), "forward")
    assert found.source[0].endswith("test_looking.py")
    assert "np.float32(-4.0)" in str(found) or "-4.0" in str(found)
    assert model.value() == [1.0, 2.0]
    with model.graph.as_default():
        (slope,) = tw.gradients(tw.sqrt(model.x).sum(), model.x)
    found = tw.nan_watch(model.session.make_callable(slope, [model.x]), [0.0, 1.0])
    assert (found.phase, found.kind) == ("backward", "inf")


def test_two_ways_of_running_are_compared(model):
    feeds = {model.x: GOOD}
    for way in ("dynamic", "interpreter", "unfused"):
        assert tw.compare(model.session.run, [[model.loss, model.root], feeds], way, "compiled") is None

    def wrong(graph):
        replace = {}
        for node in graph.nodes:
            if node.name == "log":
                replace[node.outputs[0].key] = node.operands[0]
        return rebuild(graph, graph.nodes, replace)

    parting = tw.compare(model.session.run, [model.loss, feeds], "interpreter", wrong)
    assert parting.op == "sum"
    assert parting.source[0].endswith("test_looking.py")


@pytest.mark.parametrize("interpret", [False, True])
def test_an_anomaly_is_found_in_a_run_and_changes_nothing(model, interpret):
    session = tw.Session(model.graph, interpret=interpret)
    session.run(model.w.initializer)
    with model.graph.as_default():
        (slope,) = tw.gradients(tw.sqrt(model.x * model.w).sum(), model.x)
    fetches = [slope, model.up]
    session.run(fetches, {model.x: GOOD})
    made = session.make_callable(fetches, [model.x])
    made(GOOD)
    for call in (lambda: session.run(fetches, {model.x: BAD}), lambda: made(BAD)):
        with (
            tw.autograd.detect_anomaly(),
            pytest.raises(GradientError, match=r"'SqrtBackward0' returned nan .*test_looking"),
        ):
            call()
        assert session.run(model.w).tolist() == [3.0, 4.0]
    with tw.autograd.detect_anomaly():
        assert session.run(fetches, {model.x: GOOD})[1].tolist() == [4.0, 5.0]
        assert session.run(model.root, {model.x: [1e9, 1e9]}) == 7.0
    assert np.isnan(session.run(slope, {model.x: BAD})[1]), "nobody looks any more"


def test_loops_of_any_length_are_watched(model):
    with model.graph.as_default():
        long = tw.while_loop(lambda s: s[0] < 500, lambda s: (s[0] + 1, s[1] * model.w[0]), (0, 1.0))[1]
        (slope,) = tw.gradients(long, model.w)
    with tw.autograd.detect_anomaly():
        assert model.session.run(slope).tolist() == [500.0, 0.0]
    assert tw.nan_watch(model.session.run, slope) is None


def test_the_program_of_a_run_explains_itself(model, tmp_path):
    program = model.session.program([model.loss, model.up], {model.x: GOOD})
    told = program.explain()
    assert {op for kernel in told.kernels for op in kernel.ops} == {"mul", "log", "sum", "add"}
    assert any("x.shape[0]" in guard for guard in told.guards)
    assert told.seconds.keys() >= {"kernels"}
    assert told.seconds.keys() >= {"passes", "lower"} or "disk" in told.seconds
    assert "Session.run: 1 trace(s)" in str(told)
    assert "def k_" in program.source
    assert "log" in str(program.picture)
    assert program.graph.number_of_nodes() > 4
    names = [path.name for path in program.dump(tmp_path)]
    assert names[0] == "00_traced.txt"
    assert any(name.startswith("01_") for name in names)
    assert any(name.endswith("explain.txt") for name in names)
    assert model.value() == [1.0, 2.0], "nothing has been run"
    same = model.session.make_callable([model.loss, model.up], [model.x]).program(GOOD)
    assert same.source == program.source
    interpreted = tw.Session(model.graph, interpret=True)
    interpreted.run(model.w.initializer)
    assert "log" in interpreted.program(model.loss, {model.x: GOOD}).source
    with pytest.raises(SessionError, match="must feed"):
        model.session.program(model.loss)
    with pytest.raises(ArgumentError, match="takes 1 values"):
        model.session.make_callable(model.loss, [model.x]).program()


def test_a_run_is_an_event_of_a_profile(model):
    made = model.session.make_callable(model.loss, [model.x])
    made(GOOD)
    model.session.run(model.loss, {model.x: GOOD})
    with dynamic.profiler.profile() as profile:
        model.session.run(model.loss, {model.x: GOOD})
        made(GOOD)
    assert [event.name for event in profile.events()].count("Session.run") == 2
