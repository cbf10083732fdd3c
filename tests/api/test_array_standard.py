"""The namespace of the array API standard: every function of it against numpy's, in both engines by bits."""

import inspect

import numpy as np
import pytest

import dynamic as tw
import static
from common.api import standard
from common.api.standard import array_elementwise
from common.core.errors import ArgumentError, DeviceError, DTypeError
from tests.bits import assert_same_bits
from tests.helpers.proofs import core, share

XP = tw.tensor([1.0]).__array_namespace__()
A = np.array([[0.5, -0.25, 0.75], [-0.5, 0.125, 0.0]], np.float32)
B = np.array([0.25, 2.0, -1.5], np.float32)
D = np.array(0.5, np.float64)
I, J = np.array([[3, -1, 4], [1, -5, 9]]), np.array([2, 1, 3])
U = np.array([3, 1, 3, 2, 1], np.int32)
T = np.array([[True, False, True], [False, False, True]])
M = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], np.float32)
S = np.stack([M, M @ M])


def each(names, calls):
    return dict.fromkeys(names.split(), calls)


#: Function -> its calls: operands, and what else it is given.
CALLS = {
    **each(
        "abs acos asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite isinf isnan log1p negative "
        "positive real imag reciprocal round sign signbit sin sinh square tan tanh trunc unique_values unique_counts "
        "unique_inverse unique_all nonzero", [(A,)],
    ),
    **each("acosh log log2 log10 sqrt", [(np.abs(B) + 1,)]),
    **each(
        "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum "
        "minimum multiply not_equal remainder subtract", [(A, B), (A, D), (D, A), (A, 0.5), (2, A)],
    ),
    **each("bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor", [(I, J), (I, 1)]),
    **each("logical_and logical_or logical_xor", [(T, T[0])]),
    **each("max min all any count_nonzero",
           [(A, {}), (A, {"axis": 1}), (I, {"axis": (0, -1), "keepdims": True}), (A, {"axis": ()}),
            (I.astype(np.uint8), {})]),
    **each("mean std var sum prod",
           [(A, {}), (A, {"axis": 1, "keepdims": True}), (A, {"axis": (0, 1)}), (A, {"axis": ()})]),
    **each("argmax argmin", [(A, {}), (A, {"axis": 0, "keepdims": True})]),
    **each("cumulative_prod cumulative_sum", [(B, {}), (I, {"axis": 1, "include_initial": True})]),
    **each("ones_like zeros_like empty_like", [(np.ones((2, 3)), {"dtype": np.dtype(np.int32)}), (A, {})]),
    "nextafter": [(A, B), (D, A)], "sort": [(A, {"axis": 0}), (U, {"descending": True})],
    "argsort": [(U, {}), (A, {"axis": 0})], "pow": [(np.abs(A), B), (I, 2)], "logical_not": [(T,)],
    "bitwise_invert": [(I,), (T,)], "where": [(T, A, B), (T, A, 1.0), (T, I, 0)],
    "clip": [(A, -0.25, 0.5), (A, {"min": B}), (I, {"max": 3}), (A, {})],
    "diff": [(A, {}), (A, {"axis": 0, "n": 1, "prepend": A[:1], "append": A[:1]})],
    "full_like": [(A, 7), (I, 2, {"dtype": np.dtype(np.float64)})], "tril": [(M, {}), (A, {"k": -1})],
    "triu": [(M, {}), (A, {"k": 1})], "meshgrid": [(B, B[:2]), (B, B[:2], {"indexing": "ij"})],
    "broadcast_arrays": [(A, B)], "broadcast_to": [(B, (2, 3))], "concat": [([A, A[:1]],), ([A, B], {"axis": None})],
    "expand_dims": [(A, {"axis": 1}), (A, {"axis": (0, -1)})], "flip": [(A,), (A, {"axis": (0,)})],
    "moveaxis": [(S, 0, 2), (S, (0, 1), (1, 2))], "permute_dims": [(S, (2, 0, 1))],
    "repeat": [(A, 2), (A, J, {"axis": 1})], "reshape": [(A, (3, 2)), (A, (-1,), {"copy": True})],
    "roll": [(A, 1), (A, 1, {"axis": (0, 1)})], "squeeze": [(A[None, :, :1], (0, 2)), (A[None], 0)],
    "stack": [([A, A],), ([A, A], {"axis": -1})], "tile": [(A, (2, 1, 2))], "unstack": [(A,), (A, {"axis": 1})],
    "isin": [(I, J), (I, J, {"invert": True})], "take": [(B, J - 1), (A, J - 1, {"axis": 1}), (A, -J, {"axis": -1})],
    "searchsorted": [(np.sort(B), A), (B, A, {"side": "right", "sorter": np.argsort(B)})],
    "take_along_axis": [(A, np.array([[2], [0]]), {"axis": 1})], "matmul": [(A, M), (M, B), (S, M)],
    "matrix_transpose": [(S,)], "tensordot": [(A, M, {"axes": 1}), (A, A, {"axes": ((0, 1), (0, 1))})],
    "vecdot": [(A, B), (I, J)],
}  # fmt: skip
LINALG = {
    **each("cholesky det diagonal inv matrix_norm matrix_transpose slogdet svdvals trace", [(S,)]),
    "eigh": [(M,)], "eigvalsh": [(S,)], "qr": [(M,), (A, {"mode": "complete"})], "svd": [(M,)],
    "cross": [(A, A[::-1].copy()), (A, B)], "matmul": [(A, M)], "matrix_power": [(M, 3), (M, -2)],
    "matrix_rank": [(S,), (M, {"rtol": 0.5})], "outer": [(B, B)], "pinv": [(A,), (M, {"rtol": 1e-3})],
    "solve": [(M, B), (S, S)], "tensordot": [(A, M, {"axes": 1})], "vecdot": [(A, B)],
    "vector_norm": [(A,), (A, {"axis": 1, "keepdims": True}), (S, {"axis": (0, 2), "ord": 1}), (A, {"ord": np.inf})],
}  # fmt: skip
#: Those of data, sizes and dtypes, which other tests call.
OTHERS = {"arange", "asarray", "empty", "eye", "from_dlpack", "full", "linspace", "ones", "zeros", "astype", "can_cast",
          "finfo", "iinfo", "isdtype", "result_type", "__array_namespace_info__", "broadcast_shapes"}  # fmt: skip
