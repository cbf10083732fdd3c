"""The eager engine's fast paths: the tensor class, and one native call per commonest op."""
