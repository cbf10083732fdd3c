"""Results beyond the memory are refused before they are filled: Linux hands memory out, and ends who fills it."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from common.core import allocation
from common.core.errors import AllocationError
from common.nn import init

nn = dynamic.nn
PACK: Any = nn.utils.rnn.pack_sequence  # called against its types
COUNT = allocation.LARGE // 4
SIDE = 1 << 13  # squared, as many numbers
WIDE = dynamic.ones(1).expand(COUNT)
ROWS = np.broadcast_to(np.float32(1), (SIDE, SIDE))

CALLS = {
    "ones": lambda: dynamic.ones(COUNT),
    "full": lambda: dynamic.full((SIDE, SIDE), 0.5),
    "arange": lambda: dynamic.arange(COUNT // 2),
    "rand": lambda: dynamic.rand(COUNT),
    "randn": lambda: static.randn(COUNT),
    "tensor": lambda: nn.Parameter(ROWS),
    "clone": lambda: WIDE.clone(),
    "contiguous": lambda: WIDE.contiguous(),
    "mul": lambda: WIDE * 2,
    "cat": lambda: dynamic.cat([WIDE, WIDE]),
    "cumsum": lambda: WIDE.cumsum(0),
    "sort": lambda: WIDE.sort(),
    "outer": lambda: dynamic.outer(dynamic.ones(SIDE), dynamic.ones(SIDE)),
    "compiled": lambda: static.function(lambda x: x.expand(COUNT) * 2)(dynamic.ones(1)),
    "temporaries": lambda: static.function(lambda x: (x.expand(SIDE, SIDE).cumsum(0) * 2).cumsum(1).sum())(
        dynamic.ones(1)),
    "BatchNorm2d": lambda: nn.BatchNorm2d(COUNT),
    "BatchNorm1d": lambda: nn.BatchNorm1d(COUNT, affine=False),
    "GroupNorm": lambda: nn.GroupNorm(1, COUNT),
    "LayerNorm": lambda: nn.LayerNorm((SIDE, SIDE)),
    "RMSNorm": lambda: nn.RMSNorm(COUNT),
    "PReLU": lambda: nn.PReLU(COUNT),
    "Linear": lambda: nn.Linear(SIDE, SIDE),
    "Embedding": lambda: nn.Embedding(COUNT, 1),
    "Conv2d": lambda: nn.Conv2d(SIDE, SIDE, 1),
    "GRU": lambda: nn.GRU(SIDE, SIDE),
    "MultiheadAttention": lambda: nn.MultiheadAttention(SIDE, 8),
    "ParameterList": lambda: nn.ParameterList(ROWS),
    "pack_sequence": lambda: PACK(ROWS),
    "extend": lambda: nn.ParameterList().extend(dynamic.tensor(1.0).expand(SIDE, SIDE)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_large_array_is_refused_where_memory_is_short(monkeypatch, name):
    monkeypatch.setattr(allocation, "free_memory", lambda: COUNT * 4.0 - 1)
    with pytest.raises(AllocationError, match=r"you tried to allocate .* bytes, .* are free") as caught:
        CALLS[name]()
    assert str(caught.value).count("does not fit into memory") == 1


def test_free_memory_is_some_of_the_machines():
    if sys.platform != "linux":
        assert allocation.free_memory() == float("inf")
        return
    most = int(re.findall(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))[0]) * 1024
    assert 0 < allocation.free_memory() <= 2 * most


def test_a_control_groups_limit_counts(monkeypatch):
    files = {
        "/proc/meminfo": "MemAvailable: 4000 kB\nSwapFree: 96 kB\n",
        "/proc/self/cgroup": "3:cpu:/a\n0::/b/c\n",
        "/sys/fs/cgroup/b/c/memory.max": "2048000\n",
        "/sys/fs/cgroup/b/c/memory.current": "1024000\n",
        "/sys/fs/cgroup/b/c/memory.stat": "anon 5\ninactive_file 24000\n",
    }

    def read(path, **_):
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(allocation.Path, "read_text", read)
    assert allocation.free_memory() == 1048000
    files["/sys/fs/cgroup/b/c/memory.max"] = "max\n"
    assert allocation.free_memory() == 4096 * 1024
    files.clear()
    assert allocation.free_memory() == float("inf")


@pytest.mark.parametrize(
    "make", [lambda n: init.uniform((n,), 0.5), lambda n: init.constant(n, 1), lambda n: init.normal((n,))]
)
def test_a_parameter_takes_its_memory_once(make):
    import tracemalloc

    make(10)
    tracemalloc.start()
    try:
        p = make(1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * p.payload.nbytes
    finally:
        tracemalloc.stop()
