"""Hostile calls of everything public: each works, or raises an error of the library, or what the user's code raises."""

import fractions
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import AllocationError, ArgumentError, DTypeError, ShapeError, TwingradError
from tests.conftest import ROOT
from tests.helpers import hostile
from tests.helpers.hostile_public import NOT_CALLED
from tests.helpers.proofs import examples


def test_a_sample_of_hostile_calls(tmp_path):
    trace = tmp_path / "running"
    command = [
        sys.executable,
        "-m",
        "tests.helpers.hostile",
        "--calls",
        str(examples(400)),
        "--seed",
        "5",
        "--trace-file",
        str(trace),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    running = "" if done.returncode in (0, 1) else f"the process died in: {trace.read_text(encoding='utf-8')}"
    assert done.returncode == 0, f"{running}\n{done.stdout}\n{done.stderr[-3000:]}"


def test_calls_are_the_same_on_every_run():
    names = ["dynamic.add", "Tensor.put_", "optim.SGD", "session.gradients"]
    texts = [re.sub("0x[0-9a-f]+", "", str([str(row(2)) for row in hostile.rows(3, names).values()])) for _ in range(2)]
    assert texts[0] == texts[1]


X = dynamic.ones(2, 3)


LINEAR: Any = dynamic.nn.Linear  # called against its types
ENDLESS: list[Any] = [1]
ENDLESS.append(ENDLESS)
FORK: Any = dynamic.random.fork_rng
NODE: Any = dynamic.autograd.graph.Node


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: X.masked_fill_(-100, X), "masked_fill_(): argument 'mask' must be Tensor, not int (-100)"),
        (lambda: X.type_as("x"), "type_as(): argument 'other' must be Tensor, not str ('x')"),
        (lambda: LINEAR("a", 2), "Linear(): argument 'in_features' must be int, not str ('a')"),
        (lambda: LINEAR(), "Linear() missing 2 required positional arguments"),
        (lambda: dynamic.nn.Linear(3, 2)("x"), "Linear(): argument 'input' must be Tensor, not str ('x')"),
        (lambda: static.function(static.nn.Linear(3, 2))((X,)), "Linear(): argument 'input' must be Tensor, not tuple"),
        (lambda: static.function(static.nn.Sequential(LINEAR(3, 2)))({"a": X}), "'input' must be Tensor, not dict"),
        (lambda: [*dynamic.utils.data.DataLoader([ENDLESS] * 2)], "'batch' is nested too deeply, or contains itself"),
        (
            lambda: dynamic.func.linearize(lambda x: x * x, X)[1]("x"),
            "linearize: tangent 0 must be Tensor, not str ('x')",
        ),
        (lambda: dynamic.randn_like(X, None, 3), "argument 'generator' must be Generator"),
        (lambda: X + "a", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
        (lambda: dynamic.zeros(2.5), "size(): argument 'size' must be int, not float (2.5)"),
        (lambda: X.reshape(2, "3"), "must be int, not str ('3')"),
        (lambda: NODE(3, X, (), (), (), None, 1), "Node(): "),
        (lambda: X // np.array(b""), "expected a Tensor or a number, not ndarray"),
        (lambda: dynamic.matrix_power(X, 10**5000), "does not fit into int64"),
        (lambda: static.gradients(-100), "gradients() missing 1 required positional argument: 'xs'"),
        (lambda: dynamic.autograd.grad(3, 4), "given outputs=3"),
        (lambda: static.gradients(X, X), "gradients(): ys and xs are tensors of a graph"),
    ],
)
def test_the_function_the_argument_and_the_line_are_named(call, words):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert words in str(caught.value)
    assert (
        "+: " in words
        or "of a graph" in words
        or "int64" in words
        or "expected" in words
        or "itself" in words
        or "tangent" in words
        or f"{__file__}:" in str(caught.value)
    )


@pytest.mark.parametrize(
    ("manager", "words"),
    [
        (lambda: FORK(enabled=np.zeros(2)), "fork_rng(): argument 'enabled' must be bool"),
        (lambda: static.control_dependencies(np.zeros(2)), "argument 'control_inputs' must be Sequence"),
        (lambda: static.get_default_graph().control_dependencies(5), "argument 'control_inputs' must be Sequence"),
    ],
)
def test_a_context_manager_refuses_when_it_is_entered(manager, words):
    block = manager()
    with pytest.raises(ArgumentError, match=re.escape(words)) as caught, block:
        pass
    assert f"{__file__}:" in str(caught.value)


class Mine(Exception):
    pass


def fail(*_):
    raise Mine


class Fails:
    __array__ = __index__ = __iter__ = __bool__ = fail


