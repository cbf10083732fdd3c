"""Modules, optimisers, schedules, generators, loaders and functions go to other processes and on with the same bits."""

import copy
import multiprocessing
import pickle

import pytest

from tests.tools.other_process import answer, made, results


@pytest.mark.parametrize(("engine", "way"), [("dynamic", "spawn"), ("static", "spawn"), ("static", "fork")])
def test_another_process_goes_on_with_the_bits(engine, way):
    held = made(engine)
    with multiprocessing.get_context(way).Pool(1) as pool:
        found, compiled = pool.apply(answer, (engine, held))
    assert found == results(engine, held)
    assert compiled == 0 or way == "fork"  # kernels come from the cache; a fork has counted those of its parent


@pytest.mark.parametrize("engine", ["dynamic", "static"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_a_copy_goes_on_alone(engine, copied):
    held = made(engine)
    other = copied(held)
    assert other["optimizer"].param_groups[0]["params"][0] is next(other["model"].parameters())
    assert results(engine, other) == results(engine, held)
