"""A program as a numba module has the bits of the library, and needs nothing of it."""

import importlib.util
import re
import subprocess
import sys
from itertools import count

import numpy as np
import pytest

import static
from benchmarks.workloads.digits import Digits
from common.core.errors import ArgumentError
from common.core.tree import flatten
from common.evaluate.kernels import compiled
from common.kernels.arrays import array_functions, row_functions, sums
from common.kernels.arrays.window_maxima import put_source
from common.kernels.arrays.windows import window_args
from static.export import numba_library
from static.export.numba_kernels import LIBRARY, form_of
from tests.kernels.run import special_values
from tests.static.export.test_held_graph import assert_same_bits

F32 = np.float32
rng = np.random.default_rng(0)
X, LONG = rng.normal(size=(3, 4)).astype(F32), rng.normal(size=(2100, 3)).astype(F32)
HOLES = np.where(LONG > 1, F32(np.nan), LONG)
numbers = count()


def functions(x):
    whole = (x * 40).to(static.int32)
    return (
        x.exp(), x.abs().log(), x.sin(), x.pow(3), x.sigmoid(), x.erf(), static.atan2(x, x + 1), static.lgamma(x),
        whole // 3, whole % 7, whole << 2, whole >> 1, (whole & 12) ^ 5, (x * 1e12).to(static.int8), (x > 0) | (x < -1),
        static.where(x > 0, x, -x).sqrt(), x.round(), x.maximum(-x), static.fmod(x, 0.3), x.tan() * 1e30,
    )  # fmt: skip


def reductions(x):
    return (
        x.sum(), x.sum(0), x.sum(1), x.prod(0), x.amax(0), x.amin(1), x.square().sum(), x.norm(), (x > 0).any(0),
        static.softmax(x, -1), x.cumsum(0), x.argmax(1), x.var(0), (x * x).mean(),
    )  # fmt: skip


def control(x):
    carried, stacked = static.scan(lambda c, row: (c * 0.5 + row, c.sum()), x[0], x)
    chosen = static.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y * 2, x)
    counted = static.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + x[0, 0].abs() + 1, s[1] * 0.5), (0.0, x[0, 1]))
    both = static.scan(lambda c, row: (c * 0.5 + row[1], c), counted[1], x, reverse=True)
    return counted, both, carried, stacked, chosen, static.while_loop(lambda y: y.sum() < 50, lambda y: y * 1.5 + 1, x)


def windows(x):
    images, f = x[:2000].reshape(4, 3, 20, 25), static.nn.functional
    return (
        f.max_pool2d(images, 3, 2, 1), f.max_pool2d(images, 2, 1, dilation=3), f.avg_pool2d(images, 2),
        f.max_pool1d(images[0], 2), f.lp_pool2d(images, 2.0, 3),
        f.batch_norm(images, None, None, training=True), (images * images).sum((0, 2, 3)),
        f.adaptive_avg_pool2d(images, (3, 7)), f.adaptive_max_pool2d(images, 1), f.adaptive_max_pool2d(images, 6),
    )  # fmt: skip


def gradients(x, picked):
    def loss(x):
        return static.nn.functional.cross_entropy(x @ x.T[:, :4], picked) + (x[:, 1:] * x[:, :-1]).exp().sum()

    return static.grad(loss)(x)


def numbers_in(x):
    return x.nansum(), x.nansum(0), x.nanmean(1), 1 / (x - x)


def convolved(x, w):
    def loss(x, w):
        f, b = static.nn.functional.conv2d, w[:, 0, 0, 0]
        apart, narrow = f(x, w[:64, :1], padding=1, groups=64), f(x, w[:48], padding=1, groups=2)
        many, few = f(x, w, b, padding=1, groups=2), f(x[:, :, :7, :9], w, b, stride=2, padding=1, groups=2)
        return many.sin().sum() + few.sin().sum() + apart.sin().sum() + narrow.sin().sum()

    return static.grad(loss, argnums=(0, 1))(x, w)


def few(x):
    return (x.tanh() * 2).sum(1), static.scan(lambda c, row: (c * 0.5 + row, row), x[0], x)[0]


def integers(x):
    whole, small = (x * 40).to(static.int32), (x * 40).to(static.uint8)
    return whole @ whole.mT, whole.mT @ whole, whole @ whole[0], small @ small.mT, small[0] @ small[1]


IMAGES, KERNELS = (np.random.default_rng(2).normal(size=size).astype(np.float32) for size in (
    (1, 64, 17, 32), (192, 32, 3, 3)))  # fmt: skip
