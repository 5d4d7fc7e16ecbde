"""Graphs of ops: construction, import and export, validation and differentiation."""
