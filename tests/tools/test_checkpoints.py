"""Checkpoints: training that was stopped at any step goes on with the bits of one that was not, in either engine."""

import itertools
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import dynamic
import static
from common.core.errors import ArgumentError, FileError, StateError
from tests.bits import assert_same_bits

ENGINES = {"dynamic": dynamic, "static": static}
EPOCHS, BATCHES = 3, 4


class Noisy:
    """Samples that draw from every generator of the process."""

    def __init__(self, tw):
        self.tw = tw

    def __len__(self):
        return 4 * BATCHES

    def __getitem__(self, i):
        shift = random.random() + np.random.random() + float(self.tw.rand(()))  # noqa: NPY002
        return np.full(6, i + shift, np.float32), i % 3


class Training:
    """A run with what has state: dropout, running statistics, momentum, a schedule, a shuffled order, an average."""

    def __init__(self, tw, folder, **loading):
        tw.manual_seed(1)
        random.seed(2)
        np.random.seed(3)  # noqa: NPY002
        nn, self.own = tw.nn, tw.Generator(5)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 3))
        self.optimizer = tw.optim.Adam(self.model.parameters(), lr=0.05, amsgrad=True)
        self.schedule = tw.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, EPOCHS * BATCHES + 1)
        self.loader = tw.utils.data.DataLoader(Noisy(tw), 4, shuffle=True, **loading)
        self.numpys = np.random.default_rng(4)
        self.scale = tw.zeros(1)
        self.checkpoints = tw.Checkpoints(
            folder, keep=2, model=self.model, optimizer=self.optimizer, schedule=self.schedule, loader=self.loader,
            own=self.own, numpys=self.numpys, scale=self.scale,
        )  # fmt: skip
        self.tw, self.losses, self.compiled = tw, [], tw.function(self.step)

    def step(self, x, y, noise):
        self.optimizer.zero_grad()
        loss = self.tw.nn.functional.cross_entropy(self.model(x + noise), y) + self.tw.rand(()) * 0
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, stop=None):
        """Train on from the newest checkpoint; after `stop` steps save and end."""
        done = self.checkpoints.resume()
        for epoch in range(self.checkpoints.notes.get("epoch", 0), EPOCHS):
            for x, y in self.loader:
                noise = self.tw.rand(1, generator=self.own) + np.float32(self.numpys.random())
                self.losses.append(float(self.compiled(x, y, noise)))
                self.schedule.step()
                self.scale += noise
                done += 1
                if done == stop:
                    self.checkpoints.save(done, epoch=epoch)
                    return self
        return self

    def state(self):
        state = self.optimizer.state_dict()["state"]
        return [*self.model.state_dict().values(), *(x for i in state for x in state[i].values()), self.scale]


def assert_same_end(found, wanted):
    assert found.losses == wanted.losses[len(wanted.losses) - len(found.losses) :]
    for x, y in zip(found.state(), wanted.state(), strict=True):
        assert_same_bits(x, y, "after resuming")


@pytest.mark.parametrize(("before", "after"), [*itertools.product(ENGINES, ENGINES)])
def test_resumed_at_any_step_is_never_stopped(tmp_path, before, after):
    whole = Training(ENGINES[before], tmp_path / "whole").run()
    assert len(whole.losses) == EPOCHS * BATCHES
    for stop in range(1, EPOCHS * BATCHES + 1) if before != after else (3, 4, 5):
        Training(ENGINES[before], tmp_path / str(stop)).run(stop)
        assert_same_end(Training(ENGINES[after], tmp_path / str(stop)).run(), whole)


def test_stopped_after_every_step_and_in_one_process(tmp_path):
    whole = Training(static, tmp_path / "whole").run()
    for done in range(1, EPOCHS * BATCHES + 1):
        last = Training(ENGINES[("static", "dynamic")[done % 2]], tmp_path / "often").run(done)
        assert last.losses == whole.losses[done - 1 : done]
    assert_same_end(last, whole)
    again = Training(dynamic, tmp_path / "again").run(5)
    again.run()  # the same objects, compiled step included, once on and once back
    again.losses.clear()
    assert_same_end(again.run(), whole)


@pytest.mark.parametrize("options", [{"num_workers": 2}, {"num_workers": 1, "persistent_workers": True}])
def test_workers_go_on_with_the_bits(tmp_path, options):
    whole = Training(dynamic, tmp_path / "whole", **options).run()
    Training(dynamic, tmp_path / "stopped", **options).run(6)
    assert_same_end(Training(dynamic, tmp_path / "stopped", **options).run(), whole)


KILLED = """
import sys
import {engine} as tw
tw.manual_seed(0)
model = tw.nn.Linear(300, 300)
optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
checkpoints = tw.Checkpoints(sys.argv[1], keep=2, model=model, optimizer=optimizer)
@tw.function
def step():
    optimizer.zero_grad()
    model(tw.randn(7, 300)).square().mean().backward()
    optimizer.step()
done = checkpoints.resume()
while done < int(sys.argv[2]):
    step()
    done += 1
    checkpoints.save(done)
    print(done, flush=True)
print(float(model.weight.detach().sum()), flush=True)
"""


