"""The other side of `test_other_processes.py`; a module that every process can import."""

import importlib

import numpy as np

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def gain(x):
    return x.tanh() * 2


def made(name):
    """A model and its optimiser, mid-way, a schedule, a generator, a loader, functions and a gradient."""
    tw = importlib.import_module(name)
    tw.manual_seed(0)
    model = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.BatchNorm1d(8), tw.nn.Dropout(0.2), tw.nn.Linear(8, 2))
    optimizer = tw.optim.Adam(model.parameters(), lr=0.01)
    schedule = tw.optim.lr_scheduler.StepLR(optimizer, 2)
    generator = tw.Generator(3)
    loader = tw.utils.data.DataLoader(list(range(5)), 2, shuffle=True, generator=generator)
    held = {"model": model, "optimizer": optimizer, "schedule": schedule, "generator": generator, "loader": loader,
            "function": tw.function(gain), "gradient": tw.function(tw.grad(total))}  # fmt: skip
    results(name, held)
    return held


def total(x):
    return (x * x).sum()


def results(name, held):
    """The numbers of a run that goes on from here; their bits are compared."""
    tw = importlib.import_module(name)
    tw.manual_seed(7)
    found = []
    for _ in range(2):
        held["optimizer"].zero_grad()
        loss = held["model"](tw.tensor(X)).square().mean()
        loss.backward()
        held["optimizer"].step()
        held["schedule"].step()
        found.append(float(loss))
    found += [x.tolist() for x in held["loader"]]
    found += [held["generator"].get_state().tolist(), held["schedule"].get_last_lr()]
    return [*found, np.asarray(held["function"](X)).tobytes(), np.asarray(held["gradient"](X)).tobytes()]


def answer(name, held):
    """The results, and how many kernels this process has compiled."""
    found = results(name, held)
    function = held["function"]
    return found, function.explain().machine_code.get("compiled", 0) if name == "static" else 0
