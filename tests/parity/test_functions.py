"""Every public function and every op's samples, compiled against eager, at several sizes of one program."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from common.core import mode
from common.core.errors import TraceError
from common.core.op import REGISTRY, Op
from common.core.tree import flatten
from common.evaluate.specialise import run
from common.ops.create import creation
from common.ops.math.synonyms import SYNONYMS
from common.tensor.create import lift
from tests.bits import assert_all_same_bits
from tests.helpers import proofs
from tests.helpers.cases import CASES, DATA_DEPENDENT, PROGRAMS, internal, proved_by_others
from tests.helpers.proofs import chosen, rotated, share
from tests.helpers.wrapped import wrap
from tests.parity.arrays import strided
from tests.parity.engines import Derivatives

ALL = [case for cases in CASES.values() for case in cases] + PROGRAMS
FIRST = {case.label for case in [*(cases[0] for cases in CASES.values()), *PROGRAMS]}
#: Cases that are an elementwise op and nothing else: test_elementwise.py proves these at more sizes and values.
BARE = {case.label for case in ALL if isinstance(case.f, Op) and case.f.kind == "elementwise" and not case.f.attrs}
SELDOM = BARE | {case.label for case in ALL if case.label not in FIRST and share(case.label, 2)}
OPS = [op for op in REGISTRY.values() if (op.kind != "elementwise" or op.attrs) and op.name != "constant"]
FLOATS = ("float32", "float64")


def test_every_public_function_has_cases():
    assert set(F.__all__) - set(CASES) == {*DATA_DEPENDENT, *SYNONYMS, "allclose", "equal"}  # bools: see test_floats.py


def test_synonyms_are_the_same_functions():
    x = np.array([0.25, -0.5], np.float32)
    assert dynamic.absolute(x).grad_fn is None
    assert dynamic.Tensor(x).multiply(wrap(x)).tolist() == static.multiply(x, x).tolist() == [0.0625, 0.25]
    y = wrap(x, requires_grad=True).arcsin()
    assert y.grad_fn.name() == "AsinBackward0"
    assert y.tolist() == dynamic.asin(x).tolist() != dynamic.acos(x).tolist()
    assert [dynamic.less(x, 0).tolist(), dynamic.greater_equal(x, 0.25).tolist()] == [[False, True], [True, False]]
    assert dynamic.concat((x, x)).shape == dynamic.ger(x, vec2=x).flatten().shape == (4,)
    assert dynamic.subtract(x, 1, alpha=2).tolist() == [-1.75, -2.5]
    assert [(name, f) for name, f in SYNONYMS.items() if getattr(F, name) is not f or f not in CALLED.values()] == []


CALLED = {name: getattr(F, name) for name in F.__all__ if name not in SYNONYMS}


@pytest.mark.parametrize(
    ("case", "dtype"), rotated(ALL, FLOATS, lambda case: case.label in FIRST, lambda case: case.label in SELDOM)
)
def test_function(case, dtype):
    """At several sizes and in several memory layouts, by one program; half of what is not a function's first case.

    In the dtype that is not chosen all of them, and second derivatives; in the chosen one a sample of sizes and
    layouts, and second derivatives of the first case of half of the functions.
    """
    rng = np.random.default_rng(10)
    first, whole = case.label in FIRST, dtype != chosen(case, FLOATS)
    program = Derivatives(case.f, 2 if whole or (first and share(case.label, 2)) else 1, unfused=first)
    sizes = (33, 1, 2) if whole else ((33, 1, 2)[share(case.label, 3)],)
    for n in (4, 3) if proofs.quick else (4, *sizes, *([0] if case.empty else [])):
        program.check(case.draw(rng, dtype, n), rng, case.label, interpreter=n == 4)
    if proofs.quick or case.label.startswith("view"):  # refuses what needs a copy, see core/test_errors.py
        return
    dense = case.draw(rng, dtype, 4)
    layouts = [list(strided(x)) if x.ndim else [x] * 4 for x in dense]
    for position in range(4) if whole else {share(case.label, 4), share(case.label, 3)}:
        program.check([x[position] for x in layouts], rng, f"{case.label}, layout {position}")


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_sizes_that_depend_on_the_data(name):
    """Equal bits outside a trace; in one, an error that names the user's line and what to do."""
    call, draws = DATA_DEPENDENT[name]
    operands = [draw(np.random.default_rng(13), "float32", 4) for draw in draws]
    eager, _ = flatten(call(getattr(dynamic, name), *operands))
    general, _ = flatten(call(getattr(static, name), *operands))
    assert_all_same_bits(general, eager, name)
    with pytest.raises(TraceError, match=rf"cases.*\.py:\d+ .*{name}\(\): the size .* depends on the data"):
        static.function(lambda *xs: call(getattr(static, name), *xs))(*operands)


