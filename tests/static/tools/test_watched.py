"""Watchers of programs, and hooks, around and inside compiled functions: each works, or says that it does not."""

import sys

import numpy as np
import pytest

import static as tw
from common.core.errors import GradientError

X = np.array([1.0, 0.0, 4.0], np.float32)


def here(offset):
    """Line of the caller, as it stands in messages."""
    return rf"test_watched\.py:{sys._getframe(1).f_lineno + offset}"


def test_anomalies_of_a_compiled_backward_pass():
    line = here(3)

    def f(x):
        return tw.sqrt(x).sum()

    program = tw.function(tw.grad(f))
    with (
        tw.autograd.detect_anomaly(),
        pytest.raises(GradientError, match=rf"'SqrtBackward0' returned inf .*{line} in f"),
    ):
        program(X)


def test_watched_programs_have_the_same_bits_and_effects():
    p = tw.nn.Parameter(np.ones(3, np.float32))

    def step(x):
        loss = (tw.tanh(p * x) * x).sum()
        g = tw.autograd.grad(loss, p)[0]
        with tw.no_grad():
            p.sub_(0.1 * g)
        return loss

    program, bits = tw.function(step), []
    for watched in (False, True):
        p.payload[...] = 1
        with tw.autograd.set_detect_anomaly(watched):
            bits.append((np.asarray(program(X)).tobytes(), p.payload.tobytes()))
    assert bits[0] == bits[1]


def test_what_is_masked_or_comes_in_is_no_finding():
    slopes = tw.grad(lambda x: tw.sqrt(x).sum())
    program = tw.function(lambda x: tw.where(x > 0, slopes(x), 0.0))
    with tw.autograd.detect_anomaly():
        assert program(X).tolist() == [0.5, 0.0, 0.25]
        assert tw.function(lambda x: x * 2)(np.array([np.nan], np.float32)).isnan()


def test_state_is_not_written_where_an_anomaly_is_found():
    b = tw.nn.Buffer(np.ones(3, np.float32))

    def f(x):
        b.copy_(tw.grad(lambda x: tw.sqrt(x).sum())(x) * 2)
        return x * 1

    with tw.autograd.detect_anomaly(), pytest.raises(GradientError, match=r"'SqrtBackward0' returned inf"):
        tw.function(f)(X)
    assert b.tolist() == [1.0, 1.0, 1.0]


def test_state_that_is_only_written():
    b = tw.nn.Buffer(np.ones(3, np.float32))

    def f(x):
        b.copy_(x * 2)
        return x * 1

    program = tw.function(f)
    for factor in (1, 3):
        program(factor * X)
        assert b.tolist() == (2 * factor * X).tolist()


def test_watching_inside_a_traced_function_warns():
    def anomaly(x):
        with tw.autograd.detect_anomaly():
            return x * 2

    def packing(x):
        with tw.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x * 2

    with pytest.warns(UserWarning, match="detect_anomaly inside a traced function watches nothing"):
        tw.function(anomaly)(X)
    with pytest.warns(UserWarning, match="saved_tensors_hooks inside a traced function packs nothing"):
        tw.function(packing)(X)


def test_explain_tells_of_hooks():
    calls = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: calls.append(1) or g * 3)
        return y.sum()

    program = tw.function(tw.grad(f))
    assert program(X).tolist() == [6.0] * 3
    assert program(X).tolist() == [6.0] * 3
    assert len(calls) == program.explain().hooks == 1
    assert "hooks: 1 ran while tracing" in str(program.explain())
    assert "hooks:" not in str(_explained(lambda x: x * 2))


def _explained(f):
    program = tw.function(f)
    program(X)
    return program.explain()
