"""One native call applies and records an op as the general way does; and leaves to it what it does not know."""

from __future__ import annotations

import gc
import itertools
import sys

import numpy as np
import pytest

import dynamic as tw
from common.core import mode
from common.core.dispatch import NO_ATTRS, Attrs
from common.core.op import REGISTRY
from common.core.source_lines import locate
from common.evaluate import specialise as eager
from common.tensor import tape_garbage
from common.tensor.base import Tensor
from common.tensor.record import record
from tests.bits import assert_all_same_bits
from tests.helpers import proofs
from tests.helpers.proofs import each
from tests.helpers.wrapped import wrap

OPS = [op for op in REGISTRY.values() if op.samples is not None and op.name != "constant"]


@pytest.fixture(autouse=True)
def warm():
    """The first ops of a process take the general way, which makes the native tables."""
    x = wrap(np.ones(3, np.float32))
    for _ in range(eager._FEW + 1):
        record(REGISTRY["neg"], (x,), NO_ATTRS)
    assert eager.applied(REGISTRY["neg"], NO_ATTRS, x) is not None


def both(op, operands, attrs, monkeypatch):
    """The results of the general way and of the native call; None if the latter declines."""
    with monkeypatch.context() as context:
        context.setattr(eager, "applied", lambda *_: None)
        wanted = record(op, operands, attrs)
    return wanted, eager.applied(op, attrs, *operands)


def attributes(attrs):
    return Attrs(**attrs) if attrs else NO_ATTRS


def forms(saved):
    """The saved values, with shapes in place of arrays."""
    return [forms(x) if type(x) is tuple else x.shape if isinstance(x, np.ndarray) else x for x in saved]


def parts(y):
    return y if type(y) is tuple else (y,)


def test_most_ops_are_applied(monkeypatch):
    """All but views, and forms that are converted first."""
    declined = []
    for op in OPS:
        arrays, attrs = op.samples(np.random.default_rng(3), "float32")[0]
        operands = [wrap(x) if isinstance(x, np.ndarray) else x for x in arrays]
        if op.kind != "view" and both(op, operands, attributes(attrs), monkeypatch)[1] is None:
            declined.append(op.name)
    assert len(declined) < 0.1 * len(OPS), declined


