"""Gradients of neural network layers, losses and quantisation."""
