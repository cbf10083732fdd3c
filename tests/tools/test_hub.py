"""Weights and models of local directories; nothing is downloaded."""

from __future__ import annotations

import importlib

import pytest

import dynamic
import static
from common.core.errors import ArgumentError, FileError, MissingAttributeError
from common.tools.files import hub

ENGINES = pytest.mark.parametrize("engine", [dynamic, static])
URL = "https://example.org/weights/layer-5c106cde.pth?download=1"


@pytest.fixture(autouse=True)
def _own_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_chosen", [])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))


@ENGINES
def test_weights_lie_under_their_names(engine, tmp_path):
    assert engine.hub.get_dir() == str(tmp_path / "home" / "hub")
    engine.hub.set_dir(tmp_path)
    state = engine.nn.Linear(2, 3).state_dict()
    with pytest.raises(FileNotFoundError, match=f"nothing is downloaded; put what {URL.split('?')[0]}") as caught:
        engine.hub.load_state_dict_from_url(URL)
    assert isinstance(caught.value, FileError)
    assert caught.value.filename == str(tmp_path / "checkpoints" / "layer-5c106cde.pth")
    (tmp_path / "checkpoints").mkdir()
    engine.save(state, caught.value.filename)
    load_url = importlib.import_module(f"{engine.__name__}.utils.model_zoo").load_url
    for found in (engine.hub.load_state_dict_from_url(URL, progress=False), load_url(URL)):
        assert found["weight"].tolist() == state["weight"].tolist()
    engine.hub.download_url_to_file(URL, caught.value.filename)
    engine.save({"n": engine.tensor(1)}, tmp_path / "other.tw")
    assert engine.hub.load_state_dict_from_url(URL, model_dir=tmp_path, file_name="other.tw")["n"].item() == 1
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        engine.hub.download_url_to_file(URL, str(tmp_path / "none"))


@ENGINES
def test_models_of_a_directory(engine, tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 4\n")
    (tmp_path / "hubconf.py").write_text(
        f"import {engine.__name__} as tw\nfrom beside import SIZE\n\n\n"
        'def layer(out, bias=True):\n    "A layer."\n    return tw.nn.Linear(SIZE, out, bias=bias)\n'
    )
    made = engine.hub.load(tmp_path, "layer", 3, bias=False, source="local", trust_repo=True)
    assert (made.in_features, made.out_features, made.bias) == (4, 3, None)
    assert engine.hub.list(str(tmp_path), source="local") == ["layer"]
    assert engine.hub.help(tmp_path, "layer", source="local") == "A layer."
    with pytest.raises(MissingAttributeError, match="Cannot find callable model"):
        engine.hub.load(tmp_path, "model", source="local")
    with pytest.raises(ArgumentError, match="clone owner/name"):
        engine.hub.load("owner/name", "layer")
    with pytest.raises(FileNotFoundError, match=r"has a hubconf\.py"):
        engine.hub.load(tmp_path / "none", "layer", source="local")
