"""Loops that are cut into parts for threads, and kernels that run side by side."""
