"""One file per workload, discovered by :func:`benchmarks.workload.discover`; each defines ``WORKLOADS``."""
