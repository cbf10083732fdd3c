"""Valid calls of the whole public surface, as data, for `tests.helpers.hostile` to put hostile values into."""

# Calls that break types on purpose, made in loops by lambdas with defaults.
# mypy: disable-error-code="misc, assignment, index, dict-item, return-value"

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import dynamic
import dynamic.utils.tensorboard
import static
from common.api import surface
from common.tensor.base import TensorBase
from tests.helpers import fuzz_modules, hostile_public, hostile_sessions
from tests.helpers.fuzz_arguments import draw_call

Rng = np.random.Generator
#: ``make(rng) -> (function, positional arguments, arguments by name)``.
Make = Callable[[Rng], tuple[Callable[..., Any], list[Any], dict[str, Any]]]

ENGINES = {"dynamic": dynamic, "static": static}
f4 = np.float32
OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift",
    "eq", "ne", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior",
    "ixor", "ilshift", "irshift", "getitem",
]  # fmt: skip
#: Methods that are not called: what they do outlives a call, or they are the package's own.
_LEFT_OUT = frozenset(["describe_escape", "end", "forward", "register_module"])


def x(*shape: int) -> Any:
    """A tensor that requires grad."""
    return dynamic.ones(*shape or (2, 3), requires_grad=True)


def _loss() -> Any:
    return (x() * 2).sum()


def _linear() -> Any:
    return dynamic.nn.Linear(3, 2)


def _sgd() -> Any:
    return dynamic.optim.SGD(_linear().parameters(), lr=0.1, momentum=0.9)


def _sum(y: Any) -> Any:
    return (y * y).sum()


def _double(y: Any) -> Any:
    return y * 2


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _drawn(function: Any, name: str, taken: int = 0) -> Make:
    """A call whose arguments are drawn by the names of the parameters."""

    def make(rng: Rng) -> Any:
        signature = _signature(function)
        assert signature is not None
        kept = list(signature.parameters.values())[taken:]
        call = draw_call(rng, name, signature.replace(parameters=kept))
        return function, [_tensor(rng, a) for a in call.args], {k: _tensor(rng, a) for k, a in call.kwargs.items()}

    return make


def _tensor(rng: Rng, value: Any) -> Any:
    if type(value) is np.ndarray and value.dtype.name in ("float32", "float64", "int64", "bool") and rng.random() < 0.7:
        return dynamic.tensor(value)
    return value


def _method(name: str) -> Make:
    def make(rng: Rng) -> Any:
        own = dynamic.tensor(
            rng.integers(0, 3, (2, 3)).astype(["float32", "float32", "int64", "bool"][rng.integers(4)])
        )
        if own.dtype == f4 and rng.random() < 0.3:
            own = own.requires_grad_() * 1.0
        _, args, kwargs = _drawn(getattr(dynamic.Tensor, name), name, 1)(rng)
        return getattr(own, name), args, kwargs

    return make


def _operator(name: str) -> Make:
    def make(rng: Rng) -> Any:
        pair = [dynamic.ones(2, 3), [dynamic.ones(2, 3), 2, 0.5, np.ones((2, 3), f4)][rng.integers(4)]]
        return getattr(operator, name), pair if rng.random() < 0.7 else pair[::-1], {}

    return make


def _module(name: str) -> Make:
    def make(rng: Rng) -> Any:
        call = fuzz_modules.draw_module(rng, name)
        return getattr(dynamic.nn, name.partition(".")[2]), [], dict(call.options)

    return make


def _forward(name: str) -> Make:
    def make(rng: Rng) -> Any:
        call = fuzz_modules.draw_module(rng, name)
        try:
            call.build(dynamic)
        except Exception:  # arguments that do not go together are drawn too
            return _module(name)(rng)
        return call.module, list(call.args), {}

    return make


