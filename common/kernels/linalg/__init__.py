"""Dense linear algebra by LAPACK: functions of numpy arrays that kernels call, the same in both engines."""
