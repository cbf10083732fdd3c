"""Both engines, the same bits: cases generated from the registry and the list of public functions."""
