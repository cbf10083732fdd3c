"""Programs about PyTorch's autograd mechanics that hold in both engines and in PyTorch alike.

Each file holds functions of one argument, the module `tw` that the program uses as PyTorch is used, and asserts what
PyTorch's documentation says. `test_mechanics.py` runs them with `dynamic` and, in a process that imports no other
engine, with `static`; `python -m tests.mechanics` runs them with PyTorch, where it is installed, so that what they
assert is PyTorch's own behaviour and not our belief about it.
"""
