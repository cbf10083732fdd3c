"""From a program to calls: memory, native instructions, the disk, and the interpreter."""
