"""PyTorch's autograd mechanics in `dynamic`."""

import pytest

import dynamic
from tests.mechanics.collect import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    PROGRAMS[name](dynamic)
