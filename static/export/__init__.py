"""Programs that leave: as a networkx DAG, as a file, as a module of numba, as a C library, as ONNX."""