#: Functions whose results have sizes that follow from data, which no trace knows.
OF_DATA = {"nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"}
#: Vectors whose sign is a matter of taste.
SIGNED = {"eigh", "qr", "svd"}


def numpys(space, name, *args, **options):
    if name == "empty_like":
        return np.zeros_like(*args, **options)
    if name == "imag":
        return np.zeros_like(*args)
    if options.pop("descending", False):
        return -np.sort(-args[0], **options)
    return getattr(np if space is XP else np.linalg, name)(*args, **options)


def flat(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]


def lifted(x):
    if isinstance(x, list):
        return [lifted(one) for one in x]
    return XP.asarray(x, copy=True) if isinstance(x, np.ndarray) else x


def compared(space, of, name, call):
    """A call, and what numpy says of it; the first of a function that is more than one op also compiled."""
    options = call[-1] if isinstance(call[-1], dict) else {}
    args = call[: len(call) - bool(call and isinstance(call[-1], dict))]
    function = getattr(space, name)
    found = flat(function(*map(lifted, args), **{key: lifted(x) for key, x in options.items()}))
    wanted = flat(numpys(space, name, *args, **options))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == np.shape(y)
        assert x.dtype == np.asarray(y).dtype
        by = np.abs if name in SIGNED else np.asarray
        assert np.allclose(by(x.numpy()), by(y), rtol=2e-5, atol=2e-6, equal_nan=True)
    if name not in OF_DATA and name not in array_elementwise.__all__ and call is of[name][0]:
        arrays = [i for i, x in enumerate(args) if isinstance(x, np.ndarray)]

        def program(*given):
            filled = list(args)
            for i, x in zip(arrays, given, strict=True):
                filled[i] = x
            return tuple(flat(function(*map(lifted, filled), **{key: lifted(x) for key, x in options.items()})))

        for x, y in zip(flat(static.function(program)(*(args[i] for i in arrays))), found, strict=True):
            assert_same_bits(x, y, name)


def test_every_function_is_called_here():
    assert {name for name in XP.__all__ if callable(getattr(XP, name)) and name not in standard.DTYPES} == {
        *CALLS, *OTHERS}  # fmt: skip
    assert set(XP.linalg.__all__) == set(LINALG)
    for space in (XP, XP.linalg):
        for name in space.__all__:
            x = getattr(space, name)
            assert not inspect.isfunction(x) or x.__doc__, name


@pytest.mark.parametrize("name", core(CALLS, lambda name: share(name, 4) == 0))
def test_a_function_agrees_with_numpys(name):
    for call in CALLS[name]:
        with np.errstate(all="ignore"):
            compared(XP, CALLS, name, call)


@pytest.mark.parametrize("name", LINALG)
def test_a_function_of_linear_algebra_agrees_with_numpys(name):
    for call in LINALG[name]:
        compared(XP.linalg, LINALG, name, call)


