"""Traced arrays: stand-ins for arrays of the user's program while it is traced."""
