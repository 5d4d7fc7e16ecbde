"""Environment of kernels: files, clock and threads, and the files that a graph may access."""
