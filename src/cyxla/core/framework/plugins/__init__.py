"""Host side of the interfaces of kernels in C, ``include/cyxla/kernel_plugin.h``.

`interface` mirrors the structs of version 2, `memory` fills them with Python's values, and `context` holds the state of
a call of a C function and the table of functions that it may call back. `kernels`, `shape_functions` and `resources`
build on it. Version 1 is in `version_1`; `library` registers the contents of a library of either.
"""

VERSIONS = (1, 2)  # of the interface
