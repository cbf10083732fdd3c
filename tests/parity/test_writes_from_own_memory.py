"""What is written comes from the memory as it was, also where both lie in the same one, in other steps."""

import numpy as np
import pytest

import dynamic
import static

PLACES = {
    "every second": (slice(None, None, 2), slice(None, 12)),
    "into the middle": (slice(4, 12), slice(None, 16, 2)),
    "one further": (slice(1, None), slice(None, -1)),
    "one back": (slice(None, -1), slice(1, None)),
    "thirds": (slice(None, 18, 3), slice(2, 14, 2)),
}
WRITES = {
    "copy_": lambda x, target, source: x[target].copy_(x[source]),
    "setitem": lambda x, target, source: x.__setitem__(target, x[source]),
    "add_": lambda x, target, source: x[target].add_(x[source]),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_memory_is_read_as_it_was(write, place, dtype):
    target, source = PLACES[place]
    a = np.arange(24).astype(dtype)
    expected = a.copy()
    expected[target] = a[source] if write != "add_" else a[target] + a[source]
    for _ in range(15):  # the eager engine remembers what comes often
        x = dynamic.tensor(a)
        WRITES[write](x, target, source)
        assert x.tolist() == expected.tolist()

    def program(x):
        y = x.clone()
        WRITES[write](y, target, source)
        return y

    assert static.function(program)(a).tolist() == expected.tolist()
