"""Running ops on arrays at once: recipes, kernels made on first use, and what is fused."""
