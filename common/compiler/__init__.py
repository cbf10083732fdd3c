"""Kernel text to machine code, in one direction: source, typed values, LLVM, object code, addresses."""
