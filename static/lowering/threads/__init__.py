"""Which loops are cut into parts for threads, and which kernels run side by side."""
