from __future__ import annotations

import pytest

from common.native import cache
from common.native import compile as compile_module


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty cache directory, and a process that has not warned yet."""
    compile_module._environment()  # is not stored here
    monkeypatch.setenv("TWINGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    return tmp_path / "cache"
