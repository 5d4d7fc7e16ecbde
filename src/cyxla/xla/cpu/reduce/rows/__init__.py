"""Row groups such as softmax: reductions along rows, and all that reads the same rows, in one kernel."""
