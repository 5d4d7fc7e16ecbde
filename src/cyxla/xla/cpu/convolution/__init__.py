"""Convolutions, channels last."""
