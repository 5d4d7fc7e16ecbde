"""Declarations of ops for neural network layers, losses, optimisers, images and quantisation."""
