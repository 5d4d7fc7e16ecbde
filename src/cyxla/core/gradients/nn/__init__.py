"""Gradients of neural networks: layers, losses, quantisation, and none of training."""