def _table() -> dict[str, Make]:
    """Calls that names of parameters say too little about; each is made anew."""
    tw, calls = dynamic, {}

    def add(name: str, make: Callable[[], Any]) -> None:
        def at(rng: Rng) -> Any:
            function, args, *rest = make()
            return function, list(args), dict(rest[0]) if rest else {}

        calls[name] = at

    square, twice, one = _sum, _double, (lambda *a: a[0])
    # what all tensors have
    add("Tensor", lambda: (tw.Tensor, [np.ones(2, f4)], {"requires_grad": True}))
    add("Tensor.setitem", lambda: (operator.setitem, [tw.ones(2, 3), (0, slice(1)), 2.0]))
    add("Tensor.grad=", lambda: (setattr, [x(), "grad", tw.ones(2, 3)]))
    add("Tensor.data=", lambda: (setattr, [x(), "data", tw.ones(2, 3)]))
    add("Tensor.requires_grad=", lambda: (setattr, [tw.ones(2, 3), "requires_grad", True]))
    add("divmod", lambda: (divmod, [tw.ones(2, 3), 2]))
    add("Parameter", lambda: (tw.nn.Parameter, [np.ones(2, f4), True]))
    add("Buffer", lambda: (tw.nn.Buffer, [np.ones(2, f4)]))
    # control flow
    for engine, mod in ENGINES.items():
        add(f"{engine}.cond", lambda m=mod: (m.cond, [tw.tensor(True), twice, square, tw.ones(3)]))
        add(f"{engine}.switch", lambda m=mod: (m.switch, [1, [twice, twice], tw.ones(3)]))
        add(f"{engine}.while_loop", lambda m=mod: (m.while_loop, [lambda c: (c * 0).sum() > 0, twice, tw.ones(2)]))
        add(f"{engine}.fori_loop", lambda m=mod: (m.fori_loop, [0, 3, lambda i, c: c * 2, tw.ones(2)], {"unroll": 1}))
        add(f"{engine}.scan", lambda m=mod: (m.scan, [lambda c, s: (c + s, c), tw.zeros(3), tw.ones(2, 3)],
                                             {"length": 2, "reverse": False}))  # fmt: skip
        add(f"{engine}.map", lambda m=mod: (m.map, [twice, tw.ones(4, 2)], {"batch_size": 2}))
        add(f"{engine}.associative_scan", lambda m=mod: (m.associative_scan, [tw.add, {"a": tw.ones(4, 2)}, True, 0]))
        add(f"{engine}.dynamic_slice", lambda m=mod: (m.dynamic_slice, [tw.ones(3, 2), (tw.tensor(1), 0), (2, 2)]))
        add(f"{engine}.dynamic_update_slice", lambda m=mod: (m.dynamic_update_slice, [tw.ones(3), tw.ones(2), (1,)]))
        for name in ("grad", "value_and_grad"):
            add(f"{engine}.{name}", lambda m=mod, n=name: (getattr(m, n), [square, 0, False]))
            add(f"{engine}.{name}()", lambda m=mod, n=name: (getattr(m, n)(square), [tw.ones(3)]))
        for name in ("jacrev", "jacfwd", "hessian", "grad_and_value"):
            add(f"{engine}.func.{name}", lambda m=mod, n=name: (getattr(m.func, n), [square], {"argnums": 0}))
            add(f"{engine}.func.{name}()", lambda m=mod, n=name: (getattr(m.func, n)(square), [tw.ones(3)]))
        add(f"{engine}.vjp", lambda m=mod: (m.vjp, [square, tw.ones(3)], {"has_aux": False}))
        add(f"{engine}.vjp()", lambda m=mod: (m.vjp(twice, tw.ones(3))[1], [tw.ones(3)]))
        add(f"{engine}.vmap", lambda m=mod: (m.vmap, [square], {"in_dims": 0, "out_dims": 0, "chunk_size": 1}))
        add(f"{engine}.vmap()", lambda m=mod: (m.vmap(twice), [tw.ones(3, 2)]))
        add(f"{engine}.vmap(in_dims)", lambda m=mod: (lambda d, o: m.vmap(twice, d, o)(tw.ones(3, 2)), [0, 0]))
        add(f"{engine}.func.jvp", lambda m=mod: (m.func.jvp, [square, (tw.ones(3),), (tw.ones(3),)]))
        add(f"{engine}.func.linearize", lambda m=mod: (m.func.linearize, [square, tw.ones(3)]))
        add(f"{engine}.func.functional_call", lambda m=mod: (m.func.functional_call, [
            _linear(), {"bias": tw.ones(2)}, (tw.ones(3),)], {"kwargs": {}, "strict": False}))  # fmt: skip
        add(f"{engine}.func.stack_module_state", lambda m=mod: (m.func.stack_module_state, [[_linear(), _linear()]]))
        add(f"{engine}.function", lambda m=mod: (m.function, [twice], {
            "fuse": True, "interpret": False, "passes": None, "max_traces": 4, "control_flow": None,
            "memory_budget": None, "donate_argnums": (), "share_memory": True}))  # fmt: skip
        add(f"{engine}.function()", lambda m=mod: (m.function(one), [tw.ones(3), 2]))
        add(f"{engine}.pure_callback", lambda m=mod: (m.pure_callback, [
            lambda y: y, m.ShapeDtypeStruct((3,), "float32"), tw.ones(3)]))  # fmt: skip
        add(f"{engine}.ShapeDtypeStruct", lambda m=mod: (m.ShapeDtypeStruct, [(3,), "float32"]))
        add(f"{engine}.print", lambda m=mod: (m.print, [tw.ones(3)], {"sep": "", "end": ""}))
        add(f"{engine}.assert_", lambda m=mod: (m.assert_, [tw.tensor(True), "message"]))
        for name in ("hessian", "jacobian", "hvp", "jvp", "vhp", "vjp"):
            rest = [tw.ones(3)] if name in ("hvp", "vhp", "jvp") else []
            add(f"{engine}.autograd.functional.{name}", lambda m=mod, n=name, r=rest: (
                getattr(m.autograd.functional, n), [square, tw.ones(3), *r], {"strict": False}))  # fmt: skip
        for name in ("normal", "rand", "randint", "randn", "randperm"):
            calls[f"{engine}.random.{name}"] = _drawn(getattr(mod.random, name), name)
        add(f"{engine}.utils.checkpoint", lambda m=mod: (m.utils.checkpoint.checkpoint, [square, x(3)]))
    # autograd
    add("autograd.backward", lambda: (tw.autograd.backward, [_loss()], {
        "grad_tensors": None, "retain_graph": False, "create_graph": False, "inputs": None}))  # fmt: skip
    add("Tensor.backward", lambda: (_loss().backward, [], {"gradient": tw.tensor(1.0), "retain_graph": True,
                                                           "create_graph": False, "inputs": [x()]}))  # fmt: skip

    def grad() -> Any:
        y = x()
        return tw.autograd.grad, [(y * y).sum(), y], {"grad_outputs": None, "retain_graph": False, "allow_unused": True}

    add("autograd.grad", grad)
    for name in ("gradcheck", "gradgradcheck"):
        add(f"autograd.{name}", lambda n=name: (getattr(tw.autograd, n), [
            square, tw.ones(2, dtype="float64").requires_grad_()], {"eps": 1e-6, "atol": 1e-5}))  # fmt: skip
    for name in ("detect_anomaly", "set_grad_enabled", "no_grad", "enable_grad", "inference_mode"):
        add(f"autograd.{name}", lambda n=name: (getattr(tw.autograd, n), [True]))
    add("autograd.set_detect_anomaly", lambda: (tw.autograd.set_detect_anomaly, [False, False]))
    graph = tw.autograd.graph
    for name in ("execution_order", "iter_graph", "saved_report", "to_networkx"):
        add(f"autograd.graph.{name}", lambda n=name: (getattr(graph, n), [_loss()]))
    add("autograd.graph.make_dot", lambda: (graph.make_dot, [_loss()], {"params": {}, "show_attrs": True}))
    add("autograd.graph.get_gradient_edge", lambda: (graph.get_gradient_edge, [_loss()]))
    add("autograd.graph.hooks", lambda: (graph.register_multi_grad_hook, [[x(), x()], one], {"mode": "all"}))
    add("autograd.graph.saved_tensors_hooks", lambda: (graph.saved_tensors_hooks, [one, one]))
    add("autograd.Function.apply", lambda: (_Twice.apply, [x()]))
    add("autograd.function.once_differentiable", lambda: (tw.autograd.function.once_differentiable, [one]))
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        add(f"Tensor.{name}", lambda n=name: (getattr(x(), n), [one]))
    # printing, files, threads, random numbers
    add("set_printoptions", lambda: (lambda **k: (tw.set_printoptions(**k), repr(tw.arange(6.0) / 3)), [], {
        "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "profile": "default",
        "sci_mode": False}))  # fmt: skip
    add("save_file", lambda: (tw.save_file, [{"a": tw.ones(2)}, "a.safetensors"], {"metadata": {"b": "c"}}))
    add("load_file", lambda: (tw.load_file, ["a.safetensors"]))
    add("set_num_threads", lambda: (tw.set_num_threads, [1]))
    for name in ("manual_seed", "Generator"):
        add(name, lambda n=name: (getattr(tw, n), [3]))
    add("set_rng_state", lambda: (tw.set_rng_state, [tw.get_rng_state()]))
    add("Generator.manual_seed", lambda: (tw.Generator().manual_seed, [3]))
    add("Generator.set_state", lambda: (tw.Generator().set_state, [tw.Generator().get_state()]))
    add("fork_rng", lambda: (lambda *a, **k: tw.random.fork_rng(*a, **k).__enter__(), [], {"enabled": True}))
    # modules
    for name in ("Sequential", "ModuleList", "ParameterList", "ModuleDict", "ParameterDict"):
        made = {"ModuleList": [[_linear()]], "ParameterList": [[x()]], "ModuleDict": [{"a": _linear()}],
                "ParameterDict": [{"a": x()}]}.get(name, [_linear()])  # fmt: skip
        add(f"nn.{name}", lambda n=name, a=made: (getattr(tw.nn, n), a))
        kind, holder = getattr(tw.nn, name), getattr(tw.nn, name)(*made)
        for method in [m for m in vars(kind) if not m.startswith("_") and callable(getattr(kind, m))]:
            calls[f"nn.{name}.{method}"] = _drawn(getattr(holder, method), method)
        for item in ("getitem", "setitem", "delitem", "contains"):
            rest = ["a" if "Dict" in name else 0, *[made[0]] * (item == "setitem")]
            if hasattr(kind, f"__{item}__"):
                add(f"nn.{name}.{item}", lambda n=name, i=item, a=made, r=rest: (
                    getattr(getattr(tw.nn, n)(*a), f"__{i}__"), [*r]))  # fmt: skip
    methods: dict[str, list[Any]] = {
        "add_module": ["a", _linear()], "apply": [one], "get_buffer": ["b"], "get_parameter": ["weight"],
        "get_submodule": [""], "load_state_dict": [_linear().state_dict(), True], "named_modules": [None, "", True],
        "named_parameters": ["", True], "parameters": [True], "buffers": [True], "named_buffers": [""],
        "register_buffer": ["b", np.ones(2, f4)], "register_parameter": ["p", tw.nn.Parameter(np.ones(2, f4))],
        "register_forward_hook": [one], "register_forward_pre_hook": [one], "register_full_backward_hook": [one],
        "register_full_backward_pre_hook": [one], "register_state_dict_pre_hook": [one],
        "register_state_dict_post_hook": [one], "register_load_state_dict_pre_hook": [one],
        "register_load_state_dict_post_hook": [one], "requires_grad_": [True], "to": ["float64"], "train": [True],
        "zero_grad": [True], "state_dict": [], "set_extra_state": [1],
    }  # fmt: skip
    for name, given in methods.items():
        add(f"nn.Module.{name}", lambda n=name, a=given: (_listing(getattr(_linear(), n)), a))
    add("nn.Module.setattr", lambda: (setattr, [_linear(), "weight", tw.nn.Parameter(np.ones((2, 3), f4))]))
    utils = tw.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        add(f"nn.utils.{name}", lambda n=name: (getattr(utils, n), [_trained().parameters(), 1.0]))
    add("nn.utils.get_total_norm", lambda: (utils.get_total_norm, [[tw.ones(2)]], {"norm_type": 2.0}))
    add("nn.utils.parameters_to_vector", lambda: (utils.parameters_to_vector, [_linear().parameters()]))
    add("nn.utils.vector_to_parameters", lambda: (utils.vector_to_parameters, [tw.ones(8), _linear().parameters()]))
    for name in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
        add(f"nn.modules.{name}", lambda n=name: (
            lambda *a: getattr(tw.nn.modules.module, f"register_module_{n}")(*a).remove(), [one]))  # fmt: skip
    # optimisers and schedulers
    for name in ("SGD", "Adagrad", "Adam", "AdamW", "RMSprop", "ASGD", "Rprop", "Adafactor"):
        kind = getattr(tw.optim, name)
        listed = inspect.signature(kind).parameters.values()
        defaults = {p.name: p.default for p in listed if p.default is not p.empty}
        add(f"optim.{name}", lambda k=kind, d=defaults: (k, [_linear().parameters()], d))
        add(f"optim.{name}.step", lambda k=kind, d=defaults: (
            lambda *a, **o: _stepped(k, *a, **o), [],
            {k: v for k, v in d.items() if not isinstance(v, bool)}))  # fmt: skip
    for name, given in {"step": [lambda: 1.0], "zero_grad": [True], "add_param_group": [{"params": [x()]}],
                        "load_state_dict": [_sgd().state_dict()], "minimize": [square]}.items():  # fmt: skip
        add(f"optim.SGD.{name}", lambda n=name, a=given: (getattr(_sgd(), n), a))
    add("optim.param_groups", lambda: (operator.setitem, [_sgd().param_groups[0], "lr", 0.5]))
    schedulers = tw.optim.lr_scheduler
    options: dict[str, dict[str, Any]] = {
        "ConstantLR": {}, "CosineAnnealingLR": {"T_max": 3}, "CosineAnnealingWarmRestarts": {"T_0": 2},
        "CyclicLR": {"base_lr": 0.1, "max_lr": 0.5}, "MultiplicativeLR": {"lr_lambda": lambda e: 0.5},
        "ExponentialLR": {"gamma": 0.9}, "LambdaLR": {"lr_lambda": lambda e: 0.5}, "LinearLR": {},
        "MultiStepLR": {"milestones": [1, 2]}, "OneCycleLR": {"max_lr": 0.5, "total_steps": 5}, "PolynomialLR": {},
        "ReduceLROnPlateau": {}, "StepLR": {"step_size": 1},
    }  # fmt: skip
    for name, needed in options.items():
        kind = getattr(schedulers, name)
        given = {p.name: p.default for p in inspect.signature(kind).parameters.values() if p.default is not p.empty}
        add(
            f"lr_scheduler.{name}",
            lambda k=kind, g={**given, **needed}: (lambda o, **r: _scheduled(k, o, r), [_sgd()], g),
        )
        add(f"lr_scheduler.{name}.step", lambda k=kind, o=needed: (k(_sgd(), **o).step, [1]))
        add(f"lr_scheduler.{name}.load_state_dict", lambda k=kind, o=needed: (
            k(_sgd(), **o).load_state_dict, [k(_sgd(), **o).state_dict()]))  # fmt: skip
    add("lr_scheduler.SequentialLR", lambda: (lambda o, s, m: schedulers.SequentialLR(o, s, m), [*_sequence(), [1]]))
    # profiler, tensorboard
    add("profiler.profile", lambda: (_profiled, [], {"activities": None, "schedule": None, "on_trace_ready": None,
                                                     "record_shapes": True}))  # fmt: skip
    add("profiler.record_function", lambda: (tw.profiler.record_function, ["a", "b"]))
    add("profiler.schedule", lambda: (tw.profiler.schedule, [], {"wait": 1, "warmup": 1, "active": 1, "repeat": 0}))
    for name, given in {
        "add_scalar": ["a", 1.0, 2],
        "add_histogram": ["a", tw.ones(3), 2],
        "add_text": ["a", "b", 1],
        "add_scalars": ["a", {"b": 1.0}, 2],
        "add_histogram_raw": ["a", 0.0, 1.0, 2, 1.0, 1.0, [0.0, 1.0], [1, 1], 2],
        "add_image": ["a", tw.zeros(3, 2, 2), 2, None, "CHW"],
        "add_images": ["a", tw.zeros(2, 3, 2, 2), 2, None, "NCHW"],
        "add_pr_curve": ["a", tw.ones(3), tw.zeros(3), 2, 5],
        "add_hparams": [{"a": 1.0}, {"b": 2.0}, None, "run"],
        "add_embedding": [tw.ones(2, 3), ["a", "b"], None, 2],
    }.items():
        add(f"tensorboard.{name}", lambda n=name, a=given: (_written(n), a))
    return calls


