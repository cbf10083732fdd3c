"""Gates: the overhead of a session's run besides its arithmetic."""

from typing import Any

import numpy as np

import static
from benchmarks.gates.frame import assert_ratio, compare


def test_run_of_a_tiny_graph(benchmark: Any) -> None:
    """At most 5 us in all; a callable takes at most 1.5 of what the call of a function takes that computes the same."""
    rng = np.random.default_rng(9)
    inputs = [(rng.standard_normal(8).astype(np.float32),) for _ in range(2)]
    with static.Graph().as_default() as graph:
        x = static.placeholder(static.float32, [None], name="x")
        w = static.Variable(np.full(8, 0.5, np.float32), name="w")
        y = x * 2.0 + w
    session = static.Session(graph)
    session.run(w.initializer)
    parameter = static.nn.Parameter(np.full(8, 0.5, np.float32))

    @static.function
    def function(x: Any) -> Any:
        return x * 2.0 + parameter

    def run(a: Any) -> Any:
        return session.run(y, {x: a})

    for arguments in inputs:
        assert run(*arguments).tobytes() == function(*arguments).detach().numpy().tobytes()
    samples = compare(
        benchmark,
        {"run": (run, inputs), "callable": (session.make_callable(y, [x]), inputs), "function": (function, inputs)},
    )
    assert np.median(samples["run"]) <= 5e-6
    assert_ratio(samples, "callable", "function", 1.5)


def test_step_of_a_tiny_training(benchmark: Any) -> None:
    """At most 5 us for a step that fetches a loss and writes two variables; the bits of the same step of a function."""
    with static.Graph().as_default() as graph:
        x = static.placeholder(static.float32, [2], name="x")
        w, b = static.Variable([0.5, -0.5], name="w"), static.Variable(0.0, name="b")
        loss = (x * w).sum() * 0.5 + b * b
        train = static.optim.SGD([w, b], lr=1e-6).minimize(loss)
        init = static.global_variables_initializer()
    session = static.Session(graph)
    session.run(init)
    parameters = static.nn.Parameter([0.5, -0.5]), static.nn.Parameter(0.0)
    optimizer = static.optim.SGD(parameters, lr=1e-6)

    def run(a: Any) -> Any:
        return session.run([loss, train], {x: a})[0]

    @static.function
    def function(a: Any) -> Any:
        optimizer.zero_grad()
        loss = (a * parameters[0]).sum() * 0.5 + parameters[1] * parameters[1]
        loss.backward()
        optimizer.step()
        return loss

    inputs = [(np.array([1.0, k], np.float32),) for k in (2.0, 3.0)]
    for arguments in inputs:
        assert run(*arguments).tobytes() == function(*arguments).detach().numpy().tobytes()
    samples = compare(benchmark, {"run": (run, inputs), "function": (function, inputs)})
    assert np.median(samples["run"]) <= 5e-6
