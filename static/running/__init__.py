"""From a program to calls: memory, native instructions, threads, the disk, and the interpreter."""
