"""Kernels against their plain numpy oracles, by bits."""
