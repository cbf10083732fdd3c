"""Programs for other eyes: pictures of graphs as text, DOT and SVG, and event files for TensorBoard."""
