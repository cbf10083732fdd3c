"""`install_as_torch` and ``python -m dynamic``: programs that import torch get an engine."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LIBRARY = """
import torch.nn.functional as F
from torch import nn
from torch.distributions.kl import register_kl
from torch.nn.modules.loss import _Loss
from torch.utils.data import DataLoader

class Halved(_Loss):
    def forward(self, x, y):
        return F.mse_loss(x, y) / 2
"""
SCRIPT = """
import importlib.metadata, importlib.util, sys
import torch, torch.nn as nn, torch.utils.hooks
import halves

print(torch.__name__, torch.Tensor.__module__, sys.argv[1:], importlib.metadata.version("torch") == torch.__version__)
print(torch is sys.modules["ENGINE"], torch.nn is sys.modules["ENGINE.nn"], torch.nn.__spec__.name)
print(importlib.util.find_spec("torch.no_such_part"), importlib.util.find_spec("torch.nn.functional") is None)
x = torch.tensor([1.0, 3.0], requires_grad=True)
halves.Halved()(x, torch.zeros(2)).backward()
print(x.grad, __name__)
try:
    import torch.package
except ModuleNotFoundError as error:
    print(error)
"""


def shown(folder, *command):
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env={"PYTHONPATH": str(ROOT), "HOME": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "halves.py").write_text(LIBRARY)
    return tmp_path


@pytest.mark.parametrize("engine", ["dynamic", "static"])
def test_a_script_and_its_library_run_with_an_engine_in_the_place_of_torch(folder, engine):
    (folder / "script.py").write_text(SCRIPT.replace("ENGINE", engine))
    code, told, wrong = shown(folder, "-m", engine, "script.py", "--lr", "1")
    assert code == 0, wrong
    *lines, reason = told.splitlines()
    assert lines == [
        "torch torch ['--lr', '1'] True", f"True True {engine}.nn", "None False", "tensor([0.5000, 1.5000]) __main__"
    ]  # fmt: skip
    assert reason.startswith(f"no module '{engine}.package': there is no TorchScript")
    code, named, wrong = shown(folder, "-m", engine, "-m", "script", "--lr", "1")
    assert (code, named) == (0, told), wrong


def test_what_stands_for_torch_is_said_once(folder):
    again = "import {0}, {1}\n{0}.install_as_torch()\n{0}.install_as_torch()\nimport torch\n{1}.install_as_torch()"
    code, _, wrong = shown(folder, "-c", again.format("dynamic", "static"))
    assert code == 1
    assert "RuntimeError: 'torch' has been imported already, from " in wrong
    assert "call static.install_as_torch() in a new process" in wrong
    (folder / "torch.py").write_text("")
    code, _, wrong = shown(folder, "-c", "import torch, static; static.install_as_torch()")
    assert code == 1
    assert f"'torch' has been imported already, from {folder / 'torch.py'}" in wrong


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [((), "usage: python3 -m static FILE.py"), (("none.py",), "python3 -m static: there is no file none.py")],
)
def test_what_cannot_be_run_is_told(folder, arguments, wanted):
    code, _, wrong = shown(folder, "-m", "static", *arguments)
    assert code == 1
    assert wrong.startswith(wanted)