@pytest.mark.parametrize(
    "call",
    [
        lambda tw: tw.grad(fail)(np.ones(2, np.float32)),
        lambda tw: tw.function(fail)(np.ones(2, np.float32)),
        lambda tw: tw.vjp(fail, np.ones(2, np.float32)),
        lambda tw: tw.nn.Linear(3, 2).apply(fail),
        lambda tw: tw.optim.lr_scheduler.LambdaLR(tw.optim.SGD(tw.nn.Linear(3, 2).parameters(), lr=1.0), fail),
        lambda tw: tw.autograd.functional.jacobian(fail, dynamic.ones(2)),
        lambda tw: tw.nn.Sequential(*Fails()),
        lambda tw: tw.optim.SGD(Fails(), lr=0.1),
        lambda tw: tw.tensor([Fails()]),
    ],
)
@pytest.mark.parametrize("tw", [dynamic, static])
def test_what_the_users_code_raises_goes_through_as_it_is(call, tw):
    with pytest.raises(Mine):
        call(tw)


def test_a_hook_of_a_user_raises_through_backward():
    x = dynamic.ones(2, requires_grad=True)
    x.register_hook(fail)
    with pytest.raises(Mine):
        (x * 2).sum().backward()


@pytest.mark.parametrize("error", [KeyError("a"), AttributeError("b"), IndexError("c"), StopIteration("d")])
def test_the_fuzzer_sees(error):
    assert hostile.objection(error)
    assert hostile.objection(TwingradError("")) is not None
    assert hostile.objection(ArgumentError("f(): argument 'x' is wrong")) is None


WIDE = dynamic.ones(1).expand(2**40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dynamic.ones(1).expand(2**30).unbind(),
        lambda: dynamic.ones(1).expand(2**30).split(1),
        lambda: dynamic.ones(1).expand(2**30).chunk(2**30),
        lambda: dynamic.tensor_split(dynamic.ones(1).expand(2**30), 2**30),
        lambda: dynamic.zeros(0).chunk(2**30),
        lambda: dynamic.ones(1).expand(2**30).tolist(),
        lambda: WIDE.sum(),
        lambda: WIDE.nonzero(),
        lambda: WIDE.max(),
        lambda: static.argwhere(np.broadcast_to(np.float32(1), (2**20, 2**20))),
        lambda: dynamic.nn.RNN(3, 2, num_layers=2**31),
        lambda: dynamic.nn.LSTM(3, 2, num_layers=10**5000),
        lambda: static.nn.Transformer(4, 2, num_decoder_layers=2**62),
        lambda: static.map(lambda x: x * 2, dynamic.ones(1, 1).expand(2**40, 2**10)),
        lambda: static.function(lambda x: x.unbind())(np.broadcast_to(np.float32(1), (2**30,))),
    ],
)
def test_what_would_not_come_back_is_refused(call):
    with pytest.raises(AllocationError):
        call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("tw", [dynamic, static])
def test_indices_of_any_integers(tw, dtype):
    x, i = np.arange(6.0).reshape(2, 3), np.array([[1, 0, 1]])

    def f(tw, x, i):
        return tw.gather(x, 0, i), tw.index_select(x, 1, i[0]), tw.take_along_dim(x, i if dtype == "uint8" else -i, 0)

    for run in (lambda: f(tw, x, i.astype(dtype)), lambda: tw.function(lambda *a: f(tw, *a))(x, i.astype(dtype))):
        first, second, third = (np.asarray(y).tolist() for y in run())
        assert (first, second) == ([[3.0, 1.0, 5.0]], [[1.0, 0.0, 1.0], [4.0, 3.0, 4.0]])
        assert third == [[3.0, 1.0, 5.0]]


PADS = {(-1, 2): [1, 2, 3, 4, 5, 1, 2], (2, -1): [3, 4, 0, 1, 2, 3, 4], (-3, -2): [3], (-3, -3): [], (0, -6): []}


