"""Machine code: kernel source to object code (numba), a disk cache, and calls that cost 100 ns (llvmlite)."""
