"""How programs reach the service: the client chain of XLA, and `compile`."""

from cyxla.xla.client.local_client import LocalClient, LocalExecutable
from cyxla.xla.client.program import compile_program, read_program

__all__ = ["LocalClient", "LocalExecutable", "compile_program", "read_program"]