@pytest.mark.parametrize(("op", "dtype"), rotated(OPS, FLOATS, core=internal, seldom=proved_by_others))
def test_op(op, dtype):
    """The samples of its record; what is a public function has cases, which every run takes.

    The first sample also without fusion and with second derivatives, all samples in the dtype that is not chosen.
    """
    rng = np.random.default_rng(12)
    whole = dtype != chosen(op, FLOATS)
    for number, (operands, attrs) in enumerate(op.samples(rng, dtype)):
        deep = whole or number == 0
        call = lambda *xs, a=attrs: op(*xs, **a) if xs else made(op, a)  # noqa: E731
        program = Derivatives(call, 2 if deep else 1, unfused=deep)
        program.check(operands, rng, f"{op.name} {attrs}", interpreter=True)


def made(op, attrs):
    """The result of an op without operands: of the trace if one is open."""
    trace = mode.current_trace()
    return wrap(run(op, (), attrs)) if trace is None else trace.wrap(trace.record(op, (), attrs))


def filled(name, *args, **options):
    return lift(getattr(creation, name)(*args, **options))


CREATION = {
    "zeros": lambda x: filled("zeros", x.shape[0], 3, dtype=x.dtype),
    "ones": lambda x: filled("ones", (2, x.shape[0])),
    "full": lambda x: filled("full", (x.shape[0],), 0.1),
    "full of zeros of both signs": lambda x: filled("full", (2,), 0.0) / (1 / filled("full", (2,), -0.0)),
    "full of a bool": lambda x: filled("full", (x.shape[0], 2), True),
    "full of a size": lambda x: filled("full", (3,), 2) * x.shape[0],
    "arange": lambda x: filled("arange", x.shape[0]),
    "arange of floats": lambda x: filled("arange", 0.5, 7, 0.3),
    "eye": lambda x: filled("eye", x.shape[0], 5),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", CREATION)
def test_creation(name):
    rng = np.random.default_rng(13)
    program = Derivatives(lambda x: (F.sum(x), CREATION[name](x)), order=0)
    for n in (4, 33, 1, 0):
        program.check([rng.normal(size=n).astype(np.float32)], rng, name, interpreter=True)


@pytest.mark.quick
def test_constants_are_folded_by_the_programs_own_kernels():
    program = Derivatives(lambda x: x * (F.exp(filled("full", (), 0.3)) + 1 / filled("full", (), 3.0)))
    program.check([np.linspace(-2, 2, 40).astype(np.float32)], np.random.default_rng(14), "folded constants")


@pytest.mark.quick
def test_guards_separate_sizes():
    """A program whose result depends on a comparison of sizes: each branch is a trace of its own."""
    program = Derivatives(lambda x: x * 2 if x.shape[0] > 10 else x * 3)
    for n in (4, 20, 5, 33, 10, 11):
        program.check([np.ones(n, np.float32)], np.random.default_rng(15), "a branch on a size")
    assert len(program.compiled.traces) == 2
