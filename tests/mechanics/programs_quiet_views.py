"""Views that are made while nothing is recorded, and views that are older than the flag of what they show."""

import pytest


def _leaf(tw, *values):
    return tw.tensor(list(values), requires_grad=True)


def _writes(tw):
    """Every kind of write to a vector of one element."""

    def augmented(v):
        v += 1

    return [
        lambda v: v.mul_(3),
        lambda v: v.add_(tw.ones(1)),
        lambda v: v.mul_(_leaf(tw, 2.0)),
        lambda v: v.zero_(),
        lambda v: v.fill_(1.0),
        lambda v: v.copy_(tw.ones(1)),
        lambda v: v.sqrt_(),
        lambda v: v.clamp_(0.0, 0.5),
        lambda v: v.index_add_(0, tw.tensor([0]), tw.ones(1)),
        lambda v: v.index_fill_(0, tw.tensor([0]), 2.0),
        lambda v: v.masked_fill_(tw.tensor([True]), 0.0),
        lambda v: v.scatter_(0, tw.tensor([0]), tw.ones(1)),
        lambda v: v.index_put_((tw.tensor([0]),), tw.ones(1)),
        lambda v: v.__setitem__(0, 3.0),
        lambda v: v.__setitem__(slice(0, 1), tw.ones(1)),
        lambda v: v.__setitem__(tw.tensor([True]), 3.0),
        lambda v: v.__setitem__(tw.tensor([0]), 3.0),
        lambda v: v.view(1, 1).mul_(2),
        lambda v: v[0].add_(2),
        augmented,
    ]


def _bases(tw):
    """A leaf that requires grad, and a result."""
    return [lambda: _leaf(tw, 1.0, 2.0), lambda: _leaf(tw, 1.0, 2.0) * 1]


def views_without_recording_are_not_written_with_it(tw):
    for made in _bases(tw):
        for write in _writes(tw):
            a = made()
            with tw.no_grad():
                v = a[:1]
            with pytest.raises(RuntimeError, match="created in no_grad mode"):
                write(v)
            assert a.tolist() == [1.0, 2.0]


def views_of_inference_mode_are_not_written_outside(tw):
    for made in _bases(tw):
        for write in _writes(tw):
            a = made()
            with tw.inference_mode():
                v = a[:1]
            with pytest.raises(RuntimeError, match="created in inference mode"):
                write(v)
            assert a.tolist() == [1.0, 2.0]


def views_that_are_older_than_the_flag_are_not_written(tw):
    for write in _writes(tw):
        a = tw.tensor([1.0, 2.0])
        v = a[:1]
        a.requires_grad = True
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write(v)
        assert a.tolist() == [1.0, 2.0]


def all_of_them_are_written_without_recording(tw):
    for made in [*_bases(tw), lambda: tw.tensor([1.0, 2.0])]:
        for write in _writes(tw):
            a = made()
            with tw.no_grad():
                v = a[:1]
                write(v)
                assert a[0].item() == v.item()
            w = a[:1]
            with tw.no_grad():
                write(w)
            if a.requires_grad:
                assert tw.autograd.grad(a.sum(), a)[0].tolist() == [1.0, 1.0]


def views_of_constants_are_written_as_long_as_nothing_is_recorded(tw):
    for write in _writes(tw):
        a = tw.tensor([1.0, 2.0])
        with tw.no_grad():
            v = a[:1]
        try:
            write(v)
        except RuntimeError as error:
            assert "created in no_grad mode" in str(error)  # noqa: PT017  the value requires grad
        assert a[0].item() == v.item()


def parts_without_recording_are_not_written_with_it(tw):
    a = _leaf(tw, 1.0, 2.0) * 1
    with tw.no_grad():
        parts = [a.split(1)[0], a.chunk(2)[0], a.unbind(0)[0], a.view(1, 2)[0], a.detach()[:1]]
    for v in parts[:-1]:
        with pytest.raises(RuntimeError):
            v.mul_(3)
    parts[-1].mul_(3)
    assert a.tolist() == [3.0, 2.0]