@each("op", OPS)
@pytest.mark.parametrize("recorded", [True, False])
def test_applied_is_recorded(op, recorded, monkeypatch):
    """Values, gradients, and what a node knows; for the second of two operands too.

    Of two samples, so of all with ``--all``: samples differ in what kernels do, which `tests.parity` proves.
    """
    for arrays, attrs in op.samples(np.random.default_rng(3), "float32")[: 2 if proofs.sampled else None]:
        operands = [
            wrap(x, requires_grad=recorded and x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in arrays
        ]
        if not any(type(x) is Tensor for x in operands):
            continue
        wanted, found = both(op, operands, attributes(attrs), monkeypatch)
        if found is not None:
            assert_is_recorded(op, operands, wanted, found)
        if all(type(x) is Tensor for x in operands) and (found := shown(op, operands, attributes(attrs))) is not None:
            assert_is_recorded(op, operands, wanted, found)


def shown(op, operands, attrs):
    """The tensors that ``eager.shown`` makes of the arrays that an op returns."""
    payloads = [x.payload for x in operands]
    recipe = eager.prepare(op, payloads, attrs)
    return None if recipe.casts else eager.shown(recipe, recipe.run(*payloads), *operands)


def assert_is_recorded(op, operands, wanted, found):
    """Compare values, gradients and nodes of what `record` and a native call have made of the same operands."""
    assert type(wanted) is type(found)
    pairs = list(zip(parts(wanted), parts(found), strict=True))
    assert_all_same_bits([a.numpy(force=True) for a, _ in pairs], [b.numpy(force=True) for _, b in pairs], op.name)
    for a, b in pairs:
        assert (a.requires_grad, a.output_nr, a.is_leaf) == (b.requires_grad, b.output_nr, b.is_leaf)
        if a.grad_fn is None:
            continue
        node, other = a.grad_fn, b.grad_fn
        assert node.name() == other.name()
        assert (node.op, node.attrs, node.edges) == (other.op, other.attrs, other.edges)
        assert forms(node.saved) == forms(other.saved)
        assert locate(other.code, other.lasti)[0] == __file__
        seed = wrap(np.ones(a.shape, np.float32))
        leaves = [x for x in operands if type(x) is Tensor and x.requires_grad]
        grads = [tw.autograd.grad(y, leaves, seed, retain_graph=True, allow_unused=True) for y in (a, b)]
        given = [[g.numpy() for g in gs if g is not None] for gs in grads]
        assert_all_same_bits(*given, op.name)


def test_new_shapes_need_no_recipe():
    """Elementwise ops of operands of one shape, and of a tensor and a number, have a recipe for all shapes."""
    op = REGISTRY["atan2"]
    for number in (False, True):
        x = wrap(np.ones((2, 3), np.float32))
        record(op, (x, 2.0 if number else x), NO_ATTRS)
        for shape in ((5,), (7, 1, 2), (1,) * 9):
            y = wrap(np.full(shape, 2, np.float32))
            assert eager.applied(op, NO_ATTRS, y, 2.0 if number else y).shape == shape
        assert eager.applied(op, NO_ATTRS, x, wrap(np.ones((9, 2, 3), np.float32))) is None


@each("name", ["add", "mul", "div", "pow", "atan2", "lt", "where"])
def test_operands_are_converted_by_the_loop_itself(name, monkeypatch):
    """In any order in memory; where gradients are recorded, by ops of their own, which are nodes."""
    op, rng = REGISTRY[name], np.random.default_rng(7)
    pairs = [("float32", "float64"), ("int64", "float32"), ("float64", "bool"), ("int8", "int16")]
    for (left, right), shape in itertools.product(pairs, [((5000,), (5000,)), ((70, 90), (70, 1)), ((), (4, 3))]):
        x, y = (wrap((3 * rng.uniform(0, 1, n)).astype(d)) for n, d in zip(shape, (left, right), strict=True))
        given = (wrap(rng.integers(0, 2, shape[1]).astype("bool")), x, y) if name == "where" else (x, y)
        for operands in (given, [z.T for z in given]):
            eager.forget()  # the table is small
            record(op, operands, NO_ATTRS)
            for _ in range(2):
                wanted, found = both(op, operands, NO_ATTRS, monkeypatch)
                assert_all_same_bits([wanted.numpy()], [found.numpy()], f"{name} of {left} and {right}")
    x, y = wrap(np.ones(3, np.float32), requires_grad=True), wrap(np.ones(3))
    for _ in range(3):
        recorded = REGISTRY["add"](x, y)
        assert recorded.grad_fn.next_functions[0][0].name() == "ToCopyBackward0"
    with tw.no_grad():
        assert eager.applied(REGISTRY["add"], NO_ATTRS, x, y) is not None
    assert eager.applied(REGISTRY["add"], NO_ATTRS, x, y) is None


@pytest.fixture
def nothing_watches():
    """Watched views that other tests have left keep ops on the general way; they are put back."""
    left = dict(mode.tracing)
    mode.tracing.clear()
    yield
    mode.tracing.update(left)


@pytest.mark.usefixtures("nothing_watches")
def test_what_is_not_known_is_left_to_the_general_way():
    op, x = REGISTRY["neg"], wrap(np.ones((2, 3), np.float32))
    record(op, (x,), NO_ATTRS)  # which makes its recipe

    class Own(Tensor):
        """A class of the user's."""

    own = Own(np.ones((2, 3), np.float32))
    for operands in ([x.payload], [1.0], [own], ["x"], [None], [x] * 20, [], [x, x]):
        assert eager.applied(op, NO_ATTRS, *operands) is None
    recipe = eager.prepare(op, (x.payload,), NO_ATTRS)
    for operands, result in ([x.payload], x.payload), ([own], x.payload), ([x] * 33, x.payload), ([x], x), ([x], ()):
        assert eager.shown(recipe, result, *operands) is None
    assert eager.shown(recipe, x.payload, x).payload is x.payload
    assert eager.applied(op, {}, x) is None
    assert eager.applied(object(), NO_ATTRS, x) is None
    with tw.inference_mode():
        assert eager.applied(op, NO_ATTRS, x) is None
        assert eager.shown(recipe, x.payload, x) is None
        inferred = x * 2
    assert eager.applied(op, NO_ATTRS, inferred) is None
    assert eager.applied(op, NO_ATTRS, x).tolist() == [[-1] * 3] * 2


def test_errors_come_from_the_general_way():
    x, i = wrap(np.ones((2, 3), np.float32)), wrap(np.zeros((2, 3), np.int64))
    op, attrs = REGISTRY["gather"], Attrs(dim=1)
    record(op, (x, i), attrs)
    assert eager.applied(op, attrs, x, i) is not None
    assert eager.applied(op, attrs, x, i + 7) is None
    with pytest.raises(IndexError, match="index out of range"):
        record(op, (x, i + 7), attrs)


def test_an_interrupt_goes_through(monkeypatch):
    op, attrs, x = REGISTRY["mean"], Attrs(dim=(0,), keepdim=False), wrap(np.ones((2, 3), np.int64))

    def press(*_):
        raise KeyboardInterrupt

    found = eager.prepare(op, (x.payload,), attrs)
    monkeypatch.setattr(found, "builtin", press)
    with pytest.raises(KeyboardInterrupt):
        eager.applied(op, attrs, x)


def test_references_are_given_back():
    op, x = REGISTRY["mul"], wrap(np.ones((2, 3), np.float32), requires_grad=True)
    record(op, (x, x), NO_ATTRS)
    counted = [x, x.payload, NO_ATTRS, op, None, True, test_references_are_given_back.__code__]
    gc.collect()
    before = [sys.getrefcount(z) for z in counted]
    for _ in range(1000):
        y = eager.applied(op, NO_ATTRS, x, x)
        eager.applied(op, NO_ATTRS, y, 2.0)
        eager.applied(op, NO_ATTRS, x, "no operand")
        shown(op, (x, y), NO_ATTRS)
        eager.shown(eager.prepare(op, (x.payload,) * 2, NO_ATTRS), x, x)
    del y
    assert max(abs(sys.getrefcount(z) - n) for z, n in zip(counted, before, strict=True)) < 100


def test_nodes_look_at_the_collector(monkeypatch):
    looked = []
    monkeypatch.setattr(tape_garbage.postponement, "collections", 0)
    x = wrap(np.ones(3, np.float32), requires_grad=True)
    before = tape_garbage.due
    for _ in range(tape_garbage.EVERY + 1):
        looked.append(eager.applied(REGISTRY["neg"], NO_ATTRS, x) is not None)
    assert tape_garbage.due > before
    assert all(looked)
