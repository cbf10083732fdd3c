"""Items that share a kernel, and the order in which kernels run."""
