"""Arguments of a kind that no one means: refused at once, in both engines, instead of taken for something else."""

from __future__ import annotations

import os
import threading
import time
from functools import partial

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import AllocationError, ArgumentError, TwingradError
from common.core.op import REGISTRY
from dynamic.utils.tensorboard import SummaryWriter

ENGINES = [dynamic, static]

SQUARE = [[2.0, 1.0], [1.0, 3.0]]

#: Calls with something in the place of a bool; `x` is a matrix.
SWITCHES = {
    "max": lambda tw, x, b: tw.max(x, 1, b),
    "argmin": lambda tw, x, b: tw.argmin(x, 1, b),
    "median": lambda tw, x, b: tw.median(x, 1, b),
    "nanmedian": lambda tw, x, b: tw.nanmedian(x, 1, b),
    "mode": lambda tw, x, b: tw.mode(x, 1, b),
    "kthvalue": lambda tw, x, b: tw.kthvalue(x, 1, 1, b),
    "quantile": lambda tw, x, b: tw.quantile(x, 0.5, 1, b),
    "logsumexp": lambda tw, x, b: tw.logsumexp(x, 1, b),
    "vector_norm": lambda tw, x, b: tw.linalg.vector_norm(x, 2, 1, b),
    "matrix_norm": lambda tw, x, b: tw.linalg.matrix_norm(x, "fro", (0, 1), b),
    "solve": lambda tw, x, b: tw.linalg.solve(x, x, left=b),
    "solve_triangular": lambda tw, x, b: tw.linalg.solve_triangular(x, x, upper=b),
    "lu_solve": lambda tw, x, b: tw.linalg.lu_solve(*tw.linalg.lu_factor(x), x, left=b),
    "lu_factor": lambda tw, x, b: tw.linalg.lu_factor(x, pivot=b),
    "triangular_solve": lambda tw, x, b: tw.triangular_solve(x, x, b),
}


@pytest.mark.parametrize("tw", ENGINES)
@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [2**31, "yes", 1.5])
def test_a_switch_is_a_bool(tw, name, value):
    call = SWITCHES[name]
    call(tw, tw.tensor(SQUARE), True)
    with pytest.raises(TypeError):
        call(tw, tw.tensor(SQUARE), value)


LONG = np.zeros(1 << 21, np.float32)

#: Calls that would go through an array element by element, or make as many things as a number says.
ENDLESS = {
    "vector_to_parameters": lambda tw: tw.nn.utils.vector_to_parameters(tw.ones(3), tw.tensor(LONG)),
    "parameters_to_vector": lambda tw: tw.nn.utils.parameters_to_vector(tw.tensor(LONG)),
    "optimizer": lambda tw: tw.optim.SGD(tw.tensor(LONG), 0.1),
    "muon": lambda tw: tw.optim.Muon([tw.nn.Parameter(tw.ones(2, 2))], 0.1, ns_coefficients=LONG),
    "datasets": lambda tw: tw.utils.data.ConcatDataset(tw.tensor(LONG)),
    "batch norm": lambda tw: tw.nn.BatchNorm2d(1.5),
    "group norm": lambda tw: tw.nn.GroupNorm("1", 4),
    "cutoffs": lambda tw: tw.nn.AdaptiveLogSoftmaxWithLoss(4, 10, tw.tensor(LONG)),
    "schedulers": lambda tw: tw.optim.lr_scheduler.ChainedScheduler(tw.tensor(LONG)),
    "milestones": lambda tw: tw.optim.lr_scheduler.SequentialLR(None, [], tw.tensor(LONG)),
    "tensors": lambda tw: tw.cat(tw.tensor(LONG)),
    "prelu": lambda tw: tw.nn.PReLU(LONG),
    "apply_gradients": lambda tw: tw.optim.SGD([tw.nn.Parameter(tw.ones(2))], 0.1).apply_gradients(tw.tensor(LONG)),
    "pad_sequence": lambda tw: tw.nn.utils.rnn.pad_sequence(range(1 << 40)),
    "pack_sequence": lambda tw: tw.nn.utils.rnn.pack_sequence(range(1 << 40)),
    "scores by pair": lambda tw: tw.nn.utils.prune.global_unstructured(
        [(tw.nn.Linear(3, 2), "weight")], tw.nn.utils.prune.L1Unstructured, range(1 << 40), amount=0.5
    ),
    "processes": lambda tw: tw.multiprocessing.spawn(print, nprocs=2**64),
    "no processes": lambda tw: tw.multiprocessing.spawn(print, nprocs=-1),
}


@pytest.mark.parametrize("tw", ENGINES)
@pytest.mark.parametrize("name", ENDLESS)
def test_what_would_take_for_ever_is_refused_at_once(tw, name):
    start = time.process_time()
    with pytest.raises((TwingradError, TypeError)):
        ENDLESS[name](tw)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("tw", ENGINES)
def test_losses_of_logits_take_floats_only(tw):
    loss = tw.nn.functional.binary_cross_entropy_with_logits
    for dtypes in ((tw.int64, tw.float32), (tw.float32, tw.bool), (tw.float32, tw.int64)):
        with pytest.raises(TypeError, match="must be of floats"):
            loss(*(tw.ones(2, dtype=dtype) for dtype in dtypes))


