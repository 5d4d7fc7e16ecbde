"""Running a Python function once, on arrays that stand for any values."""
