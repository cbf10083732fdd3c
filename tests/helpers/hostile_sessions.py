"""Valid calls of graphs, sessions and the compiler's tools, for `tests.helpers.hostile`."""

# Calls that break types on purpose, made in loops by lambdas with defaults.
# mypy: disable-error-code="misc, assignment, index, dict-item, return-value"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import static

f4 = np.float32
Make = Callable[[np.random.Generator], tuple[Callable[..., Any], list[Any], dict[str, Any]]]


def double(y: Any) -> Any:
    """Twice `y`."""
    return y * 2


def table() -> dict[str, Make]:
    """Calls of graphs and sessions, each in a graph of its own."""
    calls: dict[str, Make] = {}

    def add(name: str, make: Callable[[], Any]) -> None:
        def at(rng: np.random.Generator) -> Any:
            static.reset_default_graph()
            function, args, *rest = make()
            return function, list(args), dict(rest[0]) if rest else {}

        calls[f"session.{name}"] = at

    def place() -> Any:
        return static.placeholder("float32", [2, 3])

    def variable() -> Any:
        return static.Variable(np.ones((2, 3), f4))

    def session() -> Any:
        return static.Session()

    def run(fetches: Any = None, feed: Any = None, fed: Any = None) -> Any:
        p = place()
        return session().run, [p * 2], {"feed_dict": {p: np.ones((2, 3), f4)}}

    def started() -> Any:
        v, s = variable(), session()
        s.run(static.global_variables_initializer())
        return v, s

    def restore() -> Any:
        _, s = started()
        return static.Saver().restore, [s, "model"]

    def callable_() -> Any:
        p = place()
        return session().make_callable, [p * 2, [p]]

    def fed() -> Any:
        p = place()
        return session().make_callable(p * 2, [p]), [np.ones((2, 3), f4)]

    def load() -> Any:
        v, s = started()
        return s.load, [v, np.ones((2, 3), f4)]

    add("placeholder", lambda: (static.placeholder, ["float32", [2, 3], "name"]))
    add("placeholder_with_default", lambda: (static.placeholder_with_default, [np.ones((2, 3), f4), [2, 3]]))
    add("constant", lambda: (static.constant, [[1.0, 2.0]], {"dtype": "float32", "shape": [2], "name": "c"}))
    add("identity", lambda: (static.identity, [place()], {"name": "i"}))
    add("Variable", lambda: (static.Variable, [np.ones(2, f4)], {"trainable": True, "name": "v", "dtype": None}))
    add("get_variable", lambda: (static.get_variable, ["v", [2, 3]], {"dtype": "float32", "initializer": None}))
    for name in ("assign", "assign_add", "assign_sub"):
        add(name, lambda n=name: (getattr(static, n), [variable(), np.ones((2, 3), f4)]))
        add(f"Variable.{name}", lambda n=name: (getattr(variable(), n), [np.ones((2, 3), f4)]))

    def gradients() -> Any:
        v = variable()
        return static.gradients, [(v * v).sum(), v], {"grad_ys": None, "name": "g", "stop_gradients": None}

    add("gradients", gradients)
    add("group", lambda: (static.group, [variable(), place()]))
    add("no_op", lambda: (static.no_op, ["n"]))
    add("name_scope", lambda: (_entered(static.name_scope), ["a"]))
    add("variable_scope", lambda: (_entered(static.variable_scope), ["a"], {"reuse": None}))
    add("control_dependencies", lambda: (_entered(static.control_dependencies), [[place()]]))
    add("add_to_collection", lambda: (static.add_to_collection, ["a", 1]))
    add("get_collection", lambda: (static.get_collection, ["a", None]))
    add("set_random_seed", lambda: (static.set_random_seed, [1]))
    add("variables_initializer", lambda: (static.variables_initializer, [[variable()]]))
    add("Session", lambda: (static.Session, [], {"graph": None, "fuse": True, "interpret": False}))
    add("Session.run", run)
    add("Session.make_callable", callable_)
    add("Session.make_callable()", fed)
    add("Session.load", load)
    add("Saver", lambda: (static.Saver, [[variable()], 5]))
    add("Saver.save", lambda: (lambda *a: static.Saver().save(*a), [started()[1], "model"], {}))
    add("Saver.restore", restore)
    for name in ("get_operation_by_name", "get_tensor_by_name", "as_graph_element", "unique_name", "get_collection"):
        add(f"Graph.{name}", lambda n=name: (getattr(static.get_default_graph(), n), ["a"]))
    for name in ("compare", "debug", "nan_watch"):
        add(f"static.{name}", lambda n=name: (
            getattr(static, n), [double, *([[np.ones(2, f4)]] if n == "compare" else [np.ones(2, f4)])],
            {"stdin": _Empty(), "stdout": _Empty()} if n == "debug" else {}))  # fmt: skip
    add("static.compile", lambda: (static.compile, [static.nn.Linear(3, 2)]))
    add("static.compile()", lambda: (static.compile(static.nn.Linear(3, 2)), [np.ones((2, 3), f4)]))
    return calls


class _Empty:
    """A terminal where nobody types."""

    def readline(self) -> str:
        return ""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def _entered(manager: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> None:
        with manager(*args, **kwargs):
            pass

    return call
