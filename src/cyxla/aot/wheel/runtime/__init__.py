"""Python code that is copied into wheels; it needs NumPy alone."""
