"""Inner names of PyTorch that programs import or set beside what they use."""

import importlib

import pytest

import dynamic
import static


@pytest.mark.parametrize("engine", [dynamic, static])
def test_what_programs_import_for_several_devices_is_there_and_refused(engine):
    inner = importlib.import_module(f"{engine.__name__}.nn.parallel._functions")
    scatter_gather = importlib.import_module(f"{engine.__name__}.nn.parallel.scatter_gather")
    for call in (inner.Broadcast.apply, inner.ReduceAddCoalesced.apply, scatter_gather.gather):
        with pytest.raises(RuntimeError, match="no device but the CPU"):
            call(engine.zeros(2))
    assert engine.distributed.ReduceOp.SUM is not engine.distributed.ReduceOp.MAX
    assert engine.cuda._initialized is False


@pytest.mark.parametrize("engine", [dynamic, static])
def test_switches_of_a_compiler_change_nothing(engine):
    inner = engine._dynamo
    inner.config.suppress_errors, inner.config.some_other = True, 3
    inner.config.cache_size_limit = max(64, inner.config.cache_size_limit)
    assert (inner.config.suppress_errors, inner.config.cache_size_limit, inner.reset()) == (True, 64, None)
    assert importlib.import_module(f"{engine.__name__}._dynamo") is inner
    assert importlib.import_module(f"{engine.__name__}._dynamo.config") is inner.config
    assert inner.disable(len) is len
