"""State outside of traced functions: globals, closures and attributes that they read and write."""