def test_a_process_that_is_killed_at_any_moment_loses_no_bit(tmp_path):
    def start(engine, folder, last):
        command = [sys.executable, "-c", KILLED.format(engine=engine), str(folder), str(last)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole = start("dynamic", tmp_path / "whole", 12).communicate()[0].split()
    process, lines = start("dynamic", tmp_path / "killed", 10**6), 0
    while lines < 5:
        lines += bool(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)  # somewhere between two saves, or in one
    process.communicate()
    reached = dynamic.Checkpoints(tmp_path / "killed", model=dynamic.nn.Linear(1, 1)).steps()
    assert len(reached) in (2, 3)
    for late in [x for x in reached if x > 11]:
        (tmp_path / "killed" / f"step-{late:012d}.safetensors").unlink()
    ends = start("static", tmp_path / "killed", 12).communicate()[0].split()
    assert ends[-1] == whole[-1]
    assert sorted(x.name for x in (tmp_path / "killed").iterdir())[0] == ".writer"
    assert len(list((tmp_path / "killed").glob("*"))) == 3  # .writer and two checkpoints: nothing half is left


def test_a_full_disk_loses_nothing(tmp_path):
    model = dynamic.nn.Linear(100, 100)
    checkpoints = dynamic.Checkpoints(tmp_path, model=model)
    checkpoints.save(1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(FileError, match=r"step 2 could not be written to .*earlier checkpoints are as they were"):
            checkpoints.save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoints.steps() == [1]
    assert sorted(x.name for x in tmp_path.iterdir()) == [".writer", "step-000000000001.safetensors"]
    assert checkpoints.resume() == 1


def _second(folder, answer):
    try:
        dynamic.Checkpoints(folder, model=dynamic.nn.Linear(2, 2)).save(9)
    except StateError as error:
        answer.send(str(error))


def test_a_second_process_is_refused_a_forked_child_keeps_nothing(tmp_path):
    checkpoints = dynamic.Checkpoints(tmp_path, model=dynamic.nn.Linear(2, 2))
    checkpoints.save(1)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_second, args=(tmp_path, theirs))
    child.start()
    child.join()
    assert "another process writes checkpoints" in ours.recv()
    assert checkpoints.steps() == [1]


def test_damaged_files_are_noticed_and_an_earlier_one_is_taken(tmp_path):
    model = dynamic.nn.Linear(3, 3)
    checkpoints = dynamic.Checkpoints(tmp_path, keep=3, model=model)
    checkpoints.save(1)
    wanted = model.weight.detach().clone()
    model.weight.data.add_(1)
    path = checkpoints.save(2)
    whole = path.read_bytes()
    for place in (0, 9, 200, 300, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(StateError, match="damaged"):
            checkpoints.restore(2)
    path.write_bytes(whole[:-5])
    with pytest.warns(UserWarning, match="damaged.*going on from an earlier checkpoint"):
        assert checkpoints.resume() == 1
    assert_same_bits(model.weight, wanted, "of step 1")


def test_what_does_not_fit_changes_nothing(tmp_path):
    small = dynamic.nn.Linear(2, 2)
    dynamic.Checkpoints(tmp_path, first=small, second=dynamic.nn.Linear(2, 2)).save(1)
    first, second = dynamic.nn.Linear(2, 2), dynamic.nn.Linear(3, 2)
    before = first.weight.detach().clone()
    with pytest.raises(StateError, match=r"(?s)does not fit.*size mismatch"):
        dynamic.Checkpoints(tmp_path, first=first, second=second).restore(1)
    assert_same_bits(first.weight, before, "the first part")
    with pytest.raises(StateError, match="has the parts"):
        dynamic.Checkpoints(tmp_path, first=first).restore(1)
    with pytest.raises(StateError, match="there is no checkpoint"):
        dynamic.Checkpoints(tmp_path, first=first).restore(7)


def test_what_is_no_state_of_a_loader_is_refused():
    loader = dynamic.utils.data.DataLoader(range(6), 2, shuffle=True, generator=dynamic.Generator(1))
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    under_way, generators = state["iteration"], state["generators"]
    for wrong in (
        5, {}, {**state, "generators": []}, {**state, "iteration": {**under_way, "given": -1}},
        {**state, "iteration": {**under_way, "begun": generators}}, {**state, "generators": [3]},
    ):  # fmt: skip
        with pytest.raises(StateError, match="no state of such a loader"):
            loader.load_state_dict(wrong)
    rest = [x.tolist() for x in batches]
    loader.load_state_dict(state)
    assert [x.tolist() for x in loader] == rest
    assert loader.state_dict()["iteration"] is None


def test_old_ones_are_removed_and_bad_arguments_refused(tmp_path):
    checkpoints = static.Checkpoints(tmp_path / "new" / "folder", keep=2, model=static.nn.Linear(1, 1))
    for step in (5, 6, 7, 7, 8):
        checkpoints.save(step)
    assert checkpoints.steps() == [7, 8]
    checkpoints.save(3)  # training that began again earlier
    assert checkpoints.steps() == [3, 8]
    for call in (
        lambda: static.Checkpoints(tmp_path), lambda: static.Checkpoints(tmp_path, keep=0, x=static.ones(1)),
        lambda: static.Checkpoints(tmp_path, x=3), lambda: checkpoints.save(-1), lambda: checkpoints.save(1.5),
        lambda: checkpoints.save(1, note=object()),
    ):  # fmt: skip
        with pytest.raises(ArgumentError):
            call()
