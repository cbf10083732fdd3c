"""The intermediate representation.

A program as a DAG of typed records, its regions, its checks and its form on disk.
"""

from static.graph.nodes import Effect, Graph, Node, Source, Value, derived_id, rebuild

__all__ = ["Effect", "Graph", "Node", "Source", "Value", "derived_id", "rebuild"]
