"""Tests of `static.lowering`: fusion, loops, memory, threads."""
