"""Every rule against finite differences along random directions: first and second order, in float64."""

import numpy as np
import pytest

from common.core.op import REGISTRY
from tests.helpers import proofs
from tests.helpers.cases import CASES, PROGRAMS, internal, public
from tests.helpers.differences import check_gradient
from tests.helpers.proofs import core

SMOOTH = [case for cases in CASES.values() for case in cases if case.differentiable] + PROGRAMS
FIRST = {case.label for cases in CASES.values() for case in [*filter(lambda c: c.differentiable, cases)][:1]}
ORDERS = (1,) if proofs.quick else (1, 2)
FLAT = ("sign", "zeros_like", "ones_like")
SYMMETRIC = ("cholesky", "eigh")  # they read one triangle, and differentiate among symmetric matrices
PARTIAL = ("ldl_solve", "zeta", "gammainc", "gammaincc")  # not by every operand; see cases_lapack.py, cases_scipy.py
OPS = [  # elementwise functions are among the cases, with the same operands
    op for op in REGISTRY.values() if op.differentiable and op.name not in (*FLAT, *PARTIAL)
    and not (op.kind == "elementwise" and op.name in CASES)
]  # fmt: skip


def meant(op, xs):
    """The operands of an op, a matrix made symmetric where the op takes it to be."""
    x, *others = xs
    return ((x + x.transpose(-2, -1)) * 0.5, *others) if op.name in SYMMETRIC else xs


@pytest.mark.parametrize("case", core(SMOOTH, lambda case: case.label in FIRST))
def test_function(case):
    for n in (3, 1):
        for order in ORDERS:
            check_gradient(case.f, case.draw(np.random.default_rng(n), "float64", n), case.label, order=order)


@pytest.mark.parametrize("op", core(OPS, internal, seldom=public))
def test_op(op):
    """The samples of its record; what is a public function has cases, which every run takes."""
    for operands, attrs in op.samples(np.random.default_rng(2), "float64"):
        if attrs.get("dtype") == np.float32:
            continue  # differences need the digits of float64
        for order in ORDERS:
            check_gradient(lambda *xs, a=attrs: op(*meant(op, xs), **a), operands, f"{op.name} {attrs}", order=order)


@pytest.mark.parametrize("name", FLAT)
def test_flat_functions_have_a_gradient_of_zeros(name):
    check_gradient(REGISTRY[name], [np.array([-1.5, 0.3, 2.0])], name)
