"""What is no view has memory of its own, at any size: writes to the operand leave it, and it can be written."""

import numpy as np
import pytest

import dynamic
import static

COPIES = {
    "leading repetitions": (lambda x: x.repeat(4, 1), (1, 9000)),
    "new dimension": (lambda x: x.repeat(4, 1), (9000,)),
    "single elements": (lambda x: x.repeat(1, 4), (9000, 1)),
    "tiles": (lambda x: x.tile((4, 1)), (1, 9000)),
    "interleaved rows": (lambda x: x.repeat_interleave(4, 0), (1, 9000)),
    "no differences": (lambda x: x.diff(0), (90, 90)),
    "one matrix": (lambda x: dynamic.chain_matmul(x), (90, 90)),
    "first power": (lambda x: x.matrix_power(1), (90, 90)),
    "one group": (lambda x: dynamic.nn.functional.channel_shuffle(x, 1), (1, 90, 90)),
    "groups of one": (lambda x: dynamic.nn.functional.channel_shuffle(x, x.shape[1]), (1, 90, 90)),
    "cropped reflections": (lambda x: dynamic.nn.functional.pad(x, (-1, -2), mode="reflect"), (1, 9000)),
    "cropped edges": (lambda x: dynamic.nn.functional.pad(x, (0, -2), mode="replicate"), (1, 9000)),
    "cropped circles": (lambda x: dynamic.nn.functional.pad(x, (-2, 0), mode="circular"), (1, 9000)),
    "sorted number": (lambda x: x.sort()[0], ()),
    "largest number": (lambda x: x.topk(1)[0], ()),
    "middle number": (lambda x: x.median(0)[0], ()),
    "most frequent number": (lambda x: x.mode(0)[0], ()),
    "first number": (lambda x: x.kthvalue(1)[0], ()),
    "greatest number": (lambda x: x.max(0)[0], ()),
    "edges of bins": (lambda x: dynamic.histogram(dynamic.ones(3), x)[1], (9000,)),
    "shuffled by 1": (lambda x: dynamic.nn.functional.pixel_shuffle(x, 1), (1, 9, 1000)),
    "unshuffled by 1": (lambda x: dynamic.nn.functional.pixel_unshuffle(x, 1), (1, 9, 1000)),
    "interleaved elements": (lambda x: x.repeat_interleave(4, 1), (9000, 1)),
}


@pytest.mark.parametrize("tw", [dynamic, static])
@pytest.mark.parametrize("wide", [1, 900])
@pytest.mark.parametrize("case", COPIES)
def test_results_are_copies(tw, case, wide):
    f, shape = COPIES[case]
    for recorded in (False, True):
        x = tw.zeros([max(n // wide, 1) for n in shape])
        y = f(x.requires_grad_(recorded))
        with tw.no_grad():
            x.add_(1)
        assert float(y.sum()) == 0
        assert y.is_contiguous()
        y.detach().view(-1)[0] = 3.0
        assert np.count_nonzero(y.detach().numpy()) == 1
