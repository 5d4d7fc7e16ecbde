"""The oracle as a platform: any module, on NumPy."""
