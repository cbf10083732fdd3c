"""A graph as a program: items, kernels, where arrays lie, which calls run in which order."""
