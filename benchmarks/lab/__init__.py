"""The laboratory: the gain of each step from define-by-run to define-then-run, for any program."""
