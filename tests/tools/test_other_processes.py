"""Modules, optimisers, schedules, generators, loaders and functions go to other processes and on with the same bits."""

import copy
import multiprocessing
import pickle
from types import FunctionType

import pytest

import dynamic
from common.core.errors import TwingradError
from common.core.op import Op
from common.core.switching import Switching
from tests.helpers import hostile_public
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


def test_every_public_function_is_found_by_a_pickle():
    missed = []
    for name, value in hostile_public.listed().items():
        if not isinstance(value, (FunctionType, Op)):
            continue
        try:
            same = pickle.loads(pickle.dumps(value)) is value
        except Exception as error:
            missed.append(f"{name}: {error}")
        else:
            missed += [name] * (not same)
    assert missed == []


#: Classes whose instances hold what runs: code, a writer of files; beside modes, which some instances switch at once.
_RUNNING = ("autograd.", "utils.benchmark.", "utils.tensorboard.")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_instances_of_every_class_are_copied(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    missed, tried = [], 0
    for name, kind in hostile_public.listed().items():
        if not isinstance(kind, type) or not kind.__module__.startswith(("common.", "dynamic.", "static.")):
            continue
        if issubclass(kind, Switching):
            continue
        make = hostile_public.instance_of(name.rpartition(".")[2], kind)
        if make is None or name.partition(".")[2].startswith(_RUNNING):
            continue
        tried += 1
        held = make()
        try:
            way(held)
        except Exception as error:
            if not isinstance(error, TwingradError):  # which says what to do
                missed.append(f"{name}: {type(error).__name__}: {error}")
    assert missed == []
    assert tried > 200


def test_an_op_is_one_object():
    layer = copy.deepcopy(dynamic.nn.TransformerEncoderLayer(4, 2))
    assert layer.activation is dynamic.nn.TransformerEncoderLayer(4, 2).activation
    again = pickle.loads(pickle.dumps(layer))
    x = dynamic.ones(1, 3, 4)
    assert again.eval()(x).detach().numpy().tobytes() == layer.eval()(x).detach().numpy().tobytes()
