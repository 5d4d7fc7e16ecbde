"""Methods of ufuncs on traced arrays: reduce, accumulate, reduceat, outer and at."""
