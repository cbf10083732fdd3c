"""A run spread over the workers of a Dask cluster: a workload is measured on one of them, alone in its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.lab.progress import Progress
from benchmarks.run import ENGINES, Effort, Result, measure
from benchmarks.workload import Workload

PATIENCE = 30.0
"""Seconds in which the scheduler answers, and a first worker comes."""
_one_at_a_time = threading.Lock()


def measured(key: str, effort: Effort, peers: Sequence[str], numerics: int) -> dict[str, Any]:
    """Measure a workload in this process, a worker's, and return the record; other tasks wait.

    Parameters
    ----------
    key : see `benchmarks.workload.Workload.key`.
    numerics : the version that whoever asks has; another one is an error of the result.
    """
    from benchmarks import machine
    from benchmarks.lab.target import find
    from common.core.numerics import NUMERICS_VERSION

    engines = {name: __import__(name) for name in ENGINES}
    workload = find(key, engines["static"])
    with _one_at_a_time:
        if numerics == NUMERICS_VERSION:
            result = measure(workload, engines, effort, peers)
        else:
            result = Result(workload, error=f"the worker has numerics {NUMERICS_VERSION}, not {numerics}")
    return {**result.as_json(), "machine": machine.describe()}


class Sweep:
    """The workers at an address.

    Parameters
    ----------
    address : of the scheduler, such as "tcp://10.0.0.1:8786".

    Attributes
    ----------
    machines : name of a workload -> what the machine is that has measured it.

    Raises
    ------
    OSError : no scheduler answers there, or it has no workers.
    """

    def __init__(self, address: str) -> None:
        from distributed import Client

        self.machines: dict[str, dict[str, Any]] = {}
        try:
            self._client = Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as problem:
            raise OSError(f"no Dask scheduler answers at {address}: {problem}") from None
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            self.close()
            raise OSError(
                f"the Dask scheduler at {address} has no workers: start some, dask worker {address}"
            ) from None

    def results(
        self, workloads: Sequence[Workload], effort: Effort, peers: Sequence[str], progress: Progress
    ) -> Iterator[Result]:
        """Results as they are finished. What a worker was doing that is lost, another does again."""
        from distributed import as_completed

        from common.core.numerics import NUMERICS_VERSION

        given = {
            self._client.submit(measured, w.key, effort, list(peers), NUMERICS_VERSION, pure=False): w
            for w in workloads
        }
        with self._client.as_current():
            finished = as_completed(list(given))
        for future in finished:
            workload, problem = given[future], future.exception()
            if problem is None:
                record = future.result()
                self.machines[workload.name] = record.pop("machine")
                result = Result.of_json(workload, record)
            else:  # such as a workload at which several workers have ended
                result = Result(workload, error=f"{type(problem).__name__}: {problem}")
            progress.finished()
            yield result

    def close(self) -> None:
        """Leave the cluster; what is not finished is given up."""
        self._client.close()
