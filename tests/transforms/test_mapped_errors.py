"""Refusals in a mapped function have the words for one example."""

import pytest

import dynamic
import static
from common.core.errors import ShapeError

#: Programs that are wrong for one example, with the shapes of their arguments for seven.
WRONG = {
    "mm": (lambda tw, a, b: tw.mm(a, b), (7, 2, 2, 2), (7, 2)),
    "mv": (lambda tw, a, b: tw.mv(a, b), (7, 2, 3), (7, 2)),
    "bmm": (lambda tw, a, b: tw.bmm(a, b), (7, 2, 3), (7, 2, 3)),
    "add": (lambda tw, a, b: a + b, (7, 3), (7, 4)),
    "where": (lambda tw, a, b: tw.where(a > 0, a, b), (7, 3), (7, 2)),
    "cat": (lambda tw, a, b: tw.cat([a, b]), (7, 3), (7, 2, 2)),
    "reshape": (lambda tw, a: a.reshape(5), (7, 3)),
    "expand": (lambda tw, a: a.expand(4), (7, 3)),
    "inv": (lambda tw, a: tw.linalg.inv(a), (7, 3, 2)),
    "solve": (lambda tw, a, b: tw.linalg.solve(a, b), (7, 3, 3), (7, 2)),
    "conv2d": (lambda tw, a, w: tw.nn.functional.conv2d(a, w[0]), (7, 4, 5, 5), (7, 1, 1, 3, 2, 2)),
}


def said(call):
    """The error of a call, without the place where it was made."""
    with pytest.raises(ShapeError) as caught:
        call()
    return str(caught.value).split(" (called")[0]


@pytest.mark.parametrize("name", WRONG)
def test_errors_speak_of_one_example(name):
    function, *shapes = WRONG[name]
    for tw in (dynamic, static):
        given = [tw.ones(*shape) for shape in shapes]
        alone = said(lambda tw=tw, given=given: function(tw, *(x[0] for x in given)))
        mapped = said(lambda tw=tw, given=given: tw.vmap(lambda *xs: function(tw, *xs))(*given))
        nested = said(
            lambda tw=tw, given=given: tw.vmap(tw.vmap(lambda *xs: function(tw, *xs)))(*(x[None] for x in given))
        )
        assert mapped.startswith(alone[:12])
        if tw is dynamic:
            assert mapped == nested == alone
        else:
            assert "7" not in mapped.split("made at")[0]
