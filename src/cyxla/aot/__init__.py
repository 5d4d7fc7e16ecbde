"""Ahead-of-time compilation: programs as C libraries that need neither cyxla nor Python.

`compile` makes a library in a folder. Its parts are public as well: `programs.program` reads a program,
`sources.write` gives all files of a library, `build` compiles them.
"""

from cyxla.aot.products import Product, compile
from cyxla.aot.program import NamedArray, Program
from cyxla.aot.programs import program

__all__ = ["NamedArray", "Product", "Program", "compile", "program"]
