"""Arrays with rows where a list is asked for, indices that lead out of an array: refused before they are used."""

# Calls that break types on purpose.
# mypy: disable-error-code="arg-type, attr-defined"

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, CheckError, ShapeError

WIDE = dynamic.ones(1).expand(2**40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dynamic.optim.AdamW([dynamic.ones(1)], betas=WIDE),
        lambda: dynamic.optim.Rprop([dynamic.ones(1)], etas=0.5),
        lambda: dynamic.optim.Adafactor([dynamic.ones(1)], eps=range(2**40)),
        lambda: dynamic.array_api.broadcast_shapes(WIDE),
        lambda: dynamic.array_api.stack(WIDE),
        lambda: dynamic.array_api.concat(dynamic.ones(1, 1).expand(2**20, 2**20)),
        lambda: dynamic.distributions.ExponentialFamily(batch_shape=WIDE),
        lambda: dynamic.distributions.Distribution((), dynamic.ones(1, 1).expand(2**20, 2**20)),
        lambda: dynamic.distributions.AffineTransform(0.0, 1.0).forward_shape(WIDE),
        lambda: dynamic.distributions.PowerTransform(2.0).inverse_shape(dynamic.ones(2, 2)),
        lambda: dynamic.nn.RMSNorm(WIDE),
        lambda: static.nn.LayerNorm(dynamic.ones(1, 1).expand(2**20, 2**20)),
        lambda: static.function(lambda x: x, donate_argnums=WIDE),
        lambda: static.dynamic_update_slice(
            dynamic.ones(3), dynamic.ones(2), dynamic.ones(1, dtype="int64").expand(99)
        ),
        lambda: dynamic.split_with_sizes(dynamic.ones(3), WIDE),
        lambda: dynamic.utils.data.random_split([1, 2], dynamic.ones(2, 1)),
        lambda: dynamic.distributions.ComposeTransform(WIDE),
        lambda: dynamic.distributions.StackTransform(np.ones((2, 2))),
        lambda: dynamic.distributions.constraints.cat(WIDE),
        lambda: dynamic.ShapeDtypeStruct(WIDE, "float32"),
        lambda: dynamic.distributions.Bernoulli(0.5).sample(WIDE),
        lambda: dynamic.distributions.Normal(0.0, 1.0).expand(WIDE),
        lambda: dynamic.distributions.StickBreakingTransform().forward_shape(np.broadcast_to(1.0, (2**20, 2**20))),
        lambda: dynamic.optim.lr_scheduler.MultiStepLR(dynamic.optim.SGD([dynamic.ones(1)]), WIDE),
        lambda: static.placeholder_with_default(np.ones((2, 3)), np.broadcast_to(1.0, (2**20, 2**20))),
        lambda: dynamic.fori_loop(0, np.uint64(2**63), lambda i, c: c, dynamic.ones(1)),
        lambda: dynamic.fori_loop(-(2**63) - 1, 0, lambda i, c: c, dynamic.ones(1)),
        lambda: dynamic.vjp(lambda x: x, dynamic.ones(3))[1](range(2**40)),
        lambda: dynamic.distributions.CorrCholeskyTransform().log_abs_det_jacobian(
            dynamic.ones(3), WIDE.expand(3, 2**40)
        ),
    ],
)
def test_what_would_be_gone_through_one_by_one_is_refused(call):
    with pytest.raises((ArgumentError, ShapeError)):
        call()


@pytest.mark.parametrize("pivots", [[7, 1, 2], [0, 1, 2], [1, 2, -3], [-1, 2, 3], [-(2**31)] * 3, [-9, -9, 1]])
def test_pivots_of_nobody_reach_no_lapack(pivots):
    a, p, b = np.eye(3), np.array(pivots, np.int32), np.ones((3, 1))
    for run in (dynamic.linalg.ldl_solve, static.function(lambda *given: static.linalg.ldl_solve(*given))):
        with pytest.raises(ArgumentError, match="pivots"):
            run(*map(dynamic.tensor, (a, p, b)))


def test_an_assertion_looks_at_repeated_elements_once():
    dynamic.assert_(np.broadcast_to(np.ones((1, 2)), (2**30, 2)))
    with pytest.raises(CheckError, match="wrong"):
        static.assert_(np.broadcast_to(np.array([True, False]), (2**30, 2)), "wrong")
    dynamic.assert_(np.broadcast_to(np.zeros(1), (0,)))
