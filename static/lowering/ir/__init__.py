"""What lowering speaks of: loop IR, items over buffers, steps that are no kernel calls."""
