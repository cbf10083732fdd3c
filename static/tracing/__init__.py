"""From a Python function to a graph: recording, assumptions, and the need for another trace."""
