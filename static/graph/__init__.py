"""The graph of a program: its nodes and regions, what holds for any of them, and how they are divided and kept."""

from static.graph.nodes import Effect, Graph, Node, Source, Value, rebuild

__all__ = ["Effect", "Graph", "Node", "Source", "Value", "rebuild"]
