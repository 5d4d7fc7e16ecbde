"""Verbs of the command ``cyxla``: one module for each, with `add_arguments` and `main`."""
