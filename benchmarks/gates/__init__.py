"""Gates: bounds that are measured and asserted, ``python3 -m pytest benchmarks``."""
