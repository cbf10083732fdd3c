"""`inference_mode`: what both frameworks promise of it."""


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def nothing_is_recorded(tw):
    x = _leaf(tw, 1.0)
    with tw.inference_mode():
        assert tw.is_inference_mode_enabled()
        assert not tw.is_grad_enabled()
        y = x * 2
    assert not y.requires_grad
    assert not tw.is_inference_mode_enabled()
    assert (x * 2).requires_grad


def it_can_be_switched_off_inside(tw):
    x = _leaf(tw, 1.0)
    with tw.inference_mode():
        with tw.inference_mode(False):
            assert not tw.is_inference_mode_enabled()
            assert (x * 2).requires_grad
        assert tw.is_inference_mode_enabled()


def as_a_decorator(tw):
    x = _leaf(tw, 1.0)

    @tw.inference_mode()
    def with_parentheses(t):
        return t * 2

    @tw.inference_mode
    def without(t):
        return t * 2

    for f in (with_parentheses, without):
        assert not f(x).requires_grad
    assert with_parentheses.__name__ == "with_parentheses"
    assert without.__name__ == "without"


def an_exception_ends_it(tw):
    try:
        with tw.inference_mode():
            raise KeyError
    except KeyError:
        pass
    assert tw.is_grad_enabled()
    assert not tw.is_inference_mode_enabled()
