"""Ahead-of-time compilation: programs as C libraries that need neither cyxla nor Python."""
