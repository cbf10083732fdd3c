"""Every op, one record each, by theme; what a module names in `__all__` is a public function."""
