"""Modules and optimisers are loaded when they are first asked for, and say what they said when all were."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = ["nn", "optim"]


@pytest.mark.parametrize("room", ROOMS)
def test_programs_and_type_checkers_find_the_same(room):
    package = importlib.import_module(f"common.{room}")
    text = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    typed = next(statement for statement in text.body if type(statement) is ast.If)
    places = {alias.name: node.module for node in typed.body for alias in node.names}
    assert {name: home for name, (home, _) in package.CLASSES._places.items()} == places
    assert sorted(package.__all__) == sorted(places)
    for engine in ("dynamic", "static"):
        offered = importlib.import_module(f"{engine}.{room}")
        assert {*package.__all__} <= {*dir(offered)}
        for name in package.__all__:
            assert getattr(offered, name) is getattr(importlib.import_module(places[name]), name)


def run(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("engine", ["dynamic", "static"])
def test_one_class_loads_few_files(engine):
    code = (
        f"import sys, {engine} as tw; before = {{*sys.modules}}\n"
        "tw.nn.Sequential(tw.nn.Linear(2, 3), tw.nn.Tanh()); tw.optim.SGD\n"
        "print(sum(name.startswith(('common', tw.__name__)) for name in {*sys.modules} - before))"
    )
    assert int(run(code)) <= 90


STARS = """
import static, static.optim
from static.nn import *
from static.nn.modules.linear import Linear as Same
print(Linear is Same is static.nn.Linear, static.nn.utils.clip_grad_norm_.__name__, static.nn.init.zeros_.__name__)
print("Adam" in dir(static.optim), static.optim.lr_scheduler.StepLR.__name__, "functional" in dir(static.nn))
"""


def test_star_imports_and_submodules_are_there():
    assert run(STARS).split() == ["True", "clip_grad_norm_", "zeros_", "True", "StepLR", "True"]


LOOKED_UP = """
import static, static.optim
print(static.optim.__dict__["Adam"].__name__, "Linear" in vars(static.nn), vars(static.nn)["ReLU"] is static.nn.ReLU)
"""


def test_a_modules_dictionary_has_all_of_its_classes():
    assert run(LOOKED_UP).split() == ["Adam", "True", "True"]


INSIDE = """
import static
from common.core.errors import TwingradError
layer = static.nn.TransformerEncoderLayer(8, 2)
try:
    layer.linear1("no tensor")
except TwingradError as error:
    print("refused")
"""


def test_a_layer_that_was_got_from_another_is_guarded_like_one_that_was_named():
    assert run(INSIDE) == "refused"