CASES = {
    "few": (few, (X,)), "functions": (functions, (X,)), "reductions": (reductions, (LONG,)), "control": (control, (X,)),
    "convolved": (convolved, (IMAGES, KERNELS)), "numbers": (numbers_in, (HOLES,)),
    "gradients": (gradients, (X, np.array([2, 0, 1]))), "windows": (windows, (HOLES,)),
    "integers": (integers, (abs(X),)),
}  # fmt: skip


def loaded(path, name):
    spec = importlib.util.spec_from_file_location(f"written{next(numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("name", ["few", *(pytest.param(x, marks=pytest.mark.slow) for x in [*CASES][1:])])
def test_a_module_has_the_bits_of_the_function(tmp_path, name):
    f, args = CASES[name]
    made = static.export_numba(f, tmp_path / "made.py", *args)
    for scale in (1, -2):
        given = [x * scale if x.dtype == F32 else x for x in args]
        found = loaded(made.path, made.name)(*given)
        for a, b in zip(flatten(found)[0], flatten(static.function(f)(*given))[0], strict=True):
            assert_same_bits(a, b)


@pytest.mark.slow
def test_a_module_trains_the_digits_without_the_library(tmp_path):
    workload = Digits()
    batches = workload.inputs()[:3]
    program = workload.make(static)
    made = static.export_numba(program.call, tmp_path / "step.py", *batches[0], name="step")
    state = [made.state[name] for name in made.parameters if name in made.state]
    np.savez(tmp_path / "given.npz", *state, **{f"x{i}": b[0] for i, b in enumerate(batches)},
             **{f"y{i}": b[1] for i, b in enumerate(batches)})  # fmt: skip
    run = f"""
import sys
import numpy as np
sys.path.insert(0, {str(tmp_path)!r})
from step import step
given = np.load({str(tmp_path / "given.npz")!r})
state = [given[f"arr_{{i}}"].copy() for i in range({len(state)})]
losses = [step(given[f"x{{i}}"], given[f"y{{i}}"], *state)[0] for i in range(3)]
assert not [name for name in sys.modules if name.split(".")[0] in ("common", "static", "dynamic")]
np.savez({str(tmp_path / "found.npz")!r}, np.stack(losses), *state)
"""
    subprocess.run([sys.executable, "-I", "-c", run], check=True, cwd=tmp_path)
    found = np.load(tmp_path / "found.npz")
    wanted = np.stack([program.call(*b).detach().numpy() for b in batches])
    assert found["arr_0"].tobytes() == wanted.tobytes()
    after = static.export_numba(program.call, tmp_path / "again.py", *batches[0], name="step").state
    for i, name in enumerate(x for x in made.parameters if x in made.state):
        assert found[f"arr_{i + 1}"].tobytes() == after[name].tobytes(), name


def test_a_file_is_read_top_down_and_says_what_it_is_for(tmp_path):
    made = static.export_numba(lambda x: (x @ x.T).relu().sum(), tmp_path / "f.py", X, name="energy")
    text = made.path.read_text()
    assert {line for line in text.splitlines() if re.match(r"(from|import) ", line)} == {
        "import numpy as np", "from numba import njit", "from numba.extending import intrinsic",
    }  # fmt: skip
    assert "# test_numba_module.py:" in text
    assert "(x @ x.T).relu().sum()" in text
    assert made.parameters == ("x0",)
    assert made.results == ("result0",)
    defined = re.findall(r"^def (\w+)", text, re.M)
    assert len(defined) == len(set(defined))
    assert defined[-1] == "energy"


@pytest.mark.parametrize("n", [0, 1, 15, 17, 1024, 1025, 2500])
def test_folds_of_the_file_are_those_of_the_definition(n):
    x = special_values(np.random.default_rng(n), (n, 2), "float32", nan=False)
    with np.errstate(all="ignore"):
        flat = np.ascontiguousarray(x.T).reshape(-1)
        for c in range(2):
            assert numba_library.block_sum(flat, c * n, n).tobytes() == sums.sum_oracle(x[:, c]).tobytes()
            assert numba_library.block_product(flat, c * n, n).tobytes() == sums.sum_oracle(x[:, c], True).tobytes()
        acc, out = np.empty(sums.sum_cols_scratch(n, 2), F32), np.empty(2, F32)
        for start, carry, finish, product in (
            (numba_library.start_columns, numba_library.carry_columns, numba_library.finish_columns, False),
            (numba_library.start_products, numba_library.carry_products, numba_library.finish_products, True),
        ):
            start(acc, 0, 2, n)
            for r in range(n):
                if r & 1023 == 0 and r > 0:
                    carry(acc, 0, 2, (r >> 10) - 1)
                lane = acc[(r & 15) * 2 : (r & 15) * 2 + 2]
                lane[:] = lane * x[r] if product else lane + x[r]
            finish(acc, 0, 2, n, out, 0)
            assert out.tobytes() == sums.sum_oracle(x.T, product).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_differences_are_those_of_distances(dtype):
    rng = np.random.default_rng(2)
    for n, k in ((1, 1), (5, 17), (20, 40)):
        a, b, w = (rng.normal(size=size).astype(dtype) for size in (k, (n, k), (n, k)))
        found = [np.empty(n + 1, dtype) for _ in range(3)]
        numba_library.squares_of_differences(a, 0, b.ravel(), 0, found[0], 1, n, k)
        numba_library.magnitudes_of_differences(a, 0, b.ravel(), 0, found[1], 1, n, k)
        numba_library.largest_of_differences(a, 0, b.ravel(), 0, found[2], 1, n, k)
        away = a - b
        assert found[0][1:].tobytes() == np.array([sums.sum_oracle(x * x) for x in away], dtype).tobytes()
        assert found[1][1:].tobytes() == np.array([sums.sum_oracle(abs(x)) for x in away], dtype).tobytes()
        assert found[2][1:].tobytes() == abs(away).max(1).tobytes()
        lanes, points = np.zeros(16 * k + 1, dtype), rng.normal(size=n).astype(dtype)
        numba_library.add_slopes(a, 0, points, 0, w.ravel(), 0, lanes, 1, k, n)
        terms = (a - points[:, None]) * w
        for lane in range(16):
            expected = np.zeros(k, dtype)
            for term in terms[lane::16]:
                expected = expected + term
            assert lanes[1 + lane * k : 1 + (lane + 1) * k].tobytes() == expected.tobytes()


def test_every_function_of_rows_has_its_form():
    """Kernels may call any of them; threads, keys of sorts, draws and huge angles are made in other ways."""
    lacking = [name for name in row_functions.NAMESPACE | array_functions.NAMESPACE if form_of(name)[0] not in LIBRARY]
    assert [x for x in lacking if not x.startswith(("share_", "there_are", "uniform_", "normal_", "huge_"))] == [
        "float_of_bits", "sort_key", "rising_key", "falling_key",
    ]  # fmt: skip


def test_a_tensor_that_is_returned_twice_is_there_twice(tmp_path):
    def f(x):
        y = x * 2
        return y, x + 1, y

    made = static.export_numba(f, tmp_path / "f.py", X, name="f")
    assert made.results == ("result0", "result1", "result0")
    for a, b in zip(loaded(made.path, made.name)(X), (X * 2, X + 1, X * 2), strict=True):
        assert_same_bits(a, b)


def test_what_needs_the_library_is_refused(tmp_path):
    def through_python(x):
        return static.pure_callback(np.sin, static.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(ArgumentError, match=r"test_numba_module.py:\d+: .*what calls Python cannot run"):
        static.export_numba(through_python, tmp_path / "f.py", X, name="f")
    with pytest.raises(ArgumentError, match="no name of a function"):
        static.export_numba(lambda x: x * 2, tmp_path / "f.py", X, name="my f")
    with pytest.raises(ArgumentError, match="word of Python"):
        static.export_numba(lambda x: x * 2, tmp_path / "f.py", X, name="lambda")
    with pytest.raises(OSError, match="nowhere"):
        static.export_numba(lambda x: x * 2, tmp_path / "nowhere" / "f.py", X, name="f")


def test_forms_of_what_the_eager_engine_alone_calls():
    x, v = rng.integers(-2, 3, (3, 4, 10)).astype(F32), rng.normal(size=(3, 2, 5)).astype(F32)
    x[0, 1, 3:5], out, expected = np.nan, np.full(120, 7, F32), np.empty((3, 4, 10), F32)
    windows = (1, 2, 2), (1, 2, 5), (1, 2, 2), (0, 0, 0), (1, 1, 1)
    compiled(put_source(np.dtype(F32), 2), "window_put")(v, x, expected, *window_args(3, (1, 4, 10), windows))
    for plane in range(3):
        LIBRARY["put_at_maxima"](
            v.ravel(), 10 * plane, x.ravel(), 40 * plane, out, 40 * plane, 2, 5, 2, 20, 1, 40, 2, 10
        )  # fmt: skip
    assert out.tobytes() == expected.tobytes()
    totals = np.empty(12, F32)
    LIBRARY["short_sums"](v.ravel(), 0, totals, 2, 6, 5)
    assert totals[2:8].tobytes() == sums.sum_oracle(v.reshape(6, 5)).tobytes()
