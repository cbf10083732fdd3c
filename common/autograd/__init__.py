"""Differentiation of the tape.

The backward pass, hooks, regions, functions with rules of the user's own, the recorded graph.
"""
