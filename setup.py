"""Build the compiled modules; everything else about the project stands in pyproject.toml."""

import compileall
import os

import numpy
from Cython.Build import cythonize
from pybind11.setup_helpers import Pybind11Extension
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

# No -march here: a wheel runs on any x86-64. What must be fast on one machine is compiled on that machine.
FLAGS = ["-O3", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
INCLUDES = ["include", "src/native"]

# Module -> its C++ sources beside the .pyx file that stands at its import path under pyx/.
CYTHON: dict[str, list[str]] = {
    "cyxla._native.launch": [],
}
# Module -> all its C++ sources under src/native.
PYBIND: dict[str, list[str]] = {
    "cyxla._native._rt": ["module.cpp", "blocks.cpp", "threads.cpp", "poll.cpp"],
}


def cython_extension(module: str, sources: list[str]) -> Extension:
    """Describe one Cython module."""
    return Extension(
        module,
        [f"pyx/{module.replace('.', '/')}.pyx", *(f"src/native/{name}" for name in sources)],
        include_dirs=[*INCLUDES, numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=[*FLAGS, "-Wno-unused-function", "-Wno-cast-function-type"],
        depends=["include/cyxla/abi.h", "src/native/runtime.h"],
    )


def pybind_extension(module: str, sources: list[str]) -> Extension:
    """Describe one pybind11 module."""
    headers = [f"src/native/{name}" for name in sorted(os.listdir("src/native")) if name.endswith((".h", ".hpp"))]
    return Pybind11Extension(
        module,
        [f"src/native/{name}" for name in sources],
        include_dirs=INCLUDES,
        cxx_std=17,
        extra_compile_args=[*FLAGS, "-pthread"],
        extra_link_args=["-pthread"],
        depends=["include/cyxla/abi.h", *headers],
    )


class BuildInPlace(build_ext):
    """Compile the Python sources of an editable install too, as pip does for any other: a new process starts sooner."""

    def run(self) -> None:
        """Build, then compile."""
        super().run()
        if self.inplace or self.editable_mode:
            compileall.compile_dir("src/cyxla", quiet=1)


setup(
    cmdclass={"build_ext": BuildInPlace},
    # The headers travel as a package, so that cyxla.get_include() works from a wheel too.
    package_dir={"": "src", "cyxla.include.cyxla": "include/cyxla"},
    packages=[*find_packages("src"), "cyxla.include.cyxla"],
    package_data={"": ["*.pyi"], "cyxla": ["py.typed"], "cyxla.include.cyxla": ["*.h"]},
    ext_modules=[
        *cythonize(
            [cython_extension(module, sources) for module, sources in CYTHON.items()],
            include_path=["pyx"],
            build_dir="build",
            compiler_directives={"language_level": 3},
        ),
        *(pybind_extension(module, sources) for module, sources in PYBIND.items()),
    ],
)
