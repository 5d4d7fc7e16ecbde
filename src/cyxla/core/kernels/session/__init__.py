"""Kernels that reach beyond their step: into the session, and into Python."""
