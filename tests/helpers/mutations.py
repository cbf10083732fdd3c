"""One defect at a time, and the test that must notice it: ``python -m tests.helpers.mutations NAME``.

Without a name all are put in, to see that what they change and the tests that they name are there.

Each runs in a process of its own with an empty cache, because a defect may get into compiled code.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import dynamic  # noqa: F401  (installs the operators of tensors, without which every test fails)
from common.compiler.disk_cache import keep_together
from common.control.body import Body
from common.core.op import REGISTRY
from common.core.sizes import same, same_shape
from common.ops import functional as F

NOTICED = 7


class Mutation(NamedTuple):
    """A defect.

    Attributes
    ----------
    apply : puts it in.
    test : ``module:function`` of the test that notices.
    arguments : its arguments; names of ops and cases are resolved by `arguments_of`.
    """

    apply: Callable[[], None]
    test: str
    arguments: dict[str, Any] = {}


def rule(name: str, position: int, new: Callable[..., Any]) -> Callable[[], None]:
    """Replace one gradient rule."""

    def apply() -> None:
        rules = list(REGISTRY[name].rules)
        rules[position] = new
        REGISTRY[name].set_rules(rules)

    return apply


def attribute(target: str, name: str, change: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace an attribute of a module or a class by a function of the old one."""

    def apply() -> None:
        module, _, inner = target.partition(":")
        owner = importlib.import_module(module)
        owner = getattr(owner, inner) if inner else owner
        setattr(owner, name, change(getattr(owner, name)))

    return apply


def text(module: str, function: str, old: str, new: str) -> Callable[[], None]:
    """Change the source text that a function returns."""

    def change(original: Callable[..., str]) -> Callable[..., str]:
        def changed(*args: Any, **kwargs: Any) -> str:
            source = original(*args, **kwargs)
            assert old in source, f"{function} no longer contains {old!r}"
            return source.replace(old, new)

        return changed

    return attribute(module, function, change)


def _collect_depth_first(original: Any) -> Any:
    """Another topological order than by number."""

    def collect(roots: Any, *args: Any, **kwargs: Any) -> list[Any]:
        roots, order = list(roots), list[Any]()
        left = set(original(roots, *args, **kwargs))

        def visit(edge: Any) -> None:
            node = edge[0] if type(edge) is tuple else edge
            if node in left:
                left.remove(node)
                for following in reversed(node.edges):
                    visit(following)
                order.append(node)

        for root in roots:
            visit(root)
        return order[::-1]

    return collect


def _sum_axis_by_axis(original: Any) -> Any:
    def sum_to(x: Any, shape: tuple[Any, ...]) -> Any:
        while x.ndim > len(shape):
            x = F.sum(x, 0)
        for axis in reversed(range(x.ndim)):
            if isinstance(shape[axis], int) and shape[axis] == 1:
                x = F.sum(x, axis, True)
        return x

    return sum_to


def _sum_what_may_be_one(original: Any) -> Any:
    def sum_to(x: Any, shape: tuple[Any, ...]) -> Any:
        if same_shape(x.shape, shape):
            return x
        lead = x.ndim - len(shape)
        ones = [i for i in range(x.ndim) if i < lead or (same(shape[i - lead], 1) and not same(x.shape[i], 1))]
        return F.reshape(REGISTRY["sum"](x, dim=tuple(ones), keepdim=True), shape)

    return sum_to


def _without_effect_of_sign(original: Any) -> Any:
    return lambda x: ("float",) if isinstance(x, float) and x == 0 else original(x)


def _adds_zero(original: Any) -> Any:
    def same_as(node: Any, replace: Any) -> Any:
        if node.name == "add" and len(node.operands) == 2 and node.operands[1] == 0:
            x = node.operands[0]
            return replace.get(x.key, x)
        return original(node, replace)

    return same_as


def _swapped_select(original: Any) -> Any:
    return lambda self, x, y: original(self, y, x)


def _contracted(original: Any) -> Any:
    def binary(self: Any, other: Any, float_op: Any, integer_op: Any, swap: bool = False) -> Any:
        result = original(self, other, float_op, integer_op, swap)
        if float_op in ("fadd", "fmul", "fsub") and hasattr(result.ir, "flags"):
            result.ir.flags = ("contract",)
        return result

    return binary


