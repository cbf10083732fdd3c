"""Session graphs against the eager engine: the same program gives the same bits, in every run."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import dynamic
import static as tw
from static.running import interpreter
from tests.bits import assert_all_same_bits
from tests.helpers.programs import INDEX, INPUTS, Program, inputs, programs
from tests.helpers.proofs import first
from tests.helpers.wrapped import wrap
from tests.parity.engines import NoInterpreter

few = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])

OPTIMISERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.05},
}
SIZES = {"w1": (3, 8), "b1": (8,), "w2": (8, 4), "b2": (4,)}


def start(rng, dtype):
    return {name: (rng.standard_normal(shape) * 0.5).astype(dtype) for name, shape in SIZES.items()}


def model(engine, p, x, t):
    """Loss of a small classifier with dropout, and a penalty that uses a parameter twice."""
    h = engine.tanh(x @ p["w1"] + p["b1"])
    h = engine.nn.functional.dropout(h, 0.25)
    logits = h @ p["w2"] + p["b2"]
    return engine.nn.functional.cross_entropy(logits, t) + (p["w2"] * p["w2"]).sum() * 0.01


@pytest.mark.parametrize(
    ("name", "dtype", "fuse"),
    [*((name, "float32", True) for name in OPTIMISERS), ("SGD", "float64", True), ("Adam", "float32", False)],
)
def test_training_step_by_step(name, dtype, fuse):
    rng = np.random.default_rng(1)
    values = start(rng, dtype)
    batches = [(rng.standard_normal((n, 3)).astype(dtype), rng.integers(0, 4, n)) for n in (6, 6, 1, 5, 6)]
    expected = []
    dynamic.manual_seed(5)
    parameters = {key: dynamic.nn.Parameter(x) for key, x in values.items()}
    optimizer = getattr(dynamic.optim, name)(parameters.values(), **OPTIMISERS[name])
    for x, t in batches:
        optimizer.zero_grad()
        loss = model(dynamic, parameters, dynamic.tensor(x), dynamic.tensor(t))
        loss.backward()
        gradients = [p.grad.numpy().copy() for p in parameters.values()]
        optimizer.step()
        expected.append([loss.detach().numpy(), *gradients, *(p.numpy().copy() for p in parameters.values())])
    with tw.Graph().as_default():
        tw.set_random_seed(5)
        variables = {key: tw.Variable(x, name=key) for key, x in values.items()}
        given = tw.placeholder(dtype, [None, 3], name="x")
        target = tw.placeholder(tw.int64, [None], name="t")
        loss = model(tw, variables, given, target)
        optimizer = getattr(tw.optim, name)(variables.values(), **OPTIMISERS[name])
        pairs = optimizer.compute_gradients(loss)
        train = optimizer.apply_gradients(pairs)
        init = tw.global_variables_initializer()
        after = [v.read_value() for v in variables.values()]
    with NoInterpreter(), tw.Session(train.graph, fuse=fuse) as session:
        session.run(init)
        for step, (x, t) in enumerate(batches):
            found = session.run([loss, *(g for g, _ in pairs), *after, train], {given: x, target: t})
            assert_all_same_bits(found[:-1], expected[step], f"{name}, step {step}")


def graph_of(program: Program, dtype: str):
    """The program as a graph whose sizes are all open: placeholders, results and gradients."""
    graph = tw.Graph()
    with graph.as_default():
        fed = [
            tw.placeholder(tw.int64 if i == INDEX else dtype, [n if n == 1 else None for n in shape], name=name)
            for i, (name, shape) in enumerate(INPUTS.items())
        ]
        outputs = list(program.run(*fed))
        wanted = [x for x in fed if x.dtype.kind == "f"]
        roots = [y for y in outputs if y.requires_grad]
        gradients = tw.gradients(roots, wanted) if roots else []
    return graph, fed, [*outputs, *(g for g in gradients if g is not None)], [g is None for g in gradients]


def eager(program: Program, arrays):
    leaves = [wrap(x).requires_grad_() if x.dtype.kind == "f" else wrap(x) for x in arrays]
    outputs = list(program.run(*leaves))
    wanted = [x for x in leaves if x.requires_grad]
    roots = [y for y in outputs if y.requires_grad]
    if not roots:
        return [y.numpy() for y in outputs], []
    gradients = dynamic.autograd.grad(roots, wanted, [dynamic.ones_like(y) for y in roots], allow_unused=True)
    results = [*outputs, *(g for g in gradients if g is not None)]
    return [y.detach().numpy() for y in results], [g is None for g in gradients]


@pytest.mark.parametrize("part", first(1, range(2), core=1))
def test_random_programs_at_every_size(part):
    @seed(100 + part)
    @settings(few, max_examples=7)
    @given(programs())
    def agree(program: Program):
        dtype = ("float32", "float64")[part % 2]
        rng = np.random.default_rng(60)
        graph, fed, fetches, unused = graph_of(program, dtype)
        sessions = {"compiled": tw.Session(graph), "unfused": tw.Session(graph, fuse=False),
                    "interpreted": tw.Session(graph, interpret=True)}  # fmt: skip
        for n, m in ((4, 3), (5, 33), (34, 2), (1, 3), (4, 1), (1, 1), (2, 2), (3, 3)):
            arrays = inputs(rng, n, m, dtype)
            expected, missing = eager(program, arrays)
            assert missing == unused
            for how, session in sessions.items():
                if n == 4 or how == "compiled":
                    found = session.run(fetches, dict(zip(fed, arrays, strict=True)))
                    assert_all_same_bits(found, expected, f"{program}, {how}, {n} x {m}")

    agree()


def test_second_derivatives_have_the_bits_of_the_eager_engine():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal((3, 2)).astype(np.float32)

    def value(engine, x, w):
        return (engine.tanh(x @ w) * engine.exp(-(x * x).sum(dim=1, keepdim=True))).sum()

    a, b = dynamic.tensor(x, requires_grad=True), dynamic.tensor(w, requires_grad=True)
    first = dynamic.autograd.grad(value(dynamic, a, b), (a, b), create_graph=True)
    second = dynamic.autograd.grad((first[0] * first[0]).sum() + first[1].sum(), (a, b))
    with tw.Graph().as_default():
        given, v = tw.placeholder(tw.float32, [None, 3]), tw.Variable(w)
        ours = tw.gradients(value(tw, given, v), [given, v])
        more = tw.gradients((ours[0] * ours[0]).sum() + ours[1].sum(), [given, v])
        session = tw.Session()
        session.run(v.initializer)
        found = session.run([*ours, *more], {given: x})
    assert_all_same_bits(found, [g.detach().numpy() for g in (*first, *second)], "derivatives")


def test_the_interpreter_is_really_out_of_reach():
    assert callable(interpreter.run_node)
    with tw.Graph().as_default(), NoInterpreter():
        y = tw.constant(1.0) + 1.0
        with pytest.raises(AssertionError, match="fell back"):
            tw.Session(interpret=True).run(y)
