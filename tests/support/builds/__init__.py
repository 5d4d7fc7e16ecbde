"""Shared objects, libraries, plugins and wheels that tests build."""
