"""Pages that stand alone: the report of a run, and a program from its source lines to its kernels."""
