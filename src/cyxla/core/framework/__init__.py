"""What an op is: declarations, attributes, shapes, kernels, and the registries that hold them."""
