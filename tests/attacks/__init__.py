"""Random, hostile and guarded calls of everything public, in processes of their own."""
