"""The vocabulary of lowering: items over buffers, program values, steps that are no kernel calls."""
