"""Graphs that are built first and run by sessions, as users of TensorFlow 1 know them: see docs/session.md."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from static.session.building import GraphKeys as GraphKeys
from static.session.defaults import get_default_graph as get_default_graph
from static.session.defaults import get_default_session as get_default_session
from static.session.defaults import reset_default_graph as reset_default_graph
from static.session.gradients import gradients as gradients
from static.session.graph_tensor import GraphTensor as GraphTensor
from static.session.graph_tensor import Operation as Operation
from static.session.placeholders import constant as constant
from static.session.placeholders import identity as identity
from static.session.placeholders import placeholder as placeholder
from static.session.placeholders import placeholder_with_default as placeholder_with_default
from static.session.saver import Saver as Saver
from static.session.session import InteractiveSession as InteractiveSession
from static.session.session import Session as Session
from static.session.session import set_random_seed as set_random_seed
from static.session.session_graph import Graph as Graph
from static.session.variables import AUTO_REUSE as AUTO_REUSE
from static.session.variables import Variable as Variable
from static.session.variables import assign as assign
from static.session.variables import assign_add as assign_add
from static.session.variables import assign_sub as assign_sub
from static.session.variables import get_variable as get_variable
from static.session.variables import global_variables as global_variables
from static.session.variables import global_variables_initializer as global_variables_initializer
from static.session.variables import trainable_variables as trainable_variables
from static.session.variables import variable_scope as variable_scope
from static.session.variables import variables_initializer as variables_initializer


def name_scope(name: str) -> AbstractContextManager[str]:
    """Context manager: names of new operations of the default graph begin with `name` and a slash."""
    return get_default_graph().name_scope(name)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Context manager: new operations of the default graph run after `control_inputs`; None forgets outer blocks."""
    return get_default_graph().control_dependencies(control_inputs)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that does nothing but run after all of `inputs`."""
    graph = inputs[0].graph if inputs and hasattr(inputs[0], "graph") else get_default_graph()
    return graph.group(*inputs, name=name)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing."""
    return get_default_graph().group(name=name)


def add_to_collection(name: str, value: Any) -> None:
    """Keep a value under a name, in the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(name: str, scope: str | None = None) -> list[Any]:
    """Values that the default graph keeps under a name; with `scope`, those whose names begin with it."""
    return get_default_graph().get_collection(name, scope)
