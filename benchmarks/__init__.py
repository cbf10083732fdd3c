"""What each engine costs, and when define-then-run pays off: ``python3 -m benchmarks``."""
