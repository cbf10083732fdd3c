"""Switches of recording: contexts, decorators, generators, threads and tasks."""

import threading

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def switching_at_once(tw):
    before = tw.is_grad_enabled()
    try:
        tw.set_grad_enabled(False)
        assert not tw.is_grad_enabled()
    finally:
        tw.set_grad_enabled(True)
    assert before
    with tw.set_grad_enabled(False):
        assert not tw.is_grad_enabled()
    assert tw.is_grad_enabled()
    switch = tw.set_grad_enabled(False)
    assert not tw.is_grad_enabled()
    with switch:
        assert not tw.is_grad_enabled()
    assert tw.is_grad_enabled()


def as_decorators(tw):
    x = _leaf(tw, 1.0)

    @tw.no_grad()
    def with_parentheses(t):
        """Says so."""
        return t * 2

    @tw.no_grad
    def without(t):
        return t * 2

    @tw.set_grad_enabled(False)
    def switched(t):
        return t * 2

    assert tw.is_grad_enabled()
    for f in (with_parentheses, without, switched):
        assert not f(x).requires_grad
        assert tw.is_grad_enabled()
    assert (with_parentheses.__name__, with_parentheses.__doc__) == ("with_parentheses", "Says so.")

    @tw.enable_grad()
    def on(t):
        return t * 2

    with tw.no_grad():
        assert on(x).requires_grad


def decorated_functions_call_themselves(tw):
    @tw.no_grad()
    def f(n):
        assert not tw.is_grad_enabled()
        return 0 if n == 0 else f(n - 1)

    f(5)
    assert tw.is_grad_enabled()


def decorated_generators(tw):
    x = _leaf(tw, 1.0)

    @tw.no_grad()
    def generate():
        assert not tw.is_grad_enabled()
        got = yield x * 2
        assert not tw.is_grad_enabled()
        assert got == "sent"
        try:
            yield x * 3
        except KeyError:
            assert not tw.is_grad_enabled()
            yield x * 4
        return "done"

    g = generate()
    assert not next(g).requires_grad
    assert tw.is_grad_enabled()
    assert not g.send("sent").requires_grad
    assert tw.is_grad_enabled()
    assert not g.throw(KeyError()).requires_grad
    assert tw.is_grad_enabled()
    with pytest.raises(StopIteration) as stopped:
        next(g)
    assert stopped.value.value == "done"


def closed_generators(tw):
    log = []

    @tw.no_grad()
    def generate():
        try:
            yield 1
        finally:
            log.append(tw.is_grad_enabled())

    g = generate()
    next(g)
    g.close()
    assert log == [False]
    assert tw.is_grad_enabled()


def nested_contexts(tw):
    with tw.no_grad():
        with tw.enable_grad():
            assert tw.is_grad_enabled()
            with tw.set_grad_enabled(False):
                assert not tw.is_grad_enabled()
            assert tw.is_grad_enabled()
        assert not tw.is_grad_enabled()
    assert tw.is_grad_enabled()


def exceptions_end_contexts(tw):
    with pytest.raises(KeyError), tw.no_grad():
        raise KeyError
    assert tw.is_grad_enabled()


def threads_start_afresh(tw):
    seen = []
    with tw.no_grad():
        t = threading.Thread(target=lambda: seen.append((tw.is_grad_enabled(), tw.is_inference_mode_enabled())))
        t.start()
        t.join()
    with tw.inference_mode():
        t = threading.Thread(target=lambda: seen.append((tw.is_grad_enabled(), tw.is_inference_mode_enabled())))
        t.start()
        t.join()
    assert seen == [(True, False), (True, False)]


def leaves_made_without_recording(tw):
    with tw.no_grad():
        x = _leaf(tw, 1.0)
        y = x * 2
    assert x.requires_grad
    assert not y.requires_grad
    assert (x * 2).requires_grad


def in_place_without_recording(tw):
    x = _leaf(tw, 1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with tw.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0]
    assert x.requires_grad
    assert x.is_leaf
