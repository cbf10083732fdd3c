"""Calls of machine code.

Builtins on CPython's and numpy's objects, whole programs, threads. The only room that knows CPython's structures.
"""
