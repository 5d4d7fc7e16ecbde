"""Loop kernels: index arithmetic, loop IR, hoisting, element-wise loops, epilogues, and while loops in one kernel."""
