"""TensorFlow's framework: ops, kernels, graphs and their execution, independent of HLO."""
