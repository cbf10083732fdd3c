"""From a Python function to a graph: what is recorded, on what it relies, and when another trace is needed."""
