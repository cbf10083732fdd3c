"""Every rule against finite differences along random directions: first and second order, in float64."""

import numpy as np
import pytest

from common.core.op import REGISTRY
from tests.helpers.cases import CASES, PROGRAMS
from tests.helpers.differences import check_gradient

SMOOTH = [case for cases in CASES.values() for case in cases if case.differentiable] + PROGRAMS
FLAT = ("sign", "zeros_like", "ones_like")
SYMMETRIC = ("cholesky", "eigh")  # they read one triangle, and differentiate among symmetric matrices
PARTIAL = ("ldl_solve", "zeta", "gammainc", "gammaincc")  # not by every operand; see cases_lapack.py, cases_scipy.py
OPS = [op for op in REGISTRY.values() if op.differentiable and op.name not in (*FLAT, *PARTIAL)]


def meant(op, xs):
    """The operands of an op, a matrix made symmetric where the op takes it to be."""
    x, *others = xs
    return ((x + x.transpose(-2, -1)) * 0.5, *others) if op.name in SYMMETRIC else xs


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.label)
def test_function(case, order):
    for n in (3, 1):
        check_gradient(case.f, case.draw(np.random.default_rng(n), "float64", n), case.label, order=order)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_op(op, order):
    for operands, attrs in op.samples(np.random.default_rng(2), "float64"):
        if attrs.get("dtype") == np.float32:
            continue  # differences need the digits of float64
        check_gradient(lambda *xs, a=attrs: op(*meant(op, xs), **a), operands, f"{op.name} {attrs}", order=order)


@pytest.mark.parametrize("name", FLAT)
def test_flat_functions_have_a_gradient_of_zeros(name):
    check_gradient(REGISTRY[name], [np.array([-1.5, 0.3, 2.0])], name)
