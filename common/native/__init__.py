"""Machine code: primitives, their LLVM backend, compilation, caching and calls."""
