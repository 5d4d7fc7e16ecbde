"""Row groups such as softmax: reductions along rows, and element-wise operations on the same rows, in one kernel."""
