"""Every rule against finite differences along random directions: first and second order, in float64."""

import numpy as np
import pytest

from common.core.op import REGISTRY
from dynamic import autograd
from tests.helpers import proofs
from tests.helpers.cases import CASES, PROGRAMS, internal, proved_by_others
from tests.helpers.differences import check_gradient
from tests.helpers.proofs import core, share
from tests.helpers.wrapped import wrap

SMOOTH = [case for cases in (*CASES.values(), PROGRAMS) for case in cases if case.differentiable]
FIRST = {case.label for cases in CASES.values() for case in [*filter(lambda c: c.differentiable, cases)][:1]}
ORDERS = (1,) if proofs.quick else (1, 2)
#: Cases of which a run takes second derivatives too: the first of each function; in a quick run these, rules that name
#: results, several operands, several results.
SECOND = ("tanh-0", "div-0", "layer_norm-0") if proofs.quick else FIRST if proofs.sampled else {c.label for c in SMOOTH}
FLAT = ("sign", "zeros_like", "ones_like")
SYMMETRIC = ("cholesky", "eigh", "eigvalsh")  # they read one triangle, and differentiate among symmetric matrices
#: Operands by which an op has no derivative, as in PyTorch, though its value depends on them.
FIXED = {"ldl_solve": (0,), "zeta": (0,), "gammainc": (0,), "gammaincc": (0,)}
#: Ops whose derivatives are differences: those of the second order have too few digits.
ONCE = ("gamma_quantile_by_a", "beta_quantile_by_a", "beta_quantile_by_b")
OPS = [  # elementwise functions are among the cases, with the same operands
    op for op in REGISTRY.values() if op.differentiable and op.name not in FLAT
    and not (op.kind == "elementwise" and op.name in CASES)
]  # fmt: skip


def meant(op, xs):
    """The operands of an op, a matrix made symmetric where the op takes it to be."""
    x, *others = xs
    return ((x + x.transpose(-2, -1)) * 0.5, *others) if op.name in SYMMETRIC else xs


def sizes(case):
    """Sizes of a case: the first of a function runs at both in every run but a quick one, others at one of them."""
    if proofs.quick:
        return (3,)
    return (3, 1) if not proofs.sampled or case.label in FIRST else ((3, 1)[share(case.label, 4) == 0],)


@pytest.mark.parametrize("case", core(SMOOTH, lambda case: case.label in FIRST))
def test_function(case):
    for n in sizes(case):
        for order in (1, 2) if case.label in SECOND else (1,):
            check_gradient(case.f, case.draw(np.random.default_rng(n), "float64", n), case.label, order=order)


@pytest.mark.parametrize("op", core(OPS, internal, seldom=proved_by_others))
def test_op(op):
    """The samples of its record; what is a public function has cases, which every run takes."""
    for operands, attrs in op.samples(np.random.default_rng(2), "float64"):
        if attrs.get("dtype") == np.float32:
            continue  # differences need the digits of float64
        fixed = FIXED.get(op.name, ())
        for order in ORDERS[: 1 if op.name in ONCE else None]:
            what = f"{op.name} {attrs}"
            check_gradient(lambda *xs, a=attrs: op(*meant(op, xs), **a), operands, what, order=order, fixed=fixed)


@pytest.mark.parametrize("name", FIXED)
def test_an_op_has_no_derivative_by_some_operands(name):
    op = REGISTRY[name]
    for operands, attrs in op.samples(np.random.default_rng(2), "float64"):
        tensors = [wrap(x, requires_grad=x.dtype.kind == "f") for x in operands]
        grads = autograd.grad(op(*tensors, **attrs).sum(), [t for t in tensors if t.requires_grad], allow_unused=True)
        assert [i for i, g in enumerate(grads) if g is None] == list(FIXED[name])


@pytest.mark.parametrize("name", FLAT)
def test_flat_functions_have_a_gradient_of_zeros(name):
    check_gradient(REGISTRY[name], [np.array([-1.5, 0.3, 2.0])], name)
