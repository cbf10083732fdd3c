"""Reads and writes at indices that are data, inside fused loops."""
