"""Objects that can be copied and pickled, what is done with them, and ways to get another one."""

import copy
import functools
import pickle

import numpy as np

import dynamic
import static
from common.tensor.hook_handles import RemovableHandle

X = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
ENGINES = (dynamic, static)


# ------------------------------------------------------------------ what another process finds by name


def loss(x):
    return (x * x).sum() / 3


def scaled(x, factor=2.0):
    return (x * factor).tanh()


@dynamic.function
def named_dynamic(x):
    return loss(x)


@static.function(max_traces=3)
def named_static(x):
    return loss(x)


def drop_first(graph):
    return graph


def halve(module, args, output):
    return output * 0.5


def rate(epoch):
    return 0.5**epoch


class Net(dynamic.nn.Module):
    """Tied weights, a module under two names, a buffer, a compiled method."""

    def __init__(self):
        super().__init__()
        self.a, self.b = dynamic.nn.Linear(3, 3), dynamic.nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.again = self.a
        self.norm = dynamic.nn.BatchNorm1d(3)
        self.act = dynamic.relu
        self.step = static.function(self.inner)

    def inner(self, x):
        return self.norm(self.again(self.act(self.b(x))))

    @static.function
    def compiled(self, x):
        return self.inner(x)

    def forward(self, x):
        return self.inner(x)


def net(engine=dynamic):
    engine.manual_seed(0)
    return Net()


def hooked():
    module = net()
    module.register_forward_hook(halve)
    return module


def shared_parts():
    module = net()
    compiled = static.compile(module)
    return module, compiled, static.function(module), static.function(module.inner), module.a


def trained(kind, **options):
    module = net()
    optimizer = getattr(dynamic.optim, kind)(module.parameters(), **options)
    step(module, optimizer)
    return module, optimizer


def step(module, optimizer):
    optimizer.zero_grad()
    loss(module(dynamic.tensor(X))).backward()
    optimizer.step()


def scheduled(name, *args):
    module, optimizer = trained("SGD", lr=0.1, momentum=0.9)
    return module, optimizer, getattr(dynamic.optim.lr_scheduler, name)(optimizer, *args)


def drawn(seed):
    generator = dynamic.Generator(seed)
    dynamic.rand(5, generator=generator)
    return generator


# ------------------------------------------------------------------ what is done with them


def array(x):
    return np.asarray(x.detach() if hasattr(x, "detach") else x)


def on_input(f):
    return flat(f(X))


def flat(x):
    if isinstance(x, (tuple, list)):
        return [array for part in x for array in flat(part)]
    return [array(x)]


def on_module(module):
    y = module(dynamic.tensor(X, requires_grad=True))
    y.sum().backward()
    state = module.state_dict()
    return [array(y), *map(array, state.values()), *(array(p.grad) for p in module.parameters())]


def on_parts(parts):
    module, compiled, function, method, a = parts
    assert compiled.a is module.a is a
    assert compiled.training is module.training
    with dynamic.no_grad():
        a.bias.fill_(7.0)
    return [*map(array, (compiled(X), function(X), method(X))), *on_module(module)]


def on_training(parts):
    module, optimizer, *schedulers = parts
    assert [p for group in optimizer.param_groups for p in group["params"]] == list(module.parameters())
    assert set(optimizer.state) == set(module.parameters())
    for _ in range(2):
        step(module, optimizer)
        for scheduler in schedulers:
            assert scheduler.optimizer is optimizer
            scheduler.step()
    return [array(p) for p in module.parameters()] + [np.array(g["lr"]) for g in optimizer.param_groups]


def on_generator(generator):
    return [array(dynamic.rand(3, generator=generator)), generator.get_state()]


def as_is(x):
    return flat(x)


def functions(engine):
    f = engine.func
    yield "function", lambda: engine.function(loss), on_input
    yield "options", lambda: engine.function(scaled, fuse=False, max_traces=7, control_flow="guard"), on_input
    yield "partial", lambda: engine.function(functools.partial(scaled, factor=0.5)), on_input
    yield "of a module", lambda: engine.function(net()), on_input
    yield "of a method", lambda: engine.function(net().inner), on_input
    yield "grad", lambda: engine.grad(loss), on_input
    yield "grad of a function", lambda: engine.grad(engine.function(loss), 0, has_aux=False), on_input
    yield "value_and_grad", lambda: engine.value_and_grad(loss), on_input
    yield "vmap of grad", lambda: engine.vmap(engine.grad(loss), in_dims=1, out_dims=1), on_input
    yield "function of grad", lambda: engine.function(engine.grad(loss)), on_input
    for name in ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev"):
        yield f"func.{name}", lambda name=name: getattr(f, name)(loss), on_input


SCHEDULERS = {
    "StepLR": (2,), "MultiStepLR": ([1, 2],), "ExponentialLR": (0.9,), "LambdaLR": (rate,), "LinearLR": (),
    "CosineAnnealingLR": (5,), "CosineAnnealingWarmRestarts": (2,), "OneCycleLR": (0.1, 10), "PolynomialLR": (),
}  # fmt: skip

OBJECTS = {
    **{f"{e.__name__} {name}": (make, use) for e in ENGINES for name, make, use in functions(e)},
    "a function of dynamic with a name": (lambda: named_dynamic, on_input),
    "a function of static with a name": (lambda: named_static, on_input),
    "a method of static with a name": (lambda: Net.compiled, lambda f: flat(f(net(), X))),
    "module": (net, on_module),
    "module in evaluation": (lambda: net().eval(), on_module),
    "module with hooks": (hooked, on_module),
    "compiled module": (lambda: static.compile(net()), on_module),
    "compiled module, not fused": (lambda: static.compile(net(), fuse=False), on_module),
    "compiled twice": (lambda: static.compile(static.compile(net())), on_module),
    "module and what is made of it": (shared_parts, on_parts),
    **{f"optim {name}": (lambda name=name: trained(name), on_training) for name in ("Adagrad", "Adam", "AdamW")},
    "optim SGD": (lambda: trained("SGD", lr=0.1, momentum=0.9, nesterov=True), on_training),
    "optim RMSprop": (lambda: trained("RMSprop", centered=True, momentum=0.1), on_training),
    **{name: (lambda name=name, args=args: scheduled(name, *args), on_training) for name, args in SCHEDULERS.items()},
    "generator": (lambda: drawn(5), on_generator),
    "default generator": (lambda: dynamic.manual_seed(3), on_generator),
    "result of max": (lambda: dynamic.max(dynamic.tensor(X), dim=0), as_is),
    "dtype": (lambda: dynamic.float64, lambda d: [np.zeros(2, d)]),
    "shape": (lambda: dynamic.tensor(X).shape, lambda s: [np.zeros(s)]),
    "handle": (lambda: net().register_forward_hook(halve), lambda h: [np.array(isinstance(h, RemovableHandle))]),
    "written results": (lambda: static.function(loss).into(np.zeros((), np.float32)), on_input),
}


# ------------------------------------------------------------------ ways


def pickled(protocol):
    return lambda x: pickle.loads(pickle.dumps(x, protocol))


def out_of_band(x):
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(b) for b in buffers])


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {p}": pickled(p) for p in range(2, 6)},
    "pickle 5 out of band": out_of_band,
}
