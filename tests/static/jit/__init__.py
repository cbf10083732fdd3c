"""Tests of `static.jit`: compiled functions, their arguments, results and gradients."""