@pytest.mark.parametrize(
    "call",
    [lambda xp: xp.arange(3), lambda xp: xp.arange(1.0, 2, 0.25), lambda xp: xp.arange(5, 1),
     lambda xp: xp.arange(5, 1, -2), lambda xp: xp.eye(2, 3, k=1), lambda xp: xp.eye(3, k=-5),
     lambda xp: xp.full((2, 1), 3), lambda xp: xp.full(2, True), lambda xp: xp.linspace(0, 1, 5, endpoint=False),
     lambda xp: xp.linspace(-1, 3, 4), lambda xp: xp.ones((2, 2), dtype=xp.int8), lambda xp: xp.zeros(3),
     lambda xp: xp.zeros_like(xp.empty((2, 0))), lambda xp: xp.asarray([[1, 2], [3, 4]]),
     lambda xp: xp.astype(xp.asarray([0.5, 2.0]), xp.int32), lambda xp: xp.from_dlpack(A, copy=True)],
)  # fmt: skip
def test_what_is_made_of_sizes_and_data_agrees_with_numpys(call):
    x, y = call(XP), call(np)
    assert x.shape == y.shape
    assert x.dtype == (np.float32 if y.dtype == np.float64 else y.dtype)  # the default of floats
    assert np.allclose(x.numpy(), y)


def test_memory_is_copied_or_shared_as_asked():
    a = A.copy()
    assert np.shares_memory(XP.asarray(a).numpy(), a)
    assert np.shares_memory(XP.asarray(a, copy=False).numpy(), a)
    assert not np.shares_memory(XP.asarray(a, copy=True).numpy(), a)
    x = XP.asarray(a)
    assert XP.astype(x, XP.float32, copy=False) is x
    assert XP.astype(x, XP.float32) is not x
    assert np.shares_memory(XP.reshape(x, (3, 2), copy=False).numpy(), a)
    for wrong in (lambda: XP.asarray([1.0], copy=False), lambda: XP.asarray(a, dtype=XP.int8, copy=False)):
        with pytest.raises(ArgumentError, match="copy"):
            wrong()
    assert XP.asarray(memoryview(b"ab")).tolist() == [97, 98]


def test_dtypes_say_what_they_are():
    assert XP.finfo(XP.float64).eps == np.finfo(np.float64).eps
    assert XP.iinfo(XP.asarray([1], dtype=XP.int8)) == (8, 127, -128, np.int8)
    assert XP.isdtype(XP.uint8, ("unsigned integer", "bool"))
    assert not XP.isdtype(XP.uint8, XP.int8)
    assert XP.can_cast(XP.int8, XP.int16)
    assert not XP.can_cast(XP.asarray(1.0), XP.int64)
    assert XP.result_type(XP.asarray(1, dtype=XP.float64), XP.float32, 1) == np.float64
    assert XP.result_type(XP.int8, XP.uint8) == np.int16
    assert XP.broadcast_shapes((2, 1), (3,)) == (2, 3)
    about = XP.__array_namespace_info__()
    assert list(about.dtypes(kind="real floating")) == ["float32", "float64"]
    assert about.default_device() in about.devices()
    assert about.default_dtypes()["integral"] == np.int64
    assert about.capabilities()["boolean indexing"]
    with pytest.raises(ArgumentError, match="kinds are"):
        XP.isdtype(XP.int8, "float")
    with pytest.raises(ArgumentError, match="array or a dtype"):
        XP.result_type(1, 2.0)


def test_one_namespace_for_both_engines_and_for_traces():
    assert tw.array_api.sum is static.array_api.sum is XP.sum
    assert tw.array_api.linalg is XP.linalg
    seen = []

    def norm(x):
        xp = x.__array_namespace__(api_version="2023.12")
        seen.append(xp)
        return xp.sqrt(xp.sum(x * x, axis=-1))

    x = tw.tensor(A, requires_grad=True)
    norm(x).sum().backward()
    gradient = static.function(static.grad(lambda x: norm(x).sum()))(A)
    assert_same_bits(gradient, x.grad, "gradient")
    assert all(xp is XP for xp in seen)
    with pytest.raises(ArgumentError, match="versions are"):
        x.__array_namespace__(api_version="1999.12")
    assert x.to_device("cpu") is x
    with pytest.raises(DeviceError):
        x.to_device("cuda")
    assert complex(tw.tensor(2.5)) == 2.5
    with pytest.raises(AttributeError, match="no 'fft'"):
        XP.fft  # noqa: B018


@pytest.mark.parametrize(
    "wrong",
    [lambda: XP.add(1, 2), lambda: XP.squeeze(XP.ones((2,)), 0), lambda: XP.take(XP.ones((2, 2)), XP.arange(1)),
     lambda: XP.nonzero(XP.asarray(1.0)), lambda: XP.cumulative_sum(XP.ones((2, 2))),
     lambda: XP.sum(XP.ones((2, 2)), axis=(0, 0))],
)  # fmt: skip
def test_bad_arguments_are_refused(wrong):
    with pytest.raises(ArgumentError):
        wrong()
    with pytest.raises(IndexError, match="out of range"):
        XP.sum(XP.ones(2), axis=1)
    with pytest.raises(DTypeError):
        XP.finfo(XP.int8)
    with pytest.raises(RuntimeError, match="are not equal"):
        XP.vecdot(XP.ones((2, 3)), XP.ones((2, 1)))
