"""Custom calls: LAPACK, registered C functions, Python."""
