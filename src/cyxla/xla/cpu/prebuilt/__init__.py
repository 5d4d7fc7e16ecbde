"""Prebuilt functions, compiled with the package, and programs that run on them alone."""