@pytest.mark.parametrize("tw", [dynamic, static])
def test_refusals_of_what_pytorch_takes_are_gone(tw):
    """PyTorch's results for the same calls."""
    for run in (lambda f, *a: f(*map(dynamic.as_tensor, a)), lambda f, *a: tw.function(f)(*a)):
        y = np.arange(6.0)[None, None]
        for amounts, expected in PADS.items():
            got = run(lambda x, p=amounts: tw.nn.functional.pad(x, p, mode="circular"), y)
            assert np.asarray(got).ravel().tolist() == expected
        for amounts in ((-4, -3), (-3, 4), (7, -6)):
            with pytest.raises(ShapeError):
                run(lambda x, p=amounts: tw.nn.functional.pad(x, p, mode="circular"), y)
        assert np.asarray(run(lambda x: +x, y)).tolist() == y.tolist()
        with pytest.raises(DTypeError, match="on a bool tensor is not supported"):
            run(lambda x: +x, y > 0)
        a, b = np.arange(6.0).reshape(2, 3), np.array([[1.0, 2.0, 3.0]])
        loss = run(lambda x, t, v: tw.nn.functional.gaussian_nll_loss(x, t, v, reduction="none"), a, b, b)
        assert np.asarray(loss).shape == (2, 3)
        divergence = run(
            lambda x, t: tw.nn.functional.kl_div(x, t, reduction="batchmean"), np.array(-1.0), np.array(0.5)
        )
        assert np.isclose(float(divergence), 0.1534264)
    parts = [part.tolist() for part in dynamic.tensor_split(dynamic.arange(6), dynamic.tensor([1, 4]))]
    assert parts == [[0], [1, 2, 3], [4, 5]]
    assert [len(part) for part in dynamic.arange(6).tensor_split(dynamic.tensor(4))] == [2, 2, 1, 1]
    with pytest.raises(DTypeError, match="dtype of long"):
        dynamic.tensor_split(dynamic.arange(6), dynamic.tensor([1.5]))
    assert tw.optim.SGD(tw.nn.Linear(2, 2).parameters(), lr=np.array(0.25)).param_groups[0]["lr"] == 0.25


@pytest.mark.parametrize("traced", [False, True])
def test_batch_norm_of_nothing_and_of_all_batches(traced):
    for tw in (dynamic, static):
        norm, average = tw.nn.BatchNorm1d(2), tw.nn.BatchNorm1d(2, momentum=None)
        for module, shape in ((norm, (0, 2)), (norm, (3, 2, 0)), (average, (0, 2))):
            run = tw.function(module) if traced else module
            run(np.ones(shape, np.float32))
            assert module.running_mean.tolist() == [0, 0]
            assert module.running_var.tolist() == [1, 1]
        average = tw.nn.BatchNorm1d(2, momentum=None)
        run = tw.function(lambda x, m=average: m(x)) if traced else average
        for k in (1, 2, 3):
            run(np.arange(6, dtype=np.float32).reshape(3, 2) * k)
        assert average.running_mean.tolist() == [4.0, 6.0]


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_all_nan_extremes_share_their_gradient(name):
    x = np.array([np.nan, 1.0, np.nan, np.nan], np.float32)
    for tw in (dynamic, static):
        f = tw.function(tw.grad(lambda x: getattr(x, name)()))
        third = float(np.float32(1) / np.float32(3))
        assert np.asarray(f(x)).tolist() == [third, 0, third, third]


def test_everything_public_is_called():
    """Each function and class that a public module lists has a row, and so have the methods of the classes."""
    rows = hostile.rows(0)
    ends = {tuple(name.split(".")[-2:]) for name in rows} | {("session", name.partition(".")[2]) for name in rows}
    missed = [
        path for path in hostile.listed()
        if path not in rows and tuple(path.split(".")[-2:]) not in ends
        and ("session", path.rpartition(".")[2]) not in ends and not path.rpartition(".")[2].startswith(NOT_CALLED)
    ]  # fmt: skip
    assert missed == []
    assert len(rows) > 2800


@pytest.mark.parametrize("size", [fractions.Fraction(1, 3), fractions.Fraction(4, 1), 2.0, np.float64(2), "3", None])
def test_a_size_that_is_no_int_reaches_no_kernel(size):
    calls = [
        lambda: LINEAR(size, 3), lambda: LINEAR(3, size), lambda: dynamic.nn.Embedding(3, size),
        lambda: dynamic.rand(size),
        lambda: dynamic.nn.Transformer(dim_feedforward=size), lambda: dynamic.nn.Conv2d(1, size, 3),
        lambda: static.function(lambda: static.zeros(2, size))(),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError):
            call()


class Endless:
    __iter__ = fail

    def __len__(self):
        return 1


@pytest.mark.parametrize("dims", ["a", 1.5, np.ones((2, 2)), dynamic.ones(2, 2), Endless()])
def test_dimensions_that_are_no_ints_are_not_gone_through(dims):
    for tw in (dynamic, static):
        solve = tw.function(lambda a, b: tw.linalg.tensorsolve(a, b, dims=dims))  # noqa: B023
        for run in (solve, lambda a, b: tw.linalg.tensorsolve(tw.tensor(a), tw.tensor(b), dims)):  # noqa: B023
            with pytest.raises(ArgumentError):
                run(np.eye(2), np.ones(2))


def test_negative_sizes_are_refused_as_pytorch_refuses_them():
    for call in (lambda: LINEAR(-1, 3), lambda: LINEAR(3, -1), lambda: dynamic.nn.Embedding(-3, 2)):
        with pytest.raises(RuntimeError, match="negative dimension"):
            call()


