"""Functions that write to their arguments, differentiated forward by torch.func."""

import pytest


def _doubled(x):
    x.mul_(2)
    return (x * x).sum()


def _filled(x):
    x[0] = 3.0
    return (x * x).sum()


def _scaled_part(x):
    x[:1].mul_(5)
    return (x * x).sum()


def _shown(x):
    y = x.view(-1)
    y.add_(1)
    return (x * y).sum()


def writes_to_primals(tw):
    """They are written outside too; derivatives are with respect to what they were before."""
    for function, value, slopes, after in (
        (_doubled, 20.0, [8.0, 16.0], [2.0, 4.0]),
        (_filled, 13.0, [0.0, 4.0], [3.0, 2.0]),
        (_scaled_part, 29.0, [50.0, 4.0], [5.0, 2.0]),
        (_shown, 13.0, [4.0, 6.0], [2.0, 3.0]),
    ):
        x = tw.tensor([1.0, 2.0])
        y, slope = tw.func.jvp(function, (x,), (tw.tensor([1.0, 0.5]),))
        assert (y.item(), slope.item(), x.tolist()) == (value, slopes[0] + slopes[1] / 2, after)
        assert not any(part.requires_grad for part in (x, y, slope))
        x = tw.tensor([1.0, 2.0])
        assert tw.func.jacfwd(function)(x).tolist() == slopes
        assert x.tolist() == after
        assert tw.func.linearize(function, tw.tensor([1.0, 2.0]))[0].item() == value


def writes_from_one_primal_to_another(tw):
    x, y = tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0])
    value, slope = tw.func.jvp(lambda x, y: (x.copy_(y) * x).sum(), (x, y), (tw.ones(2), tw.tensor([0.5, 2.0])))
    assert (value.item(), slope.item(), x.tolist(), y.tolist()) == (25.0, 19.0, [3.0, 4.0], [3.0, 4.0])
    assert not x.requires_grad
    ones, twos = tw.ones(2, 3), tw.full((2, 3), 2.0)
    pushed = tw.vmap(lambda x, y: tw.func.jvp(lambda x: x.copy_(y), (x,), (tw.ones(3),)))(ones, twos)
    assert [part.tolist() for part in pushed] == [[[2.0] * 3] * 2, [[0.0] * 3] * 2]
    assert ones.tolist() == twos.tolist()


def writes_to_what_is_differentiated_outside(tw):
    """The outer derivative goes through the write."""
    x = tw.tensor([1.0, 2.0])

    def outer(x):
        x = x * 1.0
        y, slope = tw.func.jvp(_doubled, (x,), (tw.ones(2),))
        return y + slope * x.sum()

    assert tw.func.grad(outer)(x).tolist() == [8 + 48 + 48, 16 + 48 + 48]


def writes_to_primals_of_reverse_mode_are_refused(tw):
    x = tw.tensor([1.0, 2.0])
    for transform in (tw.func.grad, tw.func.jacrev, tw.func.hessian):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
            transform(_doubled)(x)
