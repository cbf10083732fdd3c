"""ONNX models as modules of both engines: the bytes of the file, its records, and what each operator means."""
