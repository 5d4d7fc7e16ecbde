"""Parts of a program that are recorded in place: their variables, and the Python objects that they may change."""
