"""A global batch on 1 to 8 ranks: the same bits in losses, gradients, buffers and parameters, in both engines."""

import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError
from common.parallel import addition_tree, buckets, cost_model
from common.parallel.addition_tree import added, share_of, spans_within
from tests.bits import assert_same_bits
from tests.helpers import pipe_ranks

ENGINES = {"dynamic": dynamic, "static": static}
ROOT = Path(__file__).resolve().parents[2]
STEPS, MICRO_BATCHES = 3, 8
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
ALONE = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def trained(tw, ranks, micro_batches=MICRO_BATCHES, bucket_bytes=300):
    """Losses and state of a small run with dropout, running statistics, and a parameter that few samples reach."""
    tw.manual_seed(3)
    nn = tw.nn
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Dropout(0.3), nn.Tanh(), nn.Linear(7, 3))
    model.seldom, model.unused = nn.Parameter(tw.ones(2)), nn.Parameter(tw.ones(2, dtype=tw.float64))
    optimizer = tw.optim.Adam(model.parameters(), lr=0.05)
    batch = tw.parallel.GlobalBatch(model, micro_batches, ranks, bucket_bytes=bucket_bytes)

    @tw.function
    def forward(x, y):
        return nn.functional.cross_entropy(model(x), y)

    def loss_of(x, y):
        loss = forward(x, y)
        return loss + model.seldom.sum() * 0.5 if int(y[0]) == 1 else loss

    numbers, losses = np.random.default_rng(4), []
    for _ in range(STEPS):
        x, y = numbers.normal(size=(21, 5)).astype(np.float32), numbers.integers(0, 3, 21)
        optimizer.zero_grad()
        losses.append(np.asarray(batch.backward(loss_of, x, y)))
        optimizer.step()
    gradients = [np.zeros(0) if p.grad is None else np.asarray(p.grad) for p in model.parameters()]
    state = [np.array(x.detach()) for x in (*model.parameters(), *model.buffers())]
    return [*losses, *gradients, *state, tw.random.get_rng_state()], batch.nbytes_sent


@pytest.mark.parametrize(
    ("engine", "count"),
    [("dynamic", 2), ("static", 3), pytest.param("dynamic", 4, marks=pytest.mark.slow), ("static", 8)],
)
def test_bits_do_not_depend_on_the_number_of_ranks(engine, count):
    wanted, nbytes = trained(dynamic, None)
    assert nbytes == 0
    sent = []
    for found, nbytes in pipe_ranks.run(lambda ranks: trained(ENGINES[engine], ranks), count):
        for x, y in zip(found, wanted, strict=True):
            assert_same_bits(x, y, f"on {count} ranks")
        sent.append(nbytes)
    if count != 3:  # every rank has one whole part of the tree, so all send as much as a ring would
        gradients = 4 * (5 * 7 + 7 + 7 + 7 + 7 * 3 + 3 + 2) + 8 * 2
        numbers = 4 * (7 + 7) + 8 * (8 + 1) + 8
        assert sum(sent) == STEPS * 2 * (count - 1) * (gradients + numbers)


def test_more_ranks_than_micro_batches_and_other_bucket_sizes():
    wanted, _ = trained(dynamic, None, micro_batches=3)
    for size, count in ((1, 4), (10**6, 5)):
        run = pipe_ranks.run(lambda ranks, size=size: trained(dynamic, ranks, 3, size), count)
        for found, _ in run:
            for x, y in zip(found, wanted, strict=True):
                assert_same_bits(x, y, f"on {count} ranks")


def test_gradients_are_those_of_the_mean_loss():
    model = dynamic.nn.Linear(4, 2, dtype=dynamic.float64)
    x, y = dynamic.randn(10, 4, dtype=dynamic.float64), dynamic.randn(10, 2, dtype=dynamic.float64)
    loss_of = lambda x, y: dynamic.nn.functional.mse_loss(model(x), y)  # noqa: E731
    whole = loss_of(x, y)
    whole.backward()
    expected, model.weight.grad = model.weight.grad, dynamic.ones_like(model.weight)
    loss = dynamic.parallel.GlobalBatch(model, 4).backward(loss_of, x, y)
    assert loss.dtype == dynamic.float64
    assert abs(float(loss) - float(whole)) < 1e-14
    np.testing.assert_allclose(model.weight.grad - 1, expected, rtol=1e-12)


def test_a_bucket_is_sent_while_the_backward_pass_goes_on():
    def program(ranks):
        events = []
        model = dynamic.nn.Sequential(*(dynamic.nn.Linear(20, 20) for _ in range(3)))
        batch = dynamic.parallel.GlobalBatch(model, 2, ranks, bucket_bytes=1)
        send = ranks.send
        ranks.send = lambda array, to, tag: (events.append("sent"), send(array, to, tag))[1]
        model[0].weight.register_post_accumulate_grad_hook(lambda p: events.append("first layer"))
        batch.backward(lambda x: model(x).square().mean(), np.ones((4, 20), np.float32))
        return events

    for events in pipe_ranks.run(program, 2):
        assert events.index("first layer") >= 4  # the weights and biases of two layers were on their way
        assert events.count("sent") > 10


