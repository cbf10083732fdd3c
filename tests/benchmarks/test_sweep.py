"""A sweep on a Dask cluster of a scheduler and two workers, one of which is lost while it measures."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import static
from benchmarks import sweep as sweeps
from benchmarks.lab.progress import Progress
from benchmarks.run import Effort
from benchmarks.workload import discover

ROOT = Path(sweeps.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}
NAMES = ("chain", "a-float32", "e-tiny-mlp")


def started(arguments, home, said):
    """A process of Dask, and what it says of itself."""
    log = home / f"log{len(list(home.glob('log*')))}"
    command = [sys.executable, "-m", *arguments]
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=home, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT)
    end = time.monotonic() + 60
    while not (found := re.search(said, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return process, found[1]


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler, and its two workers."""
    scheduler, address = started(
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"], tmp_path,
        r"Scheduler at:\s+(tcp://\S+)",
    )  # fmt: skip
    asked = ["distributed.cli.dask_worker", address, "--nthreads", "2", "--no-nanny", "--no-dashboard"]
    workers = [started(asked, tmp_path, r"Registered to:\s+(tcp\S+)")[0] for _ in range(2)]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_worker_that_is_lost_takes_no_result_with_it(cluster):
    address, workers = cluster
    sweep = sweeps.Sweep(address)
    results, workloads = [], [w for w in discover(NAMES) if w.name in NAMES]

    def collect():
        results.extend(sweep.results(workloads, Effort(seconds=1.0, cold=0, disk=0), (), Progress(3)))

    thread = threading.Thread(target=collect)
    thread.start()
    busy = {}
    while not busy:
        assert thread.is_alive()
        places = sweep._client.run(os.getpid)
        busy = {places[at]: tasks for at, tasks in sweep._client.processing().items() if tasks and at in places}
    lost = next(iter(busy))
    os.kill(lost, signal.SIGKILL)
    thread.join(timeout=120)
    assert not thread.is_alive()
    scaled, x = static.function(lambda x: x.tanh() * 2), np.linspace(-2, 2, 9, dtype=np.float32)
    wanted = scaled(x).numpy().tobytes()
    assert sweep._client.submit(scaled, x).result().numpy().tobytes() == wanted  # a function goes there as its program
    sweep.close()
    assert sorted(result.workload.name for result in results) == sorted(NAMES)
    for result in results:
        assert result.passed, result.error
        assert {"dynamic", "static"} <= result.calls.keys()
        assert sweep.machines[result.workload.name]["numerics_version"]
    (ended,) = [worker for worker in workers if worker.pid == lost]
    assert ended.wait(10) == -signal.SIGKILL
    assert all(worker.poll() is None for worker in workers if worker is not ended)


@pytest.mark.slow
def test_the_command_writes_what_the_workers_have_measured(cluster, tmp_path):
    address, _ = cluster
    path = tmp_path / "run.json"
    words = ["run", "--dask", address, "--quick", "-k", "e-tiny", "-k", "hidden", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(path.read_text())
    assert record["complete"]
    assert [w["name"] for w in record["workloads"]] == ["hidden-markov", "e-tiny-mlp"]
    assert record["machines"].keys() == {"hidden-markov", "e-tiny-mlp"}


def test_where_nobody_answers_a_line_says_so(monkeypatch):
    monkeypatch.setattr(sweeps, "PATIENCE", 0.3)
    with pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        sweeps.Sweep("tcp://127.0.0.1:1")
    with pytest.raises(OSError, match="no Dask scheduler"):
        sweeps.Sweep("nonsense://x")


def test_a_worker_of_another_version_is_an_error_of_the_result():
    found = sweeps.measured("chain", Effort(seconds=0.01, cold=0, disk=0), (), -1)
    assert "the worker has numerics" in found["error"]
