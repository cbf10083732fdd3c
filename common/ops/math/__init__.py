"""Elementwise functions: arithmetic, elementary and special functions, comparisons, dtypes."""
