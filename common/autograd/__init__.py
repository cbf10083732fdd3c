"""Differentiation: the tape, the order in which gradients flow back, and everything that users hang into it."""
