"""Parts of proofs: examples, random programs, hostile values, planted defects, and the writers of generated pages."""
