"""Programs of a user's that use libraries written for PyTorch: each engine has the library's modules to itself."""

import sys

import numpy as np
import pytest

import dynamic
import static
from benchmarks import bits
from benchmarks.lab import libraries
from benchmarks.lab.target import Target, UserProgram, find
from common.tensor.base import Tensor

LIBRARY = {
    "scales/__init__.py": "from scales.layer import Scaled\n",
    "scales/layer.py": """
import importlib
from torch import nn
import torch.nn.functional as F

class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(nn.init.normal_(nn.Linear(n, n).weight.data))

    def forward(self, x):
        from scales import late
        return late.halved(F.silu(x @ self.scale)) + importlib.import_module(".later", "scales").one()
""",
    "scales/late.py": "import torch\nHALF = torch.tensor(0.5)\ndef halved(x):\n    return x * HALF\n",
    "scales/later.py": "def one():\n    import torch\n    return torch.ones(())\n",
    "blocks.py": "import scales\nclass Block(scales.Scaled):\n    pass\n",  # does not name torch
    "aloof.py": "import json\nSTATE = []\n",
}
FILE = """
import torch, aloof, blocks

def make(tw):
    return blocks.Block(3)

def inputs():
    return torch.ones(2, 3)

"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    for name, text in LIBRARY.items():
        place = tmp_path / "installed" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    (tmp_path / "mine.py").write_text(FILE)
    yield tmp_path / "mine.py"
    libraries.use(libraries.PYTORCH)
    libraries._aside.clear()
    sys.modules.pop("aloof", None)


@pytest.mark.parametrize("name", ["make", ""])
def test_a_librarys_module_is_trained_in_both_engines_with_the_same_bits(path, name):
    before = {x for x in sys.modules if x.partition(".")[0] == "torch"}
    workload = UserProgram(Target(str(path), name, optimizer="SGD(lr=0.1)"), dynamic)
    assert list(bits.mismatches(workload, dynamic, static)) == []
    assert find(workload.key, static).key == workload.key
    libraries.use(libraries.PYTORCH)
    assert {x for x in sys.modules if x.partition(".")[0] == "torch"} == before
    assert not {"scales", "scales.layer", "scales.later", "blocks"} & set(sys.modules)
    assert "aloof" in sys.modules  # it has nothing of torch's
    assert (dynamic.__name__, static.__name__, Tensor.__module__) == ("dynamic", "static", "common.tensor.base")


def test_each_engine_keeps_the_librarys_modules_that_were_loaded_with_it(path):
    workload = UserProgram(Target(str(path), "make"), dynamic)
    programs = {engine: workload.make(engine) for engine in (dynamic, static)}
    found = {}
    for engine in (dynamic, static, dynamic, static):
        programs[engine].call(*workload.inputs()[0])
        name = libraries.package(engine)
        assert sys.modules["torch"] is engine
        assert sys.modules["scales.layer"].F is engine.nn.functional
        assert sys.modules["scales.later"] is found.setdefault(name, sys.modules["scales.later"])
    assert found["dynamic"] is not found["static"]


def test_a_program_without_such_libraries_is_called_as_it_is(tmp_path):
    (tmp_path / "own.py").write_text("import torch\n\ndef double(x):\n    return torch.add(x, x)\n")
    program = UserProgram(Target(str(tmp_path / "own.py"), "double", args="f32[3]"), dynamic).make(dynamic)
    assert not isinstance(program.call, libraries.InItsPlace)
    assert np.asarray(program.call(np.ones(3, np.float32))).tolist() == [2, 2, 2]
