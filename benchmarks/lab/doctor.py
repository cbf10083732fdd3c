"""``doctor``: reasons why figures of this machine are unreliable, and the commands that mend them."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import machine, measure
from benchmarks.lab import console
from benchmarks.lab.activity import governor, look
from benchmarks.lab.stability import BUSY, STOLEN
from benchmarks.peers import PEERS, installed

CPU = Path("/sys/devices/system/cpu")


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes
    ----------
    what : the thing, and how it is.
    remedy : the command that mends it; "" where nothing has to be done.
    """

    what: str
    remedy: str = ""


def examine(seconds: float = 1.0) -> Iterator[Finding]:
    """Yield what is found, one thing after the other.

    Parameters
    ----------
    seconds : float
        How long to look at what other processes do.
    """
    about = machine.describe()
    yield Finding(machine.one_line(about))
    yield from _load(seconds)
    yield from _clock()
    yield from _threads()
    yield _blas()
    yield from _denormals()
    yield _cache()
    missing = sorted({peer.package for peer in PEERS.values()} - {PEERS[name].package for name in installed()})
    yield Finding(
        f"peers: {', '.join(installed()) or 'none'}" + (f"; not installed: {', '.join(missing)}" * bool(missing))
    )


def _load(seconds: float) -> Iterator[Finding]:
    activity = look(seconds)
    if activity.others is None:
        yield Finding("load: this system does not tell what other processes do")
        return
    busy = f"load: other processes keep {activity.others:.1f} of {os.cpu_count()} cores busy"
    if activity.others > BUSY:
        yield Finding(busy, "end them (`top -o %CPU` names them), or measure when they are done")
    else:
        yield Finding(busy)
    if activity.stolen > STOLEN:
        yield Finding(f"virtual machine: the host takes {100 * activity.stolen:.0f} % of the time away",
                      "measure on a machine of your own")  # fmt: skip


def _clock() -> Iterator[Finding]:
    way = governor()
    if way is None:
        yield Finding("clock: this system does not show how it is governed; trust ratios more than times")
    elif way != "performance":
        yield Finding(f"clock: governor {way!r}, so its frequency changes with the load",
                      "sudo cpupower frequency-set -g performance")  # fmt: skip
    else:
        yield Finding("clock: governor 'performance'")
    turbo = CPU / "intel_pstate" / "no_turbo"
    if turbo.is_file() and turbo.read_text().strip() == "0":
        yield Finding("clock: turbo is on, so the first seconds are faster", f"echo 1 | sudo tee {turbo}")
    step = min(_ticks())
    yield Finding(f"timer: steps of {1e9 * step:.0f} ns; batches last {1e3 * measure.BATCH_SECONDS:.0f} ms")
    siblings = CPU / "cpu0" / "topology" / "thread_siblings_list"
    if siblings.is_file() and len(siblings.read_text().strip()) > 1:
        yield Finding(f"cores: cpu {siblings.read_text().strip()} are one core; another program on it costs time",
                      "echo off | sudo tee /sys/devices/system/cpu/smt/control")  # fmt: skip


def _threads() -> Iterator[Finding]:
    here, all_ = machine.cores(), os.cpu_count() or 1
    if here < all_:
        yield Finding(f"cores: this process may use {here} of {all_}; --threads is at most {here}")
    else:
        yield Finding(f"cores: {here}; calls are timed on one, the idlest, with one thread")
    preset = [f"{name}={os.environ[name]}" for name in measure.THREADS if name in os.environ]
    if preset:
        yield Finding(f"threads: {', '.join(preset)} are set; a run sets its own")


def _blas() -> Finding:
    found = np.show_config(mode="dicts")
    blas = found.get("Build Dependencies", {}).get("blas", {}) if isinstance(found, dict) else {}
    return Finding(
        f"BLAS of numpy: {blas.get('name', 'unknown')} {blas.get('version', '')}; ours have kernels of their own"
    )


def _denormals() -> Iterator[Finding]:
    tiny = np.full(4096, 1e-40, np.float32)
    if not (tiny * np.float32(0.5)).any():
        yield Finding("denormals are flushed to zero: another library has set the processor's mode, so bits differ",
                      "start a process that does not import it (often: built with -ffast-math)")  # fmt: skip
        return
    normal = np.full(4096, 1.0, np.float32)
    slower = _best(tiny) / _best(normal)
    told = f"denormals: kept, as IEEE 754 asks; arithmetic with them takes {slower:.0f}x as long here"
    told += "; set_flush_denormal(True) of either engine makes them zero"
    yield Finding(told if slower >= 1.5 else "denormals: kept, as IEEE 754 asks, at full speed")


def _cache() -> Finding:
    from common.compiler import disk_cache

    folder = disk_cache.directory()
    held = disk_cache.usage(folder)
    told = f"cache: {folder}, {held.entries} entries, {held.nbytes / 2**20:.1f} MiB"
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        return Finding(f"{told}, which cannot be written: every process compiles again", "export TWINGRAD_CACHE=FOLDER")
    return Finding(told)


def _best(x: np.ndarray) -> float:
    found = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(10):
            x * np.float32(0.75)
        found.append(time.perf_counter() - start)
    return min(found)


def _ticks() -> Iterator[float]:
    for _ in range(1000):
        start = now = time.perf_counter()
        while now == start:
            now = time.perf_counter()
        yield now - start


def main(arguments: list[str]) -> int:
    """Print what is found. Returns 1 if something makes figures unreliable."""
    p = argparse.ArgumentParser(
        prog="twingrad doctor",
        description="Say what makes figures of this machine unreliable, and what mends it.",
        epilog="Exit code 1 if something has to be mended.",
    )
    p.add_argument("--seconds", type=float, default=1.0, help="how long to look at the load")
    options = p.parse_args(arguments)
    found = list(examine(options.seconds))
    wrong = [finding for finding in found if finding.remedy]
    if wrong:
        console.wrapped(f"Figures of this machine are unreliable: {wrong[0].what}.", style="bold yellow")
    else:
        console.wrapped("Nothing here makes figures unreliable.", style="bold green")
    console.say()
    for finding in found:
        console.wrapped(f"{'!' if finding.remedy else '-'} {finding.what}", "  ", "yellow" if finding.remedy else "")
        if finding.remedy:
            console.wrapped(f"  to mend it: {finding.remedy}", "    ")
    return 1 if wrong else 0