def _one_lane_early(original: Any) -> Any:
    def fold(builder: Any, lanes: Any, combine: Any = None) -> Any:
        """Lane j with its neighbour instead of the one half a vector away."""
        from llvmlite import ir

        from common.kernels.arrays.code_blocks import INDEX, add

        width = lanes.type.count
        while width > 1:
            nothing = ir.Constant(lanes.type, ir.Undefined)
            kind = ir.VectorType(INDEX, width // 2)
            even, odd = (
                builder.shuffle_vector(lanes, nothing, ir.Constant(kind, list(range(a, width, 2)))) for a in (0, 1)
            )
            lanes, width = (combine or add)(builder, even, odd), width // 2
        return builder.extract_element(lanes, INDEX(0))

    return fold


def _everything_at_the_start(original: Any) -> Any:
    def place(arena: Any, sizes: Any) -> tuple[list[int], int]:
        return [0] * len(sizes), original(arena, sizes)[1]

    return place


def _nothing_changes(original: Any) -> Any:
    return lambda *args, **kwargs: ""


def _scaled(factor: float) -> Callable[[Any], Any]:
    return lambda original: lambda *xs: original(*xs) * factor


ORACLE, ELEMENTWISE = "tests.oracle.test_gradients", "tests.parity.test_elementwise"
FUNCTIONS, KERNELS = "tests.parity.test_functions", "tests.oracle.test_kernels"
ORDER, FORMULAS = "tests.oracle.test_order", "tests.oracle.test_formulas"


def _kept(shape: Any, dim: Any) -> Any:
    return tuple(1 if i in dim else n for i, n in enumerate(shape))


def of_op(name: str) -> tuple[str, dict[str, Any]]:
    """The finite-difference test of an elementwise function, on its first case."""
    return f"{ORACLE}:test_function", {"case": f"{name}-0"}


MUTATIONS: dict[str, Mutation] = {
    # gradient rules: shared by both engines, so only an oracle can notice
    "mul: own factor": Mutation(rule("mul", 0, lambda g, a: g * a), *of_op("mul")),
    "div: sign": Mutation(rule("div", 1, lambda g, y, b: g * (y / b)), *of_op("div")),
    "tanh: 1 - y": Mutation(rule("tanh", 0, lambda g, y: g * (1 - y)), *of_op("tanh")),
    "exp: 1": Mutation(rule("exp", 0, lambda g: g), *of_op("exp")),
    "pow: exponent not lowered": Mutation(
        rule("pow", 0, lambda g, a, b: g * (b * F.pow(a, b))), *of_op("pow")
    ),
    "where: both branches": Mutation(rule("where", 2, lambda g: g), *of_op("where")),
    "relu: gradient everywhere": Mutation(rule("relu", 0, lambda g: g), *of_op("relu")),
    "softmax: no sum": Mutation(rule("softmax", 0, lambda g, y: y * g), *of_op("softmax")),
    "normalize: scale forgotten, second order": Mutation(
        rule("normalize", 0, lambda g, y, x_shape, dim: F.zeros_like(y[0]) if g[0] is None else y[2] * (
            g[0] - F.mean(g[0], dim, True) - y[0] * F.mean(g[0] * y[0], dim, True))),
        *of_op("layer_norm"),
    ),
    "mm: sign of the second": Mutation(
        rule("mm", 1, lambda g, a, trans_a, trans_b: -F.mm(F.transpose(a, 0, 1), g)),
        f"{ORACLE}:test_function", {"case": "mm-0"},
    ),
    "mean: not divided": Mutation(
        rule("mean", 0, lambda g, x_shape, dim, keepdim: F.expand(F.reshape(g, _kept(x_shape, dim)), x_shape)),
        *of_op("mean"),
    ),
    "amax: every tie gets all": Mutation(
        rule("amax", 0, lambda g, x, y, dim, keepdim: F.eq(x, F.amax(x, dim, True)) * F.reshape(g, -1, 1)),
        f"{FORMULAS}:test_ties_share_the_gradient",
    ),
    # accumulation
    "tape: depth first": Mutation(
        attribute("common.autograd.unused_inputs", "collect", _collect_depth_first),
        f"{ORDER}:test_contributions_are_added_from_the_last_consumer_to_the_first",
    ),
    "tape: zeros materialised": Mutation(
        attribute(
            "common.autograd.backward_pass",
            "_take",
            lambda old: lambda *a, **k: None if (g := old(*a, **k)) is None else g + 0.0,
        ),
        f"{ORDER}:test_a_missing_contribution_is_no_zero",
    ),
    "tape: axis by axis": Mutation(
        attribute("common.core.unbroadcast", "sum_to", _sum_axis_by_axis),
        f"{ORDER}:test_undoing_a_broadcast_is_one_sum",
    ),
    "tape: sums over what may be one": Mutation(
        attribute("common.core.unbroadcast", "sum_to", _sum_what_may_be_one),
        f"{ORDER}:test_sizes_that_happen_to_be_one_or_equal_are_not_summed",
    ),
    # scalar expressions and kernels
    "relu: -0 stays": Mutation(
        attribute("common.ops.math.compare:relu", "scalar", lambda old: lambda x: x * 1.0),
        f"{ORDER}:test_special_values_have_the_documented_results",
    ),
    "tanh: last place": Mutation(
        attribute("common.ops.math.transcendental:tanh", "scalar", _scaled(1 + 2**-49)),
        f"{FORMULAS}:test_elementary_function_is_the_one_of_mathematics", {"name": "tanh"},
    ),
    "llvm: select swapped": Mutation(
        attribute("common.compiler.llvm_primitives:LlvmValue", "select", _swapped_select),
        f"{KERNELS}:test_scalar_expressions_run_by_numpy", {"op": "maximum", "dtype": "float32"},
    ),
    "llvm: fused multiply-add": Mutation(
        attribute("common.compiler.llvm_primitives:LlvmValue", "_binary", _contracted),
        f"{KERNELS}:test_scalar_expressions_run_by_numpy", {"op": "gelu_tanh", "dtype": "float64"},
    ),
    "sum: lanes folded as neighbours": Mutation(
        attribute("common.kernels.arrays.fold_rows", "fold_vector", _one_lane_early),
        f"{KERNELS}:test_sum_follows_the_definition", {"n": 1024, "dtype": "float32"},
    ),
    "scatter: overwrites": Mutation(
        text("common.kernels.arrays.indexing", "scatter_zeros_source", "out[at] + x[p]", "x[p]"),
        f"{KERNELS}:test_kernels_against_their_oracles", {"op": "scatter_zeros", "dtype": "float32"},
    ),
    "gather: neighbour": Mutation(
        text("common.kernels.arrays.indexing", "pick_source", "x[r * columns + index[r]]", "x[r * columns]"),
        f"{KERNELS}:test_kernels_against_their_oracles", {"op": "pick", "dtype": "float64"},
    ),
    # passes
    "merge_equal: -0 is 0": Mutation(
        attribute("static.passes.merge_equal", "_plain", _without_effect_of_sign),
        f"{FUNCTIONS}:test_creation", {"name": "full of zeros of both signs"},
    ),
    "simplify: x + 0": Mutation(
        attribute("static.passes.simplify", "_same_as", _adds_zero),
        f"{ELEMENTWISE}:test_numbers", {"op": "add", "dtype": "float32"},
    ),
    "remove_dead: effects": Mutation(
        attribute("static.graph:Graph", "results", lambda old: property(lambda self: self.outputs)),
        "tests.test_same_script:test_same_bits_after_every_step", {"optimizer": "sgd", "options": {}},
    ),
    "fold_constants: another sign": Mutation(
        attribute("static.passes.fold_constants", "run", lambda old: lambda *args: -old(*args)),
        f"{FUNCTIONS}:test_constants_are_folded_by_the_programs_own_kernels",
    ),
    # lowering
    "fuse: rows in another order": Mutation(
        attribute("static.lowering.fusion.fuse", "_edge_obstacle", _nothing_changes),
        f"{FUNCTIONS}:test_function", {"case": "views in between", "dtype": "float32"},
    ),
    "arena: everything at one place": Mutation(
        attribute("static.lowering.memory.arena:Arena", "place", _everything_at_the_start),
        f"{FUNCTIONS}:test_function", {"case": "tanh mlp", "dtype": "float32"},
    ),
    # control flow
    "loop: every row is the first": Mutation(
        attribute("static.lowering.ir.control_steps", "_row", lambda old: lambda stack: 0),
        "tests.parity.test_control:test_both_engines_agree", {"name": "scan", "dtype": "float32"},
    ),
    "loop: nothing flows back into what was carried": Mutation(
        attribute("common.control.loop:LoopRun", "hidden_edges", lambda old: lambda self: [None] * len(self.carried)),
        "tests.oracle.test_control:test_gradients_are_derivatives", {"name": "scan", "order": 2},
    ),
    "branches: the others trace nothing": Mutation(
        attribute("common.control.branches", "trace_branch", lambda old: lambda choice, i: Body([], 0)),
        "tests.parity.test_control:test_both_engines_agree", {"name": "cond, second", "dtype": "float32"},
    ),
    "guards: never checked": Mutation(
        attribute("common.core.sizes:Guard", "check", lambda old: lambda self, env: True),
        f"{FUNCTIONS}:test_guards_separate_sizes",
    ),
}  # fmt: skip


def arguments_of(mutation: Mutation) -> dict[str, Any]:
    """The arguments of the test, with names replaced by the ops and cases that they name."""
    from tests.helpers.cases import CASES, PROGRAMS

    cases = {c.label: c for group in (*CASES.values(), PROGRAMS) for c in group}
    found = dict(mutation.arguments)
    if "op" in found:
        found["op"] = REGISTRY[found["op"]]
    if "case" in found:
        found["case"] = cases[found["case"]]
    return found


def run_test(mutation: Mutation) -> None:
    """Run the test that must notice; it passes when the mutation has not been applied."""
    module, _, function = mutation.test.partition(":")
    getattr(importlib.import_module(module), function)(**arguments_of(mutation))


def check() -> None:
    """Put in every defect and look up every test, without running any."""
    for mutation in MUTATIONS.values():
        module, _, function = mutation.test.partition(":")
        test = getattr(importlib.import_module(module), function)
        inspect.signature(test, follow_wrapped=True).bind(**arguments_of(mutation))
        mutation.apply()


def main(name: str = "") -> int:
    """Apply one mutation, run its test; `NOTICED` if the test fails."""
    if not name:
        check()
        return 0
    mutation = MUTATIONS[name]
    keep_together()
    mutation.apply()
    try:
        run_test(mutation)
    except AssertionError as failure:
        print(f"noticed: {failure}")
        return NOTICED
    except Exception as failure:
        print(f"noticed: {type(failure).__name__}: {failure}")
        return NOTICED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