@pytest.mark.parametrize("name", ["avg_pool1d", "lp_pool1d", "adaptive_avg_pool1d", "binary_cross_entropy"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "bool"])
def test_a_dtype_without_kernel_is_refused_by_its_name(name, dtype):
    x, more = (
        np.ones((1, 1, 8), dtype),
        {"lp_pool1d": (2, 2), "binary_cross_entropy": (np.ones((1, 1, 8), int),)}.get(name, (2,)),
    )
    for tw in (dynamic, static):
        f = getattr(tw.nn.functional, name)
        for run in (lambda: f(x, *more), lambda: tw.function(lambda x: f(x, *more))(x)):  # noqa: B023
            if name == "lp_pool1d":
                continue
            with pytest.raises(NotImplementedError, match=f"not implemented for {dtype}"):
                run()


def test_dtypes_without_kernels_reach_none():
    half, record = np.zeros((2, 3), np.float16), np.dtype([("a", "f4")])
    for call in (
        lambda: static.max(1e300, half),
        lambda: dynamic.linalg.vector_norm(X, dtype=record),
        lambda: static.function(lambda x: static.linalg.vector_norm(x, dtype=record))(np.ones(3, np.float32)),
    ):
        with pytest.raises(DTypeError, match="is not supported"):
            call()


def test_numbers_of_numpy_decide_no_dtype():
    for p in (0.25, np.float64(0.25), np.float32(0.25)):
        for name in ("dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout"):
            y = getattr(dynamic.nn.functional, name)(np.ones((2, 3), np.float32), p=p, training=True)
            assert y.dtype == np.float32


def test_more_elements_than_bytes_can_be_counted():
    with pytest.raises(AllocationError, match="more bytes than"):
        dynamic.arange(2**63 - 1)
    for call in (lambda: list(WIDE), lambda: dynamic.Tensor(2**62, 4), lambda: dynamic.IntTensor(2**62, 4)):
        with pytest.raises(AllocationError):
            call()


NESTED: list[Any] = []
NESTED.append(NESTED)


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.permute(10**5000, 0),
        lambda: dynamic.nn.ModuleDict({"a": LINEAR(1, 1)})[10**5000],  # type: ignore[index]
        lambda: dynamic.vmap(lambda x: x, in_dims=NESTED)(X),
        lambda: dynamic.vmap(lambda x: x, in_dims=10**5000)(X),
        lambda: dynamic.vmap(lambda x, y: x, in_dims=(-(10**5000), 0))(3, X),
        lambda: dynamic.vmap(lambda x: x, out_dims=10**5000)(X),
        lambda: dynamic.grad(lambda x: x.sum(), argnums=(10**5000,))(X),
        lambda: X.expand(10**5000, 2, 3),
        lambda: [getattr(X, name)(10**5000) for name in ("sum", "mean", "amax", "prod", "softmax", "cumsum")],
        lambda: dynamic.Tensor(-(10**5000)),
        lambda: dynamic.autograd.graph.RemovableHandle.go_beyond(range(2**40)),
        lambda: static.function(lambda x: static.prod(x, keepdim=NESTED))(np.ones(3)),
        lambda: static.function(lambda: static.std_mean(X, dim=1, keepdim=NESTED))(),
        lambda: static.function(lambda: static.any(X, 1, NESTED))(),
        lambda: static.function(lambda: X.nansum(1, NESTED))(),
        lambda: static.function(lambda: X.norm(2, 1, NESTED))(),
        lambda: X.__setitem__([1, NESTED], 0.0),
        lambda: dynamic.profiler.profile().end("a", range(2**40), 1),
    ],
)
def test_values_that_cannot_be_shown(call):
    with pytest.raises(TwingradError):
        call()


@pytest.mark.parametrize("name", ["ASGD", "Adam", "SGD", "RMSprop"])
def test_an_option_of_an_optimiser_that_is_an_array_is_refused(name):
    option = {"ASGD": "alpha", "Adam": "eps", "SGD": "momentum", "RMSprop": "alpha"}[name]
    with pytest.raises(ValueError, match=f"option '{option}'|ambiguous|Invalid|argument '{option}'"):
        getattr(dynamic.optim, name)(LINEAR(3, 2).parameters(), lr=0.1, **{option: np.ones(3)})


INPLACE = ["ReLU", "SiLU", "Hardsigmoid", "RReLU", "ELU", "Dropout"]


@pytest.mark.parametrize("name", INPLACE)
def test_a_module_does_not_lose_a_write(name):
    swapped, locked = np.ones((2, 3), ">f4"), np.broadcast_to(np.float32(1), (2, 3))
    for tw in (dynamic, static):
        module = getattr(tw.nn, name)(inplace=True)
        for array in (swapped, locked):
            for run in (module, tw.function(lambda x, m=module: m(x))):
                with pytest.raises(ArgumentError):
                    run(array)
