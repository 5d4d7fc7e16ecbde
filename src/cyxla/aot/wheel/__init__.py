"""Programs as Python packages that need NumPy alone: an extension module, types, a wheel that holds them.

`trees` describes arguments and results, `package` writes the Python files, `extension` builds the C module, `archive`
makes the wheel. `runtime` is the Python code that is copied into packages.
"""

from cyxla.aot.wheel.product import write_wheel

__all__ = ["write_wheel"]