class Unsure:
    """A value that does not say whether it equals another one: ``==`` gives an array."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return np.ones(2, bool)

    def __hash__(self):
        return self.number


def test_static_arguments_that_cannot_be_compared():
    compiled = static.function(lambda x, how: x * 2)
    for how in (Unsure(1), Unsure(2)):
        np.testing.assert_array_equal(compiled(np.ones(2), how), [2, 2])
    with pytest.raises(ArgumentError, match="must be hashable, == a bool"):
        compiled(np.ones(2), Unsure(1))


@pytest.mark.parametrize("keys", [(dynamic.ones(2), dynamic.ones(2)), (np.float64("nan"),) * 2, ((1, 2), (1, 2))])
def test_any_key_may_stand_in_a_dict_of_arguments(keys):
    compiled = static.function(lambda x, named: x * next(iter(named.values())))
    for key in keys:
        np.testing.assert_array_equal(compiled(np.ones(2), {key: 3.0}), [3, 3])


TRANSFORMS = {
    "grad": lambda tw, v: tw.func.grad(lambda y: y * y)(v),
    "jacrev": lambda tw, v: tw.func.jacrev(lambda y: y * y)(v),
    "jacfwd": lambda tw, v: tw.func.jacfwd(lambda y: y * y)(v),
    "hessian": lambda tw, v: tw.func.hessian(lambda y: y * y * y)(v),
    "vjp": lambda tw, v: tw.func.vjp(lambda y: y * y, v)[1](np.asarray(1.0, v.dtype))[0],
}


@pytest.mark.parametrize("tw", ENGINES)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_numbers_of_numpy_are_differentiated_in_a_trace(tw, name):
    """numpy's float64 is a float of Python's too, but one with derivatives."""
    call, expected = partial(TRANSFORMS[name], tw), {"hessian": 9.0}.get(name, 3.0)
    for v in (np.float64(1.5), np.float32(1.5), np.array(1.5)):
        assert float(call(v)) == expected
        compiled = static.function(lambda x, v=v: x + call(v))
        np.testing.assert_array_equal(compiled(np.ones(2)), [1 + expected] * 2)


@pytest.mark.parametrize("tw", ENGINES)
def test_a_cotangent_that_no_float_holds_is_refused(tw):
    pull = tw.vjp(lambda x: x * 2, tw.ones(()))[1]
    for run in (lambda: pull(10**400), lambda: tw.function(lambda: pull(10**400))()):
        with pytest.raises(TwingradError):
            run()


def test_a_tensor_is_a_sequence_of_its_rows():
    """As PyTorch packs and pads it."""
    rows = dynamic.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert dynamic.nn.utils.rnn.pack_sequence(rows).data.tolist() == [1, 3, 2, 4]
    assert dynamic.nn.utils.rnn.pad_sequence(rows).tolist() == [[1, 3], [2, 4]]


def test_a_name_of_pooling_with_indices_says_what_to_call():
    for name in ("max_pool2d", "adaptive_max_pool1d", "fractional_max_pool2d"):
        with pytest.raises(AttributeError, match="return_indices=True"):
            getattr(dynamic.nn.functional, f"{name}_with_indices")


def test_what_a_process_or_a_thread_could_not_do_is_refused_before_it_starts(tmp_path):
    with pytest.raises(ArgumentError, match="fn must be a function"):
        dynamic.multiprocessing.spawn(np.ones(3))
    with pytest.raises(ArgumentError, match="flush_secs"):
        SummaryWriter(str(tmp_path), flush_secs=2**62)


def test_processes_are_counted():
    with pytest.raises(ArgumentError, match="nprocs"):
        dynamic.multiprocessing.spawn(print, nprocs=1 << 20)


def test_what_is_saved_to_a_pipe_goes_through_it_and_a_link_stays(tmp_path):
    """Not in the place of the pipe: a device such as /dev/null would be gone."""
    pipe, link, plain = tmp_path / "pipe", tmp_path / "link", tmp_path / "plain.pt"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
        found = []
        reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
        reader.start()
        dynamic.save({"x": dynamic.ones(3)}, pipe)
        reader.join(10)
        pipe.with_name("kept").write_bytes(found[0])
        assert dynamic.load(pipe.with_name("kept"))["x"].tolist() == [1, 1, 1]
        assert pipe.is_fifo()
    plain.write_bytes(b"")
    link.symlink_to(plain)
    dynamic.save({"x": dynamic.ones(3)}, link)
    assert link.is_symlink()
    assert dynamic.load(plain)["x"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("engine", [dynamic, static], ids=["dynamic", "static"])
def test_rows_and_ranges_that_no_memory_holds_are_refused_at_once(engine):
    """A function that is given a tensor for a list goes through its rows."""
    rows = engine.ones(1, 1).expand(1 << 20, 1 << 20)
    for call in (engine.nn.ModuleList, engine.nn.ParameterList, list, engine.nn.utils.rnn.pad_sequence):
        with pytest.raises(AllocationError, match=r"iteration|can't allocate memory"):
            call(rows)
    x = engine.ones(3)
    for key in (range(1 << 40), range(0, 1 << 70, 3), range(1 << 40, 0, -1)):
        with pytest.raises(AllocationError, match="getitem"):
            x[key]
        with pytest.raises(AllocationError, match="getitem"):
            x[key] = 1
    assert x[range(1)].tolist() == [1]
    assert list(engine.ones(2, 1).expand(2, 3))[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [Ellipsis, "nothing", None, "tanh"])
def test_a_generator_draws_what_it_knows(name):
    with pytest.raises(ArgumentError, match="rand"):
        dynamic.Generator().draw(name, (2,), np.dtype("float32"))
    with pytest.raises(KeyError):
        REGISTRY["no such op"]
