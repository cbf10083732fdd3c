"""Every op's record is complete and tells the truth."""

import dis
import re

import numpy as np
import pytest

import common.ops.functional
from benchmarks.bits import difference
from common.core.op import REGISTRY, Registry, out_specs
from common.core.spec import Spec
from common.evaluate import specialise as eager
from common.ops._contents import CONTENTS
from tests.helpers import ops_contents
from tests.helpers.proofs import each, rotated

assert common.ops.functional  # defines the ops

OPS = [op for op in REGISTRY.values() if op.name != "constant"]
PRIMITIVE = [op for op in OPS if op.forward is None]
KINDS = {
    "elementwise": "scalar", "reduction": "reduce", "view": "strided", "kernel": "native", "composite": "forward",
}  # fmt: skip


def test_every_op_is_found_where_it_is_defined():
    """If not: ``python -m tests.helpers.ops_page`` writes the list."""
    assert ops_contents.TABLE.read_text(encoding="utf-8") == ops_contents.text()
    functions = [name for words in CONTENTS.values() for name in words.partition("|")[0].split()]
    assert len(functions) == len(set(functions))


def test_order_of_the_ops_does_not_depend_on_what_was_loaded_first():
    ops = Registry()
    ops.homes = {"first": "math", "second": "cmath"}
    ops["second"], ops["first"], ops["third"] = REGISTRY["add"], REGISTRY["mul"], REGISTRY["exp"]
    assert list(ops) == [*ops.keys()] == [name for name, _ in ops.items()] == ["first", "second", "third"]
    assert list(REGISTRY)[: len(REGISTRY.homes)] == list(REGISTRY.homes)


@each("op", REGISTRY.values())
def test_record_is_complete(op):
    assert op.kind in KINDS
    assert op.doc
    assert re.search(r"[.)]$", op.doc)
    assert len(op.rules) == len(op.inputs)
    assert op.node_name.endswith("Backward0") or op.node_name == "CopySlices"
    needed = {
        "elementwise": "scalar",
        "reduction": "reduce",
        "view": "strided",
        "kernel": "native",
        "composite": "forward",
    }
    assert getattr(op, needed[op.kind]) is not None
    assert op.kind != "kernel" or op.oracle is not None
    assert op.kind != "view" or op.array is not None


@each("op", OPS)
def test_op_has_samples(op):
    assert op.samples(np.random.default_rng(0), "float32")


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.kind == "elementwise" and op.differentiable], ids=lambda o: o.name
)
def test_doc_of_a_differentiable_op_states_the_derivative(op):
    described = {"where", "relu", "to", "clone", "zeros_like", "ones_like", "maximum", "minimum", "gelu_tanh"}
    assert "d/d" in op.doc or op.name in described, op.doc


@pytest.mark.parametrize(("op", "dtype"), rotated(PRIMITIVE, ["float32", "float64"]))
def test_spec_says_what_comes_out(op, dtype):
    """By a definition that does not know the spec, where there is one."""
    defined = op.oracle or op.array
    for operands, attrs in op.samples(np.random.default_rng(1), dtype):
        results = defined(*operands, **attrs) if defined else eager.run(op, operands, attrs)
        results = results if isinstance(results, tuple) else (results,)
        specs = out_specs(op.spec(*(Spec(x.shape, x.dtype) for x in operands), **attrs))
        assert [(x.shape, x.dtype) for x in results] == [(s.shape, s.dtype) for s in specs]


@each("op", [op for op in OPS if op.kind == "view"])
def test_index_maps_and_arrays_agree(op):
    """A view is defined twice, as strides and as a numpy view: they name the same elements."""
    for (x,), attrs in op.samples(np.random.default_rng(2), "float32"):
        strides = tuple(s // x.itemsize for s in x.strides)
        offset, shape, steps = op.strided(0, x.shape, strides, **attrs)
        flat = np.ascontiguousarray(x).ravel()
        places = np.full(shape, offset)
        for axis, step in enumerate(steps):
            places = places + np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]) * step
        np.testing.assert_array_equal(
            flat[places] if flat.size and places.size else np.zeros(shape), op.array(x, **attrs)
        )


FORBIDDEN = {"**", "@", "//", "%"}


@each("op", [op for op in OPS if op.differentiable])
def test_rules_use_ops_only(op):
    """Operators that numpy and the registry define differently have no place in a rule."""
    for rule in op.rules:
        if rule is None:
            continue
        used = {i.argrepr.rstrip("=") for i in dis.get_instructions(rule) if i.opname == "BINARY_OP"}
        assert not used & FORBIDDEN, f"{op.name}: {used & FORBIDDEN}"
        functions = set(rule.__code__.co_names) & {"np", "numpy"}
        assert not functions or op.name == "permute", f"{op.name}: {functions}"  # permute sorts its attribute


def _awkward(dtype):
    """Values of a dtype on which algebra breaks, where it is not exact."""
    given = {"f": [0.0, -0.0, 1.5, -3e38, 1e-45, np.inf, -np.inf, np.nan], "b": [False, True]}
    return np.array(given.get(dtype.kind, [0, 1, -7, np.iinfo(np.int32).min]), dtype)


@each("op", PRIMITIVE)
def test_what_the_compiler_relies_on_is_so_bit_by_bit(op):
    """Fields of a record by which passes rewrite programs."""
    for name in ("float32", "float64", "int64", "bool"):
        x = _awkward(np.dtype(name))
        for position, number in op.neutral:
            given = [x, x]
            given[position] = number
            result = eager.run(op, given, {})
            assert result.dtype != x.dtype or difference(result, x) is None
        if op.involution and not (op.domain == "number" and name == "bool"):
            assert difference(eager.run(op, [eager.run(op, [x], {})], {}), x) is None
        if op.form_only and op.kind == "view":
            assert difference(eager.run(op, [x], {"new_shape": x.shape}), x) is None
        if op.copies:
            assert difference(eager.run(op, [x], {}), x) is None
        if op.casts:
            other = eager.run(op, [x], {"dtype": np.dtype("float64"), "x_dtype": x.dtype})
            assert difference(other, x.astype("float64")) is None
        if op.fill is not None and len(op.inputs) == 1:
            assert difference(eager.run(op, [x], {}), np.full_like(x, op.fill)) is None
