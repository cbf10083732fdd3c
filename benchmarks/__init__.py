"""The costs of each engine, and when define-then-run pays off: ``python3 -m benchmarks``."""
