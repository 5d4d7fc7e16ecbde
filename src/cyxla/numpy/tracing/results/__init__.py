"""Results of operations as NumPy returns them: element types, memory layouts, and 0-d results."""
