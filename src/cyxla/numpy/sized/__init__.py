"""NumPy's functions of arrays whose size is known at run time; imported when the first such array is used."""