class _Twice(dynamic.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        return value if not isinstance(value, TensorBase) else value * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def _listing(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose iterators are used up."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        return list(result) if inspect.isgenerator(result) else result

    return call


def _trained() -> Any:
    linear = _linear()
    linear(dynamic.ones(2, 3)).sum().backward()
    return linear


def _stepped(kind: Any, *args: Any, **options: Any) -> None:
    linear = _trained()
    optimizer = kind(linear.parameters(), *args, **options)
    optimizer.step()


def _scheduled(kind: Any, optimizer: Any, options: dict[str, Any]) -> None:
    scheduler = kind(optimizer, **options)
    optimizer.step()
    scheduler.step(*[1.0] * (kind.__name__ == "ReduceLROnPlateau"))


def _sequence() -> list[Any]:
    optimizer, schedulers = _sgd(), dynamic.optim.lr_scheduler
    return [optimizer, [schedulers.ConstantLR(optimizer), schedulers.LinearLR(optimizer)]]


def _profiled(**options: Any) -> None:
    with dynamic.profiler.profile(**options) as profile:
        dynamic.ones(2) * 2
        profile.step()
    profile.key_averages()


def _written(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> None:
        with dynamic.utils.tensorboard.SummaryWriter("runs") as writer:
            getattr(writer, name)(*args, **kwargs)

    return call


def calls() -> dict[str, Make]:
    """Every call by its name."""
    made: dict[str, Make] = {}
    for engine, mod in ENGINES.items():
        for name in (*surface.FUNCTIONS, *surface.CREATION):
            made[f"{engine}.{name}"] = _drawn(getattr(mod, name), name)
        for name in surface.NN_FUNCTIONS:
            made[f"{engine}.nn.functional.{name}"] = _drawn(getattr(mod.nn.functional, name), name)
    for name in dir(dynamic.Tensor):
        method = getattr(dynamic.Tensor, name)
        if not name.startswith("_") and callable(method) and name not in _LEFT_OUT and _signature(method):
            made[f"Tensor.{name}"] = _method(name)
    made |= {f"operator.{name}": _operator(name) for name in OPERATORS}
    for name in fuzz_modules.names():
        made[name] = _module(name)
        made[f"{name}()"] = _forward(name)
    made = {**made, **_table(), **hostile_sessions.table()}
    return {**made, **hostile_public.table(made)}
