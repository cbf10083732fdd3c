"""Every op, one record each, by theme; names in a module's `__all__` are public functions."""
