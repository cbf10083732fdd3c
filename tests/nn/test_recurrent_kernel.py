"""Layers of recurrent networks as one kernel: the bits of the loop over ops, of values and of gradients."""

import gc
import weakref

import numpy as np
import pytest

import dynamic
import static
from common.compiler.compile import LLVM, NUMBA
from common.nn import recurrent_kernel
from tests.bits import assert_same_bits
from tests.helpers.wrapped import wrap

KINDS = {"RNN": {}, "RNN relu": {"nonlinearity": "relu"}, "GRU": {}, "LSTM": {}}


def _made(kind, *sizes, **more):
    dynamic.manual_seed(3)
    return getattr(dynamic.nn, kind.split()[0])(*sizes, **KINDS[kind], **more)


def _by_ops(monkeypatch):
    monkeypatch.setattr(recurrent_kernel, "is_one_kernel", lambda *_: False)


def _all(module, x, states, lengths, order):
    """Outputs, final states, and gradients of `order`."""
    x, states = wrap(x, requires_grad=True), [wrap(s, requires_grad=True) for s in states]
    given = x
    if lengths:
        given = dynamic.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    out, last = module(given, tuple(states) if len(states) > 1 else states[0])
    last = list(last) if len(states) > 1 else [last]
    out = out.data if lengths else out
    leaves = [x, *states, *module.parameters()]
    total = (out * out).sum() + (last[-1] * 3).sum()
    for _ in range(order - 1):
        total = sum((g * g).sum() for g in dynamic.autograd.grad(total, leaves, create_graph=True))
    return [out, *last, *dynamic.autograd.grad(total, leaves)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_bits_are_those_of_the_loop(kind, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    for steps, n, lengths, order, more in (
        (3, 5, None, 1, {"bidirectional": True}), (2, 2, None, 2, {"num_layers": 2}), (1, 16, None, 1, {}),
        (5, 16, [3, 1, 5], 1, {"bidirectional": True}), (4, 3, [4], 1, {}), (4, 2, [4, 2], 2, {"bidirectional": True}),
    ):  # fmt: skip
        module = _made(kind, 3, n, dtype=dtype, **more)
        batch = len(lengths) if lengths else 1 + steps % 3
        layers = module.num_layers * (1 + module.bidirectional)
        x = rng.normal(size=(steps, batch, 3)).astype(dtype)
        states = [rng.normal(size=(layers, batch, n)).astype(dtype) for _ in range(module.states)]
        found = _all(module, x, states, lengths, order)
        with monkeypatch.context() as patch:
            _by_ops(patch)
            expected = _all(module, x, states, lengths, order)
        for a, b in zip(found, expected, strict=True):
            assert_same_bits(a, b, f"{kind} of {n}")


def test_wide_batches_and_layers_without_a_bias_run_as_a_loop():
    for module, batch in ((_made("GRU", 2, 3), 1025), (_made("GRU", 2, 3, bias=False), 2), (_made("GRU", 2, 1), 2)):
        x = np.linspace(-1, 1, 2 * batch * 2, dtype=np.float32).reshape(2, batch, 2)
        compiled = static.function(lambda x, module=module: module(x)[0])
        assert_same_bits(module(wrap(x))[0], compiled(x), repr(module))


def test_frozen_weights_get_no_gradient_and_inputs_do():
    module = _made("LSTM", 2, 3).requires_grad_(False)
    x = dynamic.ones(4, 2, 2, requires_grad=True)
    out, _ = module(x)
    assert out.grad_fn.name() == "ScanBackward"
    out.sum().backward()
    assert x.grad is not None
    assert all(p.grad is None for p in module.parameters())


def test_a_weight_that_is_overwritten_before_the_backward_pass_is_noticed():
    module = _made("RNN", 2, 3)
    out, _ = module(dynamic.ones(4, 2, 2))
    with dynamic.no_grad():
        module.weight_hh_l0.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    out, _ = module(dynamic.ones(4, 2, 2))
    out.detach().mul_(2)  # what is returned is not what is read
    out.sum().backward()


def test_what_is_saved_goes_with_the_output():
    module = _made("GRU", 2, 3)
    out, _ = module(dynamic.ones(4, 2, 2))
    kept = weakref.ref(out.grad_fn.saved[0])
    del out, _
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_those_of_both_compilers(kind):
    """A process has one compiler; the text of the kernels is translated by the other one too."""
    from common.compiler.compile import compile_kernel
    from common.kernels.arrays import recurrent_layers
    from common.runtime.builtins import make_call

    mode = kind.upper().replace(" ", "_") if kind != "RNN" else "RNN_TANH"
    cell, rng = recurrent_layers.CELLS[mode], np.random.default_rng(1)
    steps, batch, n = 3, 2, 3
    width = cell.gates * n
    a, u = rng.normal(size=(steps, batch, width)), rng.normal(size=(width, n))
    d, states = rng.normal(size=width), rng.normal(size=(cell.states, batch, n))
    results = []
    for compiler in (LLVM, NUMBA):
        source = recurrent_layers.forward_source(mode, "float64", vector=False, masked=True)
        run = make_call(compile_kernel(source, "recurrent", compiler))
        out, kept = np.zeros((steps, batch, n)), np.zeros((steps, batch, cell.kept * n))
        finals = [np.zeros((batch, n)) for _ in states]
        scratch = np.zeros(recurrent_layers.forward_scratch(cell, batch, n, "float64"), np.uint8)
        run(a, *states, u, d, out, kept, *finals, np.array([2, 2, 1]), scratch, steps, batch, n, 0, 1)
        results.append([out, kept, *finals])
    for x, y in zip(*results, strict=True):
        assert_same_bits(x, y, mode)
