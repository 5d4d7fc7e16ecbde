"""Clients: compilation of programs by XLA's client classes and by `compile_program`."""

from cyxla.xla.client.local_client import LocalClient, LocalExecutable
from cyxla.xla.client.program import compile_program, read_program

__all__ = ["LocalClient", "LocalExecutable", "compile_program", "read_program"]