@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 8, 13])
def test_the_sum_of_a_tree_does_not_depend_on_who_has_its_leaves(leaves):
    values = {(i, i + 1): np.float32(np.random.default_rng(i).normal(size=3) * 10.0**i) for i in range(leaves)}
    wanted = added((0, leaves), values)
    for count in range(1, leaves + 2):
        parts = {}
        for rank in range(count):
            own = share_of(rank, count, leaves)
            parts |= {span: added(span, values) for span in spans_within((0, leaves), own)}
        assert_same_bits(added((0, leaves), parts), wanted, f"of {count}")
    assert all(doctest.testmod(m).failed == 0 for m in (addition_tree, buckets, cost_model))


def test_what_cannot_be_divided_is_refused():
    model = dynamic.nn.Linear(2, 1)
    batch = dynamic.parallel.GlobalBatch(model, 4)
    good = lambda x: model(x).mean()  # noqa: E731
    for call, words in (
        (lambda: batch.backward(good, np.ones((3, 2), np.float32)), "3 samples are fewer than 4"),
        (lambda: batch.backward(good, np.ones((4, 2)), np.ones(5)), "one length"),
        (lambda: batch.backward(good), "one length"),
        (lambda: batch.backward(model, np.ones((4, 2), np.float32)), "a scalar tensor"),
        (lambda: static.function(lambda x: batch.backward(good, x))(np.ones((4, 2), np.float32)), "outside `function`"),
        (lambda: dynamic.parallel.GlobalBatch(3), "must be Module"),
        (lambda: dynamic.parallel.GlobalBatch(model, 0), "at least 1"),
        (lambda: dynamic.parallel.measured_link(dynamic.parallel.world()), "mpiexec -n 2"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()
    before = model.weight.grad
    loss = batch.backward(good, np.ones((4, 2), np.float32))  # what has failed leaves nothing behind
    assert before is None
    assert loss.shape == ()


def test_mpi_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ArgumentError, match="pip install mpi4py mpich"):
        dynamic.parallel.world()


TRAINING = """
import os, signal, sys
import numpy as np
import {engine} as tw
folder, last, killed = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
ranks = tw.parallel.world()
tw.manual_seed(1)
model = tw.nn.Sequential(tw.nn.Linear(6, 9), tw.nn.Dropout(0.2), tw.nn.Linear(9, 2))
optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
data = tw.utils.data.TensorDataset(tw.tensor(np.random.default_rng(0).normal(size=(48, 6)), dtype=tw.float32))
loader = tw.utils.data.DataLoader(data, 16, shuffle=True)
batch = tw.parallel.GlobalBatch(model, 8, ranks)
checkpoints = tw.Checkpoints(folder, model=model, optimizer=optimizer, loader=loader)
loss_of = tw.function(lambda x: model(x).square().mean())
done = checkpoints.resume()
while done < last:
    for (x,) in loader:
        if killed and done == int(killed[0]) and ranks.rank == ranks.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        loss = batch.backward(loss_of, x)
        optimizer.step()
        done += 1
        if ranks.rank == 0:
            checkpoints.save(done)
if ranks.rank == ranks.size - 1:
    print(ranks.size, float(loss).hex(), *(float(p.detach().sum()).hex() for p in model.parameters()))
"""


def test_a_rank_is_killed_and_the_others_go_on_from_the_checkpoint(tmp_path):
    """By mpiexec: three ranks, one of which is killed in the middle of an epoch; then two; against one alone."""
    if MPIEXEC is None:
        return

    def start(count, engine, folder, *more):
        script = [sys.executable, "-c", TRAINING.format(engine=engine), str(tmp_path / folder), "6", *more]
        launched = [MPIEXEC, "-n", str(count), *script] if count > 1 else script
        return subprocess.run(launched, capture_output=True, text=True, env=ALONE, check=False, timeout=300)

    alone = start(1, "dynamic", "alone")
    assert alone.returncode == 0, alone.stderr
    assert start(3, "static", "killed", "4").returncode != 0
    rest = start(2, "dynamic", "killed")
    assert rest.returncode == 0, rest.stderr
    assert rest.stdout.split()[0] == "2"
    assert rest.stdout.split()[1:] == alone.stdout.split()[1:]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_the_passport_is_that_of_one_rank(count):
    if MPIEXEC is None:
        return
    script = [sys.executable, "-m", "mpi4py", "-m", "benchmarks", "passport", "--check", "-k", "training/ranks"]
    done = subprocess.run(
        [MPIEXEC, "-n", str(count), *script],
        capture_output=True, text=True, env=ALONE, cwd=ROOT, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as expected") == count
