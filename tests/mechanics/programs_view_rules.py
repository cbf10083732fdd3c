"""Shapes that `view` gives, by the strides of its operand, and writes through such views."""

import numpy as np
import pytest


def _shown(tw):
    """Tensors that are no arrays in C order; per tensor, shapes of views, and shapes that need a copy."""
    return [
        (tw.zeros(12, 16, 96).split(32, 2)[0], [(12, 16, 4, 8), (192, 32), (3, 4, 16, 32), (12, 2, 8, 32, 1)],
         [(12, 512), (6144,)]),
        (tw.zeros(3, 4)[..., ::2], [(2, 3), (6,), (3, 1, 2)], []),
        (tw.zeros(4, 6)[:, :4], [(4, 2, 2), (2, 2, 4), (1, 4, 4)], [(16,), (8, 2)]),
        (tw.zeros(4, 6).t(), [(2, 3, 4), (6, 2, 2), (3, 2, 2, 2)], [(24,), (4, 6), (12, 2)]),
        (tw.zeros(4, 1, 6).transpose(0, 1), [(24,), (4, 6)], []),
        (tw.zeros(4, 1, 6).expand(4, 5, 6), [(2, 2, 5, 6)], [(20, 6), (4, 30)]),
        (tw.zeros(4, 6).expand(5, 4, 6), [(5, 24), (5, 2, 12)], [(20, 6), (120,)]),
        (tw.zeros(2, 3, 4).permute(2, 0, 1), [(4, 6), (2, 2, 6), (2, 2, 2, 3)], [(8, 3), (24,)]),
        (tw.zeros(3, 4)[::2], [(2, 2, 2), (2, 1, 4)], [(8,)]),
        (tw.zeros(8, 4).diagonal(), [(2, 2), (1, 4)], []),
        (tw.zeros(10).unfold(0, 2, 2), [(10,), (5, 1, 2)], []),
        (tw.zeros(10).unfold(0, 3, 1), [(2, 4, 3)], [(24,)]),
        (tw.zeros(0, 3).t(), [(0,), (5, 0), (0, 3)], []),
    ]  # fmt: skip


def shapes_that_strides_allow(tw):
    for x, allowed, refused in _shown(tw):
        for shape in allowed:
            y = x.view(shape)
            assert tuple(y.shape) == shape
            assert tuple(x.view_as(y).shape) == shape
        for shape in refused:
            with pytest.raises(RuntimeError, match=r"contiguous subspaces\). Use .reshape\(...\) instead"):
                x.view(shape)
            assert tuple(x.reshape(shape).shape) == shape


def reshape_shows_the_memory_where_it_can(tw):
    for x, allowed, refused in [_shown(tw)[i] for i in (0, 1, 2, 3, 4, 7, 8, 9, 10)]:  # elements that repeat nothing
        for shape in (*allowed, *refused):
            x.fill_(0.0)
            x.reshape(shape).fill_(1.0)
            assert x.sum().item() == (x.numel() if shape in allowed else 0.0)


def writes_through_views_of_parts_have_gradients(tw):
    x = tw.ones(2, 3, 8, dtype=tw.float64, requires_grad=True)
    scale = tw.tensor(2.0, dtype=tw.float64, requires_grad=True)

    def changed(x, scale):
        a = x * 1
        heads = a.narrow(2, 2, 4).view(2, 3, 2, 2)
        heads[:, 1].mul_(scale)
        a[..., ::2].view(2, 12)[0].add_(scale)
        return (a * tw.arange(48, dtype=tw.float64).view(2, 3, 8)).sum()

    assert tw.autograd.gradcheck(changed, (x, scale))
    assert tw.autograd.gradgradcheck(changed, (x, scale))


def writes_to_what_does_not_lie_in_order_have_gradients(tw):
    x = tw.ones(6, dtype=tw.float64, requires_grad=True)

    def changed(x):
        a = tw.from_numpy(np.asfortranarray(np.ones((2, 3))))
        a.t().view(-1)[1:].mul_(x[1:])
        return (a * tw.arange(6, dtype=tw.float64).view(2, 3)).sum()

    changed(x).backward()
    assert x.grad.tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]


def flatten_joins_what_lies_in_order(tw):
    a = tw.zeros(4, 3, 6)
    a[:, :, :4].flatten(0, 1)[0] = 1.0
    assert a.sum().item() == 4.0
    a[:, :2].flatten(1)[0] = 2.0
    assert a.sum().item() == 24.0
    a[:, :2].flatten()[0] = 9.0
    assert a.sum().item() == 24.0


def the_only_part_is_not_written_either(tw):
    b = tw.ones(2, requires_grad=True)
    for cut in (lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.split([1]), lambda x: x.chunk(1)):
        for requires_grad in (True, False):
            x = tw.ones(1, 2, requires_grad=requires_grad)
            (part,) = cut(x.clone())
            for write in (lambda p: p.copy_(b), lambda p: p.mul_(b), lambda p: p.view_as(p).add_(b)):
                with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
                    write(part)
            with tw.no_grad():
                part.mul_(2)
            assert part.tolist() in ([2.0, 2.0], [[2.0, 2.0]])
