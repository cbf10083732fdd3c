"""Questions about devices and precision, answered truthfully: one CPU, float32 and float64."""
