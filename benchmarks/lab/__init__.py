"""The laboratory: what each step from define-by-run to define-then-run buys, for any program."""
