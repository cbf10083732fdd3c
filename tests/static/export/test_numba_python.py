"""Numba modules whose programs call numpy and SciPy, or stack rows whose number data decide."""

import builtins
import dis
from types import CodeType

import numpy as np
import pytest

import static
from common.compiler.host_kernels import MARK, parse
from common.core.op import REGISTRY, out_specs
from common.core.spec import Spec
from common.core.tree import flatten
from static.export import copied_definitions
from static.export.copied_definitions import MODULES, copy_definitions
from static.export.numba_driver import JIT
from tests.static.export.test_held_graph import assert_same_bits
from tests.static.export.test_numba_module import loaded

rng = np.random.default_rng(0)
A = rng.normal(size=(2, 4, 4))
S = A @ A.swapaxes(1, 2) + np.eye(4)
X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)


def inverted(a):
    return static.linalg.inv(a) * 2, static.special.i0(a), static.linalg.slogdet(a)[1]


def factorised(a, s):
    linalg = static.linalg
    return linalg.svdvals(a), *linalg.eigh(s), linalg.det(a), linalg.cholesky(s), *linalg.lu(a), linalg.solve(a, s)


def trained_through_lapack(a, s):
    def loss(a, s):
        inner = static.scan(lambda c, row: (static.linalg.inv(c) + row, c.sum()), s[0], a)
        return inner[1].sum() + static.special.i0(a).sum()

    return static.grad(loss, argnums=(0, 1))(a, s)


def long_loop(x):
    def end(x):
        return static.while_loop(lambda s: s[0] < 300, lambda s: (s[0] + 1, s[1] * 1.01 - 0.003 * s[1] ** 2), (0, x))[1]

    return static.grad(lambda x: end(x).sum() + end(x[0, 0]))(x)


def loops_in_a_loop(x):
    def row(carried, row):
        y = static.while_loop(lambda s: s.sum() < 100, lambda s: s * 1.02 + row * 0.1, carried)
        return y * 0.01 + row, y

    return static.grad(lambda x: static.scan(row, x[0], x)[1].sum())(x)


def in_python(path, name):
    """The function of a file, without numba's compiler: in a moment, for few elements and no fused multiply-adds."""
    scope = {}
    exec(compile(path.read_text().replace(JIT, ""), str(path), "exec"), scope)
    return scope[name]


FUNCTIONS = {
    inverted: (A,), long_loop: (X,), trained_through_lapack: (A, S), factorised: (A, S), loops_in_a_loop: (X,),
}  # fmt: skip


@pytest.mark.parametrize(("f", "load"), [
    (inverted, in_python), (long_loop, in_python),
    *(pytest.param(f, loaded, marks=pytest.mark.slow) for f in FUNCTIONS),
])  # fmt: skip
def test_a_module_has_the_bits_of_the_function(tmp_path, f, load):
    given = FUNCTIONS[f]
    made = static.export_numba(f, tmp_path / "made.py", *given)
    run = load(made.path, made.name)
    for scale in (1, 1.25):
        own = [(x * scale).astype(x.dtype) for x in given]
        found, wanted = run(*own), flatten(static.function(f)(*own))[0]
        for a, b in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
            assert_same_bits(a, b.detach())


def test_a_state_that_is_updated_behind_a_long_loop_is_updated_once(tmp_path):
    x = static.tensor(X)

    @static.function
    def step(y):
        x.add_(y)
        g = static.grad(lambda a: static.while_loop(lambda s: s[0, 0] < 50, lambda s: s * 1.05, a).sum())(x)
        x.sub_(g * 1e-6)
        return g

    made = static.export_numba(step, tmp_path / "step.py", X)
    run, (held,) = in_python(made.path, "step"), made.state.values()
    for _ in range(2):
        assert_same_bits(run(X, held), step(X).detach())
        assert held.tobytes() == x.numpy().tobytes()


def test_a_singular_matrix_is_told_as_by_the_library(tmp_path):
    made = static.export_numba(static.linalg.inv, tmp_path / "f.py", A, name="inverse")
    with pytest.raises(np.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 0\): The diagonal element 1 is zero"):
        in_python(made.path, "inverse")(A * 0)


def globals_of(code):
    """The global names that a code object reads, those of functions in it included."""
    read = {x.argval for x in dis.get_instructions(code) if x.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return read.union(*(globals_of(x) for x in code.co_consts if isinstance(x, CodeType)))


@pytest.mark.parametrize("module", MODULES)
def test_definitions_that_are_copied_need_numpy_and_what_is_copied_with_them(module):
    others = [name for other in MODULES if other != module for name in copied_definitions._definitions(other)]
    for name in copied_definitions._definitions(module):
        assert name not in others
        texts = {}
        copy_definitions(name, texts)
        code = compile("\n".join(texts.values()), name, "exec")
        assert globals_of(code) <= {*texts, *vars(builtins), "np"}
        exec(code, {"np": np})  # in this order all are defined


def test_every_function_that_kernels_call_can_be_copied():
    called = set()
    for name in REGISTRY.homes:
        op = REGISTRY[name]
        if op.native is not None and not op.literal:
            for operands, attrs in op.samples(np.random.default_rng(0), np.dtype(np.float64)):
                specs = [Spec(np.shape(x), np.asarray(x).dtype) for x in operands]
                calls = op.native(specs, out_specs(op.spec(*specs, **attrs)), attrs)
                called |= {parse(call.source)[:2] for call in calls if call.source.startswith(MARK)}
    of_lapack = {f"common.kernels.linalg.{name}" for name in ("elimination", "infos", "symmetric")}
    assert {module for module, _ in called} == set(MODULES) - of_lapack
    for module, name in called:
        assert name in copied_definitions._definitions(module)
